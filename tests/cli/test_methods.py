import pytest

from arl_gym.cli import main
from arl_gym.train.methods import METHODS


@pytest.fixture
def narrow(monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")


def test_the_table_has_a_line_for_every_method_and_fits_100_columns(narrow, capsys):
    assert main(["methods"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert all(len(line) <= 100 for line in lines)
    rows = {line.split()[0]: line.split()[1:] for line in lines[3 : 5 + len(METHODS)] if line.split()}
    assert rows["GRPO"] == ["group", "token", "clip", "0.2/0.2", "tokens", "-", "-"]
    assert rows["CISPO_SM"][2:7] == ["cispo", "signed", "1/0.2", "tokens", "0.003"]
    assert rows["SAMPO"] == ["group+step", "turn", "clip", "0.003/0.004", "tokens", "-", "on"]
    assert set(METHODS) <= set(rows)
    assert not any("…" in line for line in lines)


def test_on_a_narrow_terminal_nothing_is_cut_off(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["methods"]) == 0
    shown = capsys.readouterr().out
    assert "…" not in shown
    assert "filter" in shown
    assert all(len(line) <= 80 for line in shown.splitlines()[:-1])
    assert {line.split()[0] for line in shown.splitlines() if line.split()} >= set(METHODS)


def test_the_released_table_shows_what_the_code_does(narrow, capsys):
    assert main(["methods", "--variant", "released"]) == 0
    shown = capsys.readouterr().out
    assert "cispo both" in shown
    assert "0.003 kept" in shown
    assert "…" not in shown


def test_a_named_method_is_shown_in_full(narrow, capsys):
    assert main(["methods", "dapo-grpo"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "arXiv:2503.14476" in shown
    assert "epsilon_high=0.28 (without the filter)" in shown
    assert "loss.dual_clip_c = 3.0, loss.clip_high = 0.2" in shown
    assert "loss.clip_high 0.28 DAPO_GRPO" in shown
    assert "filter.max_tries 3 default" in shown


def test_an_unknown_method_is_bad_usage(capsys):
    assert main(["methods", "GRPP"]) == 2
    assert "did you mean 'GRPO'" in capsys.readouterr().err
