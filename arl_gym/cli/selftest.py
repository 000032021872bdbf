"""`arl-gym selftest`: whether the trainer works on this machine, with a line of evidence for each part."""

import tempfile
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from arl_gym.cli.options import parser
from arl_gym.cli.settings import quiet, say

_COLOUR = {"pass": "green", "FAIL": "bold red", "not run": "dim"}


def run(args: list[str]) -> int:
    """Print what was checked; 1 if something failed."""
    options = parser(
        "selftest", "Train two steps and check what comes of them: minutes on a GPU, less on the CPU."
    )
    options.add_argument("--gpu", action="store_true", help="on the GPU, in bfloat16")
    options.add_argument("--model", default="tiny", metavar="DIR", help="model folder, or tiny")
    options.add_argument("--backend", choices=("hf", "vllm"), default="hf", help="who generates")
    known = options.parse_args(args)
    quiet()
    from arl_gym.train.selftest import selftest

    with (
        tempfile.TemporaryDirectory(prefix="arl-gym-selftest-") as folder,
        Console(stderr=True).status("") as status,
    ):
        checks = selftest(
            Path(folder),
            model=known.model,
            backend=known.backend,
            gpu=known.gpu,
            begin=status.update,
        )
    table = Table("check", "", "evidence", title=f"{known.model}, {known.backend}")
    for check in checks:
        table.add_row(check.name, f"[{_COLOUR[check.outcome]}]{check.outcome}", escape(check.evidence))
    Console().print(table)
    failed = [check.name for check in checks if check.outcome == "FAIL"]
    say(f"failed: {', '.join(failed)}" if failed else "nothing failed")
    return 1 if failed else 0
