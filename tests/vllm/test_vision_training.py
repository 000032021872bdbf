"""A training run on pictures with vLLM sampling them, from the first step to the exported model."""

import importlib.util

import pytest

from arl_gym.train.methods import resolve
from arl_gym.train.metrics import read_metrics
from arl_gym.train.model import load_model
from arl_gym.train.trainer import train
from tests.conftest import require
from tests.train.test_trainer import number


@pytest.mark.parametrize("window", [1, "dialogue"])
def test_three_sampo_steps_on_pictures_sample_with_the_trained_weights(tmp_path, window):
    require(importlib.util.find_spec("torchvision") is not None, "torchvision is not installed")
    board = {"obs_mode": "image", "tile_size": 16, "dim_room": [6, 6], "max_steps": 3}
    cfg = resolve(
        {
            "run_dir": str(tmp_path / "run"),
            "steps": 3,
            "env": {"prompt": "compact", "window": window, "kwargs": board},
            "model": {"path": "tiny-vl", "max_context": 256},
            "rollout": {"groups": 2, "group_size": 3, "max_tokens": 6, "backend": "vllm"},
            "filter": {"enable": False},  # all fail alike; what they learn from is the penalty for it
            "optim": {"lr": 1e-3, "minibatches": 2},
            "vllm": {"kwargs": {"block_size": 32}},
        }
    )
    start = load_model("tiny-vl", dtype="float32", seed=cfg.seed).model
    train(cfg)
    rows = read_metrics(tmp_path / "run" / "metrics.jsonl")
    assert [row["step"] for row in rows] == [1, 2, 3]
    for row in rows:
        assert 0 < number(row, "rollout/logprob_diff_max") < 1e-5
        assert 0 < number(row, "sync/logprob_diff_max") < 1e-5
        assert number(row, "optim/grad_norm") > 1e-3
    trained = load_model(str(tmp_path / "run" / "model"), dtype="float32", seed=0).model
    for name in ("visual.patch_embed.proj", "language_model.embed_tokens"):
        weight = f"model.{name}.weight"
        assert (
            float((trained.get_parameter(weight) - start.get_parameter(weight)).detach().abs().max()) > 1e-4
        )
