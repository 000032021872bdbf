"""Text actions as numbers, for libraries that choose among a fixed number of actions.

>>> env = DiscreteActions(gym.make("ARL/ALFWorld-v0"))  # doctest: +SKIP
"""

from typing import Any

import gymnasium as gym
import numpy as np
import numpy.typing as npt

from arl_gym.core import check_count
from arl_gym.errors import ActionError, ConfigError

MAX_ACTIONS = 100
"""Actions by default. Generated tasks were seen to list 56 (ALFWorld) and 65 (WebShop) at most."""


class DiscreteActions(gym.Wrapper[Any, Any, Any, Any], gym.utils.RecordConstructorArgs):
    """Numbers the admissible actions: action k is the k-th of `info["admissible_actions"]`.

    What a number means changes from step to step, so a policy needs to see the actions, as `TextFeatures`
    shows them. A number beyond the present list is an invalid action: the env gets the empty string and
    `info["action_valid"]` is False. On WebShop's search page the one action is the search for the instruction
    (from which the expert went on to win 200 of 200 generated tasks); other queries have no number. TIR-Math
    lists no actions.

    `info` on every reset and step: `action_mask`, int8 of shape (max_actions,), 1 where there is an action,
    as `Discrete.sample` takes it, all 0 where there is none (a finished purchase); `action: str`, what the
    env got ("" on reset); `n_left_out: int`, see `allow_more`. The method `action_masks()` gives the mask as
    booleans, where sb3-contrib's maskable algorithms look for it.

    Args:
        env: An environment that takes strings and gives `info["admissible_actions"]`.
        max_actions: Numbers there are.
        allow_more: Whether the env may list more actions than that; the last ones then have no number, and
            `info["n_left_out"]` says how many these are.

    Raises:
        ConfigError: If the env takes no strings or `max_actions` is below 1; on reset and step, if the env
            lists no actions at the start, or more than `max_actions` without `allow_more`.
    """

    def __init__(self, env: gym.Env[Any, Any], max_actions: int = MAX_ACTIONS, allow_more: bool = False):
        gym.utils.RecordConstructorArgs.__init__(self, max_actions=max_actions, allow_more=allow_more)
        gym.Wrapper.__init__(self, env)
        check_count("max_actions", max_actions)
        if env.action_space.dtype is not None and env.action_space.dtype != np.dtype(str):
            raise ConfigError(
                f"DiscreteActions needs an env that takes strings; {env.unwrapped} takes {env.action_space}"
            )
        self.max_actions, self.allow_more = max_actions, allow_more
        self.action_space = gym.spaces.Discrete(max_actions)
        self._admissible: list[str] = []

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Start an episode; see the wrapped env."""
        obs, info = self.env.reset(seed=seed, options=options)
        if not info.get("admissible_actions"):
            raise ConfigError(
                f"DiscreteActions needs info['admissible_actions'], of which {self.unwrapped} gives none: "
                "its actions cannot be numbered"
            )
        info["action"] = ""
        self._number(info)
        return obs, info

    def step(self, action: int) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Carry out the action of this number.

        Raises:
            ActionError: If it is no whole number from 0 to `max_actions` - 1.
        """
        if not self.action_space.contains(action):
            raise ActionError(f"DiscreteActions takes 0 to {self.max_actions - 1}, got {action!r}")
        known = int(action) < len(self._admissible)
        taken = self._admissible[int(action)] if known else ""
        obs, reward, terminated, truncated, info = self.env.step(taken)
        if not known:
            info["action_valid"] = False
        info["action"] = taken
        self._number(info)
        return obs, reward, terminated, truncated, info

    def action_masks(self) -> npt.NDArray[np.bool_]:
        """Return which numbers stand for an action now, shape (max_actions,)."""
        return np.arange(self.max_actions) < len(self._admissible)

    def _number(self, info: dict[str, Any]) -> None:
        listed = list(info["admissible_actions"])
        n_left_out = max(0, len(listed) - self.max_actions)
        if n_left_out and not self.allow_more:
            raise ConfigError(
                f"{self.unwrapped} lists {len(listed)} admissible actions, more than "
                f"max_actions={self.max_actions}: raise it, or pass allow_more=True"
            )
        self._admissible = listed[: self.max_actions]
        info["n_left_out"] = n_left_out
        info["action_mask"] = self.action_masks().astype(np.int8)
