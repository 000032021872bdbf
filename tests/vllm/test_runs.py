"""Whole runs that sample with vLLM."""

import dataclasses
import os
import subprocess
import sys

import pytest
import tomli_w

from arl_gym.agents.records import read_trajectories
from arl_gym.assets import asset
from arl_gym.cli import main
from arl_gym.errors import PolicyError
from arl_gym.train.checkpoint import Checkpoints
from arl_gym.train.config import load_toml, to_mapping
from arl_gym.train.methods import resolve
from arl_gym.train.metrics import read_metrics, without_timings
from arl_gym.train.model import save_model
from arl_gym.train.policies.vllm import VLLMPolicy
from arl_gym.train.trainer import train
from tests.train.test_trainer import number
from tests.vllm.conftest import small_model

pytestmark = pytest.mark.timeout(300)

STEPS = 3


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("start") / "model"
    loaded = small_model(seed=2)
    save_model(folder, loaded.model, loaded.tokenizer)
    return folder


def config(run_dir, model, **changes):
    """The demo's preset, with fewer and shorter episodes, and a model that vLLM's CPU build takes."""
    preset = load_toml(asset("presets/sokoban-tiny.toml"))
    base = {
        "run_dir": str(run_dir),
        "steps": STEPS,
        "env": {"kwargs": {"text_format": "inner", "max_steps": 4}},
        "model": {"path": str(model), "max_context": 128},
        "rollout": {"groups": 4, "group_size": 3, "max_tokens": 6, "backend": "vllm"},
        "vllm": {"kwargs": {"block_size": 32}},
        "filter": {"max_tries": 2, "oversample": 1.0},
        "optim": {"lr": 1e-3, "minibatches": 2},
        "eval": {"every": 2, "episodes": 4},
        "checkpoint": {"every": 0},
    }
    for name, value in {**base, **changes}.items():
        preset[name] = preset.get(name, {}) | value if isinstance(value, dict) else value
    return resolve(preset)


def rows(run):
    """The metrics of a run without what depends on the machine or on what the cache still held."""
    moving = ("sync/", "rollout/cached_tokens")
    kept = [without_timings(row) for row in read_metrics(run / "metrics.jsonl")]
    return [{k: v for k, v in row.items() if not k.startswith(moving)} for row in kept]


@pytest.fixture(scope="module")
def whole(llm, model, tmp_path_factory):
    run = tmp_path_factory.mktemp("whole") / "run"
    train(config(run, model))
    return run


def check_metrics(run):
    found = read_metrics(run / "metrics.jsonl")
    assert [row["step"] for row in found] == list(range(1, STEPS + 1))
    for row in found:
        assert number(row, "rollout/logprob_diff_max") < 1e-5
        assert number(row, "sync/logprob_diff_max") < 1e-5
        assert number(row, "sync/seconds") > 0
        prompt = number(row, "rollout/prompt_tokens")
        assert prompt > number(row, "rollout/cached_tokens") >= 0
        # Up to 2 tries of 4 groups of 3 episodes of 4 turns.
        assert 4 * 3 * 4 * 10 < prompt < 2 * 4 * 3 * 4 * 128


def test_sampling_and_training_agree_in_every_step(whole):
    check_metrics(whole)
    assert [row["step"] for row in read_metrics(whole / "metrics.jsonl") if "eval/success_rate" in row] == [
        2,
        3,
    ]


def test_an_engine_that_fails_in_a_rollout_leaves_a_checkpoint_to_go_on_from(
    whole, model, tmp_path, monkeypatch
):
    cfg = config(tmp_path / "run", model)
    original = VLLMPolicy.poll
    answered: list[None] = []

    def poll(self):
        answered.append(None)
        if len(answered) == 30:  # within the third step
            monkeypatch.setattr(type(self.llm.llm_engine), "step", broken)
        return original(self)

    def broken(self):
        raise RuntimeError("CUDA error: an illegal memory access was encountered")

    with monkeypatch.context() as patch:
        patch.setattr(VLLMPolicy, "poll", poll)
        with pytest.raises(PolicyError, match="the vLLM engine could not sample: RuntimeError: CUDA error"):
            train(cfg)
    monkeypatch.undo()
    done = len(read_metrics(tmp_path / "run" / "metrics.jsonl"))
    assert 0 < done < STEPS
    assert Checkpoints(tmp_path / "run" / "checkpoints", keep=1).steps() == [done]
    train(cfg, resume="auto")
    assert rows(tmp_path / "run") == rows(whole)


@pytest.mark.parametrize(("ranks", "workers"), [(1, 0), (2, 2)], ids=["each", "together"])
def test_two_ranks_have_an_engine_each_or_together(model, tmp_path, ranks, workers):
    cfg = config(tmp_path / "run", model, optim={"lr": 1e-3, "zero_stage": 3})
    vllm = dataclasses.replace(cfg.vllm, tensor_parallel=ranks)
    cfg = dataclasses.replace(cfg, vllm=vllm, env=dataclasses.replace(cfg.env, workers=workers))
    (tmp_path / "cfg.toml").write_text(tomli_w.dumps(to_mapping(cfg)))
    command = [sys.executable, "-m", "arl_gym.cli", "train", "--config", str(tmp_path / "cfg.toml")]
    done = subprocess.run(
        [*command, "--gpus", "2"],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=280,
    )
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    check_metrics(tmp_path / "run")


def test_greedy_evaluation_equals_that_of_transformers(model, tmp_path):
    options = ["--episodes", "4", "--max-model-len", "512", "--max-tokens", "4", "--env", "max_steps=2"]
    found = []
    for backend in ("vllm", "hf"):
        file = tmp_path / f"{backend}.jsonl"
        args = ["eval", "ARL/Sokoban-v0", "--backend", backend, "--model", str(model), "--resume", str(file)]
        assert main([*args, *options, "--prompt", "compact", "--window", "0"]) == 0
        played = sorted(read_trajectories(file), key=lambda t: t.task_id)
        found.append([turn.completion_ids for trajectory in played for turn in trajectory.turns])
    assert found[0] == found[1]
    assert [len(ids or ()) for ids in found[0]] == [4] * 8
