"""Evaluation on a fixed list of tasks: one episode a task or several, every episode counts once.

    print(evaluate("expert", "ARL/Sokoban-v0", episodes=64).success_rate)

The list is the first ids of a split, so two evaluations of one env meet the same tasks and can be compared
task by task (`paired_difference`).
"""

import functools
import json
import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Literal

from arl_gym.agents.policies import ExpertPolicy, RandomPolicy, respond_in
from arl_gym.agents.records import write_trajectories
from arl_gym.agents.resume import resume_episodes
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
    panel_hash: str
    """Digest over the ids and content hashes of the tasks, in order: equal panels are equal tests."""
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
    return_step_weighted: float
    """Mean over turns of the return of the turn's episode, so that long episodes weigh more: what the paper's
    released code reports as score. 0 if there are no turns."""
    score_mean: float
    """Mean over episodes of the env's graded score."""
    length_mean: float
    """Turns per episode."""
    format_valid_share: float
    """Share of turns in the right format; 0 if there are no turns."""
    samples: int
    """Episodes of each task; the rates above are means over all of them (avg@k)."""
    pass_at: dict[int, float]
    """Chance that at least one of k episodes of a task succeeds, mean over tasks, for k = 1, 2, 4, …"""
    usage: dict[str, int]
    """What playing took by the policy's own account, e.g. an endpoint's tokens; resumed episodes left out."""
    settings: dict[str, Any]
    """What the scores depend on beside the tasks: what the policy says of itself, and the env's grader."""
    success_by_type: dict[str, tuple[int, int]]
    """Successes and episodes by kind of task, of environments that tell kinds apart; kinds without episodes
    too."""
    task_ids: tuple[str, ...]
    successes: tuple[bool, ...]
    """Of every episode, those of a task side by side, in the order of the tasks."""
    returns: tuple[float, ...]

    def to_json(self) -> str:
        """Return the result as one JSON object."""
        return json.dumps(asdict(self), indent=2, default=str)


def evaluate(
    policy: Policy | str,
    env: str,
    *,
    split: str = "test",
    episodes: int = 256,
    task_ids: Sequence[str] | None = None,
    samples: int = 1,
    seed: int = 0,
    num_envs: int = 64,
    workers: int | str = 0,
    record: str | Path | None = None,
    resume: str | Path | None = None,
    play: Callable[..., list[Trajectory]] = rollout,
    progress: Progress | None = None,
    stats: RolloutStats | None = None,
    **chat_kwargs: Any,
) -> EvalResult:
    """Play each of a fixed list of tasks, once or several times.

    Args:
        policy: A policy, or "random" or "expert".
        env: Registered id.
        split: The tasks' split.
        episodes: How many of the split's tasks, from the first; all of them if the split has fewer.
        task_ids: These tasks of the split instead.
        samples: Episodes of each task, for avg@k and pass@k.
        seed: Seed of the agent's sampling; the tasks do not depend on it.
        num_envs: Episodes played at once.
        workers: Processes that hold the environments, 0 is this one; or "ray", "ray:N", actors of a Ray
            cluster (see `TextVectorEnv`).
        record: Folder that gets the episodes as `eval-<env>-<split>.jsonl.gz`.
        resume: File that gets every episode as it ends, and whose episodes are not played again.
        play: Plays the episodes: a function with the parameters of `rollout`, which it may share out over
            processes.
        progress: Called whenever an episode ends.
        stats: Gets turns and seconds added.
        chat_kwargs: Keyword arguments of `make_chat_vec` and of the environment.

    Raises:
        ConfigError: If there is nothing to play, the policy's name is unknown, or the file to resume from was
            made with other settings.
    """
    if isinstance(policy, str):
        policy = named_policy(policy, env, seed=seed, format=chat_kwargs.get("format", "default"))
    if isinstance(policy, ExpertPolicy):
        chat_kwargs["expert"] = True
    wanted = episodes if task_ids is None else len(task_ids)
    if wanted < 1 or num_envs < 1 or samples < 1:
        raise ConfigError(
            f"evaluate needs at least one task, env and sample, got {wanted} tasks of split {split!r}, "
            f"{num_envs=}, {samples=}"
        )
    used = dict(getattr(policy, "usage", {}))
    chat_kwargs |= split_kwargs(env, split)
    vec = make_chat_vec(env, min(num_envs, wanted * samples), workers=workers, **chat_kwargs)
    try:
        if task_ids is None:
            task_ids = list(islice(all_task_ids(vec, split), episodes))
        kinds = _told(vec, "task_types", ())
        settings = {
            **getattr(policy, "settings", {}),
            **{key: value for key, value in chat_kwargs.items() if key != "split"},
            **_told(vec, "score_settings", {}),
        }
        panel = [
            Episode(task_id=task_id, group=i, copy=copy)
            for i, task_id in enumerate(task_ids)
            for copy in range(samples)
        ]
        # Own streams: training with the same seed draws others.
        more = {"env_id": env, "seed": derive("eval", seed), "progress": progress, "stats": stats}
        play_some = functools.partial(play, vec, policy, **more)
        if resume is None:
            trajectories = play_some(panel)
        else:
            who = {"policy": type(policy).__name__, "seed": seed, "split": split}
            trajectories = resume_episodes(
                panel, play_some, file=Path(resume), env_id=env, settings={**settings, **who}
            )
    finally:
        vec.close()
    if record is not None:
        name = f"eval-{env.rpartition('/')[2].replace(':', '-')}-{split}.jsonl.gz"
        write_trajectories(Path(record) / name, trajectories)
    usage = {key: n - used.get(key, 0) for key, n in getattr(policy, "usage", {}).items()}
    return summarise(trajectories, split=split, task_types=kinds, settings=settings, usage=usage)


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


def _told(vec: TextVectorEnv, name: str, otherwise: Any) -> Any:
    """Return an attribute of the environments in `vec`, if they have it."""
    return vec.call(0, "get_wrapper_attr", name) if vec.call(0, "has_wrapper_attr", name) else otherwise


def summarise(
    trajectories: Sequence[Trajectory],
    *,
    split: str,
    task_types: Sequence[str] = (),
    settings: Mapping[str, Any] | None = None,
    usage: Mapping[str, int] | None = None,
) -> EvalResult:
    """Return the statistics of some episodes of one env, at least one.

    Args:
        trajectories: The episodes, equally many of each group, a group being a task.
        split: Their split.
        task_types: Kinds of task that are to be named even if none was played.
        settings: See `EvalResult.settings`.
        usage: See `EvalResult.usage`.
    """
    n = len(trajectories)
    tasks = list({(t.group, t.task_id): t for t in trajectories}.values())
    samples = n // len(tasks)
    errors = [t.error for t in trajectories if t.stop == "env_error"]
    returns = tuple(t.env_return for t in trajectories)
    turns = [turn for t in trajectories for turn in t.turns]
    successes = tuple(t.success for t in trajectories)
    return EvalResult(
        env_id=trajectories[0].env_id,
        # An episode whose reset failed does not know its dataset.
        dataset=next((t.dataset for t in trajectories if t.dataset), ""),
        split=split,
        content_hash=digest("\n".join(t.content_hash for t in tasks)),
        panel_hash=digest("\n".join(f"{t.task_id}\t{t.content_hash}" for t in tasks)),
        n=n,
        samples=samples,
        n_env_errors=len(errors),
        first_error=errors[0] if errors else "",
        success_rate=sum(successes) / n,
        # Episodes of one task are alike: the tasks are what is drawn.
        success_interval=wilson_interval(sum(successes), n)
        if samples == 1 or len(tasks) == 1
        else _normal_interval(_by_task(successes, samples)),
        pass_at=_pass_at(successes, samples),
        settings=dict(settings or {}),
        usage=dict(usage or {}),
        return_mean=statistics.fmean(returns),
        return_step_weighted=sum(r * len(t.turns) for r, t in zip(returns, trajectories, strict=True))
        / max(len(turns), 1),
        score_mean=statistics.fmean(t.score for t in trajectories),
        return_interval=_normal_interval(_by_task(returns, samples)) if len(tasks) > 1 else None,
        length_mean=len(turns) / n,
        format_valid_share=sum(t.format_valid for t in turns) / max(len(turns), 1),
        success_by_type=_by_type(trajectories, task_types),
        task_ids=tuple(t.task_id for t in tasks),
        successes=successes,
        returns=returns,
    )


def _by_task(values: Sequence[float], samples: int) -> list[float]:
    return [statistics.fmean(values[i : i + samples]) for i in range(0, len(values), samples)]


def _pass_at(successes: Sequence[bool], samples: int) -> dict[int, float]:
    ks = sorted({samples, *(1 << i for i in range(samples.bit_length()))})
    won = [sum(successes[i : i + samples]) for i in range(0, len(successes), samples)]
    return {k: statistics.fmean(pass_at_k(samples, c, k) for c in won) for k in ks if k <= samples}


def pass_at_k(n: int, c: int, k: int) -> float:
    """Return the chance that k of n episodes, c of them successful, drawn without repeats, hold a success.

    Raises:
        ConfigError: Unless 0 <= c <= n and 1 <= k <= n.

    References:
        Chen et al., arXiv:2107.03374, equation 1.
    """
    if not (0 <= c <= n and 1 <= k <= n):
        raise ConfigError(f"pass_at_k needs 0 <= c <= n and 1 <= k <= n, got {n=}, {c=}, {k=}")
    return 1.0 - math.comb(n - c, k) / math.comb(n, k)


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
    if len(a.task_ids) < 2:
        raise ConfigError(f"a paired difference needs at least two tasks, got {len(a.task_ids)}")
    of_a, of_b = (a.successes, b.successes) if metric == "success" else (a.returns, b.returns)
    pairs = zip(_by_task(of_a, a.samples), _by_task(of_b, b.samples), strict=True)
    differences = [x - y for x, y in pairs]
    return (statistics.fmean(differences), *_normal_interval(differences))


def _normal_interval(values: Sequence[float]) -> Interval:
    mean = statistics.fmean(values)
    half = _Z95 * statistics.stdev(values) / math.sqrt(len(values))
    return mean - half, mean + half
