"""`arl-gym methods`: the table of methods, or some of them in full."""

import argparse
from collections.abc import Sequence

from rich.box import SIMPLE
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from arl_gym.cli.options import parser
from arl_gym.cli.settings import say
from arl_gym.errors import UnknownNameError
from arl_gym.train.config import to_mapping
from arl_gym.train.methods import METHODS, VARIANTS, Method, Settings, find_method, method_settings, resolve

_FOLDED = ("loss", "mask")
"""Columns that take two lines on a terminal of less than 100 columns."""

_MEANS = {
    "token-mean": "tokens",
    "seq-mean-token-mean": "sequences",
    "seq-mean-token-sum": "sequence sums",
    "seq-mean-token-sum-norm": "scaled sums",
}
"""What an aggregation is a mean of."""


def run(args: list[str]) -> int:
    """Run `arl-gym methods`."""
    options = parser("methods", "Show the methods, rows of settings over the same dials; named ones in full.")
    options.add_argument(
        "method", nargs="*", type=_method, metavar="NAME", help="methods to show in full, e.g. GSPO"
    )
    options.add_argument("--variant", choices=VARIANTS, default="paper", help="whose settings to show")
    known = options.parse_args(args)
    console = Console(highlight=False)
    if not known.method:
        console.print(overview(list(METHODS.values()), known.variant))
        console.print(elsewhere(list(METHODS.values())))
        say("arl-gym methods NAME shows a method in full; docs/methods.md explains all of them.")
    for method in known.method:
        console.print(detail(method))
        console.print(dials(method, known.variant))
    return 0


def _method(text: str) -> Method:
    try:
        return find_method(text)
    except UnknownNameError as err:
        raise argparse.ArgumentTypeError(str(err)) from err


def overview(methods: Sequence[Method], variant: str) -> Table:
    """Return a table with a row per method and its dials in a few columns."""
    rows = [{"method": m.name} | summary(method_settings(m.name, variant)) for m in methods]
    table = Table(title=f"Methods, {variant} variant", title_justify="left", box=SIMPLE, pad_edge=False)
    table.collapse_padding = True  # a row fits into 100 columns
    for column in rows[0]:
        table.add_column(column, no_wrap=column not in _FOLDED, overflow="fold")
    for row in rows:
        table.add_row(*row.values())
    return table


def summary(settings: Settings) -> dict[str, str]:
    """Return the dials that tell methods apart, as column → text."""
    advantage, loss = settings["advantage"], settings["loss"]
    parts = ["group"]
    if advantage["step_weight"]:
        parts.append("step")
    if advantage["empg"]:
        parts.append("empg")
    kind = f"{loss['policy']} {loss['cispo_sides']}" if loss["policy"] == "cispo" else f"{loss['policy']}"
    delta = loss["mask_delta"]
    return {
        "advantage": "+".join(parts),
        "ratio": f"{loss['ratio_level']}",
        "loss": kind,
        "low/high": "-" if loss["policy"] == "sapo" else f"{loss['clip_low']:g}/{loss['clip_high']:g}",
        "mean over": _MEANS[f"{loss['aggregation']}"],
        "mask": "-" if delta is None else f"{delta:g} {loss['mask_denominator']}",
        "filter": "on" if settings["filter"]["enable"] else "-",
    }


def elsewhere(methods: Sequence[Method]) -> Table:
    """Return a table of how to get the methods in TRL and verl."""
    table = Table(box=SIMPLE)
    table.add_column("method", no_wrap=True)
    for column in ("TRL, GRPOConfig", "verl (actor = actor_rollout_ref.actor)"):
        table.add_column(column, overflow="fold")
    for m in methods:
        table.add_row(m.name, escape(m.trl), escape(m.verl))
    return table


def detail(method: Method) -> Table:
    """Return what a method is, where it comes from, and what the released code sets."""
    table = Table.grid(padding=(0, 2))
    released = [
        f"{section}.{key} = {value}" for section, d in method.released.items() for key, value in d.items()
    ]
    for label, text in {
        method.name: method.idea,
        "formula": method.formula,
        "source": method.source,
        "released": ", ".join(released),
        "TRL": method.trl,
        "verl": method.verl,
        "more": f"docs/methods.md#{method.name.lower()}",
    }.items():
        table.add_row(f"[bold]{label}[/bold]", escape(text))
    return table


def dials(method: Method, variant: str) -> Table:
    """Return all dials of the filter, the advantage and the loss, those of the method's own row marked."""
    table = Table(
        "dial", "value", "set by", title=f"Dials, {variant} variant", box=SIMPLE, title_justify="left"
    )
    mapping = to_mapping(resolve({"method": method.name, "variant": variant}))
    row = method_settings(method.name, variant)
    for section in ("env", "filter", "advantage", "loss"):
        for key, value in mapping[section].items():
            own = key in row.get(section, {})
            if own or section != "env":
                table.add_row(f"{section}.{key}", f"{value}", method.name if own else "default")
    return table
