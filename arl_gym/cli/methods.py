"""`arl-gym methods`: the table of methods."""

from rich.console import Console
from rich.table import Table

from arl_gym.cli.options import parser
from arl_gym.cli.settings import say
from arl_gym.train.methods import method_table


def run(args: list[str]) -> int:
    """Run `arl-gym methods`."""
    parser("methods", "Show the methods: rows of settings over the same dials.").parse_args(args)
    rows = method_table()
    table = Table("dial", *(r["method"] for r in rows))
    for dial in rows[0]:
        if dial not in ("method", "source"):
            table.add_row(dial, *(r[dial] for r in rows))
    Console().print(table)
    for r in rows:
        say(f"{r['method']}: {r['source']}")
    return 0
