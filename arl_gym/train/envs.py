"""From a run's configuration to its environments. The trainer knows environments by id only."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from arl_gym.agents.tasks import split_kwargs, task_ids
from arl_gym.agents.types import Episode
from arl_gym.envs import ENVS
from arl_gym.errors import ConfigError
from arl_gym.make import make_chat_vec
from arl_gym.rng import Rng, digest
from arl_gym.train.config import EnvConfig, RunConfig
from arl_gym.vector import TextVectorEnv

_GOLDEN = 0x9E3779B97F4A7C15  # 2^64 divided by the golden ratio


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingEnv:
    """One environment of a run, open for training."""

    config: EnvConfig
    name: str
    """What its metrics are called in a run over several."""
    vec: TextVectorEnv
    task_ids: Sequence[str]

    def identity(self) -> dict[str, Any]:
        """Return what a resumed run must find again: the tasks, their content, and how they are scored."""
        n = len(self.task_ids)
        picked = sorted({i * (n - 1) // 3 for i in range(4)})
        hashes = []
        for task_id in (self.task_ids[i] for i in picked):
            self.vec.send_reset(0, seed=0, options={"task_id": task_id})
            (result,) = self.vec.recv(None)
            hashes.append(str(result.info.get("content_hash", "")))
        told = self.vec.call(0, "has_wrapper_attr", "score_settings")
        return {
            "env_id": self.config.id,
            "n_tasks": n,
            "content": digest("\n".join([*(self.task_ids[i] for i in picked), *hashes])),
            "score_settings": self.vec.call(0, "get_wrapper_attr", "score_settings") if told else {},
        }


def chat_kwargs(env: EnvConfig) -> dict[str, Any]:
    """Return the keyword arguments of `make_chat_env` that the configuration asks for."""
    return {
        "window": env.window,
        "format": env.format,
        "penalty": env.penalty,
        "penalise": env.penalise,
        "anchor": env.anchor,
        "prompt": env.prompt,
        **env.kwargs,
    }


def make_vec(env: EnvConfig, *, split: str, num_envs: int, expert: bool = False) -> TextVectorEnv:
    """Make `num_envs` chat environments of one split."""
    return make_chat_vec(
        env.id,
        num_envs,
        workers=env.workers,
        step_timeout_s=env.step_timeout_s,
        expert=expert,
        **split_kwargs(env.id, split),
        **chat_kwargs(env),
    )


def env_names(cfg: RunConfig) -> list[str]:
    """Return a short name for every environment of the run, numbered where ids repeat."""
    ids = [env.id.rpartition("/")[2] for env in cfg.all_envs]
    return [f"{name}.{i}" if ids.count(name) > 1 else name for i, name in enumerate(ids)]


def open_training_envs(cfg: RunConfig, *, ranks: int) -> list[TrainingEnv]:
    """Open the environments of a run, with this rank's share of slots for one try."""
    groups = groups_per_try(cfg, step=cfg.steps)
    whole = sum(env.weight for env in cfg.all_envs)
    out: list[TrainingEnv] = []
    try:
        for env, name in zip(cfg.all_envs, env_names(cfg), strict=True):
            share = math.ceil(math.ceil(groups * env.weight / whole) / ranks)
            vec = make_vec(env, split="train", num_envs=max(1, share) * cfg.rollout.group_size)
            out.append(TrainingEnv(config=env, name=name, vec=vec, task_ids=task_ids(vec, "train")))
    except BaseException:
        for opened in out:
            opened.vec.close()
        raise
    return out


def check_evaluation(cfg: RunConfig) -> None:
    """Check that the validation split of every environment can be opened, if the run will evaluate.

    Raises:
        ConfigError: If one cannot: better now than when the first evaluation is due.
    """
    for env in cfg.all_envs if cfg.eval.every else ():
        make_vec(env, split="val", num_envs=1).close()


def groups_per_try(cfg: RunConfig, *, step: int) -> int:
    """Return how many groups one rollout plays: more than a step wants only where the filter is active.

    Raises:
        ConfigError: If that are fewer than a training step wants.
    """
    if cfg.filter.oversample < 1:
        raise ConfigError(f"filter.oversample must be at least 1, got {cfg.filter.oversample}")
    active = cfg.filter.enable and step > cfg.filter.cold_start_steps
    return round(cfg.rollout.groups * cfg.filter.oversample) if active else cfg.rollout.groups


def training_episodes(
    cfg: RunConfig, task_ids: Sequence[Sequence[str]], *, step: int, attempt: int
) -> list[list[Episode]]:
    """Return the episodes of one rollout: `groups_per_try` tasks, `group_size` copies each.

    Environments and tasks are a pure function of (seed, step, try, index); group numbers are unique within a
    step.

    Args:
        cfg: The run.
        task_ids: The training tasks of each environment.
        step: Training step, from 1.
        attempt: Try within the step, from 0.

    Returns:
        One list per environment.
    """
    episodes: list[list[Episode]] = [[] for _ in task_ids]
    groups = groups_per_try(cfg, step=step)
    for index in range(groups):
        group = attempt * groups + index
        env = env_of_group(cfg, (step - 1) * groups * cfg.filter.max_tries + group)
        ids = task_ids[env]
        task = ids[Rng("train", cfg.seed, step, attempt, index).below(len(ids))]
        episodes[env] += [Episode(task_id=task, group=group, copy=c) for c in range(cfg.rollout.group_size)]
    return episodes


def env_of_group(cfg: RunConfig, n: int) -> int:
    """Return which environment the n-th group of a run plays.

    Multiples of the golden ratio, modulo 1, fall evenly into the environments' shares of the unit interval:
    any run of groups has close to the weights asked for.
    """
    place = n * _GOLDEN % (1 << 64) / (1 << 64) * sum(env.weight for env in cfg.all_envs)
    for i, env in enumerate(cfg.all_envs):
        place -= env.weight
        if place < 0:
            return i
    return len(cfg.all_envs) - 1


def check_step_advantage(cfg: RunConfig) -> None:
    """Check that the step advantage has turns to compare.

    Raises:
        ConfigError: If it is on in an environment whose turns never face the same observation, and nobody has
            said that it is wanted all the same.
    """
    dials = cfg.advantage
    for env in cfg.all_envs:
        entry = ENVS.get(env.id)
        if entry is None or entry.anchors or dials.step_weight == 0 or dials.step_anywhere:
            continue
        raise ConfigError(
            f"the step advantage compares turns that faced the same observation, and those of {env.id} never "
            f"do: set advantage.step_weight=0 (got {dials.step_weight:g}) or a method without it, such as "
            f"GSPO (got {cfg.method}); advantage.step_anywhere=true insists"
        )
