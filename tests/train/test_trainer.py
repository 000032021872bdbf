import json
import os
from typing import Any, cast

import gymnasium as gym
import pytest

from arl_gym.agents.records import read_trajectories
from arl_gym.errors import ArlGymError, ConfigError
from arl_gym.train.config import load_toml
from arl_gym.train.methods import resolve
from arl_gym.train.metrics import read_metrics, without_timings
from arl_gym.train.model import load_model, save_model
from arl_gym.train.trainer import train
from tests.agents.test_tasks import Password


def values(run_dir, **changes):
    base = {
        "run_dir": str(run_dir),
        "steps": 2,
        "trajectories_every": 1,
        "env": {"prompt": "compact", "window": 0, "kwargs": {"text_format": "inner", "max_steps": 4}},
        "model": {"max_context": 64},
        "rollout": {"groups": 2, "group_size": 3, "max_tokens": 4},
        "filter": {"max_tries": 2},
        "optim": {"lr": 1e-3, "minibatches": 2},
    }
    return {**base, **changes}


def number(row, key):
    value = row[key]
    assert value is not None, key
    return value


@pytest.fixture(scope="module")
def two_runs(tmp_path_factory):
    """The same run twice, the second one from the first one's written configuration."""
    root = tmp_path_factory.mktemp("runs")
    train(resolve(values(root / "a", eval={"every": 1, "episodes": 4})))
    again = load_toml(root / "a" / "config.toml")
    train(resolve({**again, "run_dir": str(root / "b")}))
    return root / "a", root / "b"


def test_one_seed_gives_identical_metrics_and_weights(two_runs):
    a, b = ([without_timings(r) for r in read_metrics(run / "metrics.jsonl")] for run in two_runs)
    assert len(a) == 2
    assert a == b
    assert (two_runs[0] / "model" / "model.safetensors").read_bytes() == (
        two_runs[1] / "model" / "model.safetensors"
    ).read_bytes()


def test_another_seed_gives_other_metrics(two_runs, tmp_path):
    train(resolve(values(tmp_path / "c", seed=1)))
    a, c = (read_metrics(run / "metrics.jsonl")[0] for run in (two_runs[0], tmp_path / "c"))
    assert a["rollout/logprob_diff_mean"] != c["rollout/logprob_diff_mean"]


def test_sampling_and_training_log_probs_agree(two_runs):
    for row in read_metrics(two_runs[0] / "metrics.jsonl"):
        assert 0 <= number(row, "rollout/logprob_diff_max") < 1e-4


def test_every_metric_that_the_report_draws_is_there(two_runs):
    row = read_metrics(two_runs[0] / "metrics.jsonl")[-1]
    for key in (
        *("rollout/success_rate", "rollout/return_mean", "rollout/format_valid_frac", "rollout/tries"),
        *("loss/policy", "loss/kl", "loss/approx_kl", "loss/clip_frac", "rollout/entropy_mean"),
        *("optim/grad_norm", "optim/lr", "eval/success_rate"),
        *("time/rollout_s", "time/score_s", "time/update_s", "time/step_s", "time/env_us_per_turn"),
    ):
        assert key in row, key


def test_recorded_trajectories_carry_the_sampled_tokens(two_runs):
    played = read_trajectories(two_runs[0] / "trajectories" / "step-000002.jsonl.gz")
    assert len(played) == 6
    for trajectory in played:
        for turn in trajectory.turns:
            assert len(turn.completion_ids or ()) == len(turn.logprobs or ()) == turn.n_kept > 0


def test_the_trained_model_differs_from_its_start_and_reloads(two_runs):
    model = load_model(str(two_runs[0] / "model"), dtype="float32", seed=0).model
    start = load_model("tiny", dtype="float32", seed=0).model
    key = "model.layers.0.mlp.up_proj.weight"
    assert not (model.state_dict()[key] == start.state_dict()[key]).all()


def test_a_step_without_usable_groups_is_skipped_and_counted(tmp_path):
    # A prompt that leaves no room: every episode ends before its first turn, so no group has a valid member.
    folder = train(resolve(values(tmp_path / "run", model={"max_context": 8})))
    rows = read_metrics(tmp_path / "run" / "metrics.jsonl")
    assert [r["optim/skipped_batches"] for r in rows] == [1.0, 1.0]
    assert [r["rollout/groups_dropped"] for r in rows] == [4.0, 4.0]
    start = load_model("tiny", dtype="float32", seed=0).model
    end = load_model(str(folder), dtype="float32", seed=0).model
    assert all((start.state_dict()[k] == v).all() for k, v in end.state_dict().items())


def test_uniform_groups_train_without_nan(tmp_path):
    # One step an episode: every return is -0.1, every group is uniform and backfilled.
    env = {"prompt": "compact", "window": 0, "kwargs": {"text_format": "inner", "max_steps": 1}}
    train(resolve(values(tmp_path / "run", env=env, steps=1)))
    row = read_metrics(tmp_path / "run" / "metrics.jsonl")[0]
    assert row["rollout/groups_backfilled"] == 2
    assert None not in row.values()
    assert row["optim/skipped_steps"] == 0


def test_dialogues_train_on_one_row_per_episode(tmp_path):
    env = {"prompt": "compact", "window": "dialogue", "kwargs": {"text_format": "inner", "max_steps": 3}}
    train(resolve(values(tmp_path / "run", env=env, steps=1, model={"max_context": 200})))
    row = read_metrics(tmp_path / "run" / "metrics.jsonl")[0]
    assert number(row, "rollout/logprob_diff_max") < 1e-4
    assert row["rollout/turns_mean"] == pytest.approx(3, abs=1)


def test_worker_processes_change_metrics_by_rounding_only(two_runs, tmp_path):
    env = {**values("")["env"], "workers": 2}
    train(resolve(values(tmp_path / "run", env=env, eval={"every": 1, "episodes": 4})))
    a, b = (read_metrics(run / "metrics.jsonl") for run in (two_runs[0], tmp_path / "run"))
    # Not bit for bit: which requests share a batch depends on which worker is quicker.
    for x, y in zip(a, b, strict=True):
        assert without_timings(x) == pytest.approx(without_timings(y), rel=1e-3, abs=1e-5)


def test_bad_settings_are_refused_before_anything_is_written(tmp_path):
    run = tmp_path / "run"
    with pytest.raises(ConfigError, match="dual_clip_c"):
        train(resolve(values(run, loss={"dual_clip_c": 3.0})))
    with pytest.raises(ConfigError, match="temperature"):
        train(resolve(values(run, rollout={"temperature": 0.0})))
    with pytest.raises(ConfigError, match=r"no config\.json"):
        train(resolve(values(run, model={"path": str(tmp_path / "nothing")})))
    assert not run.exists()


def test_an_unknown_env_or_kwarg_is_named(tmp_path):
    with pytest.raises(ConfigError, match=r"did you mean 'ARL/Sokoban-v0'"):
        train(resolve(values(tmp_path / "a", env={"id": "ARL/Sokobann-v0"})))
    with pytest.raises(ConfigError, match="dim_room"):
        train(resolve(values(tmp_path / "b", env={"kwargs": {"dim_rom": [6, 6]}})))


def test_a_run_folder_that_cannot_be_made_is_one_clear_error(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ArlGymError, match="the run folder"):
        train(resolve(values(tmp_path / "file" / "run")))


def test_an_interrupted_run_leaves_whole_lines_and_no_model(tmp_path):
    def interrupt(step, total, row):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(resolve(values(tmp_path / "run")), progress=interrupt)
    text = (tmp_path / "run" / "metrics.jsonl").read_text()
    assert [json.loads(line)["step"] for line in text.splitlines()] == [1]
    assert not (tmp_path / "run" / "model").exists()
    assert "model" not in os.listdir(tmp_path / "run")


def test_somebody_elses_environment_trains(tmp_path):
    gym.register("Test/Password-v0", cast(Any, Password))
    env = {"id": "Test/Password-v0", "format": "none"}
    cfg = resolve(
        values(tmp_path / "run", env=env, model={"max_context": 512}, eval={"every": 1, "episodes": 2})
    )
    try:
        train(cfg)
    finally:
        del gym.registry["Test/Password-v0"]
    assert [row["rollout/turns_mean"] for row in read_metrics(tmp_path / "run" / "metrics.jsonl")] == [
        1.0,
        1.0,
    ]


def test_any_local_model_folder_trains(tmp_path):
    start = load_model("tiny", dtype="float32", seed=9)
    save_model(tmp_path / "start", start.model, start.tokenizer)
    folder = train(resolve(values(tmp_path / "run", steps=1, model={"path": str(tmp_path / "start")})))
    assert (folder / "tokenizer.json").is_file()
