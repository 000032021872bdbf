"""A tiny environment for tests: count to the goal. Registered as `Test/Counting-v0` on import."""

from collections.abc import Sequence
from typing import Any

import gymnasium as gym

from arl_gym.core import Outcome, TextEnv, Unicode
from arl_gym.rng import digest

ID = "Test/Counting-v0"


class Counting(TextEnv):
    """Say "up" until the goal is reached. Task i has the goal 1 + i % 3; "crash" breaks the env."""

    def __init__(
        self, *, split: str = "train", max_steps: int = 4, broken: str = "", render_mode: str | None = None
    ):
        super().__init__(dataset="generated", split=split, max_steps=max_steps, render_mode=render_mode)
        self.observation_space, self.action_space = Unicode(), Unicode()
        self.broken = broken
        self.n = self.goal = 0

    def task_ids(self, split: str | None = None) -> Sequence[str]:
        return [f"{split or self.split}/{i}" for i in range(12)]

    def _begin(self, task_id: str) -> None:
        if task_id == self.broken:
            raise RuntimeError("no such level")
        self.n, self.goal = 0, 1 + int(task_id.partition("/")[2]) % 3

    def _apply(self, action: Any) -> Outcome:
        if action == "crash":
            raise RuntimeError("the env broke")
        self.n += {"up": 1, "down": -1}.get(action, 0)
        done = self.n == self.goal
        return Outcome(reward=1.0 if done else -0.25, terminated=done, valid=action in ("up", "down"))

    def _observation(self) -> str:
        return f"{self.n} of {self.goal}"

    def _task(self) -> str:
        return "Count up to the goal."

    def _content_hash(self) -> str:
        return digest(str(self.goal))

    def _success(self) -> bool:
        return self.n == self.goal

    def _score(self) -> float:
        return max(0.0, self.n / self.goal)

    def _state_key(self) -> str:
        return digest(self._observation())

    def _admissible(self) -> list[str]:
        return ["up", "down"]

    def expert_action(self) -> str:
        return "up"

    def expert_thought(self) -> str:
        return f"{self.goal - self.n} to go"


if ID not in gym.registry:
    gym.register(ID, "tests.agents.counting:Counting")


def say(action: str) -> str:
    return f"<think></think><action>{action}</action>"
