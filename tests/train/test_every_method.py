"""Every method takes training steps on groups that differ, in every environment that it goes with."""

from functools import partial
from typing import Any

import pytest

from arl_gym.agents.policies import respond_in
from arl_gym.train import envs as train_envs
from arl_gym.train.methods import METHODS, resolve
from arl_gym.train.metrics import read_metrics
from arl_gym.train.policies.hf import HFPolicy
from arl_gym.train.trainer import train

GROUP_SIZE = 3
ENVS: dict[str, dict[str, Any]] = {
    "ARL/Sokoban-v0": {
        "prompt": "compact",
        "window": 0,
        "kwargs": {"text_format": "inner", "dim_room": [5, 5], "num_boxes": 1, "max_steps": 8},
    },
    "ARL/ALFWorld-v0": {
        "prompt": "compact",
        "window": 1,
        "kwargs": {
            "task_types": ["pick_and_place_simple"],
            "rooms": ["bathroom"],
            "num_receptacles": 3,
            "num_objects": 2,
            "max_steps": 8,
        },
    },
    "ARL/WebShop-v0": {
        "prompt": "compact",
        "window": 0,
        "kwargs": {"catalogue": "mini", "num_products": 200, "results_per_page": 4, "max_steps": 8},
    },
    "ARL/TIRMath-v0": {
        "prompt": "compact",
        "kwargs": {"families": ["tiny_mod", "tiny_gcd"], "levels": [1], "max_steps": 3, "sandbox": "unsafe"},
    },
}


@pytest.fixture(autouse=True)
def one_expert_a_group(monkeypatch):
    """Let the expert speak for the first copy of each task: a random model's episodes all fail alike."""
    original = HFPolicy._decode

    def decode(self, rows):
        experts = [r for r in rows if r.request.key % GROUP_SIZE == 0]
        for row in experts:
            info = row.request.info
            row.ids += self.codec.encode_response(self.answer("", info["expert_action"]))
            row.logprobs += [-1.0] * len(row.ids)
        if others := [r for r in rows if r not in experts]:
            original(self, others)

    monkeypatch.setattr(HFPolicy, "_decode", decode)
    monkeypatch.setattr(train_envs, "make_vec", partial(train_envs.make_vec, expert=True))


def first_row(run_dir, monkeypatch, env_id, **changes):
    """Train one step on two groups of which one copy each succeeds, and return its metrics."""
    monkeypatch.setattr(HFPolicy, "answer", staticmethod(respond_in("default", env_id)), raising=False)
    base = {
        "run_dir": str(run_dir),
        "steps": 1,
        "trajectories_every": 0,
        "env": {"id": env_id, **ENVS[env_id]},
        "model": {"max_context": 512},
        "rollout": {"groups": 2, "group_size": GROUP_SIZE, "max_tokens": 4},
        "optim": {"lr": 1e-3, "minibatches": 2},
    }
    train(resolve({**base, **changes}))
    (row,) = read_metrics(run_dir / "metrics.jsonl")
    return row


def check(row):
    """Check that a step was taken on two groups that carry a signal, and that all its numbers are finite."""
    assert row["rollout/groups_signal"] == 2
    assert row["rollout/tries"] == 1
    assert row["optim/skipped_batches"] == row["optim/skipped_steps"] == 0
    assert None not in row.values()  # what is not finite is written as None
    assert row["optim/grad_norm"] > 1e-3


@pytest.mark.parametrize("variant", ["paper", "released"])
@pytest.mark.parametrize("method", METHODS)
def test_every_method_learns_from_sokoban(tmp_path, monkeypatch, method, variant):
    row = first_row(tmp_path / "run", monkeypatch, "ARL/Sokoban-v0", method=method, variant=variant)
    check(row)


@pytest.mark.parametrize("env_id", ["ARL/ALFWorld-v0", "ARL/WebShop-v0"])
@pytest.mark.parametrize(
    ("method", "variant"),
    [("SAMPO", "paper"), ("EMPG", "released"), ("SAPO_SM", "paper"), ("CISPO_SM", "released")],
)
def test_methods_learn_from_other_environments(tmp_path, monkeypatch, env_id, method, variant):
    check(first_row(tmp_path / "run", monkeypatch, env_id, method=method, variant=variant))


@pytest.mark.parametrize(
    ("method", "changes"),
    [
        ("GRPO", {"variant": "released"}),
        ("GSPO", {"loss": {"ratio_level": "trajectory"}}),
        ("SAPO_SM", {"loss": {"sequence": "trajectory"}}),
        ("CISPO_SM", {"variant": "released"}),
        ("EMPG", {}),
        ("DAPO_GRPO", {"filter": {"mask_invalid": True}}),
    ],
)
def test_methods_learn_from_dialogues_in_one_row(tmp_path, monkeypatch, method, changes):
    check(first_row(tmp_path / "run", monkeypatch, "ARL/TIRMath-v0", method=method, **changes))
