"""Environments for Stable-Baselines3: numbers, the info keys it reads, and its vector interface.

>>> model = PPO("MlpPolicy", make_sb3_vec("ARL/Sokoban-v0", 64, obs_mode="planes"))  # doctest: +SKIP
"""

import functools
from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium as gym
import numpy as np
import numpy.typing as npt
from gymnasium.envs.registration import EnvSpec
from gymnasium.vector import AutoresetMode

from arl_gym.adapters.numeric import make_numeric
from arl_gym.core import check_count
from arl_gym.envs.sokoban.batch import SokobanVectorEnv
from arl_gym.envs.sokoban.env import SokobanEnv
from arl_gym.errors import ConfigError, DependencyMissing
from arl_gym.make import find_spec

try:
    from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv, VecMonitor
except ImportError as err:
    raise DependencyMissing("arl_gym.adapters.sb3", "sb3") from err

Infos = list[dict[str, Any]]
Array = npt.NDArray[Any]


def make_sb3(id: str | EnvSpec, **kwargs: Any) -> gym.Env[Any, Any]:
    """Make an environment that Stable-Baselines3 takes; its logs count `info["is_success"]`.

    Args:
        id: A registered id, with or without its module, or its spec.
        kwargs: Keyword arguments of `make_numeric` and of the environment.

    Raises:
        UnknownNameError: As `make_numeric`.
        ConfigError: As `make_numeric`.
    """
    return SuccessInfo(make_numeric(id, **kwargs))


def make_sb3_vec(id: str | EnvSpec, num_envs: int, **kwargs: Any) -> VecMonitor:
    """Make environments side by side behind Stable-Baselines3's `VecEnv`, with its monitor.

    Sokoban's boards are stepped together in arrays (`BoardsVecEnv`), others one after another.

    Args:
        id: As in `make_sb3`.
        num_envs: At least 1.
        kwargs: As in `make_sb3`.

    Raises:
        UnknownNameError: As `make_sb3`.
        ConfigError: If `num_envs` is below 1, and as `make_sb3`.
    """
    check_count("num_envs", num_envs)
    spec = find_spec(id)
    first = make_sb3(spec, **kwargs)  # finds fault with the arguments
    if isinstance(first.unwrapped, SokobanEnv) and isinstance(first.observation_space, gym.spaces.Box):
        first.close()
        env_kwargs = {key: kwargs[key] for key in kwargs.keys() - {"max_actions", "allow_more", "features"}}
        boards = SokobanVectorEnv(
            num_envs, autoreset_mode=AutoresetMode.SAME_STEP, **{**spec.kwargs, **env_kwargs}
        )
        return VecMonitor(BoardsVecEnv(boards))
    later = [functools.partial(make_sb3, spec, **kwargs)] * (num_envs - 1)
    return VecMonitor(DummyVecEnv([lambda: first, *later]))


class SuccessInfo(gym.Wrapper[Any, Any, Any, Any]):
    """Gives `info["success"]` of a step also as `info["is_success"]`."""

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Carry out one action; see the wrapped env."""
        obs, reward, terminated, truncated, info = self.env.step(action)
        info["is_success"] = info["success"]
        return obs, reward, terminated, truncated, info


class BoardsVecEnv(VecEnv):
    """A `SokobanVectorEnv` as Stable-Baselines3 wants it: resets within the step, one info dict a board.

    The infos are those of the batched env with `task_id` and `is_success`, as plain numbers.

    Args:
        boards: A batched env in the mode SAME_STEP.
    """

    def __init__(self, boards: SokobanVectorEnv):
        self.boards = boards  # first: the base class asks for an attribute of it
        self._ids = boards.task_ids()
        super().__init__(boards.num_envs, boards.single_observation_space, boards.single_action_space)

    def reset(self) -> Array:
        """Start episodes on all boards, with what `seed` and `set_options` left to do."""
        keys = {key for options in self._options for key in options}
        options = {key: [one.get(key) for one in self._options] for key in keys}
        observations, infos = self.boards.reset(seed=list(self._seeds), options=options)
        self.reset_infos = self._rows(infos)
        self._reset_seeds()
        self._reset_options()
        return np.asarray(observations)

    def step_async(self, actions: Array) -> None:
        """Keep the actions for `step_wait`."""
        self._actions = actions

    def step_wait(self) -> tuple[Array, Array, Array, Infos]:
        """Step all boards; observations of boards whose episode ended are those of the next one."""
        observations, rewards, terminated, truncated, infos = self.boards.step(self._actions)
        ended = terminated | truncated
        rows = self._rows(infos.get("final_info", infos))
        for i in np.flatnonzero(ended).tolist():
            rows[i]["terminal_observation"] = infos["final_obs"][i]
        for row, cut in zip(rows, (truncated & ~terminated).tolist(), strict=True):
            row["TimeLimit.truncated"] = cut
        if ended.any():
            begun = self._rows({key: infos[key][ended] for key in infos["final_info"]})
            for i, row in zip(np.flatnonzero(ended).tolist(), begun, strict=True):
                self.reset_infos[i] = row
        return observations, rewards.astype(np.float32), ended, rows

    def _rows(self, infos: Mapping[str, Array]) -> Infos:
        """Return one dict per board for arrays of one value per board."""
        rows = [
            dict(zip(infos, row, strict=True))
            for row in zip(*(column.tolist() for column in infos.values()), strict=True)
        ]
        for row in rows:
            row["task_id"], row["is_success"] = self._ids[row["task_index"]], row["success"]
        return rows

    def get_images(self) -> Sequence[Array | None]:
        """Return one picture a board."""
        return list(self.boards.render() or [])

    def close(self) -> None:
        """Free the boards."""
        self.boards.close()

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        """Return an attribute of the batched env, once for every board asked for."""
        value = getattr(self.boards, attr_name)
        return [value for _ in self._get_indices(indices)]

    def env_is_wrapped(self, wrapper_class: type[Any], indices: Any = None) -> list[bool]:
        """Return False for every board asked for."""
        return [False for _ in self._get_indices(indices)]

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        """Refuse: the boards have no environments of their own."""
        raise ConfigError(f"boards are stepped in arrays and have no attribute {attr_name!r} to set")

    def env_method(self, method_name: str, *args: Any, indices: Any = None, **kwargs: Any) -> list[Any]:
        """Refuse: the boards have no environments of their own."""
        raise ConfigError(f"boards are stepped in arrays and have no method {method_name!r} to call")
