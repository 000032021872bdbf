"""The few names of Stable-Baselines3 that its adapter uses, with the habits it relies on."""

from types import ModuleType
from typing import Any


class VecEnv:
    """As Stable-Baselines3's: seeds and options wait for the next reset, `render_mode` is asked at once."""

    def __init__(self, num_envs, observation_space, action_space):
        self.num_envs = num_envs
        self.observation_space, self.action_space = observation_space, action_space
        self.reset_infos: list[dict[str, Any]] = [{} for _ in range(num_envs)]
        self._reset_seeds()
        self._reset_options()
        self.render_mode = self.get_attr("render_mode")[0]

    def _reset_seeds(self):
        self._seeds: list[int | None] = [None] * self.num_envs

    def _reset_options(self):
        self._options: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]

    def seed(self, seed):
        self._seeds = [seed + i for i in range(self.num_envs)]

    def set_options(self, options):
        self._options = [dict(options) for _ in range(self.num_envs)]

    def get_attr(self, attr_name, indices=None):
        raise NotImplementedError

    def step_async(self, actions):
        raise NotImplementedError

    def step_wait(self):
        raise NotImplementedError

    def _get_indices(self, indices):
        return range(self.num_envs) if indices is None else indices

    def step(self, actions):
        self.step_async(actions)
        return self.step_wait()


class DummyVecEnv:
    def __init__(self, env_fns):
        self.envs = [make() for make in env_fns]


class VecMonitor:
    def __init__(self, venv):
        self.venv = venv


def modules() -> dict[str, ModuleType]:
    """Return what `from stable_baselines3.common.vec_env import ...` finds."""
    names = ("stable_baselines3", "stable_baselines3.common", "stable_baselines3.common.vec_env")
    found = {name: ModuleType(name) for name in names}
    vars(found[names[-1]]).update(VecEnv=VecEnv, DummyVecEnv=DummyVecEnv, VecMonitor=VecMonitor)
    return found
