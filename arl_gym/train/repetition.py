"""Does a text repeat itself? What a collapsed policy writes does.

>>> is_repetitive("!" * 40), is_repetitive("The box is left of its target, so I push it to the left.")
(True, False)
"""

from collections.abc import Sequence

_MIN_CHARACTERS = 40
_MIN_TILES = 4
_GRAM = 4
_MIN_GRAMS = 3


def is_repetitive(text: str) -> bool:
    """Whether a text of at least 40 characters is mostly one thing over and over.

    Either its second half is one substring, at least four times in a row (the last may be cut off), or more
    than half of its words belong to one sequence of four words that occurs at least three times, occurrences
    not overlapping. White space at the ends does not count.
    """
    text = text.strip()
    if len(text) < _MIN_CHARACTERS:
        return False
    half = text[len(text) // 2 :]
    return _period(half) * _MIN_TILES <= len(half) or _gram_share(text.split()) > 0.5


def _period(text: str) -> int:
    """Return the length of the shortest substring that tiles the text, the last tile cut off where it ends.

    References:
        The failure function of Knuth, Morris and Pratt: a text of n characters whose longest proper border
        has b has period n - b.
    """
    border = [0] * len(text)
    for i in range(1, len(text)):
        b = border[i - 1]
        while b and text[i] != text[b]:
            b = border[b - 1]
        border[i] = b + (text[i] == text[b])
    return len(text) - border[-1]


def _gram_share(words: Sequence[str]) -> float:
    """Return the share of words in the four words that occur most often, 0 if they occur too rarely."""
    counts: dict[tuple[str, ...], int] = {}
    free_from: dict[tuple[str, ...], int] = {}
    for i in range(len(words) - _GRAM + 1):
        gram = tuple(words[i : i + _GRAM])
        if i >= free_from.get(gram, 0):
            counts[gram] = counts.get(gram, 0) + 1
            free_from[gram] = i + _GRAM
    most = max(counts.values(), default=0)
    return _GRAM * most / len(words) if most >= _MIN_GRAMS else 0.0
