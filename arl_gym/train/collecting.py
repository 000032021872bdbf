"""Episodes of any policy, as a run's configuration shows the environments: the raw material of cloning.

Plays and keeps everything; `agents.collection.filter_episodes` chooses. No torch.
"""

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from arl_gym.agents.policies import ExpertPolicy, Respond, respond_in
from arl_gym.agents.resume import resume_episodes
from arl_gym.agents.rollout import Progress, rollout
from arl_gym.agents.tasks import task_ids
from arl_gym.agents.types import Episode, Policy, Trajectory
from arl_gym.errors import ConfigError
from arl_gym.rng import Rng, derive
from arl_gym.train.config import RunConfig
from arl_gym.train.envs import chat_kwargs, make_vec


def runs_by_env(cfg: RunConfig, episodes: int) -> list[tuple[RunConfig, int]]:
    """Return a run over each of the environments of `cfg` alone, and how many of the episodes it gets."""
    shares = share_out(episodes, [env.weight for env in cfg.all_envs])
    runs = [dataclasses.replace(cfg, env=env, envs=()) for env in cfg.all_envs]
    return [(run, n) for run, n in zip(runs, shares, strict=True) if n]


def share_out(n: int, weights: Sequence[float]) -> list[int]:
    """Share n things out by weight, in whole numbers: the largest remainders get one more.

    >>> share_out(10, [1, 1, 1]), share_out(4, [3.0, 1.0, 0.0])
    ([4, 3, 3], [3, 1, 0])

    Raises:
        ConfigError: If a weight is negative or all are 0.
    """
    total = sum(weights)
    if min(weights) < 0 or total <= 0:
        raise ConfigError(f"weights of environments must be at least 0 and not all 0, got {list(weights)}")
    exact = [n * w / total for w in weights]
    shares = [int(x) for x in exact]
    by_remainder = sorted(range(len(exact)), key=lambda i: shares[i] - exact[i])
    for i in by_remainder[: n - sum(shares)]:
        shares[i] += 1
    return shares


def expert_response(cfg: RunConfig) -> Respond:
    """Return how the expert of `cfg.env` answers: with its thought unless the configuration leaves it out."""
    answer = respond_in(cfg.env.format, cfg.env.id)
    return lambda thought, action: answer(thought if cfg.clone.thoughts else "", action)


def collect_episodes(
    cfg: RunConfig,
    policy: Policy,
    *,
    split: str,
    episodes: int,
    samples: int = 1,
    num_envs: int = 64,
    resume: Path | None = None,
    progress: Progress | None = None,
) -> list[Trajectory]:
    """Play tasks of a split, each once or several times.

    Args:
        cfg: Names the one environment and how it is shown; its seed chooses the tasks and the sampling.
        policy: Who plays.
        split: Where the tasks come from.
        episodes: How many different tasks, drawn at random; all of them if the split has no more.
        samples: Episodes of each task.
        num_envs: Episodes played at once.
        resume: File that gets every episode as it ends, and whose episodes are not played again.
        progress: Called whenever an episode ends.

    Raises:
        ConfigError: If there is nothing to play, or the file to resume from was made with other settings.
    """
    if min(episodes, samples, num_envs) < 1:
        raise ConfigError(
            f"collecting needs episodes, samples and num_envs of at least 1, got {episodes}, {samples}, "
            f"{num_envs}"
        )
    is_expert = isinstance(policy, ExpertPolicy)
    vec = make_vec(cfg, split=split, num_envs=min(num_envs, episodes * samples), expert=is_expert)
    try:
        tasks = _drawn(task_ids(vec, split), episodes, Rng("collect", cfg.seed, split))
        wanted = [
            Episode(task_id=task, group=i, copy=copy)
            for i, task in enumerate(tasks)
            for copy in range(samples)
        ]

        def play(some: Sequence[Episode], **more: Any) -> list[Trajectory]:
            seed = derive("collect", cfg.seed)
            return rollout(vec, policy, some, env_id=cfg.env.id, seed=seed, progress=progress, **more)

        if resume is None:
            return play(wanted)
        settings = {
            **chat_kwargs(cfg),
            **getattr(policy, "settings", {}),
            **({"thoughts": cfg.clone.thoughts} if is_expert else {}),
            "policy": type(policy).__name__,
            "seed": cfg.seed,
            "split": split,
        }
        return resume_episodes(wanted, play, file=resume, env_id=cfg.env.id, settings=settings)
    finally:
        vec.close()


def _drawn(ids: Sequence[str], n: int, rng: Rng) -> list[str]:
    """Return n different ids, drawn without building the whole list; all of them if there are no more."""
    if n >= len(ids):
        return list(ids)
    drawn: dict[str, None] = {}
    while len(drawn) < n:
        drawn[ids[rng.below(len(ids))]] = None
    return list(drawn)
