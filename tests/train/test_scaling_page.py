"""The memory table of docs/scaling.md is the one that its code prints."""

import re

from tests.conftest import ROOT


def test_the_memory_table_of_the_page_is_what_its_code_prints(capsys):
    page = (ROOT / "docs/scaling.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    exec(compile(code, "scaling.md", "exec"), {})
    printed = capsys.readouterr().out
    assert printed.count("\n") == 4
    assert printed in page
