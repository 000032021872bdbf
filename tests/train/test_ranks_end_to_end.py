"""The commands on two ranks: the same runs as on one, stopped, killed and moved between numbers of ranks."""

import os
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest
import tomli_w
from safetensors.torch import load_file

from arl_gym.agents.records import read_trajectories
from arl_gym.errors import Interrupted
from arl_gym.train.bc import clone_run
from arl_gym.train.checkpoint import Checkpoints
from arl_gym.train.config import to_mapping
from arl_gym.train.methods import resolve
from arl_gym.train.metrics import read_metrics, without_timings
from arl_gym.train.trainer import train
from tests.train.test_launch import is_running
from tests.train.test_resume import stop_at

# Launchers and ranks import torch.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

STEPS = 3
CLONE = {
    **{"episodes": 12, "val_episodes": 4, "steps": 4, "eval_every": 2, "batch_rows": 16, "lr": 1e-4},
    "thoughts": False,
}


def values(run_dir, **changes):
    base = {
        "run_dir": str(run_dir),
        "steps": STEPS,
        "trajectories_every": 1,
        "env": {"prompt": "compact", "window": 0, "kwargs": {"text_format": "inner", "max_steps": 8}},
        "model": {"max_context": 128},
        "rollout": {"groups": 3, "group_size": 2, "max_tokens": 6},
        "filter": {"max_tries": 2},
        # Adam gives the smallest gradients full steps, and those are what rounding changes most.
        "optim": {"lr": 1e-4, "minibatches": 2},
        "eval": {"every": 2, "episodes": 3},
        "checkpoint": {"every": 1, "keep": 1},
        "clone": {**CLONE, "before": True},
    }
    return {**base, **changes}


def command(name, cfg, tmp_path, *args):
    file = tmp_path / f"{name}.toml"
    file.write_text(tomli_w.dumps(to_mapping(cfg)))
    return [sys.executable, "-m", "arl_gym.cli", name, "--config", str(file), "--gpus", "2", *args]


@contextmanager
def launched(name, cfg, tmp_path, *args):
    """Start a command on two ranks, and see to it that nothing of it outlives the test."""
    environ = {**os.environ, "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(
        command(name, cfg, tmp_path, *args),
        env=environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        for pid in children(process.pid):
            os.kill(pid, signal.SIGKILL)
        process.kill()
        process.communicate()


def children(pid):
    try:
        return [int(n) for n in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except FileNotFoundError:
        return []


def wait_for(process, text):
    """Read what the process prints up to a line with the text; return the lines."""
    lines: list[str] = []
    while not lines or text not in lines[-1]:
        line = process.stdout.readline()
        assert line, f"ended without {text!r}: {lines} {process.stderr.read()}"
        lines.append(line)
    return lines


def tasks(run):
    return {
        path.name: [(t.group, t.copy, t.task_id) for t in read_trajectories(path)]
        for path in sorted((run / "trajectories").glob("*.jsonl.gz"))
    }


def metrics(run, name="metrics.jsonl"):
    return [without_timings(row) for row in read_metrics(run / name)]


def same_as(whole, run):
    """Check that two runs are one but for rounding: ranks add up gradients in another order."""
    assert tasks(run) == tasks(whole)
    assert_close(metrics(run), metrics(whole))
    assert_same_weights(run / "model", whole / "model")


def assert_close(rows, expected):
    assert len(rows) == len(expected)
    for row, other in zip(rows, expected, strict=True):
        assert row == pytest.approx(other, rel=1e-3, abs=1e-5)


def assert_same_weights(a, b):
    a, b = (load_file(folder / "model.safetensors") for folder in (a, b))
    assert a.keys() == b.keys()
    for key in a:
        assert (a[key] - b[key]).abs().max() < 1e-5, key


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A run on one rank that nothing disturbed."""
    run = tmp_path_factory.mktemp("whole") / "run"
    train(resolve(values(run)))
    return run


def test_two_ranks_train_as_one_does(whole, tmp_path):
    run = tmp_path / "run"
    with launched("train", resolve(values(run)), tmp_path) as process:
        out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    lines = out.splitlines()
    assert [line.split()[1] for line in lines if line.startswith("step") and "return" in line] == [
        "1/3",
        "2/3",
        "3/3",
    ]
    assert len(lines) == len(set(lines)), "both ranks talked"
    same_as(whole, run)
    assert_close(metrics(run, "clone.jsonl"), metrics(whole, "clone.jsonl"))
    assert_same_weights(run / "bc" / "model", whole / "bc" / "model")
    assert {p.name for p in run.iterdir()} == {p.name for p in whole.iterdir()} | {"report.html"}


def test_two_ranks_that_are_told_to_stop_go_on_as_one(whole, tmp_path):
    run = tmp_path / "run"
    with launched("train", resolve(values(run)), tmp_path) as process:
        wait_for(process, "step 1/3  return")
        ranks = children(process.pid)
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert out.splitlines()[-1] == "told to stop by SIGTERM; --resume auto goes on from there"
    assert out.count("told to stop") == 1
    assert len(ranks) == 2
    assert not any(is_running(pid) for pid in ranks)
    assert Checkpoints(run / "checkpoints", keep=1).steps()[-1] < STEPS
    train(resolve(values(run)), resume="auto")
    same_as(whole, run)


def test_one_rank_that_was_stopped_goes_on_as_two_and_a_killed_rank_ends_both(whole, tmp_path, monkeypatch):
    run = tmp_path / "run"
    cfg = resolve(values(run))
    with monkeypatch.context() as patch:
        stop_at(3, patch)
        with pytest.raises(Interrupted):
            train(cfg)
    with launched("train", cfg, tmp_path, "--resume", "auto") as process:
        lines = wait_for(process, "step 2/3  return")
        ranks = children(process.pid)
        os.kill(ranks[1], signal.SIGKILL)
        _, err = process.communicate(timeout=60)
    assert "going on after step 0" in lines[1]
    assert process.returncode == 128 + signal.SIGKILL
    assert err.splitlines()[-1] == "arl-gym: rank 1 was ended by SIGKILL"
    assert not any(is_running(pid) for pid in ranks)
    assert_close(metrics(run)[:2], metrics(whole)[:2])
    train(cfg, resume="auto")
    same_as(whole, run)


def test_two_ranks_clone_as_one_does(tmp_path):
    alone, two = (resolve(values(tmp_path / name, clone=CLONE)) for name in ("alone", "two"))
    result = clone_run(alone)
    with launched("bc", two, tmp_path) as process:
        out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    assert out.splitlines()[-2:] == [
        f"4 steps, best validation loss {result.best_val_loss:.4f} at step 4",
        f"model: {tmp_path / 'two' / 'model'}",
    ]
    assert len(out.splitlines()) == 2 + 2  # a line for each look at the validation loss
    assert_close(metrics(tmp_path / "two", "clone.jsonl"), metrics(tmp_path / "alone", "clone.jsonl"))
    assert_same_weights(tmp_path / "two" / "model", tmp_path / "alone" / "model")
