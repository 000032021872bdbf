"""The README and the pages under docs/: their code runs, their commands parse, their links lead somewhere."""

import argparse
import re
import shlex
import shutil

import pytest

from arl_gym.cli import COMMANDS, main
from arl_gym.cli.options import env_kwargs
from arl_gym.core import INFO_TYPES
from arl_gym.envs import ENVS
from docs import cards, generate
from tests.conftest import ROOT

README = ROOT / "README.md"
DOCS = sorted((ROOT / "docs").rglob("*.md"))
PAGES = [README, *DOCS]

GENERATED = generate.files()
DRY_RUN = ("bc", "demo", "sweep", "train")
"""Commands that resolve a whole configuration, and show it with --dry-run."""


def name_of(page):
    return str(page.relative_to(ROOT))


def blocks(text, *languages):
    found = re.findall(r"^```(\w*)\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    return [body for language, body in found if language in languages]


def code_and_output(text):
    """Return the blocks of Python, each with the block of text below it that says what it prints, or None."""
    blocks_of_a_page = re.findall(
        r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```$)?", text, re.MULTILINE | re.DOTALL
    )
    return [(code, output or None) for code, output in blocks_of_a_page]


def is_shown(output, printed):
    """Return whether a page shows what was printed; "…" stands for anything on a line."""
    lines, shown = printed.splitlines(), output.splitlines()
    return len(lines) == len(shown) and all(
        re.fullmatch(".*".join(map(re.escape, part.split("…"))), line)
        for part, line in zip(shown, lines, strict=True)
    )


def command_lines(text):
    """Return the lines of the shell blocks that call arl-gym, without comments, continuations joined."""
    for block in blocks(text, "", "bash", "console", "sh"):
        for line in block.replace("\\\n", " ").splitlines():
            if line.startswith("arl-gym "):
                yield shlex.split(line.removeprefix("arl-gym "), comments=True)


def slug(heading):
    """Return the anchor that code hosts give a heading."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


def links(page):
    """Return the relative links of a page: (path, anchor)."""
    prose = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    prose = re.sub(r"^ {4}.*$", "", prose, flags=re.MULTILINE)
    for target in re.findall(r"\]\((?!https?://)([^)\s]+)\)", prose):
        path, _, anchor = target.partition("#")
        yield (page.parent / path).resolve() if path else page, anchor


@pytest.mark.parametrize("code", blocks(README.read_text(encoding="utf-8"), "python"))
def test_a_code_block_of_the_readme_runs_alone(code, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    exec(compile(code, "README.md", "exec"), {"__name__": "readme"})


@pytest.mark.parametrize("page", DOCS, ids=name_of)
def test_the_code_of_a_page_runs_from_top_to_bottom_and_prints_what_is_shown(
    page, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": page.stem}
    for code, output in code_and_output(page.read_text(encoding="utf-8")):
        exec(compile(code, page.name, "exec"), names)
        printed = capsys.readouterr().out
        assert output is None or is_shown(output, printed), f"{output}\n--- but it prints:\n{printed}"


class Parsed(Exception):
    """A command line was understood; nothing has been done yet."""


def parse_and_stop(parser, *args, parse=argparse.ArgumentParser.parse_args):
    options = parse(parser, *args)
    if parser.prog in ("arl-gym", "arl-gym data"):  # these choose a command, which has a parser of its own
        return options
    if "env" in options and "id" in options:
        env_kwargs(options)
    raise Parsed


def stop(*args):
    raise Parsed


def is_understood(args):
    if args[0] in DRY_RUN:
        return main([*args, "--dry-run"]) == 0
    try:
        main(args)
    except Parsed:
        return True
    return False


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_the_command_lines_of_a_page_are_understood(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(argparse.ArgumentParser, "parse_args", parse_and_stop)
    monkeypatch.setattr("arl_gym.cli.cloning.runs_by_env", stop)
    for file in ("my-run.toml", "jugs.toml", "runs/trained/config.toml"):  # what the pages go on from
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text("steps = 3\n")
    shutil.copy(ROOT / "examples" / "own_environment.py", tmp_path)
    for args in command_lines(page.read_text(encoding="utf-8")):
        assert is_understood(args), f"{args}: {capsys.readouterr().err}"


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_command_that_a_page_names_exists(page):
    named = re.findall(r"`arl-gym ([a-z][a-z-]*)", page.read_text(encoding="utf-8"))
    assert set(named) <= set(COMMANDS)


@pytest.mark.parametrize("path", GENERATED, ids=name_of)
def test_a_generated_file_is_what_the_sources_give(path):
    assert path.read_text(encoding="utf-8") == GENERATED[path], "run: make docs"


def test_no_generated_page_is_left_over():
    assert set(generate.FOLDER.glob("*.md")) <= set(GENERATED)


@pytest.mark.parametrize("env_id", ENVS)
def test_every_card_has_every_section_in_order(env_id):
    named = [name for name in cards.card(env_id) if name in cards.SECTIONS]
    assert named == list(cards.SECTIONS)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_relative_link_leads_to_a_file_and_a_heading_of_it(page):
    broken = []
    for path, anchor in links(page):
        if not path.exists():
            broken.append(str(path))
        elif anchor:
            headings = re.findall(r"^#+ (.+)$", path.read_text(encoding="utf-8"), re.MULTILINE)
            if anchor not in map(slug, headings):
                broken.append(f"{path}#{anchor}")
    assert broken == []


def test_every_page_is_reached_from_the_index_and_the_index_from_the_readme():
    reached, waiting = set(), [README]
    while waiting:
        page = waiting.pop()
        if page.suffix == ".md" and page.exists() and page not in reached:
            reached.add(page)
            # The README leads to the index only: a page is not found because the README happens to name it.
            follow = [ROOT / "docs" / "index.md"] if page == README else [path for path, _ in links(page)]
            waiting += follow
    assert ROOT / "docs" / "index.md" in {path for path, _ in links(README)}
    assert [name_of(page) for page in DOCS if page not in reached] == []


def test_the_page_of_wrappers_names_every_key_of_the_contract():
    page = (ROOT / "docs" / "wrappers.md").read_text(encoding="utf-8")
    assert [key for key in INFO_TYPES if f"| `{key}` |" not in page] == []


def test_every_make_target_that_a_page_names_exists():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z][a-z-]*)[: ]", makefile, re.MULTILINE))
    named = {
        t for page in PAGES for t in re.findall(r"`make ([a-z][a-z-]*)", page.read_text(encoding="utf-8"))
    }
    assert named <= targets
