"""`benchmarks/gpu.py`: its arithmetic, and that it runs on a CPU."""

import json

import pytest
import torch

from arl_gym.train.config import ModelConfig
from arl_gym.train.memory import KNOWN, ModelShape, shape_of
from benchmarks import gpu

SMALL = ModelShape(hidden=2, layers=1, intermediate=3, heads=1, kv_heads=1, head_dim=2, vocab=5, tied=True)


def row(**changes):
    values = {
        "rollout/turns_mean": 0.5,
        "rollout/prompt_tokens_mean": 1.0,
        "rollout/completion_tokens_mean": 2.0,
        "optim/tokens": 2.0,
        "time/generate_s": 4.0,
        "time/update_s": 2.0,
        "time/step_s": 7.0,
    }
    return values | changes


def test_measures_are_those_worked_out_by_hand():
    # Two episodes of half a turn: one row of 3 tokens, 2 of them scored. Its work is 876 operations
    # (see test_gpu.py): in 2 s, at 1000 a second, a use of 0.438.
    found = gpu.measures([row()], SMALL, episodes=2, peak=1000.0)
    assert found["rollout_tokens_per_s"] == 2 / 4
    assert found["training_tokens_per_s"] == 3 / 2
    assert found["mfu"] == pytest.approx(0.438)
    assert (found["step_s"], found["row_tokens"]) == (7.0, 3.0)
    assert found["sync_s"] is found["update_gib"] is None


def test_times_are_medians_and_memory_is_the_highest():
    rows = [
        row(**{"sync/seconds": s, "memory/update_gib": g, "time/step_s": s})
        for s, g in ((1.0, 5.0), (2.0, 7.0), (9.0, 6.0))
    ]
    found = gpu.measures(rows, SMALL, episodes=2, peak=None)
    assert (found["sync_s"], found["step_s"], found["update_gib"]) == (2.0, 2.0, 7.0)
    assert found["mfu"] is None


def test_a_random_model_has_the_shape_it_was_made_of(tmp_path):
    shape = ModelShape(
        hidden=16, layers=2, intermediate=24, heads=2, kv_heads=1, head_dim=8, vocab=1000, tied=False
    )
    gpu.write_random_model(tmp_path / "model", shape, torch.float32)
    assert shape_of(ModelConfig(path=str(tmp_path / "model"))) == shape


def test_it_runs_on_a_cpu_with_more_ids_than_the_tokenizer_has(monkeypatch, capsys):
    shape = ModelShape(
        hidden=16, layers=1, intermediate=24, heads=2, kv_heads=1, head_dim=8, vocab=1000, tied=True
    )
    monkeypatch.setitem(KNOWN, "Small", shape)
    options = ["--model", "Small", "--steps", "1", "--groups", "1", "--group-size", "2", "--turns", "1"]
    gpu.main([*options, "--max-tokens", "4"])
    printed = capsys.readouterr().out
    assert "| rollout_tokens_per_s |" in printed
    found = json.loads(printed.splitlines()[-1])
    assert (found["model"], found["device"], found["ranks"]) == ("Small", "cpu", 1)
    assert found["training_tokens_per_s"] > 0
