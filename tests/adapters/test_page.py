"""That no code of docs/adapters.md is left without a test."""

import re

from tests.adapters.page import sections
from tests.conftest import ROOT


def test_code_that_needs_a_library_is_run_by_the_tests_of_that_library():
    tests = [path for name in ("real", "apart") for path in (ROOT / "tests" / "adapters" / name).glob("*.py")]
    run = [name for path in tests for name in re.findall(r'run_section\("(.+?)"', path.read_text())]
    assert sorted(run) == sorted(sections())
