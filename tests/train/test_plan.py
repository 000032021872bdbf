import pytest

from arl_gym.train.methods import resolve
from arl_gym.train.plan import plan

WINDOWED = {
    "env": {"kwargs": {"max_steps": 15}},
    "rollout": {"groups": 4, "group_size": 2, "max_tokens": 32},
    "filter": {"oversample": 2.0, "max_tries": 3},
    "model": {"max_context": 300},
    "optim": {"minibatch_rows": 50},
}


def section(title, *, gpus=0, gpu_gb=80.0, **values):
    """Return the lines of the section whose title begins so."""
    lines = plan(resolve(values), gpus=gpus, gpu_gb=gpu_gb)
    start = next(i for i, line in enumerate(lines) if line.startswith(f"== {title}"))
    rest = lines[start + 1 :]
    return rest[: rest.index("")] if "" in rest else rest


def test_a_step_of_windowed_prompts_in_numbers():
    assert section("a training step", **WINDOWED) == [
        "a try plays 8 groups x 2 = 16 episodes; a step trains on 4 groups",
        "tries: 1 to 3 a step; 200 steps",
        # 4 groups x 2 episodes x 15 turns
        "rows: one for every turn, 120 a step at most",
        # 16 episodes x 15 turns x 32 tokens
        "tokens: 300 a row at most, 32 a response, 7,680 sampled a try",
        # 120 / 50, rounded up
        "optimiser steps: rows / 50, about, 3 a step at most",
    ]


def test_a_dialogue_is_one_row_an_episode():
    env = {"id": "ARL/TIRMath-v0", "kwargs": {"max_steps": 5}}
    lines = section(
        "a training step", **{**WINDOWED, "method": "GSPO", "env": env, "filter": {"enable": False}}
    )
    assert lines[:3] == [
        "a try plays 4 groups x 2 = 8 episodes; a step trains on 4 groups",
        "tries: 1 a step; 200 steps",
        "rows: one for every episode, 8 a step at most",
    ]


def test_an_environments_own_limit_is_not_guessed():
    lines = section("a training step")
    assert "rows: one for every turn" in lines
    assert "optimiser steps: 1 a step" in lines


GPU = {"model": {"path": "Qwen/Qwen3-8B", "dtype": "bfloat16", "gradient_checkpointing": True}}


def test_a_run_that_does_not_fit_is_told_what_helps():
    # 8.19e9 parameters x (2 weights + 4 copy + 8 Adam + 4 gradients + 2 reference) = 152.6 GiB
    *_, verdict = section("memory of each GPU", gpus=1, **GPU)
    assert "of 80 GiB: DOES NOT FIT: more GPUs" in verdict
    *_, verdict = section("memory of each GPU", gpus=4, gpu_gb=141, **GPU)
    assert verdict.endswith("of 141 GiB: fits")


def test_what_is_offloaded_is_listed_apart():
    lines = section("memory of each GPU", gpus=4, optim={"offload_reference": True}, **GPU)
    assert any(line.startswith("reference model (on the host)") for line in lines)
    together = [i for i, line in enumerate(lines) if line.startswith("at most at once")]
    assert lines.index(next(line for line in lines if "on the host" in line)) > together[0]


def test_on_a_cpu_there_is_no_verdict():
    assert not any("fits" in line for line in section("memory on the CPU"))


def test_a_model_of_unknown_size_is_said_to_be_unknown():
    (line,) = section("memory on the CPU", model={"path": "some/model"})
    assert line.startswith("not estimated: the size of the model 'some/model' is not known")


def test_deepspeed_gets_the_stage():
    assert '    "stage": 3' in section("what DeepSpeed gets", optim={"zero_stage": 3})


def test_sections_without_a_line_are_left_out():
    lines = plan(resolve({"optim": {"minibatches": 2}}), gpus=1, gpu_gb=80)
    assert not [line for line in lines if line.startswith(("== notes", "== missing"))]
    assert any("all its ratios are 1" in line for line in section("notes"))


def test_missing_data_is_listed(monkeypatch):
    monkeypatch.delenv("ARL_WEBSHOP_DATA", raising=False)
    env = {"id": "ARL/WebShop-v0", "kwargs": {"dataset": "original"}}
    (line,) = section("missing", env=env)
    assert "arl-gym data import webshop" in line


@pytest.mark.parametrize(("gpus", "place"), [(0, "on the CPU"), (2, "of each GPU")])
def test_the_number_of_gpus_can_be_that_of_another_machine(gpus, place):
    assert section(f"memory {place}", gpus=gpus)
