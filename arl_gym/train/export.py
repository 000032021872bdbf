"""Everything that can be shown of runs, as files: the page, each figure in three formats, data and tables.

export([Path("runs/a"), Path("runs/b")], Path("out"), group_by="method")
"""

import re
from collections.abc import Sequence
from pathlib import Path

from arl_gym.errors import ArlGymError
from arl_gym.train.canvas import Drawing, render, to_csv
from arl_gym.train.files import write_atomically
from arl_gym.train.gallery import Shown, curve_drawings, details
from arl_gym.train.report import compare_report, write_report
from arl_gym.train.runs import group_runs, load_runs
from arl_gym.train.tables import Table, group_table, run_table, to_latex


def export(
    run_dirs: Sequence[Path], out: Path, *, group_by: str | None = None, how: Shown | None = None
) -> list[str]:
    """Write `report.html`, `figures/` and `tables/` into a folder.

    Figures are NAME.svg, .png, .pdf and .csv, those of one of several runs in a folder of its own; tables are
    `runs` and, with groups, `groups`, as .csv and .tex.

    Args:
        run_dirs: The run folders.
        out: The folder; files of the same names are replaced.
        group_by: See `report.compare_report`.
        how: How the curves are shown.

    Returns:
        What could not be drawn, and why: one line a reason.

    Raises:
        ConfigError: If no run is given, or the group's setting is unknown.
        DataError: If one of `run_dirs` is no folder.
        ArlGymError: If a file cannot be written.
    """
    how = how or Shown()
    runs = load_runs(run_dirs)
    lines = group_runs(runs, group_by) if group_by else {run.label: [run] for run in runs}
    if len(runs) == 1 and not group_by:
        write_report(run_dirs[0], out / "report.html", how=how)
    else:
        compare_report(run_dirs, out / "report.html", group_by=group_by, how=how)
    _write_table(out / "tables" / "runs", run_table(runs))
    if group_by:
        _write_table(out / "tables" / "groups", group_table(lines))

    left_out: dict[str, list[str]] = {}
    try:
        _write_figures(out / "figures", curve_drawings(lines, how))
    except ArlGymError as err:
        left_out[str(err)] = ["Curves"]
    for run in runs:
        folder = out / "figures" / (re.sub(r"[^\w.=-]", "_", run.label) if len(runs) > 1 else "")
        for title, draw in details(run):
            try:
                _write_figures(folder, draw())
            except ArlGymError as err:
                left_out.setdefault(str(err), []).append(title)
    return [f"{', '.join(titles)}: {reason}" for reason, titles in left_out.items()]


def _write_figures(folder: Path, drawings: Sequence[Drawing]) -> None:
    for drawing in drawings:
        for format in ("svg", "png", "pdf"):
            write_atomically(folder / f"{drawing.name}.{format}", render(drawing, format))
        write_atomically(folder / f"{drawing.name}.csv", to_csv(drawing.columns, drawing.data))


def _write_table(stem: Path, table: Table) -> None:
    write_atomically(stem.with_suffix(".csv"), to_csv(table.columns, table.rows))
    write_atomically(stem.with_suffix(".tex"), to_latex(table).encode())
