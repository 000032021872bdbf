"""Environments with numbers on both sides, for libraries that know `Box` and `Discrete` only.

>>> env = make_numeric("ARL/ALFWorld-v0", split="val")  # doctest: +SKIP
"""

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.envs.registration import EnvSpec

from arl_gym.errors import ConfigError
from arl_gym.make import find_spec
from arl_gym.wrappers import DiscreteActions, TextFeatures
from arl_gym.wrappers.discrete_actions import MAX_ACTIONS
from arl_gym.wrappers.text_features import SIZE


def make_numeric(
    id: str | EnvSpec,
    *,
    max_actions: int = MAX_ACTIONS,
    allow_more: bool = False,
    features: int = SIZE,
    **env_kwargs: Any,
) -> gym.Env[Any, Any]:
    """Make an environment that takes and gives numbers.

    One that does already is left as it is: Sokoban with `obs_mode="planes"` or "grid", or "image" with
    `action_mode="discrete"`. One of text goes through `DiscreteActions` and `TextFeatures`.

    Args:
        id: A registered id, with or without its module, or its spec.
        max_actions: Numbers for the admissible actions of a text env.
        allow_more: Whether it may list more, which then have no number.
        features: Length of the vector of a text.
        env_kwargs: Keyword arguments of the environment.

    Raises:
        UnknownNameError: If the id is unknown.
        ConfigError: If only one side is text, or the env's actions cannot be numbered (at the latest on
            reset).
    """
    env: gym.Env[Any, Any] = gym.make(find_spec(id), disable_env_checker=True, **env_kwargs)
    text = [space.dtype == np.dtype(str) for space in (env.observation_space, env.action_space)]
    if all(text):
        return TextFeatures(DiscreteActions(env, max_actions, allow_more), features)
    if any(text):
        raise ConfigError(
            f"{env.unwrapped} gives {env.observation_space} and takes {env.action_space}: text on one side "
            "only has no view in numbers (Sokoban: pass action_mode='discrete' and an obs_mode of numbers)"
        )
    return env
