r"""Turns what Python prints into LaTeX: `x**2 + 1`, `[1, 2]`, `Fraction(3, 4)`, `np.float64(0.5)`.

Reads the syntax tree and knows a short list of nodes and names; nothing is ever evaluated.

    >>> printed_to_latex("3*pi/4")
    '\\frac{3\\cdot \\pi }{4}'
"""

import ast
import re
from collections.abc import Callable, Sequence

from arl_gym.envs.tirmath.grading.limits import MAX_CHARS

_HINT = re.compile(
    r"\*|[A-Za-z_.]\w*\(|\d[eE][+-]?\d|^\[.*\]$|^\{.*\}$|^(['\"]).*\1$|(?<![A-Za-z\\])(?:pi|oo|I)(?![A-Za-z])|\dj\b",
    re.DOTALL,
)
_JUXTAPOSED = re.compile(r"(?<![\w.])[\d.]++(?:[eE][+-]?\d++)?+(?!j\b)[A-Za-z_]")
"""2x is no Python, and the parser would warn of it on stderr."""
_NAMES = {"pi": r"\pi ", "oo": r"\infty ", "inf": r"\infty ", "E": "e", "I": "i"}
_GREEK = frozenset(
    ["alpha", "beta", "gamma", "delta", "theta", "lambda", "mu", "rho", "sigma", "phi", "omega"]
)
_FUNCTIONS = frozenset(["sin", "cos", "tan", "cot", "sec", "csc", "sinh", "cosh", "tanh", "ln"])
_WRITTEN = {"log": "ln", "asin": "arcsin", "acos": "arccos", "atan": "arctan"}
_PLAIN = frozenset([
    "int", "float", "str", "list", "tuple", "sorted", "Integer", "Float", "Decimal", "mpf", "Tuple",
    "int32", "int64", "float32", "float64", "array",
])  # fmt: skip
"""Calls that print around a value without changing it."""
_SIGNS: dict[type[ast.AST], str] = {ast.Lt: "<", ast.LtE: r"\le ", ast.Gt: ">", ast.GtE: r"\ge ", ast.Eq: "="}

SUM, SIGN, PRODUCT, POWER, ATOM = range(5)
"""How tightly a piece of LaTeX holds together."""
Piece = tuple[str, int]


class _Foreign(Exception):
    """The text is no Python of the known kind."""


def printed_to_latex(text: str) -> str | None:
    """Return LaTeX for a printed Python value, None if the text is not one (then it may be LaTeX itself)."""
    if (
        len(text) > MAX_CHARS
        or "\\" in text
        or "^" in text
        or not _HINT.search(text)
        or _JUXTAPOSED.search(text)
    ):
        return None
    try:
        tree = ast.parse(text.strip(), mode="eval")
        return _emit(tree.body, text.strip())[0]
    except (_Foreign, SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _emit(node: ast.expr, source: str) -> Piece:
    match node:
        case ast.Constant():
            return _constant(node, source)
        case ast.Name(id=name):
            return _name(name)
        case ast.UnaryOp(op=ast.USub() | ast.UAdd() as op, operand=inner):
            sign = "-" if isinstance(op, ast.USub) else ""
            return sign + _at_least(POWER, _emit(inner, source)), SIGN
        case ast.BinOp():
            return _operation(node, source)
        case ast.Tuple(elts=items) if items:
            return f"({_listed(items, source)})", ATOM
        case ast.List(elts=items):
            return f"[{_listed(items, source)}]", ATOM
        case ast.Set(elts=items):
            return rf"\{{{_listed(items, source)}\}}", ATOM
        case ast.Dict(keys=[_, *_]):
            return _solution(node, source), ATOM
        case ast.Compare():
            return _comparison(node, source), SUM
        case ast.Call(keywords=[]):
            return _call(node, source), ATOM
    raise _Foreign


def _at_least(level: int, piece: Piece) -> str:
    return piece[0] if piece[1] >= level else f"({piece[0]})"


def _listed(items: Sequence[ast.expr], source: str) -> str:
    return ", ".join(_emit(item, source)[0] for item in items)


def _constant(node: ast.Constant, source: str) -> Piece:
    written = ast.get_source_segment(source, node) or ""
    if isinstance(node.value, str):
        return node.value, ATOM
    if isinstance(node.value, bool) or not isinstance(node.value, int | float | complex):
        raise _Foreign
    if isinstance(node.value, complex):
        return f"{_float(written[:-1])}i", PRODUCT
    return _float(written), POWER if "e" in written.lower() else ATOM


def _float(written: str) -> str:
    mantissa, _, exponent = written.lower().partition("e")
    return rf"{mantissa}\times 10^{{{int(exponent)}}}" if exponent else mantissa


def _name(name: str) -> Piece:
    if name in _NAMES:
        return _NAMES[name], ATOM
    if name in _GREEK:
        return f"\\{name} ", ATOM
    if len(name) == 1:
        return name, ATOM
    raise _Foreign


def _operation(node: ast.BinOp, source: str) -> Piece:
    left, right = _emit(node.left, source), _emit(node.right, source)
    match node.op:
        case ast.Add():
            return f"{left[0]}+{_at_least(PRODUCT, right)}", SUM
        case ast.Sub():
            return f"{left[0]}-{_at_least(PRODUCT, right)}", SUM
        case ast.Mult():
            return rf"{_at_least(PRODUCT, left)}\cdot {_at_least(POWER, right)}", PRODUCT
        case ast.Div():
            return rf"\frac{{{left[0]}}}{{{right[0]}}}", PRODUCT
        case ast.Pow():
            return f"{_at_least(ATOM, left)}^{{{right[0]}}}", POWER
    raise _Foreign


def _comparison(node: ast.Compare, source: str) -> str:
    parts = [_emit(node.left, source)[0]]
    for op, right in zip(node.ops, node.comparators, strict=True):
        if type(op) not in _SIGNS:
            raise _Foreign
        parts += [_SIGNS[type(op)], _emit(right, source)[0]]
    return "".join(parts)


def _solution(node: ast.Dict, source: str) -> str:
    """Write the dictionary that sympy's `solve` returns as equations."""
    pairs = [(key, value) for key, value in zip(node.keys, node.values, strict=True) if key is not None]
    return ", ".join(f"{_emit(key, source)[0]}={_emit(value, source)[0]}" for key, value in pairs)


def _call(node: ast.Call, source: str) -> str:
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    args = node.args
    if name in _PLAIN and len(args) == 1:
        return _at_least(ATOM, _emit(args[0], source))
    if (write := _CALLS.get((name, len(args)))) is not None:
        return write(*(_emit(arg, source)[0] for arg in args))
    if (name in _FUNCTIONS or name in _WRITTEN) and len(args) == 1:
        return rf"\{_WRITTEN.get(name, name)}({_emit(args[0], source)[0]})"
    if name in ("FiniteSet", "set") and args:
        return rf"\{{{_listed(args, source)}\}}"
    if name == "Union" and len(args) > 1:
        return r"\cup ".join(_emit(arg, source)[0] for arg in args)
    if name == "Matrix" and len(args) == 1:
        return _matrix(args[0], source)
    raise _Foreign


def _matrix(node: ast.expr, source: str) -> str:
    if not isinstance(node, ast.List):
        raise _Foreign
    rows = [row.elts if isinstance(row, ast.List) else [row] for row in node.elts]
    body = r"\\".join("&".join(_emit(cell, source)[0] for cell in row) for row in rows)
    return rf"\begin{{pmatrix}}{body}\end{{pmatrix}}"


def _rational(top: str, bottom: str) -> str:
    return rf"\frac{{{top}}}{{{bottom}}}"


_CALLS: dict[tuple[str, int], Callable[..., str]] = {
    ("sqrt", 1): lambda x: rf"\sqrt{{{x}}}",
    ("exp", 1): lambda x: f"e^{{{x}}}",
    ("Abs", 1): lambda x: f"|{x}|",
    ("factorial", 1): lambda x: f"({x})!",
    ("Fraction", 2): _rational,
    ("Rational", 2): _rational,
    ("Fraction", 1): lambda x: x,
    ("Rational", 1): lambda x: x,
    ("Eq", 2): lambda left, right: f"{left}={right}",
    ("Interval", 2): lambda low, high: f"[{low}, {high}]",
    ("open", 2): lambda low, high: f"({low}, {high})",
    ("Lopen", 2): lambda low, high: f"({low}, {high}]",
    ("Ropen", 2): lambda low, high: f"[{low}, {high})",
}
