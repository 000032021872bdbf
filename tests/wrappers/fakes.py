"""Two corridors: one by the least a third-party env may give, one by the whole contract."""

import gymnasium as gym
import numpy as np

from arl_gym.core import Message, Outcome, PromptView, TextEnv, Unicode


class Corridor(gym.Env):
    """From cell 0 to cell 3 by "right"; anything else stays. Gives `task_id` and `success` only."""

    def __init__(self):
        self.observation_space, self.action_space = Unicode(), Unicode()

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.cell, self.got = 0, []
        return "cell 0", self._info()

    def step(self, action):
        self.got.append(action)
        self.cell += action == "right"
        done = self.cell == 3
        return f"cell {self.cell}", 1.0 if done else 0.25, done, False, self._info()

    def _info(self):
        return {"task_id": "corridor", "success": self.cell == 3}


class FullCorridor(TextEnv):
    """The same walk with every info key, an expert, and observations as text, picture or both."""

    def __init__(self, *, length=3, obs_mode="text", dataset="generated", split="train", max_steps=9):
        super().__init__(dataset=dataset, split=split, max_steps=max_steps)
        self.length, self.obs_mode = length, obs_mode
        self.observation_space, self.action_space = Unicode(), Unicode()

    def task_ids(self, split=None):
        return ["a", "b"]

    def _begin(self, task_id):
        self.cell = 0

    def _apply(self, action):
        self.cell += action == "right"
        return Outcome(
            reward=10.0 if self._success() else -0.5,
            terminated=self._success(),
            valid=action in self._admissible(),
        )

    def _observation(self):
        picture = np.full((2, 2, 3), 50 * self.cell, dtype=np.uint8)
        text = f"cell {self.cell}"
        return {"text": text, "image": picture, "both": {"text": text, "image": picture}}[self.obs_mode]

    def _task(self):
        return "walk to the end"

    def _content_hash(self):
        return "c0ffee"

    def _success(self):
        return self.cell == self.length

    def _score(self):
        return self.cell / self.length

    def _state_key(self):
        return f"key{self.cell}"

    def _admissible(self):
        return ["left", "right"]

    def expert_action(self):
        return "right"

    def expert_thought(self):
        return f"{self.length - self.cell} to go"


def terse(view: PromptView) -> list[Message]:
    """Show everything a view holds in one line."""
    past = " ".join(f"{k}:{seen}>{action}" for k, seen, action in view.history)
    return [{"role": "user", "content": f"[{view.step}] {past} | {view.observation}"}]


PROMPTS = {"default": terse, "loud": lambda view: [{"role": "user", "content": view.observation.upper()}]}
