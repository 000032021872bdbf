r"""One way to write each piece of LaTeX, so that equal answers are often equal strings.

Drops what only moves ink (`\left`, `\,`, `$`, bold), spells out arguments (`\frac12`), joins the groups of
thousands, removes degree signs, makes words separators of lists ("and", "or") or `\text{…}`. No parsing of
mathematics, which is `shape` and `symbols`.

    >>> canonical(r"\left( \dfrac 34, 10^2 \right]")
    '(\\frac{3}{4},10^{2}]'
"""

import re

from arl_gym.errors import ArlGymError

_UNICODE = {
    "−": "-", "–": "-", "×": r"\times ", "·": r"\cdot ", "⋅": r"\cdot ", "÷": "/", "π": r"\pi ",
    "θ": r"\theta ", "√": r"\sqrt ", "∞": r"\infty ", "≤": r"\le ", "≥": r"\ge ", "≠": r"\ne ",
    "±": r"\pm ", "°": r"^\circ ", "∪": r"\cup ", "∈": r"\in ", "∅": r"\emptyset ", "²": "^2",
    "³": "^3", "¹": "^1", "½": r"\frac12 ", "’": "'", "“": '"', "”": '"', "，": ",", "€": r"\$",
    "£": r"\$", "\u00a0": " ",
}  # fmt: skip
_SPELLINGS = {
    r"\dfrac": r"\frac", r"\tfrac": r"\frac", r"\cfrac": r"\frac", r"\dbinom": r"\binom",
    r"\tbinom": r"\binom", r"\leq": r"\le", r"\leqslant": r"\le", r"\geq": r"\ge", r"\geqslant": r"\ge",
    r"\neq": r"\ne", r"\lt": "<",
    r"\gt": ">", r"\varnothing": r"\emptyset", r"\lbrace": r"\{", r"\rbrace": r"\}", r"\lbrack": "[",
    r"\rbrack": "]", r"\lparen": "(", r"\rparen": ")", r"\vert": "|", r"\lvert": "|", r"\rvert": "|",
    r"\colon": ":",
    r"\imath": "i", r"\percent": r"\%", r"\div": "/", r"\dots": r"\ldots",
    r"\cdots": r"\ldots", r"\ast": "*", r"\lor": ",", r"\vee": ",", r"\implies": r"\Rightarrow",
    r"\simeq": r"\approx", "%": r"\%",
}  # fmt: skip
_INVISIBLE = frozenset([
    r"\left", r"\right", r"\big", r"\Big", r"\bigg", r"\Bigg", r"\bigl", r"\bigr", r"\Bigl",
    r"\Bigr", r"\biggl", r"\biggr", r"\displaystyle", r"\textstyle", r"\limits", r"\nolimits",
    r"\rm", r"\bf", r"\it", r"\mathstrut",
])  # fmt: skip
_SPACES = frozenset([r"\ ", r"\,", r"\;", r"\:", r"\>", "~", r"\quad", r"\qquad", r"\enspace", r"\thinspace"])
_ARGUMENTS = {r"\frac": 2, r"\binom": 2, r"\sqrt": 1, "^": 1, "_": 1, r"\overline": 1}
_WORDY = [
    "text", "textnormal", "textbf", "textit", "textrm", "texttt", "mbox", "hbox", "mathrm",
    "mathbf", "mathit", "boldsymbol", "bm",
]  # fmt: skip

_TOKEN = re.compile(
    rf"\\(?:{'|'.join(_WORDY)})\s*\{{(?P<words>[^{{}}]*)\}}"
    r"|\\operatorname\*?\s*\{(?P<operator>[a-zA-Z]+)\}"
    r"|\\(?:begin|end)\s*\{[a-z]+\*?\}|\\[a-zA-Z]+|\\.|\s+|.",
    re.DOTALL,
)
_NEGATIVE_SPACE = re.compile(r"(?<=\d)(,|\{\s*,\s*\})?\s*(?:\\!\s*)+(?=\d)|\{\s*,\s*\}|\\!")
_THOUSANDS = re.compile(r"(?<![\d.,])[1-9]\d{0,2}(?:,\d{3})+(?![\d,])")
_SPACED_THOUSANDS = re.compile(r"(?<![\d.])[1-9]\d{0,2}(?:\s\d{3})+(?!\d)")
_MIXED = re.compile(r"([+-]?\d+) +(\d+)/(\d+)")
_BARE_AND = re.compile(r"(?<![\\A-Za-z]),?\s*(?:and|or)(?![A-Za-z])")
_BARE_FUNCTION = re.compile(
    r"(?<![\\A-Za-z])(pi|sqrt|sin|cos|tan|cot|sec|csc|arcsin|arccos|arctan|log|ln|theta|infty)(?![A-Za-z])"
)
_BARE_UNIT = re.compile(
    r"(?<=[\d})])\s+([A-Za-z]{3,}[A-Za-z. ]*|[ck]m|m[mL]|kg|lb|ft|km/h|mph)(?=\s*(?:\^|$))"
)
_SEPARATOR = re.compile(r"\s*[,;]\s*(?:(?:and|or)\b)?|\s*\b(?:and|or)\b\s*")
_LEADING_NUMBER = re.compile(r"([\d.:/]+)\s+(?=[A-Za-z])")
_NUMBERLIKE = re.compile(r"[\d.+/-]+")
_WRAPPERS = (
    ("$$", "$$"),
    ("$", "$"),
    (r"\(", r"\)"),
    (r"\[", r"\]"),
    ("**", "**"),
    ("`", "`"),
    ("'", "'"),
    ('"', '"'),
)


class Malformed(ArlGymError, ValueError):
    """The text is no well-formed answer; the message says why."""


def canonical(text: str) -> str:
    """Return `text` in its one spelling; spaces remain only behind a command and inside words.

    Raises:
        Malformed: If brackets do not match, an argument is missing or two numbers stand side by side.
    """
    tokens = _tokens(_plain(text))
    pieces, end = _sequence(tokens, 0)
    if end < len(tokens):
        raise Malformed(f"a brace is closed that was never opened, in {text!r}")
    joined = _join(pieces)
    if not _is_balanced(joined):
        raise Malformed(f"brackets do not match in {text!r}")
    return joined


def _plain(text: str) -> str:
    for old, new in _UNICODE.items():
        text = text.replace(old, new)
    text = _unwrap(" ".join(text.split()))
    if match := _MIXED.fullmatch(text):
        return rf"{match.group(1)}\frac{{{match.group(2)}}}{{{match.group(3)}}}"
    text = _NEGATIVE_SPACE.sub("", text)
    if text.count(",") == sum(group.count(",") for group in _THOUSANDS.findall(text)) and not re.search(
        r"[(\[]|\\\{", text
    ):
        text = _THOUSANDS.sub(lambda m: m.group().replace(",", ""), text)
    return _BARE_FUNCTION.sub(r"\\\1 ", _BARE_AND.sub(", ", _BARE_UNIT.sub(r"\\text{ \1}", text)))


def _unwrap(text: str) -> str:
    """Drop what stands around the whole answer: math mode, quotes, markdown, a full stop."""
    text = text.strip()
    for opening, closing in _WRAPPERS:
        inner = text[len(opening) : -len(closing)]
        if len(text) > len(opening + closing) and text == opening + inner + closing and closing not in inner:
            return _unwrap(inner)
    stripped = re.sub(r"(?<!\\)[.,;\s]+$|\\\\$", "", text)
    return stripped if stripped == text else _unwrap(stripped)


def _tokens(text: str) -> list[str]:
    tokens: list[str] = []
    for match in _TOKEN.finditer(text):
        token = match.group()
        if match["words"] is not None:
            tokens += _words(match["words"])
        elif match["operator"]:
            tokens.append("\\" + match["operator"])
        elif token.isspace() or token in _SPACES:
            tokens += " " if tokens and tokens[-1] != " " else ""
        elif token == "." and tokens and tokens[-1] in (r"\left", r"\right"):
            tokens.pop()
        elif token.startswith((r"\begin", r"\end")):
            tokens.append(
                re.sub(r"\s|[bBvV](?=matrix)|\bsmall(?=matrix)", "", token).replace("{matrix", "{pmatrix")
            )
        elif token == r"\degree":
            tokens += ["^", "{", r"\circ", "}"]
        elif token != "$":
            tokens.append(_SPELLINGS.get(token, token))
    kept = [token for token in tokens if token not in _INVISIBLE]
    return _join_thousands(kept)


def _words(content: str) -> list[str]:
    """Split text into words and separators; numbers and single letters are mathematics."""
    tokens: list[str] = []
    position = 0
    for match in [*_SEPARATOR.finditer(content), None]:
        piece = content[position : match.start() if match else None].strip().strip("'\"")
        if re.fullmatch(r"\([A-Za-z]\)", piece):
            piece = piece[1]
        if _NUMBERLIKE.fullmatch(piece):
            tokens += piece
        elif piece.rstrip(".") == "degrees" or piece == "degree":
            tokens += ["^", "{", r"\circ", "}"]
        elif piece == "percent":
            tokens.append(r"\%")
        elif len(piece) == 1:
            tokens.append(piece)
        elif number := _LEADING_NUMBER.match(piece):
            tokens += [*number.group(1), rf"\text{{{piece[number.end() :]}}}"]
        elif piece:
            tokens.append(r"\text{" + " ".join(piece.split()) + "}")
        if match:
            tokens.append(",")
            position = match.end()
    return tokens


def _join_thousands(tokens: list[str]) -> list[str]:
    text = "".join(t if len(t) == 1 else "\0" for t in tokens)
    drop = {
        m.start() + i for m in _SPACED_THOUSANDS.finditer(text) for i, c in enumerate(m.group()) if c == " "
    }
    return [token for i, token in enumerate(tokens) if i not in drop]


def _sequence(tokens: list[str], i: int) -> tuple[list[str], int]:
    """Return the pieces from token `i` to the end or to the brace that closes this level, and that place."""
    pieces: list[str] = []
    while i < len(tokens) and tokens[i] != "}":
        piece, i = _piece(tokens, i)
        pieces.append(piece)
    return pieces, i


def _piece(tokens: list[str], i: int) -> tuple[str, int]:
    token = tokens[i]
    if token == "{":
        inner, i = _group(tokens, i)
        return f"{{{inner}}}", i
    i += 1
    if token == r"\sqrt" and (start := _skip(tokens, i)) < len(tokens) and tokens[start] == "[":
        end = tokens.index("]", start) if "]" in tokens[start:] else start
        token, i = r"\sqrt" + "".join(tokens[start : end + 1]), end + 1
    for _ in range(_ARGUMENTS.get(token.partition("[")[0] if token.startswith(r"\sqrt") else token, 0)):
        argument, i = _argument(tokens, i, token)
        token += f"{{{argument}}}"
    return token, i


def _group(tokens: list[str], i: int) -> tuple[str, int]:
    inner, end = _sequence(tokens, i + 1)
    if end >= len(tokens):
        raise Malformed("a brace is never closed")
    return _join(inner), end + 1


def _argument(tokens: list[str], i: int, command: str) -> tuple[str, int]:
    i = _skip(tokens, i)
    if i >= len(tokens) or tokens[i] in ("}", ")", "]", ",", "&"):
        raise Malformed(f"an argument of {command} is missing")
    if tokens[i] == "{":
        return _group(tokens, i)
    if tokens[i] == "(" and command == r"\sqrt":
        return _parenthesised(tokens, i)
    if command in ("^", "_") and tokens[i].isdigit():
        # LaTeX would take one digit, but nobody who writes x^21 means x^2 times 1.
        end = next((j for j in range(i, len(tokens)) if not tokens[j].isdigit()), len(tokens))
        return "".join(tokens[i:end]), end
    return _piece(tokens, i)


def _parenthesised(tokens: list[str], i: int) -> tuple[str, int]:
    depth = 0
    for end in range(i, len(tokens)):
        depth += {"(": 1, ")": -1}.get(tokens[end], 0)
        if depth == 0:
            pieces, stop = _sequence(tokens[i + 1 : end], 0)
            if stop == end - i - 1:
                return _join(pieces), end + 1
            break
    raise Malformed("a parenthesis is never closed")


def _skip(tokens: list[str], i: int) -> int:
    return i + (i < len(tokens) and tokens[i] == " ")


def _join(pieces: list[str]) -> str:
    """Put pieces together without spaces, except where a letter would lengthen a command."""
    text = ""
    spaced = False
    for piece in pieces:
        if piece == " ":
            spaced = True
            continue
        if spaced and text[-1:].isdigit() and piece[0].isdigit():
            raise Malformed(f"two numbers stand side by side: {text} {piece}")
        if piece[0].isalpha() and re.search(r"\\[a-zA-Z]+$", text):
            text += " "
        if piece != r"^{\circ}":
            text += piece
        spaced = False
    return text.replace(r"^{\circ}", "")


def _is_balanced(text: str) -> bool:
    """Say whether round and square brackets match; those of a half-open interval match one another."""
    depth = 0
    for char in re.sub(r"\\text\{[^}]*\}", "", text):
        depth += (char in "([") - (char in ")]")
        if depth < 0:
            return False
    return depth == 0
