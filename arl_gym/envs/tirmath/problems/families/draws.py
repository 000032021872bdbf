"""Draws that the families share.

>>> band(Rng("here"), 1, (0, 10, 100)) <= 10 < band(Rng("here"), 2, (0, 10, 100))
True
"""

from collections.abc import Sequence

from arl_gym.rng import Rng


def between(rng: Rng, low: int, high: int) -> int:
    """Return an integer from low to high, both included."""
    return low + rng.below(high - low + 1)


def band(rng: Rng, level: int, bounds: Sequence[int]) -> int:
    """Return an integer above the level's bound and not above the next, so that levels never overlap."""
    return between(rng, bounds[level - 1] + 1, bounds[level])


def nonzero(rng: Rng, most: int) -> int:
    """Return an integer from -most to most, but not 0."""
    return between(rng, 1, most) * rng.choice((1, -1))


def distinct(rng: Rng, n: int, low: int, high: int) -> list[int]:
    """Return n different integers from low to high, in rising order."""
    chosen = set[int]()
    while len(chosen) < n:
        chosen.add(between(rng, low, high))
    return sorted(chosen)
