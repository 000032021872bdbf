"""The code of docs/adapters.md that needs a library: that library's tests run it."""

import re
from collections.abc import Mapping
from typing import Any

from tests.conftest import ROOT

_PAGE = ROOT / "docs" / "adapters.md"


def sections() -> dict[str, str]:
    """Return the code of the blocks marked `py` below each heading that has such blocks."""
    _, *parts = re.split(r"^##+ (.*)\n", _PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    code = {
        heading: "\n".join(re.findall(r"^```py\n(.*?)^```$", text, re.MULTILINE | re.DOTALL))
        for heading, text in zip(parts[::2], parts[1::2], strict=True)
    }
    return {heading: text for heading, text in code.items() if text}


def run_section(heading: str, replaced: Mapping[str, str] | None = None, **names: Any) -> dict[str, Any]:
    """Run the code below a heading; return the names it leaves.

    Args:
        heading: The last heading above the blocks.
        replaced: What to write for what stands there: models and addresses that a test has not.
        names: What the code takes as given.
    """
    code = sections()[heading]
    for shown, instead in (replaced or {}).items():
        assert shown in code, f"{shown} is not shown below {heading}"
        code = code.replace(shown, instead)
    found = {"__name__": "page", **names}
    exec(compile(code, f"{_PAGE.name}: {heading}", "exec"), found)
    return found
