"""A sweep with the real trainer: stopped in the middle, continued, and skipped."""

import os
import signal
import threading

import pytest
import tomli_w

from arl_gym.cli import main
from arl_gym.train.metrics import read_metrics
from tests.train.test_resume import values

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

STEPS = 10
POINTS = ("method=GRPO/seed-1", "method=SAMPO/seed-1")


@pytest.fixture
def sweep(tmp_path):
    config = values("unused", steps=STEPS, eval={}, checkpoint={"every": 0})
    (tmp_path / "base.toml").write_text(tomli_w.dumps(config))
    args = ["--config", str(tmp_path / "base.toml"), "--out", str(tmp_path / "out")]
    return ["sweep", *args, "--grid", "method=GRPO,SAMPO", "--seeds", "1"]


def stop_when(log, text):
    """Send SIGTERM to this process once a file holds a text."""

    def watch():
        while not (log.is_file() and text in log.read_text()):
            threading.Event().wait(0.05)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, daemon=True).start()


def test_a_sweep_that_is_stopped_goes_on_and_then_has_nothing_to_do(sweep, tmp_path, capsys):
    first, second = (tmp_path / "out" / point for point in POINTS)
    stop_when(first.with_name("seed-1.log"), f"step 1/{STEPS}")
    assert main(sweep) == 1
    assert "2 of 2 runs are not finished" in capsys.readouterr().err
    done = len(read_metrics(first / "metrics.jsonl"))
    assert 1 <= done < STEPS
    assert not second.exists()

    assert main(sweep) == 0
    out = capsys.readouterr().out
    assert f"{POINTS[0]}: going on" in out
    assert f"{POINTS[1]}: begins" in out
    assert f"going on after step {done} of" in first.with_name("seed-1.log").read_text()
    for run in (first, second):
        steps = [row["step"] for row in read_metrics(run / "metrics.jsonl")]
        assert steps == list(range(1, STEPS + 1))
        assert (run / "model" / "model.safetensors").is_file()

    written = (second / "metrics.jsonl").stat().st_mtime_ns
    assert main(sweep) == 0
    assert "2 of 2 runs are finished already" in capsys.readouterr().out
    assert (second / "metrics.jsonl").stat().st_mtime_ns == written
