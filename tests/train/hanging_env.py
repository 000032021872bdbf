"""An environment that hangs, in a module of its own: a worker process that opens it need not import torch."""

import threading

import gymnasium as gym

from arl_gym.core import Unicode


class Hanging(gym.Env[str, str]):
    """Answers a number of steps, counted over the process, and then never again."""

    observation_space = action_space = Unicode()
    steps = 0
    patience = 12

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return "go", {"task_id": str(seed), "success": False}

    def step(self, action):
        Hanging.steps += 1
        if Hanging.steps > self.patience:
            threading.Event().wait()
        return "", float(Hanging.steps % 2), True, False, {"task_id": "x", "success": False}
