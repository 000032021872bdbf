import dataclasses

import pytest
import torch

from arl_gym.agents.rollout import rollout
from arl_gym.agents.types import Episode, Reply, Request
from arl_gym.core import Message
from arl_gym.errors import ConfigError, PolicyError
from arl_gym.make import make_chat_vec
from arl_gym.rng import derive
from arl_gym.train.config import VLLMConfig
from arl_gym.train.policies.hf import HFPolicy
from arl_gym.train.policies.vllm import VLLMPolicy, open_engine
from tests.vllm.conftest import BLOCK, MAX_CONTEXT

DIALS = {"max_tokens": 12, "temperature": 1.0, "max_context": MAX_CONTEXT}


def request(key=0, text="####\n#PXO#", *, stream=7):
    messages: list[Message] = [{"role": "user", "content": text}]
    return Request(key=key, messages=messages, info={}, context_ids=None, stream=derive("test", stream))


def answers(policy, requests):
    policy.submit(requests)
    replies: dict[int, Reply] = {}
    while len(replies) < len(requests):
        replies |= {reply.key: reply for reply in policy.poll()}
    return [replies[r.key] for r in requests]


def both(llm, loaded, codec, **changes):
    dials = DIALS | changes
    return VLLMPolicy(llm, codec, **dials), HFPolicy(loaded.model, codec, batch_size=8, **dials)


def played(policy, *, window, episodes=6, max_steps=3, play=rollout):
    vec = make_chat_vec(
        "ARL/Sokoban-v0", 4, window=window, max_steps=max_steps, prompt="compact", text_format="inner"
    )
    try:
        ids = vec.call(0, "get_wrapper_attr", "task_ids")("train")
        todo = [Episode(task_id=ids[i // 2], group=i // 2, copy=i % 2) for i in range(episodes)]
        return play(vec, policy, todo, env_id="ARL/Sokoban-v0", seed=0)
    finally:
        vec.close()


@pytest.mark.parametrize("window", [0, 2, None], ids=["no history", "window of 2", "dialogue"])
def test_greedy_episodes_equal_those_of_transformers(llm, loaded, codec, window):
    ours, theirs = both(llm, loaded, codec, temperature=0.0, max_context=MAX_CONTEXT)
    a, b = (
        [turn for trajectory in played(policy, window=window) for turn in trajectory.turns]
        for policy in (ours, theirs)
    )
    assert len(a) == len(b) == 18
    for mine, other in zip(a, b, strict=True):
        assert mine.prompt_ids == other.prompt_ids
        assert mine.completion_ids == other.completion_ids
        assert mine.logprobs == pytest.approx(other.logprobs, abs=1e-5)
        assert (mine.response, mine.finish) == (other.response, other.finish)


def test_log_probs_are_at_the_temperature(llm, loaded, codec):
    policy, _ = both(llm, loaded, codec, temperature=0.7)
    for reply in answers(policy, [request(k, stream=k) for k in range(3)]):
        ids = torch.tensor([reply.prompt_ids + reply.completion_ids])
        with torch.no_grad():
            logp = torch.log_softmax(loaded.model(ids).logits[0] / 0.7, -1)
        n = len(reply.prompt_ids)
        expected = [float(logp[n - 1 + i, t]) for i, t in enumerate(reply.completion_ids)]
        assert reply.logprobs == pytest.approx(expected, abs=1e-5)


def test_a_stream_gives_one_response_whoever_is_under_way_besides(llm, loaded, codec):
    policy, _ = both(llm, loaded, codec)
    alone = answers(policy, [request(stream=3)])[0]
    among = answers(policy, [request(k, stream=k) for k in range(6)])
    assert among[3].completion_ids == alone.completion_ids
    assert len({tuple(reply.completion_ids) for reply in among}) == 6


def test_a_request_is_answered_as_soon_as_it_is_done(llm, loaded, codec):
    policy, _ = both(llm, loaded, codec, max_context=60)
    long, short = request(0, "#"), request(1, "#" * 20)
    n_long, n_short = (len(codec.encode_prompt(r.messages)) for r in (long, short))
    policy.max_context = n_short + 2  # two tokens of room there, all twelve here
    assert n_long + 12 <= policy.max_context
    policy.submit([long, short])
    assert [reply.key for reply in policy.poll()] == [1]
    assert [reply.key for reply in policy.poll()] == [0]
    assert policy.poll() == []


def test_a_response_ends_with_its_end_token(llm, loaded, codec):
    policy, _ = both(llm, loaded, codec)
    (whole,) = answers(policy, [request()])
    ids = whole.completion_ids
    assert (whole.finish, len(ids)) == ("length", 12)
    later = next(i for i in range(1, 12) if ids[i] not in ids[:i])
    for n, finish in ((1, "empty"), (later + 1, "stop")):
        codec.eos_ids = frozenset({ids[n - 1]})
        (reply,) = answers(policy, [request()])
        assert reply.completion_ids == ids[:n]
        assert reply.logprobs == pytest.approx(whole.logprobs[:n], abs=1e-5)
        assert reply.finish == finish


def test_a_response_ends_with_a_stop_string(llm, loaded, codec):
    policy, _ = both(llm, loaded, codec)
    (whole,) = answers(policy, [request()])
    text = whole.response
    pairs = [text[i : i + 2] for i in range(1, len(text) - 2) if text[i : i + 2] not in text[: i + 1]]
    stop = next(pair for pair in pairs if pair.isascii())
    (reply,) = answers(policy, [dataclasses.replace(request(), info={"stop": ["never said", stop]})])
    n = len(reply.completion_ids)
    assert reply.finish == "stop"
    assert 1 < n < len(whole.completion_ids)
    assert reply.completion_ids == whole.completion_ids[:n]
    assert len(reply.logprobs) == n
    assert stop in reply.response
    assert stop not in codec.decode(reply.completion_ids[:-1])


def test_a_prompt_without_room_is_answered_without_the_engine(llm, loaded, codec):
    n = len(codec.encode_prompt(request().messages))
    policy, _ = both(llm, loaded, codec, max_context=n)
    (reply,) = answers(policy, [request()])
    assert (reply.finish, reply.completion_ids, len(reply.prompt_ids)) == ("context_full", [], n)
    assert policy.n_requests == 0


def test_banned_tokens_are_out_of_the_distribution(llm, loaded, codec, monkeypatch):
    policy, _ = both(llm, loaded, codec, temperature=0.0, max_tokens=4)
    banned = tuple(sorted({*answers(policy, [request()])[0].completion_ids}))
    monkeypatch.setattr(type(codec), "banned", banned)
    for temperature in (0.0, 1.0):
        policy.temperature = temperature
        (reply,) = answers(policy, [request()])
        assert not {*reply.completion_ids} & {*banned}
        ids = torch.tensor([reply.prompt_ids + reply.completion_ids])
        with torch.no_grad():
            logits = loaded.model(ids).logits[0]
        logits[:, list(banned)] = -torch.inf
        logp = torch.log_softmax(logits, -1)
        n = len(reply.prompt_ids)
        expected = [float(logp[n - 1 + i, t]) for i, t in enumerate(reply.completion_ids)]
        assert reply.logprobs == pytest.approx(expected, abs=1e-6)


def test_copies_of_a_task_read_its_prompt_once(llm, loaded, codec):
    policy, _ = both(llm, loaded, codec)
    text = "#" * 100
    n = len(codec.encode_prompt(request(text=text).messages))
    answers(policy, [request(k, text, stream=k) for k in range(4)])
    assert policy.n_requests == 4
    assert policy.n_prompt_tokens == 4 * n
    assert policy.n_cached_tokens == 3 * ((n - 1) // BLOCK * BLOCK)


def test_a_dialogue_is_read_once(llm, loaded, codec):
    policy, _ = both(llm, loaded, codec)
    trajectories = played(policy, window=None, episodes=2, max_steps=10)
    turns = [turn for trajectory in trajectories for turn in trajectory.turns]
    assert policy.n_prompt_tokens == sum(len(turn.prompt_ids) for turn in turns)
    whole = sum(len(t.turns[-1].prompt_ids) for t in trajectories)
    read = policy.n_prompt_tokens - policy.n_cached_tokens
    # Every turn reads what is new, and again what does not fill a block.
    assert read <= whole + BLOCK * len(turns) < policy.n_prompt_tokens / 2


def test_an_engine_that_fails_is_one_error(llm, loaded, codec, monkeypatch):
    policy, _ = both(llm, loaded, codec)
    policy.submit([request()])

    def step():
        raise RuntimeError("out of\nmemory")

    with monkeypatch.context() as patch:
        patch.setattr(llm.llm_engine, "step", step)
        with pytest.raises(PolicyError, match=r"could not sample: RuntimeError: out of memory$"):
            policy.poll()
    assert len(policy.poll()) == 1


def test_an_argument_that_vllm_does_not_know_is_named():
    dials = VLLMConfig(kwargs={"max_num_seq": 4})
    with pytest.raises(ConfigError, match=r"'max_num_seq' in vllm.kwargs: did you mean 'max_num_seqs'"):
        open_engine("nowhere", dtype="float32", max_context=64, seed=0, dials=dials)


def test_a_model_that_is_not_there_is_an_error():
    with pytest.raises(ConfigError, match="vLLM does not start with /nowhere: "):
        open_engine("/nowhere", dtype="float32", max_context=64, seed=0, dials=VLLMConfig())


def test_settings_say_what_the_answers_depend_on(llm, loaded, codec):
    ours, theirs = both(llm, loaded, codec)
    assert ours.settings == theirs.settings
