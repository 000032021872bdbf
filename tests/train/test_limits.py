"""Limits of a run: how many groups the filter has played, and when failing environments end it."""

import json
from typing import Any, cast

import gymnasium as gym
import pytest

from arl_gym.train.checkpoint import Checkpoints
from arl_gym.train.methods import resolve
from arl_gym.train.metrics import read_metrics
from arl_gym.train.trainer import EnvironmentFailure, train
from tests.train.hanging_env import Hanging
from tests.train.test_trainer import number, values


def test_the_filter_plays_more_only_after_its_cold_start(tmp_path):
    # One step an episode: every return is -0.1, so that no group carries a signal and every try is used.
    env = {"prompt": "compact", "window": 0, "kwargs": {"text_format": "inner", "max_steps": 1}}
    filter = {"enable": True, "cold_start_steps": 1, "oversample": 2.0, "max_tries": 3}
    train(resolve(values(tmp_path / "run", env=env, filter=filter)))
    first, second = read_metrics(tmp_path / "run" / "metrics.jsonl")
    assert [first[f"rollout/{key}"] for key in ("tries", "groups_played", "groups_backfilled")] == [1, 2, 0]
    # 3 tries of 2 * 2.0 groups; 2 of the last try fill up.
    assert [second[f"rollout/{key}"] for key in ("tries", "groups_played", "groups_backfilled")] == [3, 12, 2]
    for row in (first, second):
        # What is trained on stays 2 groups of 3 turns of at most 4 tokens.
        assert 0 < number(row, "optim/tokens") <= 24


@pytest.fixture(autouse=True)
def registered():
    gym.register("Test/Hanging-v0", cast(Any, Hanging))
    yield
    del gym.registry["Test/Hanging-v0"]


HANGS = {"id": "Test/Hanging-v0", "format": "none", "workers": 1, "step_timeout_s": 0.5}


def test_a_run_ends_when_its_environments_hang_and_keeps_what_it_has(tmp_path):
    run = tmp_path / "run"
    cfg = resolve(values(run, steps=4, env=HANGS, filter={"enable": False}, checkpoint={"every": 0}))
    with pytest.raises(EnvironmentFailure, match=r"6 of 6 episodes .* no answer from env \d within 0\.5 s"):
        train(cfg)
    assert [row["step"] for row in read_metrics(run / "metrics.jsonl")] == [1, 2]
    assert [row["rollout/env_error_frac"] for row in read_metrics(run / "metrics.jsonl")] == [0, 0]
    assert Checkpoints(run / "checkpoints", keep=1).steps() == [2]


def test_a_limit_of_zero_lets_hanging_environments_go_on(tmp_path):
    run = tmp_path / "run"
    changes = {"filter": {"enable": False}, "monitor": {"max_env_errors": 0.0}}
    train(resolve(values(run, steps=3, env=HANGS, eval={"every": 3, "episodes": 13}, **changes)))
    rows = read_metrics(run / "metrics.jsonl")
    assert [row["rollout/played_return_mean"] for row in rows[:2]] == [0.5, 0.5]
    assert rows[2]["optim/skipped_batches"] == 1  # none of its episodes came to an end
    # The limit on steps holds in evaluation too: 13 episodes, of which the last one's environment hangs.
    assert rows[2]["eval/return_mean"] == pytest.approx(6 / 13)
    assert json.loads((run / "finished.json").read_text())["seconds"] < 60  # the limit where none is set
