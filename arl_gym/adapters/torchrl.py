"""Environments for torchrl: importing this module teaches it the spaces of text and of chat messages.

>>> import arl_gym.adapters.torchrl  # doctest: +SKIP
>>> env = GymEnv("ARL/WebShop-v0")  # doctest: +SKIP

`ParallelEnv` carries text only without its shared buffers: pass `use_buffers=False`. A batched env
(`gym.make_vec`) needs `autoreset_mode="Disabled"`.
"""

from collections.abc import Mapping
from typing import Any

import gymnasium as gym
from gymnasium.envs.registration import EnvSpec

from arl_gym.core import INFO_TYPES, Chat, Unicode
from arl_gym.errors import DependencyMissing
from arl_gym.make import find_spec

try:
    import torch
    from torchrl.data import Composite, NonTensor, Unbounded
    from torchrl.envs import GymWrapper
    from torchrl.envs.gym_like import BaseInfoDictReader
    from torchrl.envs.libs.gym import register_gym_spec_conversion
except ImportError as err:
    raise DependencyMissing("arl_gym.adapters.torchrl", "torchrl") from err

_NUMBERS = {bool: torch.bool, int: torch.int64, float: torch.float32}


def make_torchrl(
    id: str | EnvSpec, *, infos: Mapping[str, type] = INFO_TYPES, **env_kwargs: Any
) -> GymWrapper:
    """Make an environment for torchrl that gives infos beside the observation.

    Text, lists of actions and chat messages are non-tensor data; numbers are scalars per step.

    Args:
        id: A registered id, with or without its module, or its spec.
        infos: Keys of `info` to give, which the env has on every reset and step, and their types.
        env_kwargs: Keyword arguments of the environment.

    Raises:
        UnknownNameError: If the id is unknown.
    """
    env = GymWrapper(gym.make(find_spec(id), disable_env_checker=True, **env_kwargs))
    return env.set_info_dict_reader(InfoReader(infos))


class InfoReader(BaseInfoDictReader):
    """Copies keys of `info` to torchrl's data, text included, which its own reader does not take.

    Args:
        types: The keys and their types; bool, int and float become tensors.
    """

    def __init__(self, types: Mapping[str, type] = INFO_TYPES):
        self._spec = Composite({key: _spec_of(kind) for key, kind in types.items()})

    def __call__(self, info_dict: Mapping[str, Any], tensordict: Any) -> Any:
        """Add the keys to torchrl's data, and return these."""
        for key, spec in self._spec.items():
            tensordict.set(key, spec.encode(info_dict[key]))
        return tensordict

    @property
    def info_spec(self) -> Composite:
        """The specs of the keys."""
        return self._spec


def _spec_of(kind: type) -> NonTensor | Unbounded:
    if kind in _NUMBERS:
        return Unbounded((), dtype=_NUMBERS[kind])
    return NonTensor((), example_data=kind())


def _text(space: Unicode, device: Any = None, **kwargs: Any) -> NonTensor:
    return NonTensor((), device=device, example_data="")


def _chat(space: Chat, device: Any = None, **kwargs: Any) -> NonTensor:
    return NonTensor((), device=device, example_data=[{"role": "user", "content": ""}])


register_gym_spec_conversion(Unicode)(_text)
register_gym_spec_conversion(Chat)(_chat)
