import dataclasses

import pytest

from arl_gym.errors import PolicyError
from arl_gym.train import samplers
from arl_gym.train.chat import ChatCodec
from arl_gym.train.config import ModelConfig, OptimConfig
from arl_gym.train.engine import Engine
from arl_gym.train.methods import resolve
from arl_gym.train.model import plain_weights
from arl_gym.train.policies.vllm import give_weights
from tests.train.engine_jobs import LORA, LOSS, scored
from tests.vllm.conftest import MAX_CONTEXT, small_model
from tests.vllm.test_policy import answers, request

OPTIM = OptimConfig(lr=1e-2, weight_decay=0.0, grad_clip=0.0, zero_stage=0)


def config(**vllm):
    return resolve(
        {
            "model": {"max_context": MAX_CONTEXT},
            "rollout": {"max_tokens": 12, "temperature": 0.8, "backend": "vllm"},
            "vllm": {"kwargs": {"block_size": 32}, **vllm},
        }
    )


def parts(loaded, model_cfg=ModelConfig()):  # noqa: B008  # frozen
    engine = Engine(loaded.model, OPTIM, temperature=0.8, reference=False, model_cfg=model_cfg)
    return engine, loaded, ChatCodec(loaded.tokenizer)


@pytest.fixture
def shared(llm, monkeypatch):
    """Samplers take the engine of all tests instead of one of their own."""
    monkeypatch.setattr(samplers, "open_engine", lambda *args, **kwargs: llm)
    monkeypatch.setattr(samplers, "close_engine", lambda llm: None)


def update(engine):
    return engine.update(scored(engine), dataclasses.replace(LOSS, kl_coef=0.0), total_steps=10)


def differences(sampler, engine, n_updates):
    """Of the first transfer, and of one after each update."""
    found = []
    for _ in range(n_updates + 1):
        with sampler.playing(temperature=1.0):
            pass
        found.append(sampler.metrics()["sync/logprob_diff_max"])
        update(engine)
    return found


@pytest.mark.parametrize("model_cfg", [ModelConfig(), LORA], ids=["all weights", "adapter"])
def test_the_engine_follows_every_update(shared, model_cfg):
    engine, *more = parts(small_model(seed=4), model_cfg)
    sampler = samplers.open_sampler(config(), engine, *more)
    assert max(differences(sampler, engine, 5)) < 1e-5


def test_the_engine_follows_an_untied_model_and_can_be_closed(llm):
    """A second engine in one process: closing it leaves the trainer's group of ranks and the first one be."""
    engine, *more = parts(small_model(seed=4, tied=False))
    sampler = samplers.open_sampler(config(), engine, *more)
    assert max(differences(sampler, engine, 5)) < 1e-5
    sampler.close()
    sampler.close()
    update(engine)


def test_weights_are_brought_over_only_when_they_have_changed(shared, monkeypatch):
    engine, *more = parts(small_model())
    sampler = samplers.open_sampler(config(), engine, *more)
    transfers: list[int] = []

    def counted(llm, weights):
        transfers.append(engine.n_updates)
        give_weights(llm, weights)

    monkeypatch.setattr(samplers, "give_weights", counted)

    def play():
        with sampler.playing(temperature=1.0):
            return len(transfers)

    assert [play(), play()] == [1, 1]
    update(engine)
    assert [play(), play()] == [2, 2]


def test_an_update_is_seen_in_the_responses(shared):
    engine, loaded, codec = parts(small_model())
    sampler = samplers.open_sampler(config(), engine, loaded, codec)
    logprobs = []
    for _ in range(2):
        with sampler.playing(temperature=0.0) as policy:
            logprobs.append(answers(policy, [request()])[0].logprobs)
        update(engine)
    assert abs(logprobs[0][0] - logprobs[1][0]) > 0.01


@pytest.mark.parametrize("n_updates", [0, 1])
def test_a_head_that_stays_behind_stops_the_run(shared, monkeypatch, n_updates):
    engine, *more = parts(small_model(seed=7 + n_updates))  # no head that the engine had before
    sampler = samplers.open_sampler(config(), engine, *more)
    if n_updates:
        with sampler.playing(temperature=1.0):
            pass
        update(engine)
    monkeypatch.setattr(samplers, "sampling_weights", plain_weights)
    with (
        pytest.raises(PolicyError, match=rf"after {n_updates} updates.*0.0001 or less"),
        sampler.playing(temperature=1.0),
    ):
        pass


def test_without_a_check_nothing_is_compared(shared, monkeypatch):
    engine, *more = parts(small_model())
    sampler = samplers.open_sampler(config(check_tokens=0), engine, *more)
    with sampler.playing(temperature=1.0):
        pass
    assert "sync/seconds" in sampler.metrics()
    assert "sync/logprob_diff_mean" not in sampler.metrics()


def test_what_the_prompts_took_is_counted(shared):
    engine, loaded, codec = parts(small_model())
    sampler = samplers.open_sampler(config(), engine, loaded, codec)
    n = len(codec.encode_prompt(request(text="#" * 100).messages))
    with sampler.playing(temperature=1.0) as policy:
        answers(policy, [request(k, "#" * 100, stream=k) for k in range(2)])
    counted = sampler.metrics()
    assert counted["rollout/prompt_tokens"] == 2 * n
    assert counted["rollout/cached_tokens"] == (n - 1) // 32 * 32
