"""A program in an interpreter of its own, with limits and without a jail: the tier "unsafe"."""

import json
import sys

from . import limits
from .program import Program, furnish

FILE_BYTES = 16 << 20


def main(args: list[str]) -> Program:
    """Read the program from the descriptor given, and limit this process."""
    settings = json.loads(args[0])
    with open(settings["program_fd"], "rb") as file:
        order = json.load(file)
    furnish(settings["site_dirs"])
    import numpy.random  # noqa: F401 - so that it is seeded

    mapped = limits.mapped_bytes(limits.open_size()) if sys.platform == "linux" else 0
    limits.set_limits(
        address_bytes=mapped + (settings["memory_mb"] << 20),
        timeout_s=settings["timeout_s"],
        file_bytes=FILE_BYTES,
    )
    return Program(**order)
