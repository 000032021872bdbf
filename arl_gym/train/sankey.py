"""Which kind of action follows which: two columns of kinds, and flows as wide as they are frequent.

drawing = sankey({True: transitions(won), False: transitions(lost)}, name="actions", title="Step 10")
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from arl_gym.train.actions import Transitions
from arl_gym.train.canvas import GREY, INK, PALETTE, Drawing

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_GAP = 0.025
"""Between two kinds of a column, as a share of its height."""
_NODE = 0.03
"""Width of a kind's bar, as a share of the panel's."""
_TITLES = {True: ("Success", PALETTE[2]), False: ("Failure", PALETTE[1])}


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A kind of action in one column; heights are shares of the column, from 0 at the bottom to 1."""

    kind: str
    low: float
    high: float
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Flow:
    """A transition: where it leaves the left column, and where it reaches the right one."""

    source: str
    target: str
    count: int
    left: float
    """Lower edge on the left."""
    right: float
    """Lower edge on the right."""
    width: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Where everything lies."""

    sources: tuple[Node, ...]
    targets: tuple[Node, ...]
    flows: tuple[Flow, ...]


def layout(counts: Transitions, order: Sequence[str]) -> Layout:
    """Place the kinds, from the top in `order`, and the flows between them.

    Both columns are 1 high with their gaps; one transition is equally high on both sides. Flows leave and
    arrive in the order of the kinds at their other end, so that they cross as little as that order allows.
    """
    total = sum(counts.values())
    n_gaps = max(len({pair[side] for pair in counts}) for side in (0, 1)) - 1 if counts else 0
    unit = (1.0 - _GAP * n_gaps) / total if total else 0.0
    sources, targets = (_column(counts, order, side, unit) for side in (0, 1))
    left, right = ({node.kind: node.high for node in column} for column in (sources, targets))
    flows = []
    for source in order:
        for target in order:
            if count := counts[source, target]:
                width = count * unit
                left[source] -= width
                right[target] -= width
                flows.append(
                    Flow(
                        source=source,
                        target=target,
                        count=count,
                        left=left[source],
                        right=right[target],
                        width=width,
                    )
                )
    return Layout(sources=sources, targets=targets, flows=tuple(flows))


def _column(counts: Transitions, order: Sequence[str], side: int, unit: float) -> tuple[Node, ...]:
    nodes, top = [], 1.0
    for kind in order:
        count = sum(n for pair, n in counts.items() if pair[side] == kind)
        if count:
            nodes.append(Node(kind=kind, low=top - count * unit, high=top, count=count))
            top -= count * unit + _GAP
    return tuple(nodes)


def sankey(counts: Mapping[bool, Transitions], *, name: str, title: str) -> Drawing:
    """Draw the transitions of successes and of failures side by side.

    Kinds lie in the order of their frequency over both; a flow has the colour of the kind it comes from, the
    same in both panels.

    Args:
        counts: Transitions of the successful episodes (True) and of the others (False).
        name: Of the drawing.
        title: Above both panels.
    """
    order = _order(counts)
    layouts = {won: layout(counts.get(won, Transitions()), order) for won in (True, False)}
    return Drawing(
        name=name,
        text=_words(layouts, title),
        columns=("outcome", "from", "to", "transitions", "share_of_from"),
        data=[
            (_TITLES[won][0].lower(), f.source, f.target, f.count, f.count / _count(place.sources, f.source))
            for won, place in layouts.items()
            for f in place.flows
        ],
        draw=partial(_draw, layouts, order, name, title),
        tooltips={
            _gid(name, won, i): _tip(place, f)
            for won, place in layouts.items()
            for i, f in enumerate(place.flows)
        },
    )


def _order(counts: Mapping[bool, Transitions]) -> list[str]:
    seen = Transitions()
    for transitions in counts.values():
        for (source, target), n in transitions.items():
            seen[source, ""] += n
            seen[target, ""] += n
    return [kind for (kind, _), _ in sorted(seen.items(), key=lambda item: (-item[1], item[0]))]


def _count(nodes: Sequence[Node], kind: str) -> int:
    return next(node.count for node in nodes if node.kind == kind)


def _tip(place: Layout, flow: Flow) -> str:
    share = flow.count / _count(place.sources, flow.source)
    return (
        f"{flow.source} → {flow.target}: {flow.count} times, {100 * share:.0f}% of what follows {flow.source}"
    )


def _gid(name: str, won: bool, i: int) -> str:
    return f"{name}-{_TITLES[won][0]}-{i}"


def _words(layouts: Mapping[bool, Layout], title: str) -> str:
    parts = []
    for won, place in layouts.items():
        most = sorted(place.flows, key=lambda f: -f.count)[:3]
        told = "; ".join(_tip(place, f) for f in most) if most else "no transition"
        parts.append(f"{_TITLES[won][0]}: {told}")
    return f"{title}: actions of consecutive turns. {'. '.join(parts)}."


# ---- drawing


def _draw(layouts: Mapping[bool, Layout], order: Sequence[str], name: str, title: str) -> "Figure":
    from matplotlib.figure import Figure

    colours = {kind: (*PALETTE, GREY)[min(i, len(PALETTE))] for i, kind in enumerate(order)}
    height = 1.5 + 0.36 * max(6, len(order))
    figure = Figure(figsize=(8.6, height))
    plot = height - 1.05  # inches; the rest are the titles
    inch = 1.0 / plot
    figure.text(0.01, 1 - 0.1 / height, title, weight="bold", size=10, ha="left", va="top")
    for column, (won, place) in enumerate(layouts.items()):
        axes = figure.add_axes((0.125 + 0.5 * column, 0.1 / height, 0.26, plot / height))
        axes.set_xlim(0, 1)
        axes.set_ylim(0, 1)
        axes.set_axis_off()
        outcome, colour = _TITLES[won]
        total = sum(f.count for f in place.flows)
        above = 1 + 0.36 * inch
        axes.text(0, above, outcome, color=colour, weight="bold", size=11, ha="left", va="bottom")
        axes.text(1, above, f"{total} transitions", ha="right", va="bottom", size=8)
        if not place.flows:
            axes.text(0.5, 0.5, "none recorded", ha="center", va="center")
            continue
        axes.text(0, 1 + 0.1 * inch, "an action …", ha="left", va="bottom", size=8)
        axes.text(1, 1 + 0.1 * inch, "… and the next", ha="right", va="bottom", size=8)
        for i, flow in enumerate(place.flows):
            _ribbon(axes, flow, colours[flow.source], _gid(name, won, i))
        for nodes, x, side in ((place.sources, 0.0, "right"), (place.targets, 1.0 - _NODE, "left")):
            _bars(axes, nodes, x, side, colours, line=0.15 * inch)
    return figure


def _ribbon(axes: "Axes", flow: Flow, colour: str, gid: str) -> None:
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    a, b, middle = _NODE, 1.0 - _NODE, 0.5
    left, right, width = flow.left, flow.right, flow.width
    corners = [
        *((a, left), (middle, left), (middle, right), (b, right), (b, right + width)),
        *((middle, right + width), (middle, left + width), (a, left + width), (a, left)),
    ]
    codes = [Path.MOVETO, *[Path.CURVE4] * 3, Path.LINETO, *[Path.CURVE4] * 3, Path.CLOSEPOLY]
    axes.add_patch(PathPatch(Path(corners, codes), facecolor=colour, alpha=0.45, linewidth=0, gid=gid))


def _bars(
    axes: "Axes", nodes: Sequence[Node], x: float, side: str, colours: Mapping[str, str], *, line: float
) -> None:
    from matplotlib.patches import Rectangle

    edge, far = (x + _NODE, 1.06) if side == "left" else (x, -0.06)
    middles = [(node.low + node.high) / 2 for node in nodes]
    for node, middle, y in zip(nodes, middles, spread(middles, line), strict=True):
        height = node.high - node.low
        axes.add_patch(Rectangle((x, node.low), _NODE, height, facecolor=colours[node.kind], linewidth=0))
        axes.plot((edge, far), (middle, y), color=INK, linewidth=0.5, alpha=0.4, clip_on=False)
        beside = far + (0.015 if side == "left" else -0.015)
        axes.text(beside, y, f"{node.kind} {node.count}", ha=side, va="center", size=8)


def spread(heights: Sequence[float], line: float) -> list[float]:
    """Return falling heights moved as little as keeps neighbours `line` apart, the last ones above 0.

    What does not fit between 0 and 1 is pushed beyond the top.
    """
    out: list[float] = []
    for height in heights:
        out.append(min(height, out[-1] - line) if out else height)
    floor = 0.0
    for i in reversed(range(len(out))):
        out[i] = max(out[i], floor)
        floor = out[i] + line
    return out
