"""From a run's configuration to its environments. The trainer knows environments by id only."""

from collections.abc import Sequence
from typing import Any

from arl_gym.agents.tasks import split_kwargs
from arl_gym.agents.types import Episode
from arl_gym.envs import ENVS
from arl_gym.errors import ConfigError
from arl_gym.make import make_chat_vec
from arl_gym.rng import Rng
from arl_gym.train.config import RunConfig
from arl_gym.vector import TextVectorEnv


def chat_kwargs(cfg: RunConfig) -> dict[str, Any]:
    """Return the keyword arguments of `make_chat_env` that the configuration asks for."""
    env = cfg.env
    return {
        "window": env.window,
        "format": env.format,
        "penalty": env.penalty,
        "penalise": env.penalise,
        "anchor": env.anchor,
        "prompt": env.prompt,
        **env.kwargs,
    }


def make_vec(cfg: RunConfig, *, split: str, num_envs: int, expert: bool = False) -> TextVectorEnv:
    """Make `num_envs` chat environments of one split."""
    return make_chat_vec(
        cfg.env.id,
        num_envs,
        workers=cfg.env.workers,
        step_timeout_s=cfg.env.step_timeout_s,
        expert=expert,
        **split_kwargs(cfg.env.id, split),
        **chat_kwargs(cfg),
    )


def groups_per_try(cfg: RunConfig, *, step: int) -> int:
    """Return how many groups one rollout plays: more than a step wants only where the filter is active.

    Raises:
        ConfigError: If that are fewer than a training step wants.
    """
    if cfg.filter.oversample < 1:
        raise ConfigError(f"filter.oversample must be at least 1, got {cfg.filter.oversample}")
    active = cfg.filter.enable and step > cfg.filter.cold_start_steps
    return round(cfg.rollout.groups * cfg.filter.oversample) if active else cfg.rollout.groups


def training_episodes(cfg: RunConfig, task_ids: Sequence[str], *, step: int, attempt: int) -> list[Episode]:
    """Return the episodes of one rollout: `groups_per_try` tasks, `group_size` copies each.

    The tasks are a pure function of (seed, step, try, index); group numbers are unique within a step.
    """
    episodes = []
    groups = groups_per_try(cfg, step=step)
    for index in range(groups):
        task = task_ids[Rng("train", cfg.seed, step, attempt, index).below(len(task_ids))]
        group = attempt * groups + index
        episodes += [Episode(task_id=task, group=group, copy=c) for c in range(cfg.rollout.group_size)]
    return episodes


def check_step_advantage(cfg: RunConfig) -> None:
    """Check that the step advantage has turns to compare.

    Raises:
        ConfigError: If it is on in an environment whose turns never face the same observation, and nobody has
            said that it is wanted all the same.
    """
    entry, dials = ENVS.get(cfg.env.id), cfg.advantage
    if entry is None or entry.anchors or dials.step_weight == 0 or dials.step_anywhere:
        return
    raise ConfigError(
        f"the step advantage compares turns that faced the same observation, and those of {cfg.env.id} never "
        f"do: set advantage.step_weight=0 (got {dials.step_weight:g}) or a method without it, such as GSPO "
        f"(got {cfg.method}); advantage.step_anywhere=true insists"
    )
