"""How every figure looks, and its bytes as SVG, PNG and PDF.

No pyplot and no global state. The same drawing gives the same bytes; text stays text. In SVG, axes and
letters are drawn in `currentColor`, so that a page's light or dark scheme applies to a chart put into it.

    svg = render(drawing, "svg")
"""

import csv
import io
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING, Any, Literal

from arl_gym.errors import DependencyMissing

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Cell = str | int | float | None
Format = Literal["svg", "png", "pdf"]

# Okabe and Ito's colours, told apart with any colour vision; those readable on white and on black come first.
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
GREY = "#8c959f"
INK = "#010203"

_STYLE: dict[Any, Any] = {  # matplotlib types its keys differently from version to version
    "svg.fonttype": "none",
    "pdf.fonttype": 42,
    "font.sans-serif": ["DejaVu Sans", "Arial", "sans-serif"],
    "text.parse_math": False,
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "axes.axisbelow": True,
    "axes.unicode_minus": True,
    "grid.alpha": 0.15,
    "grid.color": INK,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "legend.frameon": False,
    "legend.fontsize": 8,
    "legend.handlelength": 2.8,  # or dashes look like a line
    "lines.linewidth": 1.6,
    "lines.markersize": 3.5,
}
_DOTS_PER_INCH = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawing:
    """A figure that can be rendered, the words for it, and the numbers behind it."""

    name: str
    """Of its files, without extension."""
    text: str
    """What it shows, for those who do not see it."""
    columns: tuple[str, ...]
    data: Sequence[Sequence[Cell]]
    draw: "Callable[[], Figure]"
    """Makes the figure; matplotlib is set up when it is called."""
    tooltips: Mapping[str, str] = field(default_factory=dict)
    """What SVG shows over a part of the figure, by the part's gid."""


def render(drawing: Drawing, format: Format) -> bytes:
    """Return the figure in one format.

    SVG has no prologue, date or ids that two figures share, and a transparent ground; PNG and PDF are on
    white.

    Raises:
        DependencyMissing: If matplotlib is not installed.
    """
    try:
        import matplotlib
    except ImportError as err:
        raise DependencyMissing("plots", "train") from err

    buffer = io.BytesIO()
    with matplotlib.rc_context():
        matplotlib.rcdefaults()  # a user's matplotlibrc must not change the bytes
        matplotlib.rcParams.update({**_STYLE, "svg.hashsalt": drawing.name})
        drawing.draw().savefig(
            buffer,
            format=format,
            dpi=_DOTS_PER_INCH,
            transparent=format == "svg",
            metadata=dict.fromkeys(_DATES[format]),
        )
    if format != "svg":
        return buffer.getvalue()
    return _plain_svg(buffer.getvalue().decode(), drawing.tooltips).encode()


_DATES: dict[str, tuple[str, ...]] = {
    "svg": ("Creator", "Date", "Format", "Type"),
    "png": ("Software",),
    "pdf": ("Creator", "Producer", "CreationDate"),
}


def to_csv(columns: Sequence[str], rows: Iterable[Sequence[Cell]]) -> bytes:
    """Return a table as CSV in UTF-8; None is an empty cell."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(rows)
    return out.getvalue().encode("utf-8", errors="replace")


def _plain_svg(text: str, tooltips: Mapping[str, str]) -> str:
    """Drop prologue, page-wide style and the counted ids that two charts would share; free the ink."""
    text = text[text.index("<svg") :].replace("<svg", '<svg stroke-linejoin="round"', 1)
    text = re.sub(r"<style.*?</style>", "", text, count=1, flags=re.DOTALL)
    for gid, tip in tooltips.items():
        text = text.replace(f'<g id="{gid}">', f'<g class="tip"><title>{escape(tip)}</title>', 1)
    text = re.sub(r' id="[A-Za-z0-9.]+_\d+"', "", text)
    return text.replace(INK, "currentColor")
