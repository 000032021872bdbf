"""Environments for RLlib: registered under a name, made inside Ray's workers, with spaces its models take.

>>> register("boards", "ARL/Sokoban-v0", obs_mode="planes")  # doctest: +SKIP
>>> config = PPOConfig().environment("boards", env_config={"split": "val"})  # doctest: +SKIP
"""

import functools
from collections.abc import Mapping
from typing import Any

import gymnasium as gym
import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Box, Dict
from gymnasium.wrappers import TransformObservation

from arl_gym.adapters.numeric import make_numeric
from arl_gym.errors import ConfigError, DependencyMissing
from arl_gym.wrappers import TextFeatures

Env = gym.Env[Any, Any]
Floats = npt.NDArray[np.float32]


def register(name: str, id: str, **kwargs: Any) -> None:
    """Register an environment with RLlib; `config.environment(name)` then finds it on every worker.

    Pictures and planes become float32 in [0, 1] with the channels last, as RLlib's convolutions read them. A
    text env gives `{"observations", "action_mask"}` as RLlib's action-masking module reads it: the vectors of
    `TextFeatures` in one row (observation, task, actions), and the mask as float32.

    Args:
        name: What `config.environment` takes.
        id: A registered id with its module, or one of this package.
        kwargs: Keyword arguments of `make_numeric` and of the environment; `env_config` overrides them.

    Raises:
        DependencyMissing: If RLlib is not installed.
    """
    try:
        from ray.tune.registry import register_env
    except ImportError as err:
        raise DependencyMissing("arl_gym.adapters.rllib", "rllib") from err
    # A function of a module travels by name: the worker imports this package, which registers the ids.
    register_env(name, functools.partial(make_rllib, id, kwargs))


def make_rllib(id: str, kwargs: Mapping[str, Any], context: Mapping[str, Any]) -> Env:
    """Make an environment as `register` says; `context` is RLlib's, with what `env_config` holds.

    Raises:
        UnknownNameError: As `make_numeric`.
        ConfigError: As `make_numeric`, and if RLlib asks for a vector env of our own.
    """
    if "num_envs" in context:
        raise ConfigError(
            "gym_env_vectorize_mode must be SYNC or ASYNC: RLlib makes its vector envs from single ones"
        )
    env = make_numeric(id, **{**kwargs, **context})
    if isinstance(env, TextFeatures):
        return _masked(env)
    space = env.observation_space
    if isinstance(space, Box) and space.dtype == np.uint8 and len(space.shape) == 3:
        return _channels_last(env, space)
    return env


def _masked(env: TextFeatures) -> Env:
    n = env.get_wrapper_attr("max_actions")

    def convert(seen: Mapping[str, Floats]) -> dict[str, Floats]:
        rows = [seen["observation"], seen["task"], seen["actions"].ravel()]
        return {"observations": np.concatenate(rows), "action_mask": seen["action_mask"].astype(np.float32)}

    seen = Dict(
        observations=Box(-1, 1, ((2 + n) * env.size,), np.float32), action_mask=Box(0, 1, (n,), np.float32)
    )
    return TransformObservation(env, convert, seen)


def _channels_last(env: Env, space: Box) -> Env:
    """Show pictures (H, W, 3) or one-hot planes (C, H, W) as (H, W, C) in [0, 1]."""
    largest = float(space.high.max())
    planes = largest == 1

    def convert(seen: npt.NDArray[Any]) -> Floats:
        return (seen.transpose(1, 2, 0) if planes else seen).astype(np.float32) / np.float32(largest)

    return TransformObservation(env, convert, Box(0, 1, convert(space.low).shape, np.float32))
