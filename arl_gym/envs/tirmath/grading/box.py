r"""Finds the answer in a response: the last complete `\boxed{…}`.

Counts braces, so that boxes may nest as deep as they like; an escaped brace is text. `\boxed 42` is a box of
one word, as in the MATH solutions. `\fbox` is no box: no prompt of ours asks for it. Does not judge anything.

    >>> extract_boxed(r"First \boxed{41}, no: \boxed{\frac{1}{2}}.")
    '\\frac{1}{2}'
"""

import re

_BOX = re.compile(r"\\boxed(?![A-Za-z])\s*")
_BRACE = re.compile(r"\\.|[{}]", re.DOTALL)
_WORD = re.compile(r"[^\s{}$\\]+")


def extract_boxed(text: str) -> str | None:
    r"""Return the content of the last complete box of `text`, None if there is none.

    A box inside another one belongs to it. A box that is never closed, as in a response that was cut off, is
    none; those before it count.
    """
    found = None
    end = 0
    for match in _BOX.finditer(text):
        if match.start() < end:
            continue
        if text[match.end() : match.end() + 1] != "{":
            word = _WORD.match(text, match.end()) if match.group() != r"\boxed" else None
            found = word.group().rstrip(".,;") if word else found
        elif (close := _closing(text, match.end())) is None:
            # Everything after is inside, and a later box cannot be told from a part of this one unless it is
            # complete itself: keep looking.
            continue
        else:
            found, end = text[match.end() + 1 : close].strip(), close
    return found


def has_box(text: str) -> bool:
    """Say whether a complete box is in `text`."""
    return extract_boxed(text) is not None


def _closing(text: str, start: int) -> int | None:
    """Return where the brace at `start` is closed."""
    depth = 0
    for match in _BRACE.finditer(text, start):
        depth += {"{": 1, "}": -1}.get(match.group(), 0)
        if depth == 0:
            return match.start()
    return None
