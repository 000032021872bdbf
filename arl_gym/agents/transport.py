"""JSON over HTTP for those who ask many things at once: in threads, and again after failures that pass.

Standard library only. Knows nothing of what is asked.

    exchange = Exchange(read, concurrency=16, timeout_s=600, retries=6, max_wait_s=300)
    exchange.send(0, "http://127.0.0.1:8000/v1/completions", b'{"prompt": "Once"}')
    answers = exchange.receive()
"""

import json
import random
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from contextlib import suppress
from email.message import Message as Headers
from email.utils import parsedate_to_datetime
from http.client import HTTPException
from queue import Empty, SimpleQueue
from threading import Event, Thread
from typing import Any, Generic, TypeVar
from urllib.parse import urlsplit

from arl_gym.errors import ArlGymError, PolicyError

A = TypeVar("A")

_RETRIED = frozenset({408, 409, 425, 429})
_TOO_LONG = ("context_length_exceeded", "maximum context length", "maximum model length")
_FIRST_WAIT_S = 0.5
_LONGEST_WAIT_S = 60.0


def is_http(url: str) -> bool:
    """Return whether an address is one of HTTP, without a user's name and password in it."""
    parts = urlsplit(url)
    return parts.scheme in ("http", "https") and bool(parts.hostname) and "@" not in parts.netloc


class Passing(Exception):
    """A failure that may pass: the request is worth repeating."""

    def __init__(self, what: str, retry_after_s: float | None = None):
        super().__init__(what)
        self.retry_after_s = retry_after_s


class TooLong(Exception):
    """The server finds the prompt too long."""


class Refusal(PolicyError):
    """The server does not do what it is asked to."""

    def __init__(self, what: str, status: int):
        super().__init__(what)
        self.status = status


class Exchange(Generic[A]):
    """Asks servers and collects what they answer.

    Args:
        read: Makes an answer of a body; raises `Passing` if it is none.
        concurrency: Most requests under way at once.
        timeout_s: How long a server may be silent.
        retries: How often a request is repeated after 429, 5xx, a time-out, a lost connection or a malformed
            answer, with growing waits.
        max_wait_s: Most seconds that one request waits between its tries, all waits together.
        api_key: Sent as bearer token if it is not empty; never part of an error.
    """

    def __init__(
        self,
        read: Callable[[bytes], A],
        *,
        concurrency: int,
        timeout_s: float,
        retries: int,
        max_wait_s: float,
        api_key: str = "",
    ):
        self._read, self._concurrency = read, concurrency
        self._timeout_s, self._retries, self._max_wait_s = timeout_s, retries, max_wait_s
        self._api_key = api_key
        self._n_open = 0
        self._n_threads = 0
        self._todo: SimpleQueue[tuple[int, str, bytes] | None] = SimpleQueue()
        self._done: SimpleQueue[tuple[int, A | TooLong | ArlGymError]] = SimpleQueue()
        self._closed = Event()

    def close(self) -> None:
        """Give up what is queued and end the threads once their requests return; twice is fine."""
        self._closed.set()
        for _ in range(self._n_threads):
            self._todo.put(None)
        self._n_threads = 0

    def send(self, key: int, url: str, body: bytes) -> None:
        """Queue a request; its answer comes back with `key`.

        Raises:
            PolicyError: If the exchange is closed.
        """
        if self._closed.is_set():
            raise PolicyError(f"the connection to {url} is closed")
        self._todo.put((key, url, body))
        self._n_open += 1
        if self._n_threads < min(self._concurrency, self._n_open):
            self._n_threads += 1
            # Not a pool of `concurrent.futures`: that waits at exit for all it has queued.
            Thread(target=self._work, daemon=True, name=f"exchange-{self._n_threads}").start()

    def receive(self) -> list[tuple[int, A | TooLong]]:
        """Wait for an answer and return all that have arrived; [] if nothing is outstanding.

        Raises:
            ArlGymError: If a server refuses a request, or has failed as often as it may. Closes the exchange.
        """
        if not self._n_open:
            return []
        try:
            answers = [self._taken(*self._done.get())]
            with suppress(Empty):
                while True:
                    answers.append(self._taken(*self._done.get_nowait()))
            return answers
        except BaseException:
            self.close()
            raise

    def _taken(self, key: int, answer: A | TooLong | ArlGymError) -> tuple[int, A | TooLong]:
        self._n_open -= 1
        if isinstance(answer, ArlGymError):
            raise answer
        return key, answer

    def _work(self) -> None:
        while (job := self._todo.get()) is not None and not self._closed.is_set():
            key, url, body = job
            try:
                self._done.put((key, self.ask(url, body)))
            except (TooLong, ArlGymError) as err:
                self._done.put((key, err))
            except Exception as err:  # a thread has nobody to raise to: whoever receives shall know
                reason = self._without_key(f"{url}: {type(err).__name__}: {err}")
                self._done.put((key, PolicyError(reason)))

    def ask(self, url: str, body: bytes | None = None) -> A:
        """Ask until there is an answer, or no more reason to hope for one.

        Args:
            url: Whom.
            body: What is posted; None gets.

        Raises:
            TooLong: If the server finds the prompt too long.
            Refusal: If the server refuses.
            PolicyError: If it has failed as often as it may.
        """
        waited = 0.0
        for attempt in range(self._retries + 1):
            try:
                return self._read(self._fetch(url, body))
            except Passing as err:
                wait_s = _wait_s(attempt, err.retry_after_s)
                if (
                    attempt == self._retries
                    or waited + wait_s > self._max_wait_s
                    or self._closed.wait(wait_s)
                ):
                    reason = f"{url}: {err}, after {attempt + 1} tries and {waited:.0f} s of waiting"
                    raise PolicyError(self._without_key(reason)) from err
                waited += wait_s
        raise AssertionError("the last try returns or raises")

    def _fetch(self, url: str, body: bytes | None) -> bytes:
        headers = {"Content-Type": "application/json"}
        if self._api_key:
            headers["Authorization"] = f"Bearer {self._api_key}"
        request = urllib.request.Request(url, data=body, headers=headers)
        try:
            with _OPENER.open(request, timeout=self._timeout_s) as response:
                return bytes(response.read())
        except urllib.error.HTTPError as err:
            said = _message(self._without_key(_body_of(err)))
            if err.code in _RETRIED or err.code >= 500:
                raise Passing(f"HTTP {err.code}: {said}", _retry_after_s(err.headers)) from err
            if err.code in (400, 413, 422) and any(mark in said.lower() for mark in _TOO_LONG):
                raise TooLong from err
            raise Refusal(f"{url}: HTTP {err.code}: {said}", err.code) from err
        except (OSError, HTTPException) as err:  # URLError and time-outs are OSErrors
            reason = getattr(err, "reason", err)
            raise Passing(f"{type(reason).__name__}: {reason}") from err

    def _without_key(self, text: str) -> str:
        return text.replace(self._api_key, "***") if self._api_key else text


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Follows none: the key goes only where it was meant to."""

    def redirect_request(self, *args: Any, **kwargs: Any) -> None:
        """Make the redirection an error."""


_OPENER = urllib.request.build_opener(_NoRedirects)


def _wait_s(attempt: int, retry_after_s: float | None) -> float:
    """Return the wait after a failed try: what the server asks for, or doubling waits; never in step."""
    jitter = random.uniform(0.75, 1.25)  # nothing that is computed depends on it
    if retry_after_s is not None:
        return retry_after_s + 0.1 * jitter
    return min(_LONGEST_WAIT_S, _FIRST_WAIT_S * 2.0**attempt) * jitter


def _retry_after_s(headers: Headers) -> float | None:
    """Return the seconds that a Retry-After header, a number or a date, asks to wait."""
    value = headers.get("Retry-After", "")
    try:
        return max(0.0, float(value))
    except ValueError:
        pass
    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - time.time())
    except ValueError:
        return None


def _body_of(err: urllib.error.HTTPError) -> str:
    try:
        with err:
            return err.read().decode(errors="replace")
    except (OSError, HTTPException) as broken:
        return f"(the answer broke off: {broken})"


def _message(text: str) -> str:
    """Return what an error's body says, in one short line."""
    try:
        said = json.loads(text)
    except ValueError:
        said = text
    if isinstance(said, dict):
        error = said.get("error", said)
        if isinstance(error, dict):
            said = " ".join(str(error[key]) for key in ("code", "message", "detail") if error.get(key))
        else:
            said = error
    return " ".join(str(said or text).split())[:500]
