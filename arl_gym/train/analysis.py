"""What the recorded scores of tokens say about the updates: pure functions of numpy arrays.

Nothing is drawn here (see `figures`) and no file is read (see `recordings`).

    points = sequence_points(step.turns)
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from arl_gym.errors import ConfigError
from arl_gym.train.recordings import Floats, RecordedStep, TurnScores

CLASSES = tuple(
    f"{advantage}, {entropy} entropy, {shift}"
    for advantage in ("A ≤ 0", "A > 0")
    for entropy in ("low", "high")
    for shift in ("less likely", "more likely")
)
"""Names of the eight classes, by number: 4 for a positive advantage, 2 for a high entropy, 1 for tokens that
became more likely."""

ENTROPY_BOUND = 0.45
"""Mean entropy of a turn, in nats, above which it counts as high; the paper's figure uses it."""


# ---- tokens outside the clip range


def clip_shares(
    turns: Sequence[TurnScores], *, ratio_level: str, clip_low: float, clip_high: float
) -> tuple[float, float]:
    """Return the shares of all tokens whose ratio is outside [1 - clip_low, 1 + clip_high].

    The first is of tokens with a positive, the second of tokens with a negative advantage; both are divided
    by the number of all tokens, so that they add up to the share outside.

    Args:
        turns: Of one step, at least one.
        ratio_level: "token", "turn" or "trajectory": the span over which the ratio is a geometric mean.
        clip_low: Distance of the lower bound from 1.
        clip_high: Distance of the upper bound from 1.

    References:
        ARLArena, arXiv:2602.21534, figure of the outside-clip share.
    """
    ratio = np.exp(_log_ratios(turns, ratio_level))
    advantage = np.concatenate([np.full(len(t.new), t.advantage) for t in turns])
    outside = (ratio < 1.0 - clip_low) | (ratio > 1.0 + clip_high)
    return float(np.mean(outside & (advantage > 0))), float(np.mean(outside & (advantage < 0)))


def _log_ratios(turns: Sequence[TurnScores], level: str) -> Floats:
    """Return log(new / old) of every token, (S,), averaged over its span."""
    difference = np.concatenate([t.new - t.old for t in turns])
    if level == "token":
        return difference
    if level == "turn":
        owner = np.concatenate([np.full(len(t.new), i) for i, t in enumerate(turns)])
    elif level == "trajectory":
        owner = np.concatenate([np.full(len(t.new), t.trajectory) for t in turns])
    else:
        raise ConfigError(f"loss.ratio_level must be token, turn or trajectory, got {level!r}")
    _, span = np.unique(owner, return_inverse=True)
    means: Floats = np.bincount(span, weights=difference) / np.bincount(span)
    return means[span]


# ---- sequences


@dataclass(frozen=True, slots=True, kw_only=True)
class SequencePoints:
    """One point a sequence: every array has shape (K,)."""

    gap: Floats
    """Mean over the tokens of old minus new log-probability, in nats: positive where they became less
    likely. The sequence mask compares it with its bound."""
    advantage: Floats
    entropy: Floats
    """Mean over the tokens, in nats."""

    def masked(self, delta: float) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """Return which sequences a mask with bound `delta` drops, (K,) bool."""
        return (self.advantage < 0) & (self.gap > delta)


def sequence_points(turns: Sequence[TurnScores]) -> SequencePoints:
    """Return the points of sequences, turns or `whole_trajectories`, of one step.

    References:
        ARLArena, arXiv:2602.21534, sequence mask.
    """
    return SequencePoints(
        gap=np.array([np.mean(t.old - t.new) for t in turns]),
        advantage=np.array([t.advantage for t in turns]),
        entropy=np.array([np.mean(t.entropy) for t in turns]),
    )


def whole_trajectories(turns: Sequence[TurnScores]) -> list[TurnScores]:
    """Return the tokens of each trajectory as if they were one turn.

    Its advantage is the mean over its tokens, as the sequence mask takes it.
    """
    parts: dict[int, list[TurnScores]] = {}
    for turn in turns:
        parts.setdefault(turn.trajectory, []).append(turn)
    return [_joined(own) for own in parts.values()]


def _joined(turns: Sequence[TurnScores]) -> TurnScores:
    refs = [t.ref for t in turns if t.ref is not None]
    return TurnScores(
        trajectory=turns[0].trajectory,
        advantage=float(np.average([t.advantage for t in turns], weights=[len(t.new) for t in turns])),
        old=np.concatenate([t.old for t in turns]),
        new=np.concatenate([t.new for t in turns]),
        ref=np.concatenate(refs) if len(refs) == len(turns) else None,
        entropy=np.concatenate([t.entropy for t in turns]),
    )


# ---- eight classes of turns


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassShares:
    """Shares of the eight classes over recorded steps; both arrays have shape (steps, 8), rows sum to 1."""

    steps: tuple[int, ...]
    turns: Floats
    """Shares of the turns."""
    divergence: Floats | None
    """Softmax over the classes that occur of their mean divergence to the reference; a class that does not
    occur has 0. None where a step has no reference log-probabilities."""


def turn_class(turn: TurnScores, *, entropy_bound: float = ENTROPY_BOUND) -> int:
    """Return the number of a turn's class in `CLASSES`.

    The bits are: advantage above 0 (4), mean entropy above `entropy_bound` (2), and mean over the tokens of
    new minus old probability, not log-probability, above 0 (1).

    References:
        ARLArena, arXiv:2602.21534, stream graph.
    """
    shift = np.mean(np.exp(turn.new) - np.exp(turn.old))
    return 4 * (turn.advantage > 0) + 2 * bool(np.mean(turn.entropy) > entropy_bound) + bool(shift > 0)


def class_shares(steps: Sequence[RecordedStep], *, entropy_bound: float = ENTROPY_BOUND) -> ClassShares:
    """Return the shares of the eight classes in every step that has turns with scores."""
    scored = sorted((s for s in steps if s.turns), key=lambda s: s.step)
    classes = [np.array([turn_class(t, entropy_bound=entropy_bound) for t in s.turns]) for s in scored]
    with_reference = bool(scored) and all(t.ref is not None for s in scored for t in s.turns)
    divergence = (
        [_softmax_shares(s.turns, own) for s, own in zip(scored, classes, strict=True)]
        if with_reference
        else []
    )
    return ClassShares(
        steps=tuple(s.step for s in scored),
        turns=np.array([np.bincount(own, minlength=8) / len(own) for own in classes]).reshape(-1, 8),
        divergence=np.array(divergence) if with_reference else None,
    )


def _softmax_shares(
    turns: Sequence[TurnScores], classes: np.ndarray[tuple[int], np.dtype[np.int64]]
) -> Floats:
    divergence = np.array([divergence_to_reference(t) for t in turns])
    shares = np.zeros(8)
    present = np.unique(classes)
    means = np.array([divergence[classes == c].mean() for c in present])
    weights = np.exp(means - means.max())
    shares[present] = weights / weights.sum()
    return shares


def divergence_to_reference(turn: TurnScores) -> float:
    """Return the mean k3 estimate of a turn's divergence to the reference, in nats; NaN counts as 0.

    Raises:
        ValueError: If the turn has no reference log-probabilities.

    References:
        Schulman, "Approximating KL divergence", 2020; clamped as in ARLArena's release.
    """
    if turn.ref is None:
        raise ValueError("the turn has no reference log-probabilities")
    gap = np.clip(turn.ref - turn.new, -20.0, 20.0)
    k3 = np.clip(np.exp(gap) - gap - 1.0, -10.0, 10.0)
    return float(np.mean(np.nan_to_num(k3, nan=0.0)))


# ---- means over seeds


@dataclass(frozen=True, slots=True, kw_only=True)
class Band:
    """The mean of one metric over several runs; every array has shape (T,)."""

    x: Floats
    mean: Floats
    """Over the runs that have a value."""
    low: Floats
    """2.5th percentile of the bootstrapped mean; NaN where not all runs have a value."""
    high: Floats
    """97.5th percentile, likewise."""
    count: np.ndarray[tuple[int], np.dtype[np.int64]]
    """Runs that have a value."""


Series = Mapping[int, tuple[float, float]]
"""From a step to (x, value); steps without a finite value are absent."""


def band(runs: Sequence[Series], *, resamples: int = 2000) -> Band:
    """Return mean and 95% bootstrap interval over runs at every step that some run has.

    The runs are resampled with replacement by a generator of a fixed seed. Where a run has no value, because
    it ended early for example, the mean over the others is no longer that of the same runs: it has no
    interval there. A mean x goes with a mean value.
    """
    steps = sorted({step for run in runs for step in run})
    table = np.array([[run.get(step, (np.nan, np.nan)) for step in steps] for run in runs])
    x, values = table[..., 0], table[..., 1]  # (R, T) each
    here = np.isfinite(values)
    count = here.sum(axis=0)
    draws = np.random.default_rng(0).integers(len(runs), size=(resamples, len(runs)))
    weights = np.stack([np.bincount(draw, minlength=len(runs)) for draw in draws]) / len(runs)
    low, high = np.percentile(weights @ np.where(here, values, 0.0), (2.5, 97.5), axis=0)
    everywhere = count == len(runs)
    return Band(
        x=np.where(here, x, 0.0).sum(axis=0) / count,
        mean=np.where(here, values, 0.0).sum(axis=0) / count,
        low=np.where(everywhere, low, np.nan),
        high=np.where(everywhere, high, np.nan),
        count=count,
    )
