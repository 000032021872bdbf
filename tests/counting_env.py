"""A text environment small enough to know by heart, for tests that run envs in worker processes.

A task "train/k" is over when the count has gone up k+1 times by the action "up"; three tasks per split.
"""

import os
import signal
import sys
import threading
import time
from typing import Any

import gymnasium as gym

from arl_gym.core import Outcome, TextEnv, Unicode
from arl_gym.rng import digest


class Tasks:
    """The ids "split/0" … "split/n-1"."""

    def __init__(self, split: str, n: int = 3):
        self.split, self.n = split, n

    def __len__(self):
        return self.n

    def __getitem__(self, k):
        return f"{self.split}/{range(self.n)[k]}"


class CountingEnv(TextEnv):
    """Counts the action "up"; some other actions do what their name says."""

    server_up = True

    def __init__(self, *, split: str = "train", max_steps: int = 5, render_mode: str | None = None):
        super().__init__(dataset="generated", split=split, max_steps=max_steps, render_mode=render_mode)
        self.observation_space = Unicode()
        self.action_space = Unicode()
        self.count = 0

    def task_ids(self, split=None) -> Any:
        return Tasks(split or self.split)

    def _begin(self, task_id):
        if not self.server_up:
            raise ConnectionError("no server")
        self.said, self.lock = "", None
        self.goal = int(task_id.split("/")[1]) + 1
        self.count = 0

    def _apply(self, action):
        if action == "crash":
            raise ZeroDivisionError("the count\nis gone")
        if action == "hang":
            while True:
                time.sleep(60)
        if action == "die":
            os.kill(os.getpid(), signal.SIGKILL)
        if action == "exit":
            raise SystemExit(3)
        if action == "lock":
            self.lock = threading.Lock()
        if action.startswith("say "):
            self.said = action
        valid = action == "up"
        self.count += valid
        done = self.count >= self.goal
        return Outcome(reward=10.0 if done else -0.1, terminated=done, valid=valid)

    def _observation(self):
        return self.said or f"{self.count} of {self.goal}"

    def _task(self):
        return f"Count to {self.goal}."

    def _content_hash(self):
        return digest(f"goal {self.goal}")

    def _success(self):
        return self.count >= self.goal

    def _score(self):
        return self.count / self.goal

    def _state_key(self):
        return digest(f"{self.count}/{self.goal}")

    def _admissible(self):
        return ["up", "wait"]

    def expert_action(self):
        return "up"

    def _extra_info(self):
        return {"lock": self.lock} if self.lock else {}

    def pid(self):
        """Return the process the env lives in."""
        return os.getpid()

    def perish(self):
        """Kill the process the env lives in."""
        os.kill(os.getpid(), signal.SIGKILL)

    def take_server_down(self):
        """Make every reset fail."""
        self.server_up = False

    def loaded(self, *names):
        """Return which of the modules are loaded."""
        return [name for name in names if name in sys.modules]


def make_counting_env():
    """Return a counting env behind a wrapper."""
    return gym.wrappers.OrderEnforcing(CountingEnv())
