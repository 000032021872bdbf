import re

import pytest

from arl_gym.cli import main
from tests.train.fake_run import make_run, write_rows


@pytest.fixture
def runs(tmp_path):
    folders = [make_run(tmp_path / name) for name in ("a", "b")]
    for folder in folders:
        rows = [{"step": s, "loss/kl": s / 10, "optim/tokens": 100} for s in (1, 2)]
        write_rows(folder / "metrics.jsonl", rows)
        (folder / "trajectories" / "step-000120.jsonl.gz").unlink()
    return [str(folder) for folder in folders]


def plot(*args):
    return main(["plot", *map(str, args)])


def test_one_run_gets_its_own_report(runs, tmp_path, capsys):
    assert plot(runs[0]) == 0
    assert (tmp_path / "a" / "report.html").is_file()
    assert "a/report.html" in capsys.readouterr().out


def test_an_html_file_is_only_the_page(runs, tmp_path):
    assert plot(*runs, "--out", tmp_path / "both.html") == 0
    assert "2 runs compared" in (tmp_path / "both.html").read_text()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a", "b", "both.html"]


def test_a_folder_gets_figures_along_the_chosen_axis_and_says_what_is_left_out(runs, tmp_path, capsys):
    out = tmp_path / "out"
    assert plot(*runs, "--out", out, "--group-by", "method", "--x", "tokens", "--keys", "loss/kl") == 0
    assert [p.name for p in sorted((out / "figures").glob("*.csv"))] == ["curve-loss-kl.csv"]
    line = (out / "figures" / "curve-loss-kl.csv").read_text().splitlines()[-1]
    assert line == "SAMPO,loss/kl,2,200.0,0.2,0.2,0.2,2"
    assert "Classes of turns, Actions that follow one another: a has no recorded episodes" in re.sub(
        r"\s+", " ", capsys.readouterr().out
    )


@pytest.mark.parametrize(
    ("args", "code", "message"),
    [
        ((), 2, "several runs, and groups, need --out"),
        (("--out", "x", "--keys", "loss/k"), 1, "unknown metric 'loss/k' in --keys: did you mean 'loss/kl'?"),
        (("--out", "x", "--group-by", "methods"), 1, "did you mean 'method'"),
        (("--out", "x", "--smooth", "0"), 2, "must be at least 1"),
        (("--out", "x", "--x", "days"), 2, "invalid choice"),
    ],
)
def test_bad_usage_is_one_clear_error(args, code, message, runs, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert plot(*runs, *args) == code
    assert message in re.sub(r"\s+", " ", capsys.readouterr().err)
    assert not (tmp_path / "x").exists()
