"""The few names of SkyRL-gym that its adapter uses, and the loop of SkyRL's generator without a model."""

from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import Any, NamedTuple, TypedDict


class BaseTextEnv:
    """As SkyRL-gym's, as far as the adapter builds on it."""

    def __init__(self):
        self.turns = 0
        self.max_turns = 1

    def init(self, prompt):
        return prompt, {}

    def step(self, action):
        raise NotImplementedError

    def get_metrics(self):
        return {}

    @staticmethod
    def aggregate_metrics(metrics):
        raise NotImplementedError

    def close(self):
        pass


class BaseTextEnvStepOutput(TypedDict):
    observations: list[dict[str, str]]
    reward: float
    done: bool
    metadata: dict[str, Any]
    postprocessed_action: str | None


class EnvSpec(NamedTuple):
    id: str
    entry_point: str


registry: dict[str, EnvSpec] = {}


def register(id, entry_point=None, kwargs=None):
    assert id not in registry
    registry[id] = EnvSpec(id, entry_point)


def make(id, **kwargs):
    module, name = registry[id].entry_point.split(":")
    return getattr(import_module(module), name)(**kwargs)


def modules() -> dict[str, ModuleType]:
    """Return what the adapter's imports find, with an empty registry."""
    registry.clear()
    gym, envs, base = map(ModuleType, ("skyrl_gym", "skyrl_gym.envs", "skyrl_gym.envs.base_text_env"))
    vars(gym).update(registry=registry, register=register, make=make, envs=envs)
    vars(base).update(BaseTextEnv=BaseTextEnv, BaseTextEnvStepOutput=BaseTextEnvStepOutput)
    vars(envs).update(base_text_env=base)
    return {module.__name__: module for module in (gym, envs, base)}


class Played(NamedTuple):
    dialogue: list[dict[str, str]]
    rewards: list[float]
    metadata: list[dict[str, Any]]
    metrics: dict[str, Any]


def generate(
    make: Callable[..., Any], row: dict[str, Any], max_turns: int, respond: Callable[[dict[str, Any]], str]
) -> Played:
    """Play the episode of a row as the generator does: from the columns its data set leaves, until done.

    Args:
        make: `skyrl_gym.make`, or the stand-in's.
        row: Of `task_dataset(library="skyrl")`.
        max_turns: The generator's setting.
        respond: From the info of a turn to the response.
    """
    extras = {key: value for key, value in row.items() if key not in ("prompt", "env_class")}
    extras["max_turns"] = max_turns
    env = make(row["env_class"], env_config={}, extras=extras)
    dialogue, info = env.init([dict(message) for message in row["prompt"]])
    rewards, metadata, done = [], [], False
    while not done:
        response = respond(info)
        output = env.step(response)
        info, done = output["metadata"], output["done"]
        dialogue += [{"role": "assistant", "content": response}, *output["observations"]]
        rewards.append(output["reward"])
        metadata.append(info)
    metrics = env.get_metrics()
    env.close()
    return Played(dialogue, rewards, metadata, metrics)
