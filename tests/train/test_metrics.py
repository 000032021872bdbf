import dataclasses
import json
import math
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from arl_gym.agents.types import Trajectory, Turn
from arl_gym.errors import ArlGymError, DataError
from arl_gym.train.metrics import MetricsWriter, read_metrics, summarise, without_timings


def turn(reward=0.0, *, penalty=0.0, valid=True, finish="stop", prompt=None, completion=None):
    return Turn(
        messages=[],
        response="",
        action="",
        env_reward=reward,
        format_penalty=penalty,
        anchor="",
        format_valid=valid,
        action_valid=True,
        finish=finish,
        prompt_ids=prompt,
        completion_ids=completion,
    )


def trajectory(*turns, success=False, score=0.0, stop="terminated"):
    return Trajectory(
        env_id="ARL/Sokoban-v0",
        task_id="t",
        dataset="generated",
        split="train",
        content_hash="",
        group=0,
        copy=0,
        turns=turns,
        stop=stop,
        success=success,
        score=score,
    )


def test_rows_come_back_as_written_with_step_first(tmp_path):
    path = tmp_path / "new" / "metrics.jsonl"
    with MetricsWriter(path) as metrics:
        metrics.write(1, {"loss/kl": 0.1}, {"rollout/tries": 2})
        metrics.write(2, {"loss/kl": np.float32(0.5), "rollout/tries": np.int64(3)})
    assert path.read_text().splitlines() == [
        '{"step": 1, "loss/kl": 0.1, "rollout/tries": 2}',
        '{"step": 2, "loss/kl": 0.5, "rollout/tries": 3}',
    ]
    assert read_metrics(path)[1] == {"step": 2, "loss/kl": 0.5, "rollout/tries": 3}


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_numbers_that_are_not_finite_become_null(tmp_path, value):
    with MetricsWriter(tmp_path / "m.jsonl") as metrics:
        metrics.write(1, {"loss/kl": value})
    assert read_metrics(tmp_path / "m.jsonl") == [{"step": 1, "loss/kl": None}]


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_floats_keep_every_bit(tmp_path_factory, value):
    path = tmp_path_factory.mktemp("m") / "m.jsonl"
    with MetricsWriter(path) as metrics:
        metrics.write(1, {"x": value})
    assert read_metrics(path)[0]["x"] == value


def test_a_line_is_in_the_file_before_the_writer_is_closed(tmp_path):
    metrics = MetricsWriter(tmp_path / "m.jsonl")
    metrics.write(1, {"x": 1.0})
    assert len(read_metrics(tmp_path / "m.jsonl")) == 1
    metrics.close()
    metrics.close()


def test_resuming_drops_the_steps_that_are_run_again(tmp_path):
    path = tmp_path / "m.jsonl"
    with MetricsWriter(path) as metrics:
        for step in (1, 2, 3, 4):
            metrics.write(step, {"x": step / 2})
    with MetricsWriter(path, resume_step=2) as metrics:
        metrics.write(3, {"x": 9.0})
    assert [(row["step"], row["x"]) for row in read_metrics(path)] == [(1, 0.5), (2, 1.0), (3, 9.0)]


@pytest.mark.parametrize("resume_step", [None, 1])
def test_a_torn_last_line_is_cut_before_more_is_appended(tmp_path, resume_step):
    path = tmp_path / "m.jsonl"
    path.write_text('{"step": 1}\n{"step": 2, "los')
    assert read_metrics(path) == [{"step": 1}]
    with MetricsWriter(path, resume_step=resume_step) as metrics:
        metrics.write(2)
    assert path.read_text() == '{"step": 1}\n{"step": 2}\n'


@pytest.mark.parametrize(
    "line", ["{", "[1]", '{"x": 1}', '{"step": 1.5}', '{"step": true}', '{"step": 2, "x": "high"}', "\xff"]
)
def test_a_corrupt_line_is_named(tmp_path, line):
    path = tmp_path / "m.jsonl"
    path.write_bytes(b'{"step": 1}\n' + line.encode("latin-1") + b'\n{"step": 3}\n')
    with pytest.raises(DataError, match=r"m\.jsonl, line 2"):
        read_metrics(path)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(DataError, match=r"none\.jsonl"):
        read_metrics(tmp_path / "none.jsonl")


def test_an_unwritable_folder_is_one_clear_error(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ArlGymError, match=r"cannot write metrics to .*file/m\.jsonl: "):
        MetricsWriter(tmp_path / "file" / "m.jsonl")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full")
def test_a_full_disk_is_one_clear_error():
    with (
        MetricsWriter(Path("/dev/full")) as metrics,
        pytest.raises(ArlGymError, match="cannot write metrics to /dev/full: No space left"),
    ):
        metrics.write(1, {"x": 1.0})


def test_without_timings_keeps_what_a_seed_determines():
    row = {"step": 1, "loss/kl": 0.1, "time/step_s": 2.0, "time/rollout_s": None}
    assert without_timings(row) == {"step": 1, "loss/kl": 0.1}


def test_summary_counts_episodes_once_and_turns_once():
    long = trajectory(
        turn(1.0, prompt=[1, 2], completion=[3]),
        turn(2.0, penalty=0.1, valid=False, finish="length", prompt=[1, 2, 3, 4], completion=[3, 3, 3]),
        turn(3.0),
        success=True,
        score=1.0,
    )
    short = trajectory(turn(-2.0), score=0.5, stop="truncated")
    assert summarise([long, short]) == pytest.approx(
        {
            "rollout/return_mean": 2.0,  # (6 - 2) / 2
            "rollout/return_std": 4.0,
            "rollout/success_rate": 0.5,
            "rollout/score_mean": 0.75,
            "rollout/turns_mean": 2.0,
            "rollout/turns_to_success_mean": 3.0,
            "rollout/truncated_frac": 0.5,
            "rollout/env_error_frac": 0.0,
            "rollout/format_valid_frac": 0.75,
            "rollout/action_valid_frac": 1.0,
            "rollout/penalty_mean": 0.025,
            "rollout/repeated_frac": 0.0,
            "rollout/length_capped_frac": 0.25,
            "rollout/prompt_tokens_mean": 3.0,  # two of four turns have ids
            "rollout/completion_tokens_mean": 2.0,
        }
    )


def test_summary_tells_kinds_of_task_apart():
    won, lost = trajectory(turn(1.0), success=True), trajectory(turn(0.0))
    out = summarise([dataclasses.replace(t, task_type=k) for t, k in ((won, "a"), (lost, "a"), (won, "b"))])
    assert (out["rollout/success_rate_a"], out["rollout/episodes_a"]) == (0.5, 2)
    assert (out["rollout/success_rate_b"], out["rollout/episodes_b"]) == (1.0, 1)


def test_summary_of_nothing_is_empty():
    assert summarise([]) == {}


def test_an_episode_that_never_began_has_no_means_over_turns():
    out = summarise([trajectory(stop="env_error")])
    assert out["rollout/env_error_frac"] == 1.0
    assert out["rollout/success_rate"] == 0.0
    assert "rollout/format_valid_frac" not in out
    assert "rollout/completion_tokens_mean" not in out


def test_neither_torch_nor_matplotlib_is_imported():
    code = (
        "import sys, json, arl_gym.train.metrics, arl_gym.train.plots, arl_gym.train.report;"
        "print(json.dumps([m for m in ('torch', 'transformers', 'matplotlib') if m in sys.modules]))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == []
