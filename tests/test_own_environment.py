"""The page on one's own environment shows the example, all of it, in the example's order."""

import re

from tests.conftest import ROOT


def test_the_code_of_the_page_is_the_code_of_the_example():
    page = (ROOT / "docs" / "your-own-environment.md").read_text(encoding="utf-8")
    code = (ROOT / "examples" / "own_environment.py").read_text(encoding="utf-8")
    # The page leaves out the docstring, what is for the type checker, and what the script prints.
    code = code.partition('"""\n\n')[2].replace("  # type: ignore[arg-type]", "")
    code = code.partition('if __name__ == "__main__":')[0]
    rest = code
    for block in re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL):
        rest = rest.lstrip().removeprefix(block)
    assert rest.strip() == ""
