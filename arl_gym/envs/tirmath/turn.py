r"""What one turn of the model says: a program, a boxed answer, both or nothing of use.

>>> parse_turn("Add them.\n```python\nprint(1 + 1)\n```\nSo it is 3.")
ParsedTurn(kept='Add them.\n```python\nprint(1 + 1)\n```', prose='Add them.\n', code='print(1 + 1)\n')
"""

import re
from typing import NamedTuple

_OPENING = re.compile(r"```([^\n`]*)\n")
_CLOSING = re.compile(r"^[ \t]*```", re.MULTILINE)
_PYTHON = ("", "py", "python", "python3")


class ParsedTurn(NamedTuple):
    """A turn as the environment reads it."""

    kept: str
    """The text up to the end of the first program; what follows was written before its output was seen."""
    prose: str
    """The text before the program."""
    code: str | None


def parse_turn(text: str) -> ParsedTurn:
    """Find the first block of Python in a text.

    A block begins with three backticks, which may stand anywhere in a line, and with "python", "py" or
    nothing after them, in any case; it ends with a line that begins with three backticks. Blocks in other
    languages are text. A block that is not closed is no block.

    References:
        SimpleTIR, arXiv:2509.02479, whose rollout takes the first match of a regular expression.
    """
    opening = _OPENING.search(text)
    while opening:
        closing = _CLOSING.search(text, opening.end())
        if closing is None:
            break
        if opening[1].strip().lower() in _PYTHON:
            code = text[opening.end() : closing.start()]
            return ParsedTurn(text[: closing.end()], text[: opening.start()], code)
        opening = _OPENING.search(text, closing.end())
    return ParsedTurn(text, text, None)


def shorten(text: str, most: int) -> str:
    """Return a text of more than `most` characters without its middle, saying how much that was."""
    if len(text) <= most:
        return text
    half = most // 2
    return f"{text[:half]} ...[{len(text) - 2 * half} characters left out]... {text[-half:]}"
