"""The few names of GEM that its adapter uses, and a vector environment that resets as GEM's does."""

import random
from types import ModuleType
from typing import Any, NamedTuple


class Env:
    """As GEM's: `reset` seeds the whole process, and what a wrapper needs is there by inheritance."""

    def step(self, action):
        raise NotImplementedError

    def reset(self, seed=None):
        random.seed(seed)

    def sample_random_action(self):
        raise NotImplementedError

    @property
    def unwrapped(self):
        return self

    def spawn(self, same_state=False, **kwargs):
        raise NotImplementedError


class EnvSpec(NamedTuple):
    id: str
    entry_point: Any
    kwargs: dict[str, Any]


ENV_REGISTRY: dict[str, EnvSpec] = {}


def register(env_id, entry_point, **kwargs):
    if env_id in ENV_REGISTRY:
        raise ValueError(f"{env_id} is registered")
    ENV_REGISTRY[env_id] = EnvSpec(env_id, entry_point, kwargs)


def make(env_id, **kwargs):
    spec = ENV_REGISTRY[env_id]
    env = spec.entry_point(**{**spec.kwargs, **kwargs})
    env.env_id, env.entry_point = env_id, spec.entry_point
    return env


def step_or_restart(env: Any, action: str) -> tuple[Any, ...]:
    """Step once as GEM's vector environments do: what a last step returned is gone."""
    obs, reward, terminated, truncated, info = env.step(action)
    if terminated or truncated:
        obs, info = env.reset()
    return obs, reward, terminated, truncated, info


def modules() -> dict[str, ModuleType]:
    """Return what `import gem` and `import gem.envs.registration` find, with an empty registry."""
    ENV_REGISTRY.clear()
    gem, envs, registration = map(ModuleType, ("gem", "gem.envs", "gem.envs.registration"))
    vars(gem).update(Env=Env, register=register, make=make, envs=envs)
    vars(registration).update(ENV_REGISTRY=ENV_REGISTRY)
    vars(envs).update(registration=registration)
    return {module.__name__: module for module in (gem, envs, registration)}
