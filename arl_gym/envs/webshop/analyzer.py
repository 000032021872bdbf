"""Terms of a text as Lucene's analyser for English gives them: lower-cased, no stop words, stemmed.

>>> tokens("The women's running shoes, size 7.5")
['women', 'run', 'shoe', 'size', '7.5']
"""

import re
from functools import lru_cache

from Stemmer import Stemmer

_STOP_WORDS = """
a an and are as at be but by for if in into is it no not of on or such that the their then there these
they this to was will with
"""
STOP_WORDS = frozenset(_STOP_WORDS.split())

_MAX_LENGTH = 255
_WORD = re.compile(r"\w+(?:(?:(?<=[^\W\d_])[:.'’·](?=[^\W\d_])|(?<=\d)[,;.'’](?=\d))\w+)*")
_STEMMER = Stemmer("porter", 0)


def tokens(text: str) -> list[str]:
    """Return the terms of a text in order, repeats kept."""
    return [term for word in words(text) if (term := stem(word))]


def words(text: str) -> list[str]:
    """Return the lower-cased words of a text, before stop words are dropped and the rest is stemmed."""
    found: list[str] = _WORD.findall(text.lower())
    if found and max(map(len, found)) > _MAX_LENGTH:
        return [w[i : i + _MAX_LENGTH] for w in found for i in range(0, len(w), _MAX_LENGTH)]
    return found


@lru_cache(maxsize=1 << 14)
def stem(word: str) -> str:
    """Return the term of a lower-cased word, "" for a stop word."""
    if word.endswith(("'s", "’s", "＇s")):
        word = word[:-2]
    if word in STOP_WORDS:
        return ""
    return word if len(word) <= 2 else str(_STEMMER.stemWord(word))
