"""A policy that asks a server with OpenAI's chat interface: vLLM, SGLang, llama.cpp, or a vendor's API.

Standard library only. Requests run in threads, so many episodes wait for the server at once.

    with EndpointPolicy(base_url="http://127.0.0.1:8000/v1", model="Qwen/Qwen3-4B") as policy:
        print(evaluate(policy, "ARL/Sokoban-v0", episodes=64).success_rate)
"""

import json
import os
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from arl_gym.agents.transport import Exchange, Passing, TooLong, is_http
from arl_gym.agents.types import Finish, Reply, Request
from arl_gym.core import Message, to_openai
from arl_gym.errors import ConfigError


class Answer(NamedTuple):
    """What a server said, read as one response."""

    response: str
    n_thought: int
    """How many of the response's first characters the server does not want back in the dialogue."""
    finish: Finish
    prompt_tokens: int
    completion_tokens: int


class EndpointPolicy:
    """Answers with the chat completions of a server; use as a context manager, or call `close`.

    A server that thinks apart (`reasoning_content` or `reasoning`) is read as if it had thought aloud:
    `<think>…</think>` before the content; so is a template that prefilled `<think>`. A prompt that the server
    finds too long ends the episode with "context_full".

    Args:
        base_url: Up to and without `/chat/completions`, e.g. `http://127.0.0.1:8000/v1`.
        model: The server's name of the model.
        api_key: Sent as bearer token; None takes the environment variable OPENAI_API_KEY. Never written.
        concurrency: Most requests under way at once.
        temperature: Sampling temperature.
        top_p: Nucleus of the sampling.
        max_tokens: Most tokens of one response.
        extra_body: Further fields of the request, e.g. `{"top_k": 20}`; they win over those above, and None
            takes one out: `{"max_tokens": None, "max_completion_tokens": 2048}` for servers that insist.
        timeout_s: How long the server may be silent.
        retries: How often a request is repeated after 429, 5xx, a time-out, a lost connection or a malformed
            answer, with growing waits.
        max_wait_s: Most seconds that one request waits between its tries, all waits together.

    Raises:
        ConfigError: If a value is out of range or the address is not one of HTTP.
    """

    def __init__(
        self,
        *,
        base_url: str,
        model: str,
        api_key: str | None = None,
        concurrency: int = 16,
        temperature: float = 0.0,
        top_p: float = 1.0,
        max_tokens: int = 512,
        extra_body: Mapping[str, Any] | None = None,
        timeout_s: float = 600.0,
        retries: int = 6,
        max_wait_s: float = 300.0,
    ):
        if not is_http(base_url):
            raise ConfigError("base_url must be like http://host:port/v1, without a user, got another form")
        if concurrency < 1 or max_tokens < 1 or retries < 0 or timeout_s <= 0 or not 0 < top_p <= 1:
            raise ConfigError(
                "an endpoint needs concurrency >= 1, max_tokens >= 1, retries >= 0, timeout_s > 0 and "
                f"top_p in (0, 1], got {concurrency}, {max_tokens}, {retries}, {timeout_s}, {top_p}"
            )
        self.url = base_url.rstrip("/") + "/chat/completions"
        self.model = model
        self.temperature, self.top_p, self.max_tokens = temperature, top_p, max_tokens
        self.extra_body = dict(extra_body or {})
        self.usage = {"requests": 0, "prompt_tokens": 0, "completion_tokens": 0}
        self._dialogues: dict[int, list[Message]] = {}  # of each episode, answers included
        self._n_thought: dict[int, int] = {}  # of each episode's last answer
        self._exchange = Exchange(
            _read,
            concurrency=concurrency,
            timeout_s=timeout_s,
            retries=retries,
            max_wait_s=max_wait_s,
            api_key=(os.environ.get("OPENAI_API_KEY", "") if api_key is None else api_key).strip(),
        )

    def __enter__(self) -> "EndpointPolicy":
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """Give up what is queued and end the threads once their requests return; twice is fine."""
        self._exchange.close()

    @property
    def settings(self) -> dict[str, Any]:
        """What the answers depend on; not where the server is, nor how hurriedly it is asked."""
        names = ("model", "temperature", "top_p", "max_tokens", "extra_body")
        return {name: getattr(self, name) for name in names}

    def submit(self, requests: Sequence[Request]) -> None:
        """Queue requests.

        Raises:
            PolicyError: If the policy is closed.
        """
        for request in requests:
            body = self._body(self._dialogue(request), request.stream)
            self._exchange.send(request.key, self.url, body)

    def poll(self) -> list[Reply]:
        """Wait for an answer and return all that have arrived; [] if nothing is outstanding.

        Raises:
            PolicyError: If the server refuses a request, or has failed as often as it may. Closes the policy.
        """
        return [self._reply(key, answer) for key, answer in self._exchange.receive()]

    def _dialogue(self, request: Request) -> list[Message]:
        """Return all messages up to now of the request's episode."""
        if not request.info.get("append", False):
            self._dialogues[request.key] = list(request.messages)
            return self._dialogues[request.key]
        dialogue = self._dialogues[request.key]
        # The env may have read less than was said: what it did not read never happened.
        if "consumed" in request.info:
            n_read = max(0, request.info["consumed"] - self._n_thought[request.key])
            dialogue[-1] = {"role": "assistant", "content": str(dialogue[-1]["content"])[:n_read]}
        dialogue += request.messages
        return dialogue

    def _body(self, messages: Sequence[Message], stream: int) -> bytes:
        body: dict[str, Any] = {
            "model": self.model,
            "messages": to_openai(messages),
            "max_tokens": self.max_tokens,
            "temperature": self.temperature,
            "top_p": self.top_p,
            "seed": stream >> 33,  # servers take 31 bits
        }
        fields = {key: value for key, value in (body | self.extra_body).items() if value is not None}
        return json.dumps(fields).encode()

    def _reply(self, key: int, answer: Answer | TooLong) -> Reply:
        if isinstance(answer, TooLong):
            answer = Answer("", 0, "context_full", 0, 0)
        self.usage["requests"] += 1
        self.usage["prompt_tokens"] += answer.prompt_tokens
        self.usage["completion_tokens"] += answer.completion_tokens
        self._n_thought[key] = answer.n_thought
        said = answer.response[answer.n_thought :]
        self._dialogues[key].append({"role": "assistant", "content": said})
        return Reply(key=key, response=answer.response, finish=answer.finish)


def _read(raw: bytes) -> Answer:
    """Read the body of a chat completion.

    Raises:
        Passing: If it is none.
    """
    try:
        body = json.loads(raw)
        choice, usage = body["choices"][0], body.get("usage") or {}
        message = choice["message"]
        content = message.get("content") or ""
        thought = message.get("reasoning_content") or message.get("reasoning") or ""
        response, n_thought = join_thought(thought, content)
        finish: Finish = "length" if choice.get("finish_reason") == "length" else "stop"
        tokens = [int(usage.get(f"{name}_tokens") or 0) for name in ("prompt", "completion")]
    except (ValueError, KeyError, IndexError, TypeError, AttributeError) as err:
        start = raw[:100].decode(errors="replace")
        raise Passing(f"expected a chat completion, got {type(err).__name__} in {start!r}") from err
    return Answer(response, n_thought, finish if response else "empty", *tokens)


def join_thought(thought: str, content: str) -> tuple[str, int]:
    """Return the response of a server that may think apart, and how long the thought before its content is.

    >>> join_thought("left is free", "<action>left</action>")
    ('<think>left is free</think><action>left</action>', 27)
    >>> join_thought("", "left is free</think><action>left</action>")  # the template wrote <think>
    ('<think>left is free</think><action>left</action>', 0)
    >>> join_thought("hm", "<think>left is free</think><action>left</action>")  # thought twice
    ('<think>left is free</think><action>left</action>', 0)
    """
    if "<think>" not in content and "</think>" in content:
        return f"<think>{content}", 0
    if "<think>" in content or not thought:
        return content, 0
    # A thought that the token limit cut off has no end.
    before = f"<think>{thought}</think>" if content else f"<think>{thought}"
    return before + content, len(before)
