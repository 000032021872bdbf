"""Rollouts by a real vLLM server on loopback, of a tiny model in float32."""

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from contextlib import closing
from functools import partial

import numpy as np
import pytest
import torch

from arl_gym.agents.rollout import rollout
from arl_gym.agents.tasks import task_ids
from arl_gym.agents.types import Episode, Reply, Request
from arl_gym.errors import PolicyError
from arl_gym.make import make_chat_vec
from arl_gym.train.batch import pack
from arl_gym.train.chat import ChatCodec
from arl_gym.train.config import LossConfig, ModelConfig, RolloutConfig, RunConfig, VLLMConfig
from arl_gym.train.engine import Engine
from arl_gym.train.model import save_model, tiny_model, tiny_tokenizer
from arl_gym.train.policies.hf import HFPolicy
from arl_gym.train.policies.server import ServerPolicy, ServerSampler
from tests.train.engine_jobs import optim, scored
from tests.train.stub_vllm import weights_with_head

CONTEXT = 768
ENVIRON = {
    "VLLM_SERVER_DEV_MODE": "1",
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "0",
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_LOGGING_LEVEL": "WARNING",
    "OMP_NUM_THREADS": "1",
}


def model_of(seed):
    return tiny_model(tiny_tokenizer(), seed=seed, hidden=128, layers=2)  # vLLM wants heads of 32


class Server:
    """A server of its own process group."""

    def __init__(self, folder, log):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        self.url = f"http://127.0.0.1:{port}"
        # The command `vllm` of the build for CPUs looks for the package of that for GPUs.
        command = [sys.executable, "-m", "vllm.entrypoints.openai.api_server", "--model", str(folder)]
        command += ["--host", "127.0.0.1", "--port", str(port), "--max-model-len", str(CONTEXT)]
        command += ["--dtype", "float32", "--enforce-eager", "--logprobs-mode", "processed_logprobs"]
        command += ["--enable-prompt-tokens-details"]
        with log.open("w") as out:
            self.process = subprocess.Popen(
                command, env=os.environ | ENVIRON, stdout=out, stderr=out, start_new_session=True
            )
        until = time.monotonic() + 300
        while not self.is_ready():
            assert self.process.poll() is None, log.read_text()[-2000:]
            assert time.monotonic() < until, f"no answer from {self.url} in 300 s"
            time.sleep(0.5)  # nothing tells when a server is ready

    def is_ready(self):
        try:
            with urllib.request.urlopen(f"{self.url}/health", timeout=5) as answer:
                return answer.status == 200
        except (urllib.error.URLError, OSError):
            return False

    def kill(self):
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()


@pytest.fixture(scope="session")
def running():
    """Whatever server runs."""
    servers: list[Server] = []
    yield servers
    for one in servers:
        one.kill()


@pytest.fixture
def server(running, tmp_path_factory):
    """The session's server, started again if a test has killed it. Begins with weights of nobody else."""
    if not running or running[-1].process.poll() is not None:
        folder = tmp_path_factory.mktemp("server")
        save_model(folder / "model", model_of(seed=9), tiny_tokenizer())
        running.append(Server(folder / "model", folder / "log"))
    return running[-1]


@pytest.fixture(scope="module")
def engine():
    return Engine(model_of(seed=1), optim(0, lr=3e-2), temperature=0.7, reference=False)


@pytest.fixture(scope="module")
def codec():
    return ChatCodec(tiny_tokenizer())


@pytest.fixture
def sampler(server, engine, codec, tmp_path):
    cfg = RunConfig(
        model=ModelConfig(path="tiny", max_context=CONTEXT),
        rollout=RolloutConfig(max_tokens=64, temperature=0.7, backend="server"),
        vllm=VLLMConfig(urls=server.url, weights_folder=str(tmp_path)),
    )
    model = engine.rollout_model()
    with closing(ServerSampler(cfg, engine, model, codec, partial(weights_with_head, model))) as opened:
        yield opened


def requests(n):
    texts = ["#", "#P_ " * 3, "####\n#PXO#\n" * 12]  # the last one fills a block of the cache
    return [
        Request(
            key=i,
            messages=[{"role": "user", "content": texts[i % 3]}],
            info={},
            context_ids=None,
            stream=2**63 + 2 * i,
        )
        for i in range(n)
    ]


def answers(policy, batch):
    policy.submit(batch)
    replies: list[Reply] = []
    while len(replies) < len(batch):
        replies += policy.poll()
    return sorted(replies, key=lambda r: r.key)


def hf(engine, codec, temperature):
    return HFPolicy(
        engine.rollout_model(),
        codec,
        max_tokens=64,
        temperature=temperature,
        batch_size=64,
        max_context=CONTEXT,
    )


def forward_logprobs(model, reply, temperature):
    ids, n = torch.tensor([reply.prompt_ids + reply.completion_ids]), len(reply.prompt_ids)
    with torch.no_grad():
        logp = torch.log_softmax(model(ids).logits[0] / temperature, -1)
    return [float(logp[n - 1 + i, token]) for i, token in enumerate(reply.completion_ids)]


def test_greedy_responses_are_those_of_transformers(sampler, engine, codec):
    with sampler.playing(temperature=0) as policy:
        ours = answers(policy, requests(6))
    theirs = answers(hf(engine, codec, 0), requests(6))
    for a, b in zip(ours, theirs, strict=True):
        assert (a.prompt_ids, a.completion_ids, a.response) == (b.prompt_ids, b.completion_ids, b.response)
        assert a.finish == b.finish
        assert a.logprobs == pytest.approx(b.logprobs, abs=1e-5)


def test_sampled_ids_have_the_trainers_logprobs_end_token_included(sampler, engine, codec):
    with sampler.playing(temperature=2.0) as policy:
        replies = answers(policy, requests(60))
        again = answers(policy, requests(60))
        assert policy.n_cached_tokens > 0
    assert [r.completion_ids for r in again] == [r.completion_ids for r in replies]
    # 60 responses of 64 tokens from 271 that are about equally likely: some 14 end tokens.
    ended = [r for r in replies if r.finish in ("stop", "empty")]
    assert ended
    assert all(r.completion_ids[-1] == codec.end_id for r in ended)
    assert all(len(r.completion_ids) == 64 for r in replies if r.finish == "length")
    for r in [*ended, *replies[:6]]:
        assert r.logprobs == pytest.approx(forward_logprobs(engine.rollout_model(), r, 2.0), abs=1e-5)


def test_an_update_reaches_the_server(sampler, engine, codec):
    with sampler.playing(temperature=0) as policy:
        before = answers(policy, requests(3))
    engine.update(scored(engine), LossConfig(kl_coef=0.0), total_steps=10)
    with sampler.playing(temperature=0) as policy:
        after = answers(policy, requests(3))
    assert sampler.metrics()["sync/logprob_diff_max"] < 1e-5
    assert [r.completion_ids for r in after] != [r.completion_ids for r in before]
    theirs = answers(hf(engine, codec, 0), requests(3))
    assert [r.completion_ids for r in after] == [r.completion_ids for r in theirs]


def test_episodes_played_by_the_server_are_scored_alike(sampler, engine, codec):
    vec = make_chat_vec("ARL/Sokoban-v0", 4, prompt="compact", window=None)
    with closing(vec), sampler.playing(temperature=0.7) as policy:
        tasks = task_ids(vec, "train")
        episodes = [Episode(task_id=tasks[i // 2], group=i // 2, copy=i % 2) for i in range(6)]
        played = rollout(vec, policy, episodes, env_id="ARL/Sokoban-v0", seed=0)
    batch = engine.score(pack(played, pad_id=codec.pad_id))
    gap = np.abs(batch.old_logprobs - batch.rollout_logprobs)[batch.action_mask]
    assert len(gap) > 100
    assert gap.max() < 1e-5


def test_a_server_killed_while_it_answers_is_named(server, codec):
    with ServerPolicy(
        [server.url], codec, max_tokens=700, temperature=1.0, max_context=CONTEXT, retries=1
    ) as policy:
        policy.submit(requests(8))
        server.kill()
        with pytest.raises(PolicyError, match="after 2 tries") as caught:
            policy.poll()
    assert server.url in str(caught.value)
