"""The integer PRNG that draws content: SplitMix64 on plain integers.

Not for statistics and not for speed: its point is that a key gives the same task in any process, on any
machine, with any NumPy version. The state is one 64-bit word, so the same recurrence runs inside numba.

    >>> Rng("sokoban", 7).below(10) == Rng("sokoban", 7).below(10)
    True
"""

import hashlib
import json
from collections.abc import MutableSequence, Sequence
from typing import TypeVar

T = TypeVar("T")

_MASK = (1 << 64) - 1
_encode = json.JSONEncoder(separators=(",", ":")).encode
_GOLDEN = 0x9E3779B97F4A7C15


def derive(*key: int | str) -> int:
    """Return a 64-bit seed for a key of integers and strings, equal in every process."""
    return int.from_bytes(hashlib.blake2b(_encode(key).encode(), digest_size=8).digest(), "little")


def digest(content: str | bytes) -> str:
    """Return 16 hex digits that identify `content`: used for content hashes, state keys and images."""
    raw = content.encode() if isinstance(content, str) else content
    return hashlib.blake2b(raw, digest_size=8).hexdigest()


def nth_word(seed: int, n: int) -> int:
    """Return word n, counted from 0, of the stream whose state is `seed`, without drawing those before."""
    rng = Rng.__new__(Rng)
    rng.state = (seed + n * _GOLDEN) & _MASK
    return rng.next64()


class Rng:
    """A stream of random integers determined by its key.

    References:
        Steele, Lea, Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014 (SplitMix64).
    """

    __slots__ = ("state",)

    def __init__(self, *key: int | str):
        self.state = derive(*key)

    def next64(self) -> int:
        """Return the next 64-bit word."""
        self.state = (self.state + _GOLDEN) & _MASK
        z = self.state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
        return z ^ (z >> 31)

    def below(self, n: int) -> int:
        """Return a uniform integer in [0, n).

        Raises:
            ValueError: If `n` is not in [1, 2**64].
        """
        if not 1 <= n <= 1 << 64:
            raise ValueError(f"below(n) needs 1 <= n <= 2**64, got n={n}")
        # Words under the remainder of 2**64 by n would favour small results: draw again. The remainder is
        # below n, so that hardly any word needs to be compared with it.
        while (word := self.next64()) < n and word < (1 << 64) % n:
            pass
        return word % n

    def uniform(self) -> float:
        """Return a uniform float in [0, 1) with 53 random bits."""
        return (self.next64() >> 11) * (1.0 / (1 << 53))

    def choice(self, items: Sequence[T]) -> T:
        """Return one of `items`, each equally likely."""
        return items[self.below(len(items))]

    def shuffle(self, items: MutableSequence[T]) -> None:
        """Permute `items` in place (Fisher-Yates)."""
        for i in range(len(items) - 1, 0, -1):
            j = self.below(i + 1)
            items[i], items[j] = items[j], items[i]
