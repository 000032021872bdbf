import numpy as np
import pytest
import torch

from arl_gym.errors import ConfigError
from arl_gym.train import selftest as module
from arl_gym.train.engine import Engine
from arl_gym.train.packing import layout
from arl_gym.train.selftest import selftest

GOOD = {
    "optim/tokens": 100.0,
    "optim/grad_norm": 0.5,
    "optim/skipped_steps": 0.0,
    "time/generate_s": 2.0,
    "rollout/turns_mean": 2.0,
    "rollout/logprob_diff_mean": 1e-6,
    "rollout/logprob_diff_max": 1e-5,
    "sync/seconds": 0.5,
    "sync/logprob_diff_mean": 1e-6,
}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("selftest")
    run = module._Run(module.configuration(folder, model="tiny", backend="hf", gpu=False))
    assert run.train().startswith("2 steps in ")
    return run


def checked(monkeypatch, tmp_path, **changes):
    """The outcomes of a self-test whose training run reports the given metrics; {} leaves GOOD as it is."""
    row = {**GOOD, **{key.replace("__", "/"): value for key, value in changes.items()}}

    def train(cfg, *, progress):
        progress(1, 2, GOOD)
        progress(2, 2, row)

    monkeypatch.setattr(module, "train", train)
    found = selftest(tmp_path, model="tiny", backend="vllm", gpu=False)
    return {check.name: check.outcome for check in found if check.outcome != "pass"}


def test_a_training_run_and_what_came_of_it_pass(run):
    for look in (run.rollout, run.update, run.agreement, run.checkpoint, run.sharing):
        assert look()
    with pytest.raises(module._NotRun, match="GPUs only"):
        run.memory("update")
    with pytest.raises(module._NotRun, match="nothing is transferred"):
        run.transfer()


def test_a_checkpoint_that_is_not_what_was_loaded_fails(run, monkeypatch):
    monkeypatch.setattr(Engine, "load", lambda engine, folder: None)
    run._engine = None
    found = module._tried("checkpoint", run.checkpoint)
    assert found.outcome == "FAIL"
    assert "optimizer-00000.safetensors" in found.evidence


def test_reading_a_shared_prompt_wrongly_fails(run, monkeypatch):
    good = Engine.score

    def score(engine, batch):
        scored = good(engine, batch)
        assert scored.old_logprobs is not None
        return scored if batch.n_rows == 1 else scored.with_old(scored.old_logprobs - np.float32(0.01))

    monkeypatch.setattr(Engine, "score", score)
    assert module._tried("sharing", run.sharing).outcome == "FAIL"


def test_the_rows_to_compare_share_their_prompt_and_nothing_else():
    batch = module._rows_of_one_prompt(vocab=1000, rows=2, prompt=5, response=3)
    # The last token of a row predicts nothing and is not read.
    assert layout(batch, share=True).ids.size == 5 + 2 * 2
    assert layout(batch.select([0]), share=True).forest is None


def test_good_metrics_pass_and_a_cpu_has_no_memory_to_compare(monkeypatch, tmp_path):
    assert checked(monkeypatch, tmp_path) == {
        "memory of the rollout": "not run",
        "memory of the update": "not run",
        "checkpoint, saved and loaded": "not run",  # the stand-in keeps none
    }


@pytest.mark.parametrize(
    ("metric", "value", "name"),
    [
        ("optim__grad_norm", float("nan"), "optimiser steps"),
        ("optim__grad_norm", 0.0, "optimiser steps"),
        ("optim__skipped_steps", 1.0, "optimiser steps"),
        ("optim__tokens", 0.0, "rollout"),
        ("rollout__logprob_diff_mean", 2e-4, "log-probs of sampler and trainer"),
        ("rollout__logprob_diff_mean", float("nan"), "log-probs of sampler and trainer"),
        ("sync__logprob_diff_mean", 2e-4, "weights to the sampler"),
        # Estimated at less than 1 GiB, and 3 are allowed.
        ("memory__update_gib", 9.0, "memory of the update"),
    ],
)
def test_a_bad_metric_fails_its_check(monkeypatch, tmp_path, metric, value, name):
    assert checked(monkeypatch, tmp_path, **{metric: value})[name] == "FAIL"


def test_a_run_that_breaks_fails_and_leaves_nothing_to_look_at(monkeypatch, tmp_path):
    def train(cfg, *, progress):
        raise RuntimeError("no kernel image\nis available")

    monkeypatch.setattr(module, "train", train)
    found = selftest(tmp_path, model="tiny", backend="hf", gpu=False)
    by_name = {check.name: check for check in found}
    assert by_name["training in float32"].outcome == "FAIL"
    assert by_name["training in float32"].evidence == "RuntimeError: no kernel image is available"
    assert by_name["optimiser steps"].outcome == "not run"


def test_a_run_that_is_too_slow_fails(monkeypatch, tmp_path):
    monkeypatch.setattr(module, "train", lambda cfg, *, progress: progress(1, 2, GOOD))
    found = selftest(tmp_path, model="tiny", backend="hf", gpu=False)
    assert next(c for c in found if c.name == "training in float32").outcome == "FAIL"


@pytest.mark.parametrize(("there", "wanted"), [(False, True), (True, False)])
def test_the_device_that_is_named_must_be_the_one_there_is(monkeypatch, tmp_path, there, wanted):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: there)
    with pytest.raises(ConfigError, match="--gpu"):
        selftest(tmp_path, model="tiny", backend="hf", gpu=wanted)
