import pytest

from arl_gym.errors import UnknownNameError
from arl_gym.train.export import export
from arl_gym.train.gallery import Shown
from tests.train.fake_run import CONFIG, episode, make_run, scored, write_episodes

FORMATS = ("csv", "pdf", "png", "svg")


def names(folder):
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file())


def files(*figures):
    return sorted(f"figures/{figure}.{format}" for figure in figures for format in FORMATS)


def test_a_run_is_exported_with_everything_it_has(tmp_path):
    run = make_run(tmp_path / "run")
    for step in (60, 120):
        path = run / "trajectories" / f"step-{step:06d}.jsonl.gz"
        write_episodes(path, [scored(episode(True)), scored(episode(False))])
    assert export([run], tmp_path / "out") == []
    success = "curve-rollout-played_success_rate"
    assert names(tmp_path / "out") == sorted(
        [
            *files("actions-Sokoban-v0", "classes", "sequences", success),
            *("report.html", "tables/runs.csv", "tables/runs.tex"),
        ]
    )
    lines = (tmp_path / "out" / "figures" / f"{success}.csv").read_text().splitlines()
    assert lines[0] == "line,metric,step,x,value,low,high,runs"
    assert len(lines) == 1 + 12
    # Of the last recorded step: the two turns of an episode are one transition.
    assert (tmp_path / "out" / "figures" / "actions-Sokoban-v0.csv").read_text().splitlines()[1:] == [
        "success,right,right,1,1.0",
        "failure,right,right,1,1.0",
    ]


def test_groups_have_their_own_table_and_runs_their_own_folders(tmp_path):
    runs = [make_run(tmp_path / name) for name in ("a", "b")]
    (runs[1] / "config.toml").write_text(CONFIG.replace("seed = 3", "seed = 4"))
    left_out = export(
        runs, tmp_path / "out", group_by="method", how=Shown(keys=("rollout/played_success_rate",))
    )
    assert names(tmp_path / "out") == sorted(
        [
            *files("a/actions-Sokoban-v0", "b/actions-Sokoban-v0", "curve-rollout-played_success_rate"),
            *("report.html", "tables/groups.csv", "tables/groups.tex", "tables/runs.csv", "tables/runs.tex"),
        ]
    )
    assert left_out == [
        f"Sequences of one step, Classes of turns: the trajectories of {run} were recorded without scores of "
        "their tokens"
        for run in "ab"
    ]
    page = (tmp_path / "out" / "report.html").read_text()
    assert "SAMPO (2 runs)" in page
    assert "differ in more than their seed" not in page


def test_an_unknown_group_is_refused_before_anything_is_written(tmp_path):
    with pytest.raises(UnknownNameError):
        export([make_run(tmp_path / "a")], tmp_path / "out", group_by="methods")
    assert not (tmp_path / "out").exists()
