"""The registration table: one row an environment. Importing it loads no environment."""

from dataclasses import dataclass

import gymnasium as gym


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvEntry:
    """What the package knows of an environment without importing it."""

    entry_point: str
    vector_entry_point: str
    prompts: str
    """Module with `PROMPTS: dict[str, Prompt]`, where "default" and "tools" exist, and `TOOLS`."""
    window: int | None
    """Default memory window of the agent layer; None is the append-only dialogue."""
    format: str
    """Default response format of the agent layer."""
    prose: bool = False
    """Whether a response without format may say more than the action, a thought before it for example."""
    anchors: bool = True
    """Whether turns of different episodes come to face the same observation, as the step advantage needs."""


ENVS: dict[str, EnvEntry] = {
    "ARL/ALFWorld-v0": EnvEntry(
        entry_point="arl_gym.envs.alfworld.env:ALFWorldEnv",
        vector_entry_point="arl_gym.make:alfworld_vec",
        prompts="arl_gym.envs.alfworld.prompts",
        window=2,
        format="strict",
    ),
    "ARL/Sokoban-v0": EnvEntry(
        entry_point="arl_gym.envs.sokoban.env:SokobanEnv",
        vector_entry_point="arl_gym.make:sokoban_vec",
        prompts="arl_gym.envs.sokoban.prompts",
        window=2,
        format="strict",
    ),
    "ARL/TIRMath-v0": EnvEntry(
        entry_point="arl_gym.envs.tirmath.env:TIRMathEnv",
        vector_entry_point="arl_gym.make:tirmath_vec",
        prompts="arl_gym.envs.tirmath.prompts",
        window=None,
        format="none",
        prose=True,
        anchors=False,
    ),
    "ARL/WebShop-v0": EnvEntry(
        entry_point="arl_gym.envs.webshop.env:WebShopEnv",
        vector_entry_point="arl_gym.make:webshop_vec",
        prompts="arl_gym.envs.webshop.prompts",
        window=2,
        format="strict",
    ),
}


def register_all() -> None:
    """Register every id with Gymnasium; a second call changes nothing."""
    for env_id, entry in ENVS.items():
        if env_id not in gym.registry:
            gym.register(env_id, entry.entry_point, vector_entry_point=entry.vector_entry_point)
