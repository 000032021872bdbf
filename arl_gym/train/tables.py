"""Tables of runs: one row a run, or a mean over seeds a row, as CSV and LaTeX.

table = run_table(runs)
Path("runs.tex").write_text(to_latex(table))
"""

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from arl_gym.errors import ArlGymError
from arl_gym.train.canvas import Cell
from arl_gym.train.metrics import Row
from arl_gym.train.runs import Run, env_ids
from arl_gym.train.stability import WINDOW, stability


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Rows under named columns."""

    columns: tuple[str, ...]
    rows: Sequence[Sequence[Cell]]


def run_table(runs: Sequence[Run]) -> Table:
    """Return one row a run.

    "final" and "best" are means of `stability.WINDOW` steps. `outside_clip_mean` is the share of tokens
    outside the clip range, `clip_frac_mean` of those whose clipped branch counts; both are means over steps.
    `success_variance`, `success_drawdown` and `collapse_step` are those of `stability`. Hours are of the
    training steps. What a run did not record is empty.
    """
    summaries = [_summary(run) for run in runs]
    columns = tuple(dict.fromkeys(column for summary in summaries for column in summary))
    return Table(columns=columns, rows=[[summary.get(c) for c in columns] for summary in summaries])


def group_table(groups: Mapping[str, Sequence[Run]]) -> Table:
    """Return one row a group: its number of runs, and "mean ± standard deviation" of the numbers of a run.

    The deviation is that of a sample, absent for one value; a number that some of the runs lack is followed
    by how many have it.
    """
    words = ("run", "method", "environment", "seed")
    tables = {label: run_table(runs) for label, runs in groups.items()}
    numbers = tuple(dict.fromkeys(c for table in tables.values() for c in table.columns if c not in words))
    rows: list[list[Cell]] = []
    for label, table in tables.items():
        row: list[Cell] = [label, len(table.rows)]
        for column in numbers:
            place = table.columns.index(column) if column in table.columns else None
            values = [] if place is None else [v for r in table.rows if (v := r[place]) is not None]
            row.append(_mean_and_deviation([float(v) for v in values], len(table.rows)))
        rows.append(row)
    return Table(columns=("group", "runs", *numbers), rows=rows)


def _mean_and_deviation(values: Sequence[float], n: int) -> str | None:
    if not values:
        return None
    text = _digits(statistics.fmean(values), 3)
    if len(values) > 1:
        text += f" ± {_digits(statistics.stdev(values), 2)}"
    return text if len(values) == n else f"{text} ({len(values)} of {n})"


def _summary(run: Run) -> dict[str, Cell]:
    try:
        settings = run.settings
    except ArlGymError:
        settings = {}
    rows = run.steps if (run.folder / "metrics.jsonl").exists() else []
    s = stability(rows)
    seed = settings.get("seed")
    return {
        "run": run.label,
        "method": str(settings.get("method", "")),
        "environment": _environments(run),
        "seed": seed if isinstance(seed, int) else None,
        "steps": len(rows),
        "success_final": s.final if s else None,
        "success_best": s.best if s else None,
        "eval_success_final": _last(rows, "eval/success_rate"),
        "return_final": _final(rows, "rollout/played_return_mean"),
        "format_valid_final": _final(rows, "rollout/format_valid_frac"),
        "approx_kl_max": _max(rows, "loss/approx_kl"),
        "kl_max": _max(rows, "loss/kl"),
        "grad_norm_max": _max(rows, "optim/grad_norm"),
        "clip_frac_mean": _mean(_values(rows, "loss/clip_frac")),
        "outside_clip_mean": _mean(
            [
                pos + neg
                for row in rows
                if (pos := row.get("loss/clip_frac_pos")) is not None
                and (neg := row.get("loss/clip_frac_neg")) is not None
            ]
        ),
        "success_variance": s.variance if s else None,
        "success_drawdown": s.max_drawdown if s else None,
        "collapse_step": s.collapse_step if s else None,
        "hours": _sum(rows, "time/step_s", 3600.0),
        "tokens": _sum(rows, "optim/tokens", 1.0),
    }


def _environments(run: Run) -> str:
    try:
        return ", ".join(dict.fromkeys(env_ids(run.config)))
    except ArlGymError:
        return ""


def _values(rows: Sequence[Row], key: str) -> list[float]:
    return [v for row in rows if (v := row.get(key)) is not None and math.isfinite(v)]


def _mean(values: Sequence[float]) -> float | None:
    return statistics.fmean(values) if values else None


def _final(rows: Sequence[Row], key: str) -> float | None:
    return _mean(_values(rows, key)[-WINDOW:])


def _last(rows: Sequence[Row], key: str) -> float | None:
    return values[-1] if (values := _values(rows, key)) else None


def _max(rows: Sequence[Row], key: str) -> float | None:
    return max(_values(rows, key), default=None)


def _sum(rows: Sequence[Row], key: str, divisor: float) -> float | None:
    values = _values(rows, key)
    return math.fsum(values) / divisor if values else None


# ---- LaTeX

_LATEX = str.maketrans(
    {
        "\\": r"\textbackslash{}",
        **{c: "\\" + c for c in "&%$#_{}"},
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "<": r"\textless{}",
        ">": r"\textgreater{}",
        "|": r"\textbar{}",
        "±": r"$\pm$",
        "\n": " ",
    }
)


def to_latex(table: Table) -> str:
    """Return a `tabular`, which needs no package; text is escaped, an empty cell is a dash.

    Columns that are empty in all rows are left out.
    """
    kept = [i for i in range(len(table.columns)) if any(row[i] not in (None, "") for row in table.rows)]
    columns = [table.columns[i].replace("_", " ") for i in kept]
    numeric = ["r" if all(not isinstance(row[i], str) for row in table.rows) else "l" for i in kept]
    lines = [" & ".join(c.translate(_LATEX) for c in columns), *(_latex_row(row, kept) for row in table.rows)]
    head, *body = (f"{line} \\\\\n" for line in lines)
    start = f"\\begin{{tabular}}{{{''.join(numeric)}}}\n\\hline\n{head}\\hline\n"
    return f"{start}{''.join(body)}\\hline\n\\end{{tabular}}\n"


def _latex_row(row: Sequence[Cell], kept: Sequence[int]) -> str:
    return " & ".join(shown(row[i]).translate(_LATEX) if row[i] not in (None, "") else "--" for i in kept)


def shown(cell: Cell) -> str:
    """Return a cell for reading: three significant digits, an empty one as "–"."""
    if cell is None or cell == "":
        return "–"
    return _digits(cell, 3) if isinstance(cell, float) else str(cell)


def _digits(value: float, n: int) -> str:
    """Write a number with `n` significant digits, a large one as a whole number."""
    return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.{n}g}"
