"""Runs that are stopped, killed or moved to another number of ranks, and go on."""

import os
import shutil
import signal
import subprocess
import sys
from typing import Any, cast

import gymnasium as gym
import pytest
import tomli_w

from arl_gym.agents.records import read_trajectories
from arl_gym.core import Unicode
from arl_gym.errors import ConfigError, DataError, Interrupted
from arl_gym.train.checkpoint import Checkpoints
from arl_gym.train.config import to_mapping
from arl_gym.train.envs import TrainingEnv
from arl_gym.train.methods import resolve
from arl_gym.train.metrics import read_metrics, without_timings
from arl_gym.train.policies.hf import HFPolicy
from arl_gym.train.trainer import EnvironmentFailure, export, train

STEPS = 4


def values(run_dir, **changes):
    base = {
        "run_dir": str(run_dir),
        "steps": STEPS,
        "trajectories_every": 1,
        "env": {"prompt": "compact", "window": 0, "kwargs": {"text_format": "inner", "max_steps": 4}},
        "model": {"max_context": 64},
        "rollout": {"groups": 2, "group_size": 3, "max_tokens": 4},
        "filter": {"max_tries": 2},
        "optim": {"lr": 1e-3, "minibatches": 2, "warmup_steps": 3, "lr_final": 0.1},
        "eval": {"every": 2, "episodes": 4},
        "checkpoint": {"every": 1, "keep": 1},
    }
    return {**base, **changes}


def metrics(run):
    return [without_timings(row) for row in read_metrics(run / "metrics.jsonl")]


def weights(run):
    return (run / "model" / "model.safetensors").read_bytes()


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A run that nothing disturbed."""
    run = tmp_path_factory.mktemp("whole") / "run"
    train(resolve(values(run)))
    return run


def same_as(whole, run):
    assert metrics(run) == metrics(whole)
    assert weights(run) == weights(whole)
    names = [sorted(p.name for p in (r / "trajectories").iterdir()) for r in (run, whole)]
    assert names[0] == names[1]


def stop_at(poll, monkeypatch):
    """Send SIGTERM while the policy answers for the `poll`-th time; returns the counter."""
    polls: list[None] = []
    original = HFPolicy.poll

    def poll_and_stop(self):
        polls.append(None)
        if len(polls) == poll:
            os.kill(os.getpid(), signal.SIGTERM)
        return original(self)

    monkeypatch.setattr(HFPolicy, "poll", poll_and_stop)
    return polls


@pytest.fixture(scope="module")
def polls_of_whole(tmp_path_factory):
    """How often the policy answers in the undisturbed run, and after which of them a step's training ends."""
    with pytest.MonkeyPatch.context() as patch:
        polls = stop_at(10**9, patch)
        ends = []
        train(
            resolve(values(tmp_path_factory.mktemp("counted") / "run")),
            progress=lambda step, total, row: ends.append(len(polls)),
        )
    return ends


@pytest.mark.parametrize(
    "where", ["first rollout", "third rollout", "evaluation of step 2", "last evaluation"]
)
def test_told_to_stop_anywhere_it_saves_and_goes_on_as_if_nothing_had_been(
    where, whole, polls_of_whole, tmp_path, monkeypatch
):
    ends = polls_of_whole
    poll = {
        "first rollout": 2,
        "third rollout": ends[1] + 2,
        "evaluation of step 2": ends[1] - 1,
        "last evaluation": ends[3] - 1,
    }[where]
    cfg = resolve(values(tmp_path / "run", checkpoint={"every": 0}))
    stop_at(poll, monkeypatch)
    with pytest.raises(Interrupted, match="told to stop by SIGTERM"):
        train(cfg)
    assert not (tmp_path / "run" / "model").exists()
    said: list[str] = []
    train(cfg, resume="auto", say=said.append)
    step = {"first rollout": 0, "third rollout": 2, "evaluation of step 2": 2, "last evaluation": 4}[where]
    assert said[0] == f"going on after step {step} of {tmp_path / 'run'}"
    same_as(whole, tmp_path / "run")


@pytest.mark.slow
def test_a_killed_run_loses_only_the_steps_after_its_last_checkpoint(whole, tmp_path):
    run = tmp_path / "run"
    cfg = resolve(values(run, checkpoint={"every": 2, "keep": 1}))
    (tmp_path / "cfg.toml").write_text(tomli_w.dumps(to_mapping(cfg)))
    command = [sys.executable, "-m", "arl_gym.cli", "train", "--config", str(tmp_path / "cfg.toml")]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)
    try:
        assert process.stdout is not None
        while "step 3/" not in (line := process.stdout.readline()):
            assert line, "ended before its third step"
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
    assert Checkpoints(run / "checkpoints", keep=1).steps()[-1] == 2
    train(cfg, resume="auto")
    same_as(whole, run)


@pytest.mark.slow
def test_the_command_ends_cleanly_when_it_is_told_to_stop(tmp_path):
    run = tmp_path / "run"
    cfg = resolve(values(run, steps=1000))
    (tmp_path / "cfg.toml").write_text(tomli_w.dumps(to_mapping(cfg)))
    command = [sys.executable, "-m", "arl_gym.cli", "train", "--config", str(tmp_path / "cfg.toml")]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert "step 1/1000" in process.stdout.readline()
    process.send_signal(signal.SIGUSR1)
    rest, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    assert rest.splitlines()[-1] == "told to stop by SIGUSR1; --resume auto goes on from there"
    done = Checkpoints(run / "checkpoints", keep=1).steps()[-1]
    assert [row["step"] for row in metrics(run)] == list(range(1, done + 1))


def test_a_finished_run_has_nothing_left_and_may_be_lengthened(whole, tmp_path):
    run = tmp_path / "run"
    shutil.copytree(whole, run)
    train(resolve(values(run)), resume="auto")
    same_as(whole, run)
    train(resolve(values(run, steps=STEPS + 1)), resume="auto")
    assert [row["step"] for row in metrics(run)] == [1, 2, 3, 4, 5]


def test_auto_begins_where_there_is_nothing_to_go_on_from(whole, tmp_path):
    train(resolve(values(tmp_path / "run")), resume="auto")
    same_as(whole, tmp_path / "run")


def test_a_damaged_checkpoint_stops_the_run_and_an_older_one_is_used_when_asked_for(whole, tmp_path):
    run = tmp_path / "run"
    cfg = resolve(values(run, checkpoint={"every": 1, "keep": 3}))
    train(cfg)
    newest = run / "checkpoints" / "step-000004"
    for path in newest.glob("*.safetensors"):
        path.write_bytes(path.read_bytes()[:-8])
    with pytest.raises(DataError, match=r"step-000004 is damaged: .*go on from an older one with --resume 3"):
        train(cfg, resume="auto")
    train(cfg, resume="3")
    same_as(whole, run)


def test_a_run_that_went_back_goes_on_from_its_new_course(whole, tmp_path, monkeypatch):
    run = tmp_path / "run"
    cfg = resolve(values(run, checkpoint={"every": 1, "keep": 4}))
    train(cfg)
    with monkeypatch.context() as patch:
        stop_at(2, patch)
        with pytest.raises(Interrupted):
            train(cfg, resume="2")
    # Steps 3 and 4 were given up, or "auto" would go on from there.
    assert Checkpoints(run / "checkpoints", keep=4).steps() == [1, 2]
    train(cfg, resume="auto")
    same_as(whole, run)


def test_a_run_does_not_go_on_with_other_tasks(tmp_path, monkeypatch):
    cfg = resolve(values(tmp_path / "run", steps=1, eval={}))
    train(cfg)
    monkeypatch.setattr(
        TrainingEnv, "identity", lambda self: {"env_id": "ARL/Sokoban-v0", "n_tasks": 7, "content": "x"}
    )
    with pytest.raises(ConfigError, match=r"other tasks of ARL/Sokoban-v0: n_tasks was \d+, is 7"):
        train(cfg, resume="auto")


def test_a_run_does_not_go_on_with_another_tokenizer(tmp_path):
    from arl_gym.train.model import load_model, save_model

    start = tmp_path / "start"
    tiny = load_model("tiny", dtype="float32", seed=9)
    save_model(start, tiny.model, tiny.tokenizer)
    cfg = resolve(values(tmp_path / "run", steps=1, eval={}, model={"path": str(start), "max_context": 64}))
    train(cfg)
    template = start / "chat_template.jinja"
    template.write_text(template.read_text().replace("<|im_start|>", "<|im_start|> "))
    with pytest.raises(ConfigError, match="made with another tokenizer"):
        train(cfg, resume="auto")


def test_the_best_checkpoint_can_be_exported(whole, tmp_path):
    assert export(whole, "auto", tmp_path / "last") == STEPS
    assert (tmp_path / "last" / "model.safetensors").read_bytes() == weights(whole)
    best = max((r for r in metrics(whole) if "eval/success_rate" in r), key=lambda r: r["eval/success_rate"])
    assert export(whole, "best", tmp_path / "best") == best["step"]


class Broken(gym.Env[str, str]):
    """An environment that fails in every step after a while."""

    observation_space = action_space = Unicode()
    steps = 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return "go", {"task_id": str(seed), "success": False}

    def step(self, action):
        Broken.steps += 1
        if Broken.steps > 12:
            raise RuntimeError("the simulator burnt down")
        return "", float(Broken.steps % 2), True, False, {"task_id": "x", "success": False}


def test_environments_that_fail_too_often_stop_the_run_with_their_first_error(tmp_path):
    gym.register("Test/Broken-v0", cast(Any, Broken))
    env = {"id": "Test/Broken-v0", "format": "none"}
    cfg = resolve(
        values(tmp_path / "run", env=env, eval={}, checkpoint={"every": 0}, filter={"enable": False})
    )
    try:
        with pytest.raises(EnvironmentFailure, match=r"6 of 6 episodes .*max_env_errors=0.2.* burnt down"):
            train(cfg)
    finally:
        del gym.registry["Test/Broken-v0"]
    assert [row["step"] for row in metrics(tmp_path / "run")] == [1, 2]
    assert Checkpoints(tmp_path / "run" / "checkpoints", keep=1).steps() == [2]
    assert len(read_trajectories(tmp_path / "run" / "trajectories" / "step-000002.jsonl.gz")) == 6


def test_a_run_that_begins_with_cloning_clones_once(tmp_path, monkeypatch):
    clone = {"before": True, "episodes": 6, "val_episodes": 3, "steps": 2, "eval_every": 1, "thoughts": False}
    run = tmp_path / "run"
    env = {"prompt": "compact", "window": 0, "kwargs": {"text_format": "inner"}}
    settings = values(run, steps=1, env=env, clone=clone, eval={}, model={"max_context": 128})
    said: list[str] = []
    stop_at(2, monkeypatch)
    with pytest.raises(Interrupted):
        train(resolve(settings), say=said.append)
    assert said == [f"cloning into {run / 'bc'}"]
    cloned = (run / "bc" / "model" / "model.safetensors").read_bytes()
    train(resolve(settings), resume="auto", say=said.append)
    assert said[1] == f"the cloned start in {run / 'bc'} is there already"
    assert (run / "bc" / "model" / "model.safetensors").read_bytes() == cloned
    assert [row["step"] for row in metrics(run)] == [1]
    assert (run / "clone.jsonl").is_file()


def test_an_adapter_is_exported_into_the_clone_that_it_was_trained_on(tmp_path):
    clone = {"before": True, "episodes": 6, "val_episodes": 3, "steps": 2, "eval_every": 1, "thoughts": False}
    run = tmp_path / "run"
    env = {"prompt": "compact", "window": 0, "kwargs": {"text_format": "inner"}}
    model = {"max_context": 128, "lora_rank": 2}
    train(resolve(values(run, steps=1, env=env, clone=clone, eval={}, model=model)))
    export(run, "auto", tmp_path / "out")
    assert (tmp_path / "out" / "model.safetensors").read_bytes() == weights(run)


def test_a_run_without_a_checkpoint_says_that_it_begins_anew(tmp_path):
    cfg = resolve(values(tmp_path / "run", steps=1, eval={}, checkpoint={"every": 0}))
    model = train(cfg)
    with pytest.raises(ConfigError, match="is finished and kept no checkpoint"):
        train(cfg, resume="auto")
    assert (model / "model.safetensors").is_file()
    (tmp_path / "run" / "finished.json").unlink()  # as if it had been killed
    said: list[str] = []
    train(cfg, resume="auto", say=said.append)
    assert said[0] == f"{tmp_path / 'run'} has no checkpoint: beginning anew"
