import importlib.util

import pytest
import torch

from arl_gym.errors import ConfigError, DependencyMissing, PolicyError
from arl_gym.train import samplers
from arl_gym.train.chat import ChatCodec
from arl_gym.train.checkpoint import Checkpoints
from arl_gym.train.checks import conflicts
from arl_gym.train.engine import Engine
from arl_gym.train.methods import resolve
from arl_gym.train.model import load_model, plain_weights
from arl_gym.train.policies.agreement import Agreement
from arl_gym.train.policies.hf import HFPolicy
from arl_gym.train.trainer import train
from tests.train.test_trainer import values

SERVER = {
    "rollout": {"backend": "server"},
    "vllm": {"urls": "http://gpu1:8000", "weights_folder": "/shared"},
}


def opened(backend, **vllm):
    cfg = resolve({"rollout": {"backend": backend}, "vllm": vllm})
    loaded = load_model("tiny", dtype="float32", seed=0)
    engine = Engine(loaded.model, cfg.optim, temperature=1.0, reference=False)
    return samplers.open_sampler(cfg, engine, loaded, ChatCodec(loaded.tokenizer)), loaded


def test_without_vllm_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(DependencyMissing, match=r"sampling with vLLM needs: pip install 'arl-gym\[vllm\]'"):
        opened("vllm")


def test_an_engine_for_more_ranks_than_there_are_is_refused():
    with pytest.raises(
        ConfigError, match=r"vllm\.tensor_parallel=2: expected a divisor .* ranks, which is 1"
    ):
        opened("vllm", tensor_parallel=2)


def test_by_default_the_trained_model_itself_samples():
    sampler, loaded = opened("hf")
    with sampler.playing(temperature=0.3) as policy:
        assert isinstance(policy, HFPolicy)
        assert policy.model is loaded.model
        assert policy.settings["temperature"] == 0.3
    assert sampler.metrics() == {}
    sampler.close()


def test_a_tied_head_goes_by_its_own_name_besides():
    model = load_model("tiny", dtype="float32", seed=0).model
    plain, sent = dict(plain_weights(model)), dict(samplers.sampling_weights(model))
    assert sent.keys() - plain.keys() == {"lm_head.weight"}
    assert (sent["lm_head.weight"] == plain["model.embed_tokens.weight"]).all()


def test_a_policy_that_fails_leaves_a_checkpoint_to_go_on_from(tmp_path, monkeypatch):
    cfg = resolve(values(tmp_path / "run", checkpoint={"every": 0}))

    def fail(step, total, row):
        monkeypatch.setattr(HFPolicy, "poll", broken)

    def broken(self):
        raise PolicyError("the engine died")

    with pytest.raises(PolicyError, match="the engine died"):
        train(cfg, progress=fail)
    assert Checkpoints(tmp_path / "run" / "checkpoints", keep=1).steps() == [1]
    monkeypatch.undo()
    train(cfg, resume="auto")
    assert (tmp_path / "run" / "model" / "model.safetensors").is_file()


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"vllm": {"memory": 1.2}}, "vllm.memory=1.2: expected a share"),
        ({"vllm": {"check_tokens": -1}}, "vllm.check_tokens=-1: expected at least 0"),
        ({"vllm": {"tensor_parallel": 0}}, "vllm.tensor_parallel=0: expected at least 1"),
        (
            {"vllm": {"tensor_parallel": 2}},
            "vllm.tensor_parallel=2 goes with rollout.backend='vllm', got 'hf': leave it at 1",
        ),
        ({"vllm": {"kwargs": {"seed": 3}}}, "vllm.kwargs.seed=3: set seed instead"),
        ({"vllm": {"kwargs": {"load_format": "auto"}}}, "vllm.kwargs.load_format='auto': leave it out"),
        (
            {"rollout": {"backend": "server"}, "vllm": {"urls": "http://gpu1:8000"}},
            "rollout.backend='server' needs vllm.urls and vllm.weights_folder, got 'http://gpu1:8000' and ''",
        ),
        (
            SERVER | {"model": {"path": "tiny-vl"}, "env": {"kwargs": {"obs_mode": "image"}}},
            "rollout.backend='server' sends text only",
        ),
    ],
)
def test_settings_of_vllm_that_cannot_work_are_named(values, message):
    (line,) = conflicts(resolve(values))
    assert line.startswith(message)


def test_an_engine_that_slept_gets_weights_before_it_is_asked_anything(monkeypatch):
    """The order on a GPU: a sleeping engine has neither weights nor cache, and each wakes by itself."""
    calls: list[str] = []

    class Sleeper:
        def wake_up(self, tags):
            calls.append(f"wake {tags[0]}")

        def sleep(self, level):
            calls.append(f"sleep {level}")

    def ask(*args, **kwargs):
        calls.append("ask")
        return Agreement(mean=0.0, max=0.0, n=1)

    monkeypatch.setattr(samplers, "open_engine", lambda *args, **kwargs: Sleeper())
    monkeypatch.setattr(samplers, "give_weights", lambda llm, weights: calls.append("give"))
    monkeypatch.setattr(samplers, "agreement", ask)
    with monkeypatch.context() as patch:
        loaded = load_model("tiny", dtype="float32", seed=0)
        cfg = resolve({"rollout": {"backend": "vllm"}})
        engine = Engine(loaded.model, cfg.optim, temperature=1.0, reference=False)
        patch.setattr(torch.cuda, "is_available", lambda: True)
        sampler = samplers.open_sampler(cfg, engine, loaded, ChatCodec(loaded.tokenizer))
    for _ in range(2):  # without an update between
        with sampler.playing(temperature=1.0):
            calls.append("play")
    once = ["wake weights", "give", "wake kv_cache", "ask", "play", "sleep 2"]
    assert calls == once + once
