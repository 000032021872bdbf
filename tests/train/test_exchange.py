import pytest

from arl_gym.agents.types import Request
from arl_gym.core import Message
from arl_gym.train.chat import ChatCodec
from arl_gym.train.model import tiny_tokenizer
from arl_gym.train.policies.exchange import has_ended, prompt_of, reply_to


@pytest.fixture(scope="module")
def codec():
    return ChatCodec(tiny_tokenizer())


def request(*stop, context=None):
    messages: list[Message] = [{"role": "user", "content": "P_O"}]
    return Request(key=3, messages=messages, info={"stop": list(stop)}, context_ids=context, stream=1)


def ids(codec, text):
    return codec.encode_response(text)[:-1]  # without the end token


@pytest.mark.parametrize(
    ("text", "stop", "ended"),
    [
        ("x=1```output", ("```output",), True),
        ("x=1```out", ("```output",), False),
        ("x=1```output", ("Code execution", "```output"), True),
        ("x=1```output", (), False),
        ("up", ("u",), True),  # one token that is longer than the string
    ],
)
def test_a_response_ends_with_a_stop_string(codec, text, stop, ended):
    assert has_ended(ids(codec, text), stop, codec) is ended


@pytest.mark.parametrize(
    ("text", "end", "finish"),
    [("a###", False, "stop"), ("a##", False, "length"), ("a##", True, "stop"), ("", True, "empty")],
)
def test_the_finish_says_how_it_ended(codec, text, end, finish):
    sampled = ids(codec, text) + [codec.end_id] * end
    reply = reply_to(request("###"), codec, prompt_ids=[7], ids=sampled, logprobs=[-1.0] * len(sampled))
    assert (reply.finish, reply.response, reply.completion_ids, reply.key) == (finish, text, sampled, 3)


def test_no_ids_are_a_prompt_without_room(codec):
    assert reply_to(request("###"), codec, prompt_ids=[7], ids=[], logprobs=[]).finish == "context_full"


def test_a_dialogue_goes_on_after_a_stop_string_with_the_end_token(codec):
    context = [*codec.encode_prompt([{"role": "user", "content": "#"}]), *ids(codec, "a###")]
    prompt = prompt_of(request(context=context), codec)
    assert prompt[: len(context) + 1] == [*context, codec.end_id]
