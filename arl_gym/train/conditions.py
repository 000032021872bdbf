"""Conditions on recorded turns, written as short expressions.

Parsed, never evaluated as Python: comparisons, `and or not`, `in`, arithmetic, literals, the names of fields
and a handful of functions. No attribute, no index, no loop, no call of anything else.

>>> Condition("format_valid == 0 and len(action) > 3", {"format_valid", "action"}).matches(
...     {"format_valid": False, "action": "push"}
... )
True
"""

import ast
import io
import math
import operator
import statistics
import tokenize
from collections.abc import Callable, Collection, Mapping
from typing import Any

from arl_gym.errors import ConfigError

_ARITHMETIC: dict[type[ast.AST], tuple[str, Callable[[Any, Any], Any]]] = {
    ast.Add: ("+", operator.add),
    ast.Sub: ("-", operator.sub),
    ast.Mult: ("*", operator.mul),
    ast.Div: ("/", operator.truediv),
    ast.FloorDiv: ("//", operator.floordiv),
    ast.Mod: ("%", operator.mod),
}
_ORDER: dict[type[ast.AST], tuple[str, Callable[[Any, Any], bool]]] = {
    ast.Lt: ("<", operator.lt),
    ast.LtE: ("<=", operator.le),
    ast.Gt: (">", operator.gt),
    ast.GtE: (">=", operator.ge),
}
_FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "len": len,
    "abs": abs,
    "min": min,
    "max": max,
    "sum": math.fsum,
    "mean": statistics.fmean,
    "any": any,
    "all": all,
}
_ALLOWED = (
    *(ast.Expression, ast.BoolOp, ast.And, ast.Or, ast.UnaryOp, ast.Not, ast.USub, ast.UAdd, ast.BinOp),
    *(ast.Compare, ast.cmpop, ast.Call, ast.Name, ast.Load, ast.Constant, ast.Tuple, ast.List, *_ARITHMETIC),
)
# `return` is the best name of that field, but a word of Python.
_RETURN = "return_"


class Condition:
    """A condition on the fields of a turn.

    A field that a turn lacks is None. No comparison with None holds but `==` and `!=`, arithmetic with it
    gives None, and so does a function of it. A comparison of a list with a number (`ratios > 1.2`) is a list
    of truths, for `any`, `all`, `sum` and `mean`.

    Args:
        text: The expression.
        names: The fields that exist.

    Raises:
        ConfigError: If the text is no such expression or names a field that does not exist.
    """

    def __init__(self, text: str, names: Collection[str]):
        self._text = text
        self._names = names
        try:
            self._body = ast.parse(_without_keywords(text.strip()), mode="eval").body
            for node in ast.walk(self._body):
                self._check(node)
        except (SyntaxError, ValueError, RecursionError, MemoryError, tokenize.TokenError) as err:
            if isinstance(err, ConfigError):
                raise
            raise self._error("no expression") from err

    def matches(self, fields: Mapping[str, Any]) -> bool:
        """Whether the condition holds for a turn.

        Raises:
            ConfigError: If it puts together what does not go together, such as a text and a number.
        """
        try:
            return self._truth(self._body, fields)
        except (ArithmeticError, RecursionError) as err:
            raise self._error(str(err)) from err

    def _error(self, why: str) -> ConfigError:
        names = ", ".join(sorted(self._names))
        return ConfigError(
            f"condition {self._text!r}: {why}. Expected comparisons joined with and, or, not, over the "
            f"fields {names}, numbers, texts in quotes, + - * / // %, in, and {', '.join(_FUNCTIONS)}"
        )

    def _check(self, node: ast.AST) -> None:
        if not isinstance(node, _ALLOWED) or isinstance(node, ast.Is | ast.IsNot):
            raise self._error(f"{type(node).__name__} is not allowed")
        if isinstance(node, ast.Constant) and not isinstance(node.value, int | float | str | None):
            raise self._error(f"{node.value!r} is neither a number nor a text")
        if isinstance(node, ast.Call):
            if not isinstance(node.func, ast.Name) or node.func.id not in _FUNCTIONS:
                raise self._error(f"{ast.unparse(node.func)!r} is no function")
            if len(node.args) != 1 or node.keywords:
                raise self._error(f"{node.func.id} takes one argument")
        if isinstance(node, ast.Name) and _field(node) not in {*self._names, *_FUNCTIONS}:
            raise self._error(f"unknown field {_field(node)!r}")

    def _value(self, node: ast.AST, fields: Mapping[str, Any]) -> Any:
        match node:
            case ast.Constant(value=value):
                return value
            case ast.Name():
                if _field(node) not in self._names:
                    raise self._error(f"{node.id} is a function: write {node.id}(…)")
                return fields.get(_field(node))
            case ast.Tuple(elts=items) | ast.List(elts=items):
                return [self._value(item, fields) for item in items]
            case ast.BoolOp(op=ast.And(), values=parts):
                return all(self._truth(part, fields) for part in parts)
            case ast.BoolOp(values=parts):
                return any(self._truth(part, fields) for part in parts)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return not self._truth(operand, fields)
            case ast.UnaryOp(op=sign, operand=operand):
                value = self._value(operand, fields)
                return self._calculated("*", operator.mul, -1 if isinstance(sign, ast.USub) else 1, value)
            case ast.BinOp(left=left, op=op, right=right):
                name, function = _ARITHMETIC[type(op)]
                return self._calculated(name, function, self._value(left, fields), self._value(right, fields))
            case ast.Compare(left=left, ops=ops, comparators=others):
                values = [self._value(item, fields) for item in (left, *others)]
                results = [
                    self._compared(op, a, b) for op, a, b in zip(ops, values, values[1:], strict=False)
                ]
                if len(results) > 1 and any(isinstance(result, list) for result in results):
                    raise self._error("a list stands in one comparison only")
                return results[0] if len(results) == 1 else all(results)
            case ast.Call(func=ast.Name(id=name), args=[argument]):
                return self._called(name, self._value(argument, fields))
        raise AssertionError(f"{type(node).__name__} passed the check")

    def _truth(self, node: ast.AST, fields: Mapping[str, Any]) -> bool:
        value = self._value(node, fields)
        if isinstance(value, list):
            raise self._error("a list is neither true nor false: put it in any(…) or all(…)")
        return bool(value)

    def _calculated(self, name: str, function: Callable[[Any, Any], Any], a: Any, b: Any) -> Any:
        if a is None or b is None:
            return None
        # Numbers only: a text times a billion is a text that fits nowhere.
        if not isinstance(a, int | float) or not isinstance(b, int | float):
            raise self._error(f"{name} needs two numbers, got {a!r} and {b!r}")
        return function(a, b)

    def _compared(self, op: ast.cmpop, a: Any, b: Any) -> Any:
        if isinstance(op, ast.Eq | ast.NotEq):
            return (a == b) == isinstance(op, ast.Eq)
        if type(op) not in _ORDER:
            return self._contained(a, b, wanted=isinstance(op, ast.In))
        if isinstance(a, list):
            return [self._ordered(op, item, b) for item in a]
        if isinstance(b, list):
            return [self._ordered(op, a, item) for item in b]
        return self._ordered(op, a, b)

    def _contained(self, a: Any, b: Any, *, wanted: bool) -> bool:
        if a is None or b is None:
            return False
        if not isinstance(b, list) and not (isinstance(a, str) and isinstance(b, str)):
            raise self._error(f"in needs a text or a list on its right, got {a!r} in {b!r}")
        return (a in b) == wanted

    def _ordered(self, op: ast.cmpop, a: Any, b: Any) -> bool:
        if a is None or b is None:
            return False
        name, function = _ORDER[type(op)]
        if isinstance(a, str) != isinstance(b, str) or isinstance(a, list) or isinstance(b, list):
            raise self._error(f"{name} cannot compare {a!r} with {b!r}")
        return function(a, b)

    def _called(self, name: str, value: Any) -> Any:
        if value is None:
            return None
        if isinstance(value, list) and name != "len":
            value = [item for item in value if item is not None]
            if not value and name in ("min", "max", "mean"):
                return None
        try:
            return _FUNCTIONS[name](value)
        except (TypeError, ValueError) as err:
            raise self._error(f"{name} does not take {value!r}") from err


def _field(node: ast.Name) -> str:
    return "return" if node.id == _RETURN else node.id


def _without_keywords(text: str) -> str:
    """Return the text with the name `return`, but not a text that holds the word, made one that parses."""
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return tokenize.untokenize(
        (t.type, _RETURN if t.type == tokenize.NAME and t.string == "return" else t.string) for t in tokens
    )
