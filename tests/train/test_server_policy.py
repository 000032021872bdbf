import os
import threading
from functools import partial
from pathlib import Path

import pytest
import torch
from PIL import Image

from arl_gym.agents import transport
from arl_gym.agents.types import Reply, Request
from arl_gym.core import Message
from arl_gym.errors import ConfigError, PolicyError
from arl_gym.train.chat import ChatCodec
from arl_gym.train.config import ModelConfig, RolloutConfig, RunConfig, VLLMConfig
from arl_gym.train.model import load_model, tiny_tokenizer
from arl_gym.train.policies.server import HOW, ServerPolicy, ServerSampler
from tests.agents.stub_server import StubServer, failure
from tests.train.engine_jobs import make_engine
from tests.train.ranks import run_ranks
from tests.train.stub_vllm import StubVLLM, sampled, weights_with_head

MESSAGES: list[Message] = [{"role": "user", "content": "#P_"}]


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    monkeypatch.setattr(transport, "_FIRST_WAIT_S", 0.001)


@pytest.fixture(scope="module")
def codec():
    return ChatCodec(tiny_tokenizer())


def policy(servers, codec, **changes):
    dials = {"max_tokens": 8, "temperature": 0.7, "max_context": 64}
    return ServerPolicy([s.url for s in servers], codec, **(dials | changes))


def request(key=0, *, stream=6, context=None, pictures=(), stop=()):
    return Request(
        key=key,
        messages=MESSAGES,
        info={"stop": list(stop)},
        context_ids=context,
        stream=stream,
        pictures=list(pictures),
    )


def ask(p, *requests):
    p.submit(requests)
    replies: list[Reply] = []
    while len(replies) < len(requests):
        replies += p.poll()
    assert p.poll() == []
    return sorted(replies, key=lambda r: r.key)


def test_the_request_asks_for_exactly_what_the_trainer_scores(codec):
    with StubServer(lambda body: sampled([9], [-1.0])) as server, policy([server], codec) as p:
        ask(p, request(stream=2**64 - 1, stop=("<end>",)))
    assert server.paths == ["/v1/completions"]
    assert server.bodies == [
        {
            "prompt": codec.encode_prompt(MESSAGES),
            "max_tokens": 8,
            "temperature": 0.7,
            "top_p": 1.0,
            "top_k": 0,
            "min_p": 0.0,
            "repetition_penalty": 1.0,
            "presence_penalty": 0.0,
            "frequency_penalty": 0.0,
            "seed": 2**63 - 1,
            "logprobs": 0,
            "return_token_ids": True,
            "ignore_eos": True,
            "stop_token_ids": [codec.end_id],
            "stop": ["<end>"],
            "logit_bias": {},
        }
    ]


def test_a_model_that_reads_pictures_samples_no_placeholder():
    loaded = load_model("tiny-vl", dtype="float32", seed=0)
    codec = ChatCodec(loaded.tokenizer, loaded.vision)
    with StubServer(lambda body: sampled([9], [-1.0])) as server, policy([server], codec) as p:
        ask(p, request())
    assert server.bodies[0]["logit_bias"] == {str(i): -100.0 for i in codec.banned}
    assert len(codec.banned) == 2  # of pictures and of videos


def test_ids_and_logprobs_are_kept_as_they_came_and_counted(codec):
    up = codec.tokenizer.convert_tokens_to_ids("up")
    answers = {0: sampled([up, codec.end_id], [-0.5, -0.1], "stop"), 1: sampled([up] * 8, [-1.0] * 8)}
    answers[2] = sampled([codec.end_id], [-3.0], "stop")

    with StubServer(lambda body: answers[body["seed"]]) as server, policy([server], codec) as p:
        ended, cut, empty = ask(p, *(request(i, stream=2 * i) for i in range(3)))
        assert (p.n_requests, p.n_cached_tokens) == (3, 6)
        assert p.n_prompt_tokens == 3 * len(codec.encode_prompt(MESSAGES))
    assert (ended.response, ended.finish) == ("up", "stop")
    assert (ended.completion_ids, ended.logprobs) == ([up, codec.end_id], [-0.5, -0.1])
    assert ended.prompt_ids == codec.encode_prompt(MESSAGES)
    assert [ended.n_tokens(n) for n in (0, 1, 2)] == [0, 1, 1]
    assert (cut.response, cut.finish) == ("up" * 8, "length")
    assert (empty.response, empty.finish) == ("", "empty")


def test_a_dialogue_goes_on_from_its_sampled_ids(codec):
    context = [*codec.encode_prompt(MESSAGES), 9, 9]
    with StubServer(lambda body: sampled([9], [-1.0])) as server, policy([server], codec) as p:
        reply = ask(p, request(context=context))[0]
    assert server.bodies[0]["prompt"] == reply.prompt_ids
    assert reply.prompt_ids == context + codec.encode_bridge(context, MESSAGES)


def test_a_response_has_the_room_that_its_prompt_leaves(codec):
    n = len(codec.encode_prompt(MESSAGES))
    with StubServer(lambda body: sampled([9], [-1.0])) as server:
        with policy([server], codec, max_context=n + 3) as p:
            ask(p, request())
        assert server.bodies[0]["max_tokens"] == 3
        with policy([server], codec, max_context=n) as p:
            reply = ask(p, request())[0]
    assert (reply.finish, reply.completion_ids, reply.prompt_ids) == (
        "context_full",
        [],
        codec.encode_prompt(MESSAGES),
    )
    assert len(server.bodies) == 1


def test_episodes_are_spread_evenly_and_stay_where_they_are(codec):
    answer = partial(lambda ids, body: sampled(ids, [-1.0]), [9])
    with StubServer(answer) as one, StubServer(answer) as two, policy([one, two], codec) as p:
        ask(p, *(request(i, stream=2 * i) for i in range(6)))
        ask(p, *(request(i, stream=2 * i) for i in (0, 2)))
    assert sorted(b["seed"] for b in one.bodies) == [0, 0, 2, 2, 4]
    assert sorted(b["seed"] for b in two.bodies) == [1, 3, 5]


def test_all_requests_are_under_way_at_once(codec):
    gate = threading.Barrier(40)

    def answer(body):
        gate.wait(20)  # nobody passes unless all are there
        return sampled([9], [-1.0])

    with StubServer(answer) as server, policy([server], codec) as p:
        assert len(ask(p, *(request(i) for i in range(40)))) == 40


@pytest.mark.parametrize(("ids", "logprobs"), [(None, [-1.0]), ([9], None)])
def test_a_server_that_gives_no_ids_or_logprobs_is_told_how_to_start(codec, ids, logprobs):
    with StubServer(lambda body: sampled(ids, logprobs)) as server, policy([server], codec) as p:
        p.submit([request()])
        with pytest.raises(ConfigError, match="expected token_ids and logprobs") as caught:
            p.poll()
    assert server.url.removesuffix("/v1") in str(caught.value)
    assert HOW in str(caught.value)


def test_unequal_ids_and_logprobs_are_refused(codec):
    with StubServer(lambda body: sampled([9, 9], [-1.0])) as server, policy([server], codec) as p:
        p.submit([request()])
        with pytest.raises(PolicyError, match="got 2 token_ids and 1 logprobs"):
            p.poll()


def test_a_server_without_room_is_told_to_take_more(codec):
    short = failure(400, "This model's maximum context length is 16 tokens.")
    with StubServer(lambda body: short) as server, policy([server], codec) as p:
        p.submit([request()])
        with pytest.raises(ConfigError, match="start it with --max-model-len 64"):
            p.poll()


def test_what_fails_in_passing_is_asked_again(codec):
    left = [failure(500), (200, b"<html>", {}), sampled([9], [-1.0], "abort"), sampled([9], [-1.0])]
    with StubServer(lambda body: left.pop(0)) as server, policy([server], codec) as p:
        assert ask(p, request())[0].completion_ids == [9]
    assert left == []


def test_the_server_that_stops_answering_is_named(codec):
    with StubServer(lambda body: sampled([9], [-1.0])) as alive:
        with StubServer(lambda body: sampled([9], [-1.0])) as dead:
            pass
        with (
            policy([alive, dead], codec, retries=1) as p,
            pytest.raises(PolicyError, match=r"ConnectionRefusedError.*after 2 tries") as caught,
        ):
            ask(p, request(0), request(1))
        assert dead.url in str(caught.value)


def test_pictures_are_refused(codec):
    with (
        policy([StubServer(lambda body: sampled([9], [-1.0]))], codec) as p,
        pytest.raises(ConfigError, match="reads text only, got 1 pictures"),
    ):
        p.submit([request(pictures=[Image.new("RGB", (1, 1))])])


@pytest.mark.parametrize(("urls", "says"), [([], "got none"), (["gpu1:8000"], "'gpu1:8000'")])
def test_addresses_must_be_of_http(codec, urls, says):
    with pytest.raises(ConfigError, match=f"vllm.urls: .*{says}"):
        ServerPolicy(urls, codec, max_tokens=1, temperature=1.0, max_context=8)


def sampler(servers, folder, engine, codec, *, check_tokens=4):
    urls = " ".join(s.url for s in servers)
    cfg = RunConfig(
        model=ModelConfig(path="tiny", max_context=700),
        rollout=RolloutConfig(max_tokens=8),
        vllm=VLLMConfig(urls=urls, weights_folder=str(folder), check_tokens=check_tokens),
    )
    model = engine.rollout_model()
    return ServerSampler(cfg, engine, model, codec, partial(weights_with_head, model))


def take_step(engine):
    """Change the weights as an update does."""
    with torch.no_grad():
        for parameter in engine.rollout_model().parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    engine.n_updates += 1


def test_servers_follow_the_weights_and_two_folders_stay(codec, tmp_path):
    engine = make_engine(reference=False)
    with StubVLLM() as one, StubVLLM() as two:
        s = sampler([one, two], tmp_path, engine, codec)
        for _ in range(3):
            with s.playing(temperature=1.0) as p:
                assert ask(p, request())[0].completion_ids
            take_step(engine)
        assert s.metrics()["sync/logprob_diff_max"] < 1e-5
        assert s.metrics()["sync/seconds"] > 0
        assert s.metrics()["rollout/cached_tokens"] == 2
        s.close()
    folders = [str(tmp_path / f"update-00000{i}") for i in range(3)]
    assert one.loaded == two.loaded == folders
    assert sorted(map(str, tmp_path.iterdir())) == folders[1:]


def test_a_transfer_is_reload_then_reset_then_check_and_comes_only_after_updates(codec, tmp_path):
    engine = make_engine(reference=False)
    with StubVLLM() as server:
        s = sampler([server], tmp_path, engine, codec, check_tokens=1)
        for temperature in (1.0, 0.5):
            with s.playing(temperature=temperature):
                pass
    assert server.paths == [
        "/v1/models",
        "/collective_rpc",
        "/reset_prefix_cache?reset_running_requests=true",
        "/v1/completions",
    ]
    assert server.bodies[1] == {
        "method": "reload_weights",
        "kwargs": {"weights_path": str(tmp_path / "update-000000")},
    }


def test_a_server_that_keeps_old_weights_stops_the_run(codec, tmp_path):
    engine = make_engine(reference=False)
    with StubVLLM() as good, StubVLLM(stale=True) as stale:
        s = sampler([good, stale], tmp_path, engine, codec)
        with s.playing(temperature=1.0):
            pass
        take_step(engine)
        with (
            pytest.raises(PolicyError, match="does not sample with the trainer's weights") as caught,
            s.playing(temperature=1.0),
        ):
            pass
    assert str(caught.value).startswith(stale.url.removesuffix("/v1"))


def test_a_server_out_of_development_mode_is_told_how_to_start(codec, tmp_path):
    models = {"data": [{"max_model_len": 700}]}
    with StubServer(lambda body: failure(404), {"/v1/models": lambda body: (200, models, {})}) as server:
        s = sampler([server], tmp_path, make_engine(reference=False), codec)
        with pytest.raises(ConfigError, match=r"HTTP 404.* started with VLLM_SERVER_DEV_MODE=1"):
            s.playing(temperature=1.0).__enter__()


def test_a_failed_reload_asks_whether_the_folder_is_shared(codec, tmp_path):
    models = {"data": [{"max_model_len": 700}]}
    with StubServer(lambda body: failure(500), {"/v1/models": lambda body: (200, models, {})}) as server:
        s = sampler([server], tmp_path, make_engine(reference=False), codec)
        with pytest.raises(PolicyError, match=f"HTTP 500.* see {tmp_path}/update-000000"):
            s.playing(temperature=1.0).__enter__()


def test_a_cache_that_cannot_be_emptied_stops_the_run(codec, tmp_path):
    with StubVLLM(resets=False) as server:
        s = sampler([server], tmp_path, make_engine(reference=False), codec)
        with pytest.raises(PolicyError, match="cache still holds the work of older weights"):
            s.playing(temperature=1.0).__enter__()


@pytest.mark.parametrize("room", [699, None])
def test_a_server_with_too_little_room_is_refused_at_the_start(codec, tmp_path, room):
    with (
        StubVLLM(max_model_len=room) as server,
        pytest.raises(ConfigError, match=f"model.max_context=700 tokens, got max_model_len={room}"),
    ):
        sampler([server], tmp_path, make_engine(reference=False), codec)


def test_only_folders_of_transfers_are_removed(codec, tmp_path):
    others = [tmp_path / name for name in ("update-now", "model", "update-000007.txt")]
    for age, path in enumerate([*others, tmp_path / "update-000901", tmp_path / "update-000900"]):
        path.mkdir()
        os.utime(path, (1000 - age, 1000 - age))
    with (
        StubVLLM() as server,
        sampler([server], tmp_path, make_engine(reference=False), codec).playing(temperature=1.0),
    ):
        pass
    left = {path.name for path in tmp_path.iterdir()} - {Path(p).name for p in others}
    assert left == {"update-000000", "update-000901"}


@pytest.mark.slow
def test_every_rank_asks_and_the_main_one_brings_the_weights(tmp_path):
    with StubVLLM() as server:
        (tmp_path / "url").write_text(server.url)
        ranks = run_ranks("tests.train.server_jobs", ["ask_one_server"], tmp_path)
    assert server.loaded == [str(tmp_path / "weights" / "update-000000")]
    prompts = [list(r["ask_one_server/prompt"]) for r in ranks]
    assert prompts[0] != prompts[1]
    assert all(prompt in [b.get("prompt") for b in server.bodies] for prompt in prompts)
    for r in ranks:
        assert r["ask_one_server/difference"] < 1e-5
        assert r["ask_one_server/tokens"] == sum(map(len, prompts))
