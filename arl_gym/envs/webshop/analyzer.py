"""Terms of a text as Lucene's analyser for English gives them: lower-cased, no stop words, stemmed.

Words are split by the rules of Unicode for word boundaries as Lucene's StandardTokenizer applies them. Not
covered: keycaps, squared and circled letters, modifier symbols, and scripts that came with Unicode 13 or
later, which Lucene 9.5 drops; accents of scripts beyond the first 65,536 characters.

>>> tokens("The women's running shoes, size 7.5")
['women', 'run', 'shoe', 'size', '7.5']
"""

import re
import unicodedata
from functools import cache, lru_cache

from Stemmer import Stemmer

_STOP_WORDS = """
a an and are as at be but by for if in into is it no not of on or such that the their then there these
they this to was will with
"""
STOP_WORDS = frozenset(_STOP_WORDS.split())

_MAX_LENGTH = 255
_STEMMER = Stemmer("porter", 0)
# The letters that the published stemmer leaves double.
_DOUBLED = re.compile(r"([^aeiouylszbdfgmnprt])\1(?:ed|ing)s?$")
_LOGY_OR_BLY = re.compile(r"(?:log|bl)[iy](?:e?s|ed|ing)?$")
_ASCII_WORD = re.compile(r"\w+(?:(?:(?<=[a-z])[:.'](?=[a-z])|(?<=\d)[,;.'](?=\d))\w+)*")

# Code points, in hex, by what Lucene makes of them.
_NOT_IN_WORDS = """
b2-b3 b9 bc-be 2070 2074-2079 2080-2089 2150-215f 2189 2460-249b 24ea-24ff 2776-2793 3192-3195 3220-3229
3248-324f 3251-325f 3280-3289 32b1-32bf
"""
_ONE_BY_ONE = """
2e80-2e99 2e9b-2ef3 2f00-2fd5 3007 3021-3029 3038-303b 3041-3096 309d-309f 3400-4db5 4e00-9fef f900-faff
20000-3ffff
"""
_KATAKANA = (
    "3031-3035 309b-309c 30a0-30fa 30fc-30ff 31f0-31ff 32d0-32fe 3300-3357 ff66-ff9f 1b000 1b164-1b167"
)
_WITHOUT_SPACES = """
e01-e3a e40-e4e e81-ec6 ec8-ecd edc-edf 1000-103f 1050-108f 109a-109f 1780-17d3 17d7 17dc-17dd 1950-19c9
19da-19df 1a20-1a7c 1aa0-1aad a9e0-a9ef a9fa-a9fe aa60-aac2 aadb-aadf
"""
_PICTOGRAPHS = """
a9 ae 203c 2049 2122 2194-2199 21a9-21aa 231a-231b 2328 2388 23cf 23e9-23f3 23f8-23fa 25aa-25ab 25b6 25c0
25fb-25fe 2600-2605 2607-2612 2614-2685 2690-2705 2708-2712 2714 2716 271d 2721 2728 2733-2734 2744 2747
274c 274e 2753-2755 2757 2763-2767 2795-2797 27a1 27b0 27bf 2934-2935 2b05-2b07 2b1b-2b1c 2b50 2b55 3030
303d 3297 3299 1f000-1f0ff 1f10d-1f10f 1f12f 1f16c-1f16f 1f18e 1f191-1f19a 1f1ad-1f1e5 1f200-1f20f 1f21a
1f22f 1f232-1f23a 1f23c-1f23f 1f249-1f3ff 1f400-1f53d 1f546-1f64f 1f680-1f6ff 1f774-1f77f 1f7d5-1f7ff
1f80c-1f80f 1f848-1f84f 1f85a-1f85f 1f888-1f88f 1f8ae-1f8ff 1f90c-1f93a 1f93c-1f945 1f947-1fbef 1fbfa-1fffd
"""
_FLAG_LETTERS = "1f1e6-1f1ff"
_JOINERS = "202f 203f-2040 2054 fe33-fe34 fe4d-fe4f ff3f 1f3fb-1f3ff e0001-e01ef"


def tokens(text: str) -> list[str]:
    """Return the terms of a text in order, repeats kept."""
    return [term for word in words(text) if (term := stem(word))]


def words(text: str) -> list[str]:
    """Return the lower-cased words of a text, before stop words are dropped and the rest is stemmed."""
    if text.isascii():
        pattern = _ASCII_WORD
    else:
        pattern = _unicode_word()
        # Lucene changes characters one by one: Python's rules for these two depend on what is around them.
        text = text.replace("İ", "i").replace("Σ", "σ")
    found: list[str] = pattern.findall(text.lower())
    if found and max(map(len, found)) > _MAX_LENGTH:
        return [part for word in found for part in _parts(word, pattern)]
    return found


@lru_cache(maxsize=1 << 14)
def stem(word: str) -> str:
    """Return the term of a lower-cased word, "" for a stop word or one without letters and digits."""
    if word.endswith(("'s", "’s", "＇s")):
        word = word[:-2]
    if word in STOP_WORDS or not word.strip("_"):
        return ""
    return word if len(word) <= 2 else _porter(word)


def _porter(word: str) -> str:
    """Return Porter's stem with the three departures that Lucene has from the paper.

    Any consonant but l, s and z is undoubled before "ed" and "ing", "bli" becomes "ble" and "logi" "log".
    """
    doubled = _DOUBLED.search(word)
    if doubled and re.search("[aeiouy]", word[: doubled.start()]):
        return str(_STEMMER.stemWord(word[: doubled.start() + 1]))
    stemmed = str(_STEMMER.stemWord(word))
    if stemmed.endswith("logi") and _LOGY_OR_BLY.search(word) and _measured(stemmed[:-4]):
        return stemmed[:-1]
    if stemmed.endswith("bli") and _LOGY_OR_BLY.search(word) and _measured(stemmed[:-3]):
        return str(_STEMMER.stemWord(stemmed[:-1] + "e"))
    return stemmed


def _measured(stem: str) -> bool:
    """Return whether a vowel is followed by a consonant: Porter's m > 0."""
    return re.search("[aeiou][^aeiou]|[^aeiou]y[^aeiouy]", stem) is not None


def _parts(word: str, pattern: re.Pattern[str]) -> list[str]:
    """Cut a word that is too long as Lucene does: each part is a word again."""
    parts = []
    start = 0
    while start < len(word):
        match = pattern.match(word, start, start + _MAX_LENGTH)
        if match:
            parts.append(match.group())
        start = match.end() if match else start + 1
    return parts


@cache
def _unicode_word() -> re.Pattern[str]:
    """Return the pattern for texts beyond ASCII, made when the first comes."""
    mark = f"[{_marks()}{_ranges(_JOINERS)}]"
    apart = _ranges(" ".join((_NOT_IN_WORDS, _ONE_BY_ONE, _KATAKANA, _WITHOUT_SPACES)))
    letter = rf"[^\W\d_{apart}]"
    run = rf"(?:[^\W{apart}]+{mark}*)+"
    between_letters = rf"(?<={letter}|{mark})[:·.'‘’․‧״﹒＇．：]{mark}*(?={letter})"
    between_digits = rf"(?<=\d|{mark})[,;.'‘’․⁄،٬﹒＇．，；]{mark}*(?=\d)"
    pictograph = f"[{_ranges(_PICTOGRAPHS)}]{mark}*"
    return re.compile(
        rf"{run}(?:(?:{between_letters}|{between_digits}){run})*"
        rf"|{pictograph}(?:(?<=\u200d){pictograph})*"
        rf"|[{_ranges(_FLAG_LETTERS)}]{{2}}{mark}*"
        rf"|[{_ranges(_ONE_BY_ONE)}]{mark}*"
        rf"|[{_ranges(_KATAKANA)}](?:[{_ranges(_KATAKANA)}_]|{mark})*"
        rf"|[{_ranges(_WITHOUT_SPACES)}](?:[{_ranges(_WITHOUT_SPACES)}]|{mark})*"
    )


def _ranges(hexes: str) -> str:
    """Return code points as the inside of a character class."""
    ends = (part.partition("-") for part in hexes.split())
    return "".join(chr(int(a, 16)) + (f"-{chr(int(b, 16))}" if b else "") for a, _, b in ends)


def _marks() -> str:
    """Return the characters that belong to the one before them, such as accents and joiners."""
    kinds = {"Mn", "Mc", "Me", "Cf"}
    return "".join(
        c for c in map(chr, range(0xAD, 0xFFFF)) if unicodedata.category(c) in kinds and c != "\u200b"
    )
