"""The code of the README and of the pages under docs/ runs; the README's table is the one the cards give."""

import re

import pytest

from arl_gym.cli import main
from arl_gym.envs import ENVS
from docs import env_table
from tests.conftest import ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")
DOCS = sorted((ROOT / "docs").glob("*.md"))


def code_blocks(text):
    return re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("code", code_blocks(README))
def test_the_code_block_runs(code, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    exec(compile(code, "README.md", "exec"), {"__name__": "readme"})


@pytest.mark.parametrize("page", DOCS, ids=lambda page: page.name)
def test_the_code_of_a_page_runs_from_top_to_bottom(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": page.stem}
    for code in code_blocks(page.read_text(encoding="utf-8")):
        exec(compile(code, page.name, "exec"), names)


@pytest.mark.parametrize("line", re.findall(r"^arl-gym ((?:bc|train) .*?) +#", README, re.MULTILINE))
def test_the_training_command_is_understood(line, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    finished = tmp_path / "runs" / "trained"
    finished.mkdir(parents=True)
    (finished / "config.toml").write_text("steps = 3\n")
    assert main([*line.split(), "--dry-run"]) == 0, capsys.readouterr().err


def test_the_table_of_environments_is_the_one_of_the_cards():
    assert env_table.render(README) == README, "run: make docs"


@pytest.mark.parametrize("env_id", ENVS)
def test_every_card_has_every_section_in_order(env_id):
    named = [name for name in env_table.card(env_id) if name in env_table.SECTIONS]
    assert named == list(env_table.SECTIONS)


@pytest.mark.parametrize("page", [ROOT / "README.md", *DOCS], ids=lambda page: page.name)
def test_every_relative_link_leads_to_a_file(page):
    targets = re.findall(r"\]\((?!https?://|#)([^)#]+)", page.read_text(encoding="utf-8"))
    assert [t for t in targets if not (page.parent / t).exists()] == []


def test_every_make_target_of_the_readme_exists():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert [t for t in re.findall(r"`make (\w+)", README) if f"\n{t}:" not in makefile] == []
