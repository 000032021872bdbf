"""What `result.json` holds: the evaluated agents of a run and their paired differences.

result = read_result(run_dir / "result.json")
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from arl_gym.errors import DataError, UnknownNameError


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """A success rate with its confidence interval."""

    rate: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultRow:
    """One agent's evaluation."""

    name: str
    greedy: Rate
    sampled: Rate | None
    n: int
    return_mean: float | None
    turns_mean: float | None
    valid_format: float | None
    seconds: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """Greedy success of `a` minus that of `b` on the same tasks, with its confidence interval."""

    a: str
    b: str
    mean: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What `result.json` holds."""

    env_id: str
    dataset: str
    split: str
    content_hash: str
    method: str
    seed: int
    rows: tuple[ResultRow, ...]
    differences: tuple[Difference, ...]

    def row(self, name: str) -> ResultRow:
        """Return the row of that name.

        Raises:
            UnknownNameError: If there is none.
        """
        for row in self.rows:
            if row.name == name:
                return row
        raise UnknownNameError("agent", name, [r.name for r in self.rows], "result.json")


def read_result(path: Path) -> Result:
    """Read `result.json`.

    Raises:
        DataError: If it is missing, no JSON, lacks a key, or a difference contradicts its two rows.
        UnknownNameError: If a difference names an agent without a row.
    """
    raw = _json(path)
    try:
        result = Result(
            **{k: str(raw[k]) for k in ("env_id", "dataset", "split", "content_hash", "method")},
            seed=int(raw["seed"]),
            rows=tuple(_result_row(r) for r in raw["rows"]),
            differences=tuple(
                Difference(a=str(d["a"]), b=str(d["b"]), **{k: float(d[k]) for k in ("mean", "low", "high")})
                for d in raw.get("differences", ())
            ),
        )
    except KeyError as err:
        raise DataError(f"{path}: expected the key {err}") from err
    except (TypeError, ValueError, AttributeError) as err:
        raise DataError(f"{path}: not the form of a result: {err}") from err
    for d in result.differences:
        expected = result.row(d.a).greedy.rate - result.row(d.b).greedy.rate
        if abs(d.mean - expected) > 0.01:
            raise DataError(f"{path}: expected {d.a} minus {d.b} to be {expected:+.3f}, got {d.mean:+.3f}")
    return result


def _json(path: Path) -> dict[str, Any]:
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as err:
        raise DataError(f"{path.parent.name} has no {path.name}") from err
    except (OSError, ValueError) as err:
        raise DataError(f"cannot read {path}: {err}") from err
    if not isinstance(raw, dict):
        raise DataError(f"{path}: expected a JSON object, got {type(raw).__name__}")
    return raw


def _result_row(raw: Mapping[str, Any]) -> ResultRow:
    def rate(r: Mapping[str, Any]) -> Rate:
        return Rate(rate=float(r["success_rate"]), low=float(r["low"]), high=float(r["high"]))

    def optional(key: str) -> float | None:
        return None if raw.get(key) is None else float(raw[key])

    return ResultRow(
        name=str(raw["name"]),
        greedy=rate(raw["greedy"]),
        sampled=None if raw.get("sampled") is None else rate(raw["sampled"]),
        n=int(raw["n"]),
        return_mean=optional("return_mean"),
        turns_mean=optional("turns_mean"),
        valid_format=optional("valid_format"),
        seconds=optional("seconds"),
    )
