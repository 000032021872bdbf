"""The page on one's own environment shows the example, all of it, and says of it what is true."""

import re
import shutil
from typing import Any

from arl_gym import make_chat_env
from arl_gym.checker import conformance
from arl_gym.cli import main
from tests.conftest import ROOT

PAGE = (ROOT / "docs" / "your-own-environment.md").read_text(encoding="utf-8")


def code_blocks(text):
    return re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def test_the_code_of_the_page_is_the_code_of_the_example():
    code = (ROOT / "examples" / "own_environment.py").read_text(encoding="utf-8")
    # The page leaves out the docstring, what is for the type checker, and what the script prints.
    code = code.partition('"""\n\n')[2].replace("  # type: ignore[arg-type]", "")
    rest = code.partition('if __name__ == "__main__":')[0]
    for block in code_blocks(PAGE):
        rest = rest.lstrip().removeprefix(block)
    assert rest.strip() == ""


def test_the_foreign_environment_of_the_page_breaks_the_rules_that_the_page_names():
    names: dict[str, Any] = {"make_chat_env": make_chat_env, "conformance": conformance, "__name__": "page"}
    for block in code_blocks(PAGE.partition("## An environment that you already have")[2]):
        exec(compile(block, "page", "exec"), names)
    report = names["report"]
    assert [finding.title for finding in report.broken] == [
        "Gymnasium's `check_env` passes",
        "Every observation lies in the observation space",
        "A step before the first reset and after the end raises",
    ]


def test_the_configuration_of_the_page_resolves(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    shutil.copy(ROOT / "examples" / "own_environment.py", tmp_path)
    (toml,) = re.findall(r"^```toml\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    (tmp_path / "jugs.toml").write_text(toml)
    assert main(["train", "--config", "jugs.toml", "--dry-run"]) == 0
    assert 'id = "own_environment:Own/WaterJugs-v0"' in capsys.readouterr().out
