r"""Caps on what may be computed, checked on the text before anything is.

They save the seconds that a bomb would cost until the deadline; the deadline and the memory limit of the
worker process are what keeps a check bounded.
"""

import re

MAX_CHARS = 500
MAX_DEPTH = 30
MAX_ITEMS = 60
MAX_EXPONENT = 20_000
MAX_FACTORIAL = 5_000

_TOWER = re.compile(r"\^\{[^{}]*\d[^{}]*\^\{[^{}]*\d")
_EXPONENT = re.compile(r"\^\{?[+-]?(\d+)")
_FACTORIAL = re.compile(r"(\d+)\)*!|!\)*!|\^\{[^{}]*!")


def too_complex(text: str) -> bool:
    """Say whether canonical LaTeX has a power tower, a huge exponent or a huge factorial."""
    if _TOWER.search(text):
        return True
    if any(int(n) > MAX_EXPONENT for n in _EXPONENT.findall(text)):
        return True
    # An empty group is a factorial of a factorial, or one in an exponent.
    return any(not n or int(n) > MAX_FACTORIAL for n in _FACTORIAL.findall(text))


def too_deep(text: str) -> bool:
    """Say whether brackets nest deeper than a parser should follow."""
    depth = deepest = 0
    for char in text:
        depth += (char in "([{") - (char in ")]}")
        deepest = max(deepest, depth)
    return deepest > MAX_DEPTH
