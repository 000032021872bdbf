import dataclasses
from typing import Any

import numpy as np
import pytest

from arl_gym.agents.types import Reply
from arl_gym.errors import PolicyError
from arl_gym.train.chat import ChatCodec
from arl_gym.train.config import ModelConfig, RunConfig, VLLMConfig
from arl_gym.train.model import load_model
from arl_gym.train.policies.agreement import (
    Agreement,
    agreement,
    largest_difference,
    require_agreement,
)
from arl_gym.train.policies.hf import HFPolicy
from tests.train.engine_jobs import make_engine


class Scripted:
    """Answers the n-th request with the n-th completion; finds prompts longer than `room` too long."""

    def __init__(self, *completions, room=1 << 30):
        self.completions, self.room = list(completions), room
        self.prompts, self.asked = [], []

    def submit(self, requests):
        self.asked += requests

    def poll(self):
        (request,) = self.asked
        self.asked = []
        words = request.messages[0]["content"].split(" ")
        self.prompts.append(len(words))
        if len(words) > self.room:
            return [Reply(key=request.key, response="", finish="context_full")]
        ids, logprobs = self.completions.pop(0)
        return [
            Reply(
                key=request.key,
                response="",
                finish="stop",
                prompt_ids=[7] * len(words),
                completion_ids=ids,
                logprobs=logprobs,
            )
        ]


class Scorer:
    """Gives every token a log-prob of -1."""

    def score(self, batch, *, reference):
        assert not reference  # it may be parked elsewhere while an engine is awake
        self.batch = batch
        return batch.with_old(np.where(batch.action_mask, -1.0, 0.0).astype(np.float32))


@pytest.fixture(scope="module")
def codec():
    return ChatCodec(load_model("tiny", dtype="float32", seed=0).tokenizer)


def test_differences_are_those_of_the_sampled_tokens(codec):
    policy, scorer = Scripted(([5, 6], [-1.5, -1.0]), ([8, 9], [-0.75, -1.25])), Scorer()
    # |-1 + 1.5|, |-1 + 1|, |-1 + 0.75|, |-1 + 1.25|: 0.5, 0, 0.25, 0.25
    assert agreement(policy, scorer, codec, 3) == Agreement(mean=0.25, max=0.5, n=4)
    assert [row[-2:].tolist() for row in scorer.batch.ids] == [[5, 6], [8, 9]]


def test_the_prompt_is_cut_until_it_fits(codec):
    policy = Scripted(([5], [-1.0]), room=40)
    agreement(policy, Scorer(), codec, 1)
    assert policy.prompts == [256, 128, 64, 32]


def test_a_policy_without_room_or_ids_is_an_error(codec):
    with pytest.raises(PolicyError, match="room for a prompt of one word"):
        agreement(Scripted(room=0), Scorer(), codec, 1)
    with pytest.raises(PolicyError, match="expected token ids from Scripted, got none"):
        agreement(Scripted((None, None)), Scorer(), codec, 1)


def test_the_trained_model_agrees_with_itself_and_with_no_other():
    engine = make_engine(reference=False)
    own = engine.rollout_model()
    codec = ChatCodec(load_model("tiny", dtype="float32", seed=0).tokenizer)
    dials: dict[str, Any] = {"max_tokens": 8, "temperature": 1.0, "batch_size": 4, "max_context": 700}
    found = agreement(HFPolicy(own, codec, **dials), engine, codec, 8)
    assert found.n >= 8
    assert found.max < 1e-5
    other = make_engine(reference=False).rollout_model()
    other.get_input_embeddings().weight.data.neg_()
    assert agreement(HFPolicy(other, codec, **dials), engine, codec, 8).mean > 1e-3


@pytest.mark.parametrize("mean", [0.02, float("nan")])
def test_too_large_a_difference_stops_the_run(mean):
    require_agreement(Agreement(mean=0.01, max=9.0, n=16), 0.01, "the server")
    with pytest.raises(PolicyError, match=r"the server does not sample .* of 16 tokens .* 0.01 or less"):
        require_agreement(Agreement(mean=mean, max=9.0, n=16), 0.01, "the server")


def test_the_limit_follows_the_type_of_the_weights_unless_it_is_set():
    cfg = RunConfig(model=ModelConfig(dtype="bfloat16"))
    assert largest_difference(cfg) == 0.05
    assert largest_difference(dataclasses.replace(cfg, model=ModelConfig(dtype="float32"))) == 1e-4
    assert largest_difference(dataclasses.replace(cfg, vllm=VLLMConfig(max_difference=0.3))) == 0.3
