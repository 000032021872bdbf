import pytest
import torch

from arl_gym.train.gpu import peak_flops, peak_memory, training_flops
from arl_gym.train.memory import KNOWN, ModelShape

SMALL = ModelShape(hidden=2, layers=1, intermediate=3, heads=1, kv_heads=1, head_dim=2, vocab=5, tied=True)


def test_flops_are_those_counted_by_hand():
    # Weights of the layer: 4 of 2 x 2, 3 of 2 x 3 = 34. Forward, a row of 3 tokens, 2 of them scored:
    # layer 2 x 34 x 3 = 204, output 2 x (5 x 2) x 2 = 40, attention 1 + 2 + 3 = 6 pairs x 4 x 2 = 48.
    assert training_flops(SMALL, [3], scored=2) == 3 * (204 + 40 + 48)
    # A row of one token more: 2 x 34 + 1 pair x 4 x 2 = 76.
    assert training_flops(SMALL, [3, 1], scored=2) == 3 * (204 + 40 + 48 + 76)


def test_a_real_shape_costs_about_six_operations_a_weight_and_token():
    shape = KNOWN["Qwen3-0.6B"]
    # Short rows: attention is next to nothing. The norms, 0.01% of the weights, multiply but are not counted.
    flops = training_flops(shape, [8] * 100, scored=800)
    assert flops == pytest.approx(6 * shape.parameters * 800, rel=2e-3)


def test_the_name_of_a_gpu_says_what_it_could_do():
    assert peak_flops("NVIDIA H200") == 989e12
    assert peak_flops("NVIDIA H100 PCIe") == 756e12
    assert peak_flops("NVIDIA H100 80GB HBM3") == 989e12
    assert peak_flops("NVIDIA GeForce GT 1030") is None


def test_a_cpu_has_no_memory_metric(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    row: dict[str, float] = {}
    with peak_memory("update", row):
        pass
    assert row == {}


def test_each_phase_has_its_own_peak(monkeypatch):
    peak = [5 << 30]
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "reset_peak_memory_stats", lambda: peak.__setitem__(0, 1 << 30))
    monkeypatch.setattr(torch.cuda, "max_memory_allocated", lambda: peak[0])
    row: dict[str, float] = {}
    with peak_memory("rollout", row):
        peak[0] = 3 << 30
    with pytest.raises(RuntimeError, match="boom"), peak_memory("update", row):
        raise RuntimeError("boom")
    assert row == {"memory/rollout_gib": 3.0, "memory/update_gib": 1.0}
