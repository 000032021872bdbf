"""Evaluation on a fixed list of tasks: one episode a task, every episode counts once.

    print(evaluate("expert", "ARL/Sokoban-v0", episodes=64).success_rate)

The list is the first ids of a split, so two evaluations of one env meet the same tasks and can be compared
task by task (`paired_difference`).
"""

import json
import math
import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Literal

from arl_gym.agents.policies import ExpertPolicy, RandomPolicy, respond_in
from arl_gym.agents.records import write_trajectories
from arl_gym.agents.rollout import Progress, RolloutStats, rollout
from arl_gym.agents.tasks import split_kwargs
from arl_gym.agents.tasks import task_ids as all_task_ids
from arl_gym.agents.types import Episode, Policy, Trajectory
from arl_gym.errors import ConfigError, UnknownNameError
from arl_gym.make import make_chat_vec
from arl_gym.rng import derive, digest
from arl_gym.vector import TextVectorEnv

Interval = tuple[float, float]

_Z95 = statistics.NormalDist().inv_cdf(0.975)


@dataclass(frozen=True, slots=True, kw_only=True)
class EvalResult:
    """What an evaluation measured. Intervals are at 95%."""

    env_id: str
    dataset: str
    split: str
    content_hash: str
    """Digest over the content hashes of the tasks, in order."""
    n: int
    """Episodes, failed ones included."""
    n_env_errors: int
    """Episodes that the environment's failure ended; they count as failures of the agent."""
    first_error: str
    success_rate: float
    success_interval: Interval
    """Wilson's."""
    return_mean: float
    """Mean over episodes of the env return, before penalties."""
    return_interval: Interval | None
    """Normal; None for a single episode."""
    length_mean: float
    """Turns per episode."""
    format_valid_share: float
    """Share of turns in the right format; 0 if there are no turns."""
    success_by_type: dict[str, tuple[int, int]]
    """Successes and episodes by kind of task, of environments that tell kinds apart; kinds without episodes
    too."""
    task_ids: tuple[str, ...]
    successes: tuple[bool, ...]
    returns: tuple[float, ...]

    def to_json(self) -> str:
        """Return the result as one JSON object."""
        return json.dumps(asdict(self), indent=2)


def evaluate(
    policy: Policy | str,
    env: str,
    *,
    split: str = "test",
    episodes: int = 256,
    task_ids: Sequence[str] | None = None,
    seed: int = 0,
    num_envs: int = 64,
    workers: int = 0,
    record: str | Path | None = None,
    progress: Progress | None = None,
    stats: RolloutStats | None = None,
    **chat_kwargs: Any,
) -> EvalResult:
    """Play one episode on each of a fixed list of tasks.

    Args:
        policy: A policy, or "random" or "expert".
        env: Registered id.
        split: The tasks' split.
        episodes: How many of the split's tasks, from the first; all of them if the split has fewer.
        task_ids: These tasks of the split instead.
        seed: Seed of the agent's sampling; the tasks do not depend on it.
        num_envs: Episodes played at once.
        workers: Processes that hold the environments; 0 is this one.
        record: Folder that gets the episodes as `eval-<env>-<split>.jsonl.gz`.
        progress: Called whenever an episode ends.
        stats: Gets turns and seconds added.
        chat_kwargs: Keyword arguments of `make_chat_vec` and of the environment.

    Raises:
        ConfigError: If there is nothing to play, or the policy's name is unknown.
    """
    if isinstance(policy, str):
        policy = named_policy(policy, env, seed=seed, format=chat_kwargs.get("format", "default"))
    if isinstance(policy, ExpertPolicy):
        chat_kwargs["expert"] = True
    wanted = episodes if task_ids is None else len(task_ids)
    if wanted < 1 or num_envs < 1:
        raise ConfigError(
            f"evaluate needs at least one task and one env, got {wanted} tasks of split {split!r}, "
            f"num_envs={num_envs}"
        )
    chat_kwargs |= split_kwargs(env, split)
    vec = make_chat_vec(env, min(num_envs, wanted), workers=workers, **chat_kwargs)
    try:
        if task_ids is None:
            task_ids = list(islice(all_task_ids(vec, split), episodes))
        kinds = _task_types(vec)
        trajectories = rollout(
            vec,
            policy,
            [Episode(task_id=task_id, group=i) for i, task_id in enumerate(task_ids)],
            env_id=env,
            seed=derive("eval", seed),  # own streams: training with the same seed draws others
            progress=progress,
            stats=stats,
        )
    finally:
        vec.close()
    if record is not None:
        name = f"eval-{env.rpartition('/')[2].replace(':', '-')}-{split}.jsonl.gz"
        write_trajectories(Path(record) / name, trajectories)
    return summarise(trajectories, split=split, task_types=kinds)


def named_policy(name: str, env: str, *, seed: int, format: str = "default") -> Policy:
    """Return the torch-free policy of a name, answering in the env's format.

    Raises:
        UnknownNameError: If the name or the format is unknown.
    """
    if name == "random":
        return RandomPolicy(seed, respond_in(format, env))
    if name == "expert":
        return ExpertPolicy(respond_in(format, env))
    raise UnknownNameError("policy", name, ["random", "expert"], "evaluate")


def _task_types(vec: TextVectorEnv) -> Sequence[str]:
    """Return the kinds of task of the environments in `vec`, none where they are all of one kind."""
    if not vec.call(0, "has_wrapper_attr", "task_types"):
        return ()
    kinds: Sequence[str] = vec.call(0, "get_wrapper_attr", "task_types")
    return kinds


def summarise(
    trajectories: Sequence[Trajectory], *, split: str, task_types: Sequence[str] = ()
) -> EvalResult:
    """Return the statistics of some episodes of one env, at least one.

    Args:
        trajectories: The episodes.
        split: Their split.
        task_types: Kinds of task that are to be named even if none was played.
    """
    n = len(trajectories)
    errors = [t.error for t in trajectories if t.stop == "env_error"]
    returns = tuple(t.env_return for t in trajectories)
    turns = [turn for t in trajectories for turn in t.turns]
    successes = tuple(t.success for t in trajectories)
    return EvalResult(
        env_id=trajectories[0].env_id,
        # An episode whose reset failed does not know its dataset.
        dataset=next((t.dataset for t in trajectories if t.dataset), ""),
        split=split,
        content_hash=digest("\n".join(t.content_hash for t in trajectories)),
        n=n,
        n_env_errors=len(errors),
        first_error=errors[0] if errors else "",
        success_rate=sum(successes) / n,
        success_interval=wilson_interval(sum(successes), n),
        return_mean=statistics.fmean(returns),
        return_interval=_normal_interval(returns) if n > 1 else None,
        length_mean=len(turns) / n,
        format_valid_share=sum(t.format_valid for t in turns) / max(len(turns), 1),
        success_by_type=_by_type(trajectories, task_types),
        task_ids=tuple(t.task_id for t in trajectories),
        successes=successes,
        returns=returns,
    )


def _by_type(trajectories: Sequence[Trajectory], task_types: Sequence[str]) -> dict[str, tuple[int, int]]:
    found: dict[str, list[bool]] = {kind: [] for kind in task_types}
    for t in trajectories:
        if t.task_type:
            found.setdefault(t.task_type, []).append(t.success)
    return {kind: (sum(successes), len(successes)) for kind, successes in found.items()}


def wilson_interval(k: int, n: int) -> Interval:
    """Return the 95% score interval of a share, k of n with n >= 1.

    References:
        Wilson, "Probable inference, the law of succession, and statistical inference", JASA 22, 1927.
    """
    share, z2 = k / n, _Z95**2
    centre = (share + z2 / (2 * n)) / (1 + z2 / n)
    half = _Z95 / (1 + z2 / n) * math.sqrt(share * (1 - share) / n + z2 / (4 * n * n))
    return max(0.0, centre - half), min(1.0, centre + half)


def paired_difference(
    a: EvalResult, b: EvalResult, *, metric: Literal["success", "return"] = "success"
) -> tuple[float, float, float]:
    """Return the mean over tasks of `a` minus `b`, and its 95% interval (normal): (mean, low, high).

    Pairing takes the difficulty of the tasks out of the comparison.

    Raises:
        ConfigError: If the tasks differ, or there are fewer than two.
    """
    if (a.env_id, a.content_hash, a.task_ids) != (b.env_id, b.content_hash, b.task_ids):
        raise ConfigError(
            f"a paired difference needs the same tasks, got {a.n} of {a.env_id} split {a.split!r} (content "
            f"{a.content_hash}) and {b.n} of {b.env_id} split {b.split!r} (content {b.content_hash})"
        )
    if a.n < 2:
        raise ConfigError(f"a paired difference needs at least two tasks, got {a.n}")
    of_a, of_b = (a.successes, b.successes) if metric == "success" else (a.returns, b.returns)
    differences = [float(x) - float(y) for x, y in zip(of_a, of_b, strict=True)]
    return (statistics.fmean(differences), *_normal_interval(differences))


def _normal_interval(values: Sequence[float]) -> Interval:
    mean = statistics.fmean(values)
    half = _Z95 * statistics.stdev(values) / math.sqrt(len(values))
    return mean - half, mean + half
