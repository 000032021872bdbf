"""What two ranks do with one server (see `tests.train.ranks`)."""

from functools import partial
from pathlib import Path

import numpy as np

from arl_gym.agents.types import Request
from arl_gym.core import Message
from arl_gym.train.chat import ChatCodec
from arl_gym.train.config import ModelConfig, RolloutConfig, RunConfig, VLLMConfig
from arl_gym.train.distributed import rank
from arl_gym.train.model import tiny_tokenizer
from arl_gym.train.policies.server import ServerSampler
from tests.train.engine_jobs import make_engine, optim
from tests.train.ranks import Arrays
from tests.train.stub_vllm import weights_with_head


def ask_one_server(folder: Path) -> Arrays:
    """Bring the weights, cut up by ZeRO-3, to the server that the test started, and ask it for a response."""
    engine, codec = make_engine(optim(3), reference=False), ChatCodec(tiny_tokenizer())
    model = engine._model
    cfg = RunConfig(
        model=ModelConfig(path="tiny", max_context=700),
        rollout=RolloutConfig(max_tokens=8),
        vllm=VLLMConfig(
            urls=(folder / "url").read_text(), weights_folder=str(folder / "weights"), check_tokens=4
        ),
    )
    sampler = ServerSampler(cfg, engine, model, codec, partial(weights_with_head, model))
    message: list[Message] = [{"role": "user", "content": f"rank {rank()}"}]
    with sampler.playing(temperature=1.0) as policy:
        policy.submit([Request(key=0, messages=message, info={}, context_ids=None, stream=0)])
        (reply,) = policy.poll()
    metrics = sampler.metrics()
    return {
        "prompt": np.array(reply.prompt_ids),
        "difference": np.array(metrics["sync/logprob_diff_max"]),
        "tokens": np.array(metrics["rollout/prompt_tokens"]),
    }
