import dataclasses
import json
import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from arl_gym.cli import main
from arl_gym.cli.sweep import axis, read_sweep
from arl_gym.errors import ConfigError, DataError
from arl_gym.train import jobs
from arl_gym.train.config import load_toml
from arl_gym.train.jobs import run_all
from arl_gym.train.methods import METHODS, resolve
from arl_gym.train.sweep import (
    Score,
    configure,
    final_successes,
    grid,
    pick,
    plan,
    point_name,
    scores,
)

BASE = resolve({"method": "SAMPO", "steps": 10, "env": {"kwargs": {"text_format": "inner"}}})


def score(point, mean, variance, method="GRPO"):
    return Score(method=method, point=point, seeds=(1,), success_mean=mean, success_variance=variance)


# ---- grids and names


def test_a_grid_holds_every_combination_the_last_axis_changing_fastest():
    assert grid({"method": ["SAMPO", "GRPO"], "optim.lr": [1.0, 2.0]}) == [
        {"method": "SAMPO", "optim.lr": 1.0},
        {"method": "SAMPO", "optim.lr": 2.0},
        {"method": "GRPO", "optim.lr": 1.0},
        {"method": "GRPO", "optim.lr": 2.0},
    ]


def test_a_grid_without_axes_is_one_point():
    assert grid({}) == [{}]


@pytest.mark.parametrize(
    ("axes", "message"),
    [({"seed": [1]}, "seed, which the sweep sets"), ({"optim.lr": []}, "at least one value of optim.lr")],
)
def test_a_grid_refuses(axes, message):
    with pytest.raises(ConfigError, match=message):
        grid(axes)


def test_a_method_brings_its_dials_and_the_other_settings_beat_them_in_any_order():
    # GRPO's own bounds are 0.2 and 0.2 on token ratios.
    cfg = configure(BASE, {"loss.clip_high": 0.3, "method": "grpo"})
    assert (cfg.method, cfg.loss.ratio_level) == ("GRPO", "token")
    assert (cfg.loss.clip_low, cfg.loss.clip_high) == (0.2, 0.3)
    assert cfg.steps == 10


def test_one_keyword_argument_of_the_environment_leaves_the_others():
    cfg = configure(BASE, {"env.kwargs.num_boxes": 2})
    assert cfg.env.kwargs == {"text_format": "inner", "num_boxes": 2}


def test_names_depend_on_the_values_not_on_their_spelling_or_order():
    axes = {"loss.clip_high": 0.20, "method": "grpo", "filter.enable": True}
    cfg = configure(BASE, axes)
    name = "method=GRPO,filter.enable=true,loss.clip_high=0.2"
    assert point_name(cfg, axes) == name
    assert point_name(configure(BASE, {"loss.clip_high": 2e-1, **axes}), list(reversed(axes))) == name


def test_a_name_is_a_single_folder_even_for_paths_and_lists():
    settings = {"model.path": "some/folder", "env.kwargs.dim_room": [7, 7]}
    assert (
        point_name(configure(BASE, settings), settings) == "env.kwargs.dim_room=-7-7-,model.path=some-folder"
    )


# ---- plans


def test_a_plan_has_a_run_for_every_point_and_seed(tmp_path):
    runs = plan(BASE, {"method": ["SAMPO", "GRPO"]}, seeds=[1, 2], out=tmp_path)
    assert [run.name for run in runs] == [
        "method=SAMPO/seed-1",
        "method=SAMPO/seed-2",
        "method=GRPO/seed-1",
        "method=GRPO/seed-2",
    ]
    assert [run.cfg.seed for run in runs] == [1, 2, 1, 2]
    assert runs[3].cfg.run_dir == str(tmp_path / "method=GRPO" / "seed-2")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("axes", "message"),
    [
        ({"loss.clip_hi": [0.1]}, "did you mean 'clip_high'"),
        ({"los.clip_high": [0.1]}, "did you mean 'loss'"),
        ({"steps.many": [3]}, "steps: expected int"),
        ({"loss.clip_high": ["wide"]}, "loss.clip_high: expected float, got str 'wide'"),
        ({"method": ["SAMPO", "GRPOO"]}, "did you mean 'GRPO'"),
        ({"optim.lr": [0.1, 0.10]}, "optim.lr=0.1/seed-1 twice"),
        (
            {"env.id": ["ARL/Sokoban-v0", "ARL/TIRMath-v0"]},
            "env.id=ARL-TIRMath-v0/seed-1: the step advantage",
        ),
    ],
)
def test_a_bad_value_anywhere_in_the_grid_is_found_before_the_first_run(axes, message, tmp_path):
    with pytest.raises(ConfigError, match=message):
        plan(BASE, axes, seeds=[1], out=tmp_path)


def test_a_plan_needs_a_seed(tmp_path):
    with pytest.raises(ConfigError, match="at least one seed"):
        plan(BASE, {}, seeds=[], out=tmp_path)


def test_none_is_refused_where_the_file_would_bring_the_methods_own_value_back(tmp_path, monkeypatch):
    masked = {**METHODS["GRPO"].settings, "loss": {**METHODS["GRPO"].settings["loss"], "mask_delta": 0.003}}
    monkeypatch.setitem(METHODS, "GRPO", dataclasses.replace(METHODS["GRPO"], settings=masked))
    axes: dict[str, list[object]] = {"method": ["GRPO"], "loss.mask_delta": [None]}
    with pytest.raises(ConfigError, match=r"cannot hold loss.mask_delta=None \(but 0.003\)"):
        plan(BASE, axes, seeds=[1], out=tmp_path)


def test_none_is_refused_in_a_table_that_the_file_cannot_hold(tmp_path):
    with pytest.raises(ConfigError, match="dim_room=null/seed-1: a configuration file cannot hold this"):
        plan(BASE, {"env.kwargs.dim_room": [None]}, seeds=[1], out=tmp_path)


def test_a_folder_that_holds_a_run_with_other_settings_is_refused(tmp_path, trainer):
    run_all(plan(BASE, {}, seeds=[1], out=tmp_path))
    longer = dataclasses.replace(BASE, steps=20)
    with pytest.raises(ConfigError, match=r"seed-1 holds no run with steps=20 \(but 10\)"):
        plan(longer, {}, seeds=[1], out=tmp_path)


# ---- picks


def rows(*successes):
    return [{"step": i, "rollout/played_success_rate": s} for i, s in enumerate(successes, start=1)]


@pytest.mark.parametrize(
    ("n", "last"),
    [(10, [9.0, 10.0]), (11, [9.0, 10.0, 11.0]), (4, [4.0]), (1, [1.0])],
)
def test_the_last_fifth_is_rounded_up(n, last):
    assert final_successes(rows(*map(float, range(1, n + 1)))) == last


@pytest.mark.parametrize("broken", [[], [{"step": 1}], [{"step": 1, "rollout/played_success_rate": None}]])
def test_a_step_without_a_success_rate_is_an_error(broken):
    with pytest.raises(DataError, match="expected rollout/played_success_rate in every step"):
        final_successes(broken)


def finish(run, *successes):
    run.folder.mkdir(parents=True)
    text = "".join(json.dumps(row) + "\n" for row in rows(*successes))
    (run.folder / "metrics.jsonl").write_text(text)
    (run.folder / "finished.json").write_text("{}")


def test_a_score_averages_the_runs_and_their_variances(tmp_path):
    one, two = plan(BASE, {}, seeds=[1, 2], out=tmp_path)
    finish(one, *[0.0] * 8, 0.2, 0.4)  # mean 0.3, variance 0.1² = 0.01
    finish(two, *[0.0] * 8, 0.5, 0.9)  # mean 0.7, variance 0.2² = 0.04
    (got,) = scores([one, two])
    assert (got.method, got.seeds) == ("SAMPO", (1, 2))
    assert got.success_mean == pytest.approx(0.5)
    # Between the seeds there is a difference of 0.4, which is no unsteadiness of a run.
    assert got.success_variance == pytest.approx(0.025)


def test_a_point_with_an_unfinished_run_has_no_score(tmp_path):
    one, two = plan(BASE, {}, seeds=[1, 2], out=tmp_path)
    finish(one, 0.5)
    assert scores([one, two]) == []


def test_the_best_calm_point_of_each_method_is_picked():
    calm, best, wild = score("a", 0.5, 0.004), score("b", 0.6, 0.009), score("c", 0.9, 0.010)
    other = score("d", 0.1, 0.0, method="SAMPO")
    assert pick([calm, best, wild, other], max_variance=0.01) == {"GRPO": best, "SAMPO": other}


def test_the_first_of_equally_good_points_is_picked_and_none_if_all_are_wild():
    first, second = score("a", 0.5, 0.0), score("b", 0.5, 0.0)
    assert pick([first, second], max_variance=0.01) == {"GRPO": first}
    assert pick([first, second], max_variance=0.0) == {}


# ---- running

STUB = """
import json, os, pathlib, signal, sys, tomllib
arguments = sys.argv[1:]
cfg = tomllib.loads(pathlib.Path(arguments[arguments.index("--config") + 1]).read_text())
folder = pathlib.Path(cfg["run_dir"])
begun = folder.is_dir()
assert begun == ("--resume" in arguments), "a begun run is resumed, a new one is not"
folder.mkdir(parents=True, exist_ok=True)
(folder / "threads").write_text(os.environ["OMP_NUM_THREADS"])
how = cfg["env"]["kwargs"].get("how", "")
if how == "fail" and not begun:
    sys.exit("Traceback\\narl-gym: it broke\\n")
if how in ("hang", "deaf"):
    def stop(*_):
        (folder / "told").touch()
        if how == "hang":
            sys.exit("arl-gym: told to stop")
    signal.signal(signal.SIGTERM, stop)
    (folder / "ready").touch()
    while True:
        signal.pause()
with open(folder / "metrics.jsonl", "w") as file:
    for step in range(1, cfg["steps"] + 1):
        success = cfg["optim"]["lr"] * cfg["seed"]
        print(json.dumps({"step": step, "rollout/played_success_rate": success}), file=file)
if how != "quit":
    (folder / "finished.json").write_text(json.dumps({"steps": cfg["steps"], "seconds": 1.0}))
"""


@pytest.fixture
def trainer(tmp_path_factory, monkeypatch):
    """A stand-in for the training command."""
    stub = tmp_path_factory.mktemp("stub") / "train.py"
    stub.write_text(STUB)
    command = jobs.train_command
    # `python -m arl_gym.cli train OPTIONS` becomes `python STUB OPTIONS`.
    monkeypatch.setattr(jobs, "train_command", lambda run: [sys.executable, str(stub), *command(run)[4:]])
    monkeypatch.setattr(jobs, "POLL_S", 0.01)


def how(value):
    return configure(BASE, {"env.kwargs.how": value})


def test_the_command_trains_with_the_runs_own_file(tmp_path):
    (run,) = plan(BASE, {}, seeds=[1], out=tmp_path)
    command = [sys.executable, "-m", "arl_gym.cli", "train", "--config", str(tmp_path / "seed-1.toml")]
    assert jobs.train_command(run) == command
    run.folder.mkdir()
    assert jobs.train_command(run) == [*command, "--resume", "auto"]


def test_runs_are_made_and_finished_ones_are_skipped_the_next_time(tmp_path, trainer):
    runs = plan(BASE, {"optim.lr": [0.1, 0.2]}, seeds=[1, 2], out=tmp_path)
    said: list[str] = []
    assert [o.status for o in run_all(runs, jobs=2, say=said.append)] == ["finished"] * 4
    assert said[-1].startswith("[4/4] ")
    assert resolve(load_toml(runs[0].file)) == runs[0].cfg
    # Success is lr x seed at every step: means over the seeds are 0.1 x 1.5 and 0.2 x 1.5.
    assert [s.success_mean for s in scores(runs)] == pytest.approx([0.15, 0.3])
    again: list[str] = []
    assert [o.status for o in run_all(runs, say=again.append)] == ["skipped"] * 4
    assert again == ["4 of 4 runs are finished already"]


def test_a_failed_run_tells_its_last_line_and_the_others_go_on(tmp_path, trainer):
    runs = plan(BASE, {"env.kwargs.how": ["fail", "quit", "well"]}, seeds=[1], out=tmp_path)
    failed, quit_, well = run_all(runs)
    assert (failed.status, failed.reason) == ("failed", "(exit code 1): arl-gym: it broke")
    assert (quit_.status, quit_.reason) == ("stopped", "(exit code 0): it printed nothing")
    assert (well.status, well.reason) == ("finished", "")


def test_a_begun_run_is_continued(tmp_path, trainer):
    runs = plan(how("fail"), {}, seeds=[1], out=tmp_path)
    said: list[str] = []
    assert run_all(runs)[0].status == "failed"
    assert run_all(runs, say=said.append)[0].status == "finished"
    assert said[0] == "seed-1: going on"


def test_the_processes_share_the_cores_unless_somebody_said_otherwise(tmp_path, trainer, monkeypatch):
    monkeypatch.setattr(os, "cpu_count", lambda: 8)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    one, two = plan(BASE, {}, seeds=[1, 2], out=tmp_path)
    run_all([one], jobs=2)
    assert (one.folder / "threads").read_text() == "4"
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    run_all([two], jobs=2)
    assert (two.folder / "threads").read_text() == "3"


def after(condition, act):
    """Do something as soon as a condition holds, from another thread."""

    def wait():
        deadline = time.monotonic() + 30
        while not condition() and time.monotonic() < deadline:
            time.sleep(0.01)
        act()

    thread = threading.Thread(target=wait)
    thread.start()
    return thread


def test_a_signal_to_stop_reaches_the_runs_and_no_further_one_begins(tmp_path, trainer):
    runs = plan(how("hang"), {}, seeds=[1, 2, 3], out=tmp_path)
    before = signal.getsignal(signal.SIGTERM)
    ready = [run.folder / "ready" for run in runs[:2]]
    thread = after(lambda: all(p.exists() for p in ready), lambda: os.kill(os.getpid(), signal.SIGTERM))
    first, second, third = run_all(runs, jobs=2)
    thread.join()
    assert (first.status, first.reason) == ("stopped", "(exit code 1): arl-gym: told to stop")
    assert (runs[1].folder / "told").exists()
    assert second.status == "stopped"
    assert (third.status, third.reason) == ("stopped", "not begun")
    assert not runs[2].folder.exists()
    assert signal.getsignal(signal.SIGTERM) is before


def test_a_second_signal_ends_runs_that_do_not_stop(tmp_path, trainer):
    (run,) = plan(how("deaf"), {}, seeds=[1], out=tmp_path)
    me = os.getpid()
    first = after((run.folder / "ready").exists, lambda: os.kill(me, signal.SIGINT))
    second = after((run.folder / "told").exists, lambda: os.kill(me, signal.SIGINT))
    with pytest.raises(KeyboardInterrupt):
        run_all([run])
    first.join()
    second.join()


def test_a_run_that_was_killed_says_by_what(tmp_path, trainer, monkeypatch):
    die = [sys.executable, "-c", "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"]
    monkeypatch.setattr(jobs, "train_command", lambda run: die)
    (outcome,) = run_all(plan(BASE, {}, seeds=[1], out=tmp_path))
    assert outcome.reason == "(killed by SIGKILL): it printed nothing"


def test_no_process_is_left_when_the_sweep_itself_fails(tmp_path, trainer, monkeypatch):
    children = []

    def say(line):
        children.append(line)
        if len(children) == 2:
            raise OSError("the disk is full")

    runs = plan(how("hang"), {}, seeds=[1, 2], out=tmp_path)
    started = []
    start = subprocess.Popen

    def popen(*args, **kwargs):
        started.append(start(*args, **kwargs))
        return started[-1]

    monkeypatch.setattr(subprocess, "Popen", popen)
    with pytest.raises(OSError, match="the disk is full"):
        run_all(runs, jobs=2, say=say)
    assert [child.returncode for child in started] == [-signal.SIGKILL]


# ---- the command


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("loss.clip_high=0.02,4e-2", ("loss.clip_high", [0.02, 0.04])),
        ("method=SAMPO,GRPO", ("method", ["SAMPO", "GRPO"])),
        ("filter.enable=true,false", ("filter.enable", [True, False])),
        ("env.kwargs.dim_room=[6, 6],[7, 7]", ("env.kwargs.dim_room", [[6, 6], [7, 7]])),
    ],
)
def test_an_axis_is_a_key_and_its_values(text, expected):
    assert axis(text) == expected


def sweep(out, *args):
    return main(["sweep", "--config", "sokoban-tiny", "--steps", "10", "--out", str(out), *args])


def test_the_command_runs_picks_and_writes_the_result(tmp_path, trainer, capsys):
    grid = ["--grid", "method=GRPO,SAMPO", "--grid", "optim.lr=0.1,0.2", "--seeds", "1,2", "--jobs", "2"]
    assert sweep(tmp_path, *grid) == 0
    assert "picked" in capsys.readouterr().out
    result = json.loads((tmp_path / "sweep.json").read_text())
    assert result["picks"] == {
        "GRPO": "method=GRPO,optim.lr=0.2",
        "SAMPO": "method=SAMPO,optim.lr=0.2",
    }
    assert len(result["points"]) == 4
    assert result["points"][0]["success_mean"] == pytest.approx(0.15)
    first = result["runs"][0]
    assert (first["run"], first["status"]) == ("method=GRPO,optim.lr=0.1/seed-1", "finished")


def test_a_failed_run_makes_the_command_fail_with_its_last_line(tmp_path, trainer, capsys):
    assert sweep(tmp_path, "--grid", "env.kwargs.how=fail,well") == 1
    out, err = capsys.readouterr()
    what = "env.kwargs.how=fail/seed-0 (exit code 1): arl-gym: it broke"
    assert out.splitlines()[-1] == f"not finished: {what}"
    assert err == f"arl-gym: 1 of 2 runs are not finished, the first: {what}\n"


def test_a_dry_run_lists_the_runs_and_writes_nothing(tmp_path, capsys):
    assert sweep(tmp_path / "out", "--grid", "method=SAMPO,GRPO", "--seeds", "3", "--dry-run") == 0
    listed = capsys.readouterr().out.splitlines()
    assert listed[:2] == ["method=SAMPO/seed-3: new", "method=GRPO/seed-3: new"]
    assert not (tmp_path / "out").exists()


def test_a_sweep_file_has_axes_and_seeds_and_the_command_line_beats_it(tmp_path, capsys):
    file = tmp_path / "sweep.toml"
    file.write_text(
        'seeds = [4]\n[grid]\nmethod = ["GRPO"]\n"optim.lr" = [0.1]\n[grid.loss]\nclip_high = [0.3]\n'
    )
    assert read_sweep(file) == ({"method": ["GRPO"], "optim.lr": [0.1], "loss.clip_high": [0.3]}, [4])
    assert sweep(tmp_path / "out", "--sweep", str(file), "--grid", "optim.lr=0.2", "--dry-run") == 0
    assert "method=GRPO,loss.clip_high=0.3,optim.lr=0.2/seed-4: new" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("jobs = 2\n", "got jobs"),
        ("grid = 3\n", "grid must be a table"),
        ("[grid]\nmethod = 'GRPO'\n", "grid.method must be a list of values, got 'GRPO'"),
        ("seeds = ['a']\n", "seeds must be a list of whole numbers"),
    ],
)
def test_a_sweep_file_with_anything_else_is_refused(text, message, tmp_path):
    file = tmp_path / "sweep.toml"
    file.write_text(text)
    with pytest.raises(ConfigError, match=message):
        read_sweep(file)


@pytest.mark.parametrize(
    ("args", "code", "message"),
    [
        (["--grid", "optim.lr"], 2, "expected KEY=VALUE"),
        (["--grid", "optim.lr=1", "--grid", "optim.lr=2"], 2, "each key may be given once"),
        (["--seeds", "one"], 2, "--seeds"),
        (["--jobs", "0"], 2, "at least 1"),
        (["--grid", "method=GRPOO"], 1, "did you mean 'GRPO'"),
    ],
)
def test_bad_usage_is_one_clear_error(args, code, message, tmp_path, capsys):
    assert sweep(tmp_path / "out", *args) == code
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_the_folder_must_be_named(capsys):
    assert main(["sweep", "--grid", "method=GRPO"]) == 2
    assert "--out DIR is needed" in capsys.readouterr().err


def test_the_command_explains_itself(capsys):
    assert main(["sweep", "--help"]) == 0
    assert "arl-gym sweep" in capsys.readouterr().out
