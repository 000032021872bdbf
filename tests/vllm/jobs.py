"""What two ranks do with an engine each, or with one that they share (see `tests.train.ranks`)."""

from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

from arl_gym.train import samplers
from arl_gym.train.chat import ChatCodec
from arl_gym.train.config import ModelConfig
from arl_gym.train.distributed import rank, shared_rollout
from arl_gym.train.engine import Engine
from arl_gym.train.policies.vllm import open_engine
from tests.train.engine_jobs import LORA, optim
from tests.vllm.conftest import small_model
from tests.vllm.test_policy import answers, played, request
from tests.vllm.test_samplers import config, update

CASES = {
    **{f"stage {stage}": (stage, ModelConfig()) for stage in range(4)},
    "adapter at stage 3": (3, LORA),
}


@contextmanager
def one_engine():
    """Samplers take the engine that the first of them opens."""
    opened: list[Any] = []

    def open_once(*args, **kwargs):
        if not opened:
            opened.append(open_engine(*args, **kwargs))
        return opened[0]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(samplers, "open_engine", open_once)
        yield


def transfers(folder):
    """Bring weights over before and after an update, at every stage, into one engine."""
    results = {}
    with one_engine():
        for name, (stage, model_cfg) in CASES.items():
            loaded = small_model(seed=5)
            codec = ChatCodec(loaded.tokenizer)
            cfg = optim(stage, lr=1e-2)
            engine = Engine(loaded.model, cfg, temperature=0.8, reference=False, model_cfg=model_cfg)
            sampler = samplers.open_sampler(config(), engine, loaded, codec)
            for moment in ("before", "after"):
                with sampler.playing(temperature=1.0) as policy:
                    (reply,) = answers(policy, [request(stream=rank())])
                told = sampler.metrics()
                results[f"{name}/{moment}/ids"] = np.array(reply.completion_ids)
                results[f"{name}/{moment}/logprobs"] = np.array(reply.logprobs)
                results[f"{name}/{moment}/difference"] = np.array(told["sync/logprob_diff_max"])
                results[f"{name}/{moment}/prompt_tokens"] = np.array(told["rollout/prompt_tokens"])
                results[f"{name}/{moment}/own_tokens"] = np.array(len(reply.prompt_ids))
                update(engine)
    return results


def shared(folder):
    """Bring weights over before and after an update into an engine of both ranks, and play with it."""
    results: dict[str, Any] = {}
    with one_engine():
        for name, (stage, model_cfg) in CASES.items():
            loaded = small_model()
            codec = ChatCodec(loaded.tokenizer)
            cfg = optim(stage, lr=1e-2)
            engine = Engine(loaded.model, cfg, temperature=0.8, reference=False, model_cfg=model_cfg)
            sampler = samplers.open_sampler(config(tensor_parallel=2), engine, loaded, codec)
            for moment in ("before", "after"):
                with sampler.playing(temperature=0.0) as policy:
                    turns = [
                        t for episode in played(policy, window=2, play=shared_rollout) for t in episode.turns
                    ]
                told = sampler.metrics()
                results[f"{name}/{moment}/difference"] = told["sync/logprob_diff_max"]
                results[f"{name}/{moment}/ids"] = [turn.completion_ids for turn in turns]
                results[f"{name}/{moment}/logprobs"] = [turn.logprobs for turn in turns]
                results[f"{name}/{moment}/prompt_tokens"] = told["rollout/prompt_tokens"]
                results[f"{name}/{moment}/turn_tokens"] = sum(len(turn.prompt_ids or ()) for turn in turns)
                update(engine)
    return {key: np.array(value) for key, value in results.items()}
