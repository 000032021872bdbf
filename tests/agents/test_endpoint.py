import doctest
import threading
from email.utils import formatdate
from typing import Any

import pytest
from PIL import Image

from arl_gym.agents import endpoint, transport
from arl_gym.agents.endpoint import EndpointPolicy
from arl_gym.agents.evaluate import evaluate
from arl_gym.agents.types import Reply, Request
from arl_gym.core import Message
from arl_gym.errors import ConfigError, PolicyError
from tests.agents.counting import ID
from tests.agents.stub_server import StubServer, completion, failure


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    monkeypatch.setattr(transport, "_FIRST_WAIT_S", 0.001)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")


def policy(url: str, **changes: Any) -> EndpointPolicy:
    return EndpointPolicy(base_url=url, model="m", **changes)


def request(key: int = 0, text: str = "look", stream: int = 0, **info: Any) -> Request:
    messages: list[Message] = [{"role": "user", "content": text}]
    return Request(key=key, messages=messages, info=info, context_ids=None, stream=stream)


def ask(p: EndpointPolicy, *requests: Request) -> list[Reply]:
    p.submit(requests)
    replies: list[Reply] = []
    while len(replies) < len(requests):
        replies += p.poll()
    return sorted(replies, key=lambda r: r.key)


def in_turn(*answers):
    """Give the answers one after the other, the last one for ever."""
    left = list(answers)
    return lambda _: left.pop(0) if len(left) > 1 else left[0]


def test_the_examples_of_joined_thoughts_hold():
    assert doctest.testmod(endpoint, optionflags=doctest.ELLIPSIS).failed == 0


def test_the_request_says_what_was_asked_for():
    with StubServer(in_turn(completion("up"))) as server, policy(server.url + "/") as p:
        reply = ask(p, request(key=4, text="see", stream=5 << 33))[0]
    assert (reply.key, reply.response, reply.finish) == (4, "up", "stop")
    assert server.bodies == [
        {
            "model": "m",
            "messages": [{"role": "user", "content": "see"}],
            "max_tokens": 512,
            "temperature": 0.0,
            "top_p": 1.0,
            "seed": 5,
        }
    ]
    assert server.headers[0]["Authorization"] == "Bearer sk-secret"
    assert p.usage == {"requests": 1, "prompt_tokens": 10, "completion_tokens": 3}


def test_extra_fields_win_and_none_takes_one_out():
    extra = {"top_k": 20, "max_tokens": 7, "temperature": None}
    with (
        StubServer(in_turn(completion("up"))) as server,
        policy(server.url, extra_body=extra, api_key="") as p,
    ):
        ask(p, request())
    (body,) = server.bodies
    assert (body["top_k"], body["max_tokens"], "temperature" in body) == (20, 7, False)
    assert "Authorization" not in server.headers[0]


def test_pictures_travel_as_data_urls():
    picture: Message = {"role": "user", "content": [{"type": "image", "image": Image.new("RGB", (1, 1))}]}
    with StubServer(in_turn(completion("up"))) as server, policy(server.url) as p:
        ask(p, Request(key=0, messages=[picture], info={}, context_ids=None, stream=0))
    url = server.bodies[0]["messages"][0]["content"][0]["image_url"]["url"]
    assert url.startswith("data:image/png;base64,")


@pytest.mark.parametrize(
    ("answer", "response", "finish"),
    [
        (
            completion("<action>up</action>", reasoning_content="a"),
            "<think>a</think><action>up</action>",
            "stop",
        ),
        (completion("<action>up</action>", reasoning="a"), "<think>a</think><action>up</action>", "stop"),
        (completion(None, finish="length", reasoning_content="a b"), "<think>a b", "length"),
        (completion("cut", finish="length"), "cut", "length"),
        (completion(None), "", "empty"),
    ],
)
def test_a_completion_is_one_response(answer, response, finish):
    with StubServer(in_turn(answer)) as server, policy(server.url) as p:
        reply = ask(p, request())[0]
    assert (reply.response, reply.finish) == (response, finish)


@pytest.mark.parametrize(
    "bad",
    [
        failure(429, Retry_After="0"),
        failure(429, Retry_After=formatdate(0, usegmt=True)),
        failure(500),
        failure(503, Retry_After="soon"),
        (200, b"<html>", {}),
        (200, {"choices": []}, {}),
        (200, [], {}),
    ],
)
def test_a_failure_that_passes_is_tried_again(bad):
    with StubServer(in_turn(bad, bad, completion("up"))) as server, policy(server.url) as p:
        assert ask(p, request())[0].response == "up"
    assert len(server.bodies) == 3


def test_a_failure_that_stays_is_one_clear_error_after_the_last_try():
    with StubServer(in_turn(failure(500, "no memory"))) as server, policy(server.url, retries=2) as p:
        p.submit([request()])
        with pytest.raises(PolicyError, match=r"HTTP 500: no memory, after 3 tries"):
            p.poll()
    assert len(server.bodies) == 3


def test_a_server_that_wants_a_longer_wait_than_allowed_is_given_up():
    limited = failure(429, "slow down", Retry_After="3600")
    with StubServer(in_turn(limited)) as server, policy(server.url, max_wait_s=60) as p:
        p.submit([request()])
        with pytest.raises(PolicyError, match="slow down, after 1 tries and 0 s of waiting"):
            p.poll()


@pytest.mark.parametrize("status", [400, 401, 404, 302])
def test_a_refusal_is_not_repeated_and_never_shows_the_key(status):
    # The key lies across the point where long messages are cut.
    refusal = failure(status, "x" * 490 + " sk-secret", Location="http://127.0.0.1:9/")
    with StubServer(in_turn(refusal)) as server, policy(server.url) as p:
        p.submit([request()])
        with pytest.raises(PolicyError, match=rf"HTTP {status}: x+ \*\*\*$"):
            p.poll()
        with pytest.raises(PolicyError, match="is closed"):
            p.submit([request()])
    assert len(server.bodies) == 1


def test_a_prompt_that_is_too_long_ends_the_episode_not_the_evaluation():
    too_long = failure(400, "This model's maximum context length is 2048 tokens.")
    with StubServer(in_turn(too_long)) as server:
        with policy(server.url) as p:
            assert ask(p, request())[0].finish == "context_full"
        with policy(server.url) as p:
            assert evaluate(p, ID, episodes=1).successes == (False,)


def test_nobody_listening_is_an_error_that_says_so():
    with StubServer(in_turn(completion("up"))) as server:
        url = server.url
    with policy(url, retries=1) as p:
        p.submit([request()])
        with pytest.raises(PolicyError, match="ConnectionRefusedError"):
            p.poll()


def test_a_silent_server_is_asked_again():
    release, asked = threading.Event(), []

    def answer(body):
        asked.append(body)
        if len(asked) == 1:
            release.wait(10)
        return completion("up")

    with StubServer(answer) as server, policy(server.url, timeout_s=0.2) as p:
        assert ask(p, request())[0].response == "up"
        release.set()
    assert len(asked) == 2


def test_submitting_never_blocks_and_requests_run_side_by_side_up_to_the_limit():
    gate, lock = threading.Barrier(3), threading.Lock()
    now, most = [0], [0]

    def answer(body):
        with lock:
            now[0] += 1
            most[0] = max(most[0], now[0])
        gate.wait(10)  # nobody passes unless three are there at once
        with lock:
            now[0] -= 1
        gate.wait(10)
        return completion(body["messages"][0]["content"])

    with StubServer(answer) as server, policy(server.url, concurrency=3) as p:
        replies = ask(p, *(request(key=i, text=f"t{i}") for i in range(9)))
    assert [r.response for r in replies] == [f"t{i}" for i in range(9)]
    assert most == [3]


def test_what_has_arrived_is_returned_while_others_wait():
    release = threading.Event()

    def answer(body):
        if body["messages"][0]["content"] == "slow":
            release.wait(10)
        return completion("done")

    with StubServer(answer) as server, policy(server.url) as p:
        p.submit([request(0, "slow"), request(1, "quick")])
        assert [r.key for r in p.poll()] == [1]
        release.set()
        assert [r.key for r in p.poll()] == [0]
        assert p.poll() == []


def test_a_dialogue_is_sent_whole_without_hidden_thoughts_and_unread_text():
    with (
        StubServer(in_turn(completion("up and more", reasoning="hm"), completion("down"))) as server,
        policy(server.url) as p,
    ):
        ask(p, request(text="one", append=False))
        # The env read "<think>hm</think>" (17 characters) and "up".
        ask(p, request(text="two", append=True, consumed=19))
        ask(p, request(text="three", append=True))
        ask(p, request(text="anew", append=False))
    shown = [[m["content"] for m in body["messages"]] for body in server.bodies]
    assert shown == [
        ["one"],
        ["one", "up", "two"],
        ["one", "up", "two", "down", "three"],
        ["anew"],
    ]
    assert [m["role"] for m in server.bodies[1]["messages"]] == ["user", "assistant", "user"]


def test_an_evaluation_over_a_server_scores_as_one_without():
    with (
        StubServer(in_turn(completion("<action>up</action>", reasoning="up!"))) as server,
        policy(server.url, concurrency=4) as p,
    ):
        result = evaluate(p, ID, episodes=6, num_envs=3)
        again = evaluate(p, ID, episodes=1)
    # Goals 1, 2, 3, 1, 2, 3: twelve turns.
    assert (result.success_rate, result.format_valid_share, result.length_mean) == (1.0, 1.0, 2.0)
    assert result.usage == {"requests": 12, "prompt_tokens": 120, "completion_tokens": 36}
    assert result.settings["model"] == "m"
    assert again.usage == {"requests": 1, "prompt_tokens": 10, "completion_tokens": 3}
    assert "sk-secret" not in result.to_json()


def test_the_strict_format_holds_for_a_template_that_wrote_the_opening_tag():
    answer = completion("up!</think>\n<action>up</action>")
    with StubServer(in_turn(answer)) as server, policy(server.url) as p:
        assert evaluate(p, ID, episodes=3).format_valid_share == 1.0


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"base_url": "127.0.0.1:8000"}, "base_url"),
        ({"base_url": "http://me:secret@host/v1"}, "base_url"),
        ({"concurrency": 0}, "concurrency >= 1"),
        ({"top_p": 0.0}, "top_p"),
    ],
)
def test_a_wrong_setting_is_refused_without_showing_secrets(changes, says):
    with pytest.raises(ConfigError, match=says) as caught:
        EndpointPolicy(**({"base_url": "http://h/v1", "model": "m"} | changes))
    assert "secret" not in str(caught.value)
