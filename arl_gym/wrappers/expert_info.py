"""Puts the env's expert into `info`, where it also reaches callers in another process."""

from typing import Any

import gymnasium as gym

from arl_gym.errors import ConfigError


class ExpertInfo(gym.Wrapper[Any, Any, Any, Any], gym.utils.RecordConstructorArgs):
    """Adds `info["expert_action"]` and `info["expert_thought"]`, strings, on every reset and step.

    They say what the expert would do next; after the end of the episode both are "". An env without
    `expert_thought` gives "" for it.

    Args:
        env: An environment with a method `expert_action() -> str`.

    Raises:
        ConfigError: If the env has no expert (at the latest on reset).
    """

    def __init__(self, env: gym.Env[Any, Any]):
        gym.utils.RecordConstructorArgs.__init__(self)
        gym.Wrapper.__init__(self, env)
        if not env.has_wrapper_attr("expert_action"):
            raise ConfigError(self._no_expert())
        self._action = env.get_wrapper_attr("expert_action")
        self._thought = (
            env.get_wrapper_attr("expert_thought") if env.has_wrapper_attr("expert_thought") else str
        )

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Start an episode; see the wrapped env."""
        obs, info = self.env.reset(seed=seed, options=options)
        self._ask(info)
        return obs, info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Carry out one action; see the wrapped env."""
        obs, reward, terminated, truncated, info = self.env.step(action)
        if terminated or truncated:
            info["expert_action"] = info["expert_thought"] = ""
        else:
            self._ask(info)
        return obs, reward, terminated, truncated, info

    def _ask(self, info: dict[str, Any]) -> None:
        try:
            info["expert_action"], info["expert_thought"] = self._action(), self._thought()
        except NotImplementedError as err:
            raise ConfigError(self._no_expert()) from err

    def _no_expert(self) -> str:
        name = type(self.unwrapped).__name__
        return f"ExpertInfo needs an env with expert_action() -> str, which {name} has not"
