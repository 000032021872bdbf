"""One small model and one engine for all tests: an engine takes ten seconds to start.

The engine's weights are whatever the test before gave it: every test gives it its own.
"""

import importlib.util

import pytest

from arl_gym.train import distributed
from arl_gym.train.chat import ChatCodec
from arl_gym.train.config import VLLMConfig
from arl_gym.train.model import Loaded, tiny_model, tiny_tokenizer
from tests.conftest import require

MAX_CONTEXT = 512
BLOCK = 32
"""Tokens of a block of the prefix cache; the smallest that vLLM's CPU build has."""


@pytest.fixture(scope="session", autouse=True)
def _vllm():
    require(importlib.util.find_spec("vllm") is not None, "vLLM is not installed: make test-vllm")


def small_model(*, seed=1, tied=True):
    """Heads of 32: vLLM's CPU build has none of 24, which "tiny" has."""
    tokenizer = tiny_tokenizer()
    model = tiny_model(tokenizer, seed=seed, hidden=128, layers=2)
    if not tied:
        model.config.tie_word_embeddings = False
        model.lm_head.weight = type(model.lm_head.weight)(model.lm_head.weight.detach().flip(0).clone())
    return Loaded(model=model, tokenizer=tokenizer)


@pytest.fixture(scope="session")
def llm(tmp_path_factory):
    """An engine of the tied model."""
    from arl_gym.train.policies.vllm import close_engine, open_engine
    from arl_gym.train.samplers import describe

    distributed.start()
    folder = tmp_path_factory.mktemp("model")
    describe(small_model(), folder)
    dials = VLLMConfig(kwargs={"block_size": BLOCK, "max_num_seqs": 64})
    opened = open_engine(folder, dtype="float32", max_context=MAX_CONTEXT, seed=0, dials=dials, weights=False)
    yield opened
    close_engine(opened)


@pytest.fixture
def loaded(llm):
    """The model whose weights the engine has."""
    from arl_gym.train.policies.vllm import give_weights
    from arl_gym.train.samplers import sampling_weights

    fresh = small_model()
    fresh.model.eval()
    give_weights(llm, sampling_weights(fresh.model))
    return fresh


@pytest.fixture
def codec(loaded):
    return ChatCodec(loaded.tokenizer)
