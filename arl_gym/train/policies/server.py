"""Rollouts by vLLM servers on other machines: tokens over HTTP, weights through a folder that all see.

The servers run apart and are started by hand (`HOW`); nothing of vLLM is imported. Text only.

    with ServerPolicy(urls, codec, max_tokens=512, temperature=1.0, max_context=4096) as policy:
        trajectories = rollout(vec, policy, episodes, env_id="ARL/Sokoban-v0", seed=0)
"""

import json
import re
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
from torch import Tensor
from transformers import PreTrainedModel

from arl_gym.agents.transport import Exchange, Passing, Refusal, TooLong, is_http
from arl_gym.agents.types import Reply, Request
from arl_gym.errors import ConfigError, PolicyError
from arl_gym.train import distributed
from arl_gym.train.chat import ChatCodec
from arl_gym.train.config import RunConfig
from arl_gym.train.model import save_model
from arl_gym.train.policies.agreement import Scorer, agreement, largest_difference, require_agreement
from arl_gym.train.policies.exchange import check_sampling, prompt_of, reply_to

A = TypeVar("A")

HOW = (
    "VLLM_SERVER_DEV_MODE=1 vllm serve MODEL --logprobs-mode processed_logprobs "
    "--enable-prompt-tokens-details --max-model-len N"
)
"""How a server has to be started."""

_CONCURRENCY = 1024  # requests of one rank under way at once, each with a thread that waits
_N_FOLDERS = 2
_TIMEOUT_S = 600.0
# Together 7.5 s of waiting: less than a server takes to come back, with weights that are not the trainer's.
_RETRIES = 4


class Answer(NamedTuple):
    """What a server said to one request."""

    ids: list[int] | None
    logprobs: list[float] | None
    n_cached: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """A request under way."""

    url: str
    request: Request
    prompt_ids: list[int]
    room: int


class ServerPolicy:
    """Samples from vLLM servers that hold the same weights; use as a context manager, or call `close`.

    Ids and log-probs are the sampled ones, end token included. An episode keeps to one server, whose cache
    then knows its prompts.

    Args:
        urls: Addresses of the servers, without a path.
        codec: The tokenizer side, the same as the servers'.
        max_tokens: Most tokens of one response.
        temperature: 0 is greedy; the log-probs are then those at temperature 1.
        max_context: Most tokens of prompt and response together.
        timeout_s: How long a server may be silent.
        retries: How often a request that failed is repeated, with growing waits.

    Raises:
        ConfigError: If a value is out of range or an address is not one of HTTP.
    """

    def __init__(
        self,
        urls: Sequence[str],
        codec: ChatCodec,
        *,
        max_tokens: int,
        temperature: float,
        max_context: int,
        timeout_s: float = _TIMEOUT_S,
        retries: int = _RETRIES,
    ):
        check_sampling(max_tokens=max_tokens, temperature=temperature)
        self.urls = [_root(url) for url in urls]
        if not self.urls:
            raise ConfigError(
                'vllm.urls: expected addresses of vLLM servers like "http://gpu1:8000", got none'
            )
        self.codec = codec
        self.max_tokens, self.temperature, self.max_context = max_tokens, temperature, max_context
        self.n_requests = 0
        """Requests that the servers have answered."""
        self.n_prompt_tokens = 0
        """Tokens of their prompts."""
        self.n_cached_tokens = 0
        """Those of them that a server did not have to read: an earlier prompt began with them."""
        self._asked: dict[int, _Asked] = {}
        self._too_long: list[Reply] = []
        self._exchange = _exchange(_read_completion, timeout_s=timeout_s, retries=retries)

    def __enter__(self) -> "ServerPolicy":
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """Give up what is under way; twice is fine."""
        self._exchange.close()

    @property
    def settings(self) -> dict[str, Any]:
        """What the answers depend on beside the model."""
        names = ("temperature", "max_tokens", "max_context")
        return {name: getattr(self, name) for name in names} | self.codec.settings

    def submit(self, requests: Sequence[Request]) -> None:
        """Ask for all of them at once.

        Raises:
            ConfigError: If a prompt has pictures.
            PolicyError: If the policy is closed.
        """
        for request in requests:
            if request.pictures:
                raise ConfigError(
                    f"rollout.backend='server' reads text only, got {len(request.pictures)} pictures: "
                    "set rollout.backend='vllm' or obs_mode='text'"
                )
            prompt_ids = prompt_of(request, self.codec)
            room = min(self.max_tokens, self.max_context - len(prompt_ids))
            if room <= 0:
                none = reply_to(request, self.codec, prompt_ids=prompt_ids, ids=[], logprobs=[])
                self._too_long.append(none)
                continue
            url = self.urls[request.key % len(self.urls)]
            self._asked[request.key] = _Asked(url=url, request=request, prompt_ids=prompt_ids, room=room)
            self._exchange.send(request.key, f"{url}/v1/completions", self._body(request, prompt_ids, room))

    def poll(self) -> list[Reply]:
        """Wait for an answer and return all that have arrived; [] if nothing is outstanding.

        Raises:
            ConfigError: If a server was not started as it has to be.
            PolicyError: If a server refuses a request, or has failed as often as it may.
        """
        if self._too_long:
            replies, self._too_long = self._too_long, []
            return replies
        return [self._answer(key, answer) for key, answer in self._exchange.receive()]

    def _body(self, request: Request, prompt_ids: list[int], room: int) -> bytes:
        # What is left out would be filled in from the model's generation_config.json.
        body = {
            "prompt": prompt_ids,
            "max_tokens": room,
            "temperature": self.temperature,
            "top_p": 1.0,
            "top_k": 0,
            "min_p": 0.0,
            "repetition_penalty": 1.0,
            "presence_penalty": 0.0,
            "frequency_penalty": 0.0,
            "seed": request.stream >> 1,  # servers take 63 bits
            "logprobs": 0,  # those of the sampled tokens alone
            "return_token_ids": True,
            "ignore_eos": True,  # the end is where the codec sees it
            "stop_token_ids": sorted(self.codec.eos_ids),
            "stop": list(request.stop),
            "logit_bias": {str(i): -100.0 for i in self.codec.banned},  # the lowest that servers take
        }
        return json.dumps(body).encode()

    def _answer(self, key: int, answer: Answer | TooLong) -> Reply:
        """Turn what a server says of a request into its reply, and count it."""
        asked = self._asked.pop(key)
        if isinstance(answer, TooLong):
            raise ConfigError(
                f"{asked.url}: the server has no room for {len(asked.prompt_ids)} + {asked.room} tokens: "
                f"start it with --max-model-len {self.max_context} or more"
            )
        if answer.ids is None or answer.logprobs is None:
            raise ConfigError(
                f"{asked.url}: expected token_ids and logprobs in the answer, got none: "
                f"it takes a vLLM server, started with {HOW}"
            )
        if not answer.ids or len(answer.ids) != len(answer.logprobs):
            raise PolicyError(
                f"{asked.url}: expected a log-prob for each of at least one token, "
                f"got {len(answer.ids)} token_ids and {len(answer.logprobs)} logprobs"
            )
        self.n_requests += 1
        self.n_prompt_tokens += len(asked.prompt_ids)
        self.n_cached_tokens += answer.n_cached
        return reply_to(
            asked.request,
            self.codec,
            prompt_ids=asked.prompt_ids,
            ids=answer.ids,
            logprobs=answer.logprobs,
        )


class Trained(Scorer, Protocol):
    """What the servers are to sample like: the trainer's engine."""

    n_updates: int


class ServerSampler:
    """Keeps the servers of `vllm.urls` at the trainer's weights. Every rank asks them for its own episodes.

    The weights go through `vllm.weights_folder`, where those of the last two transfers stay; nothing else may
    be named `update-…` there.

    Args:
        cfg: The run.
        engine: Has the weights.
        model: The model in `engine`.
        codec: Its tokenizer side.
        weights: Yields every parameter of the model under its Hugging Face name, the output layer also where
            it is tied: a tied one that is left out would stay as it was. All ranks go through to the end.

    Raises:
        ConfigError: If an address is not one of HTTP, or a server has less room than `model.max_context`.
        PolicyError: If a server does not answer.
    """

    def __init__(
        self,
        cfg: RunConfig,
        engine: Trained,
        model: PreTrainedModel,
        codec: ChatCodec,
        weights: Callable[[], Iterable[tuple[str, Tensor]]],
    ):
        self._cfg, self._engine, self._model, self._codec = cfg, engine, model, codec
        self._weights = weights
        self._urls = [_root(url) for url in cfg.vllm.urls.split()]
        self._folder = Path(cfg.vllm.weights_folder).expanduser().resolve()
        self._control = _exchange(_read_json)
        self._sent: int | None = None  # updates in the weights that the servers have; None: not ours
        self._metrics: dict[str, float] = {}
        distributed.on_main(self._check_servers)

    @contextmanager
    def playing(self, *, temperature: float) -> Iterator[ServerPolicy]:
        """Give a policy that samples with the engine's present weights; entered by all ranks.

        Raises:
            PolicyError: If a server cannot be brought up to date, or then does not agree with the engine.
        """
        if self._sent != self._engine.n_updates:
            self._transfer()
        with self._policy(self._urls, temperature, self._cfg.rollout.max_tokens) as policy:
            yield policy
        counts = np.array([policy.n_prompt_tokens, policy.n_cached_tokens])
        prompt, cached = distributed.sum_arrays(counts).tolist()
        self._metrics |= {"rollout/prompt_tokens": prompt, "rollout/cached_tokens": cached}

    def metrics(self) -> dict[str, float]:
        """Return what there is to say of the latest transfer (of its worst server) and the latest block."""
        return dict(self._metrics)

    def close(self) -> None:
        """End what is under way; the servers go on."""
        self._control.close()

    def _policy(self, urls: Sequence[str], temperature: float, max_tokens: int) -> ServerPolicy:
        return ServerPolicy(
            urls,
            self._codec,
            max_tokens=max_tokens,
            temperature=temperature,
            max_context=self._cfg.model.max_context,
        )

    def _check_servers(self) -> None:
        needed = self._cfg.model.max_context
        for url in self._urls:
            models = self._control.ask(f"{url}/v1/models").get("data") or [{}]
            room = models[0].get("max_model_len")
            if room is None or room < needed:
                raise ConfigError(
                    f"{url}: expected a vLLM server with room for model.max_context={needed} tokens, "
                    f"got max_model_len={room}: start it with {HOW}"
                )

    def _transfer(self) -> None:
        """Bring the present weights to the servers, and see whether they sample with them."""
        start = time.perf_counter()
        n_updates = self._engine.n_updates
        folder = self._folder / f"update-{n_updates:06d}"
        self._write(folder)
        distributed.on_main(partial(self._reload, folder))
        self._metrics["sync/seconds"] = time.perf_counter() - start
        if self._cfg.vllm.check_tokens:
            self._check()
        self._sent = n_updates

    def _write(self, folder: Path) -> None:
        held = {}
        for name, tensor in self._weights():
            if distributed.is_main():
                held[name] = tensor.to("cpu", copy=True)
        distributed.on_main(
            lambda: save_model(folder, self._model, self._codec.tokenizer, replace=True, weights=held)
        )

    def _reload(self, folder: Path) -> None:
        """Make all servers take the weights from a folder, and remove the folders before the last two."""
        reload = {"method": "reload_weights", "kwargs": {"weights_path": str(folder)}}
        try:
            self._tell("/collective_rpc", reload)
        except Refusal as err:
            raise ConfigError(f"{err}: expected a server that takes weights, started with {HOW}") from err
        except PolicyError as err:
            raise PolicyError(f"{err}. Does that machine see {folder} under this name?") from err
        answers = self._tell("/reset_prefix_cache?reset_running_requests=true", {})
        for i, url in enumerate(self._urls):
            if not answers[i].get("success"):
                raise PolicyError(f"{url}: its cache still holds the work of older weights: {answers[i]}")
        _remove_older(self._folder, newest=folder)

    def _tell(self, path: str, body: dict[str, Any]) -> dict[int, Any]:
        """Post the same to all servers at once, and return what each of them answers."""
        for i, url in enumerate(self._urls):
            self._control.send(i, url + path, json.dumps(body).encode())
        answers: dict[int, Any] = {}
        while len(answers) < len(self._urls):
            answers.update(self._control.receive())
        return answers

    def _check(self) -> None:
        """Compare every server with the engine."""
        n_tokens, found = self._cfg.vllm.check_tokens, []
        for url in self._urls:
            with self._policy([url], self._cfg.rollout.temperature, n_tokens) as policy:
                found.append(agreement(policy, self._engine, self._codec, n_tokens))
            require_agreement(found[-1], largest_difference(self._cfg), url)
        self._metrics["sync/logprob_diff_mean"] = max(f.mean for f in found)
        self._metrics["sync/logprob_diff_max"] = max(f.max for f in found)


def _root(url: str) -> str:
    """Return an address without a path at its end.

    Raises:
        ConfigError: If it is not one of HTTP.
    """
    if not is_http(url):
        raise ConfigError(f"vllm.urls: expected addresses like http://gpu1:8000, got {url!r}")
    return url.rstrip("/").removesuffix("/v1")


def _exchange(
    read: Callable[[bytes], A], *, timeout_s: float = _TIMEOUT_S, retries: int = _RETRIES
) -> Exchange[A]:
    return Exchange(
        read, concurrency=_CONCURRENCY, timeout_s=timeout_s, retries=retries, max_wait_s=2 * timeout_s
    )


def _read_json(raw: bytes) -> Any:
    try:
        return json.loads(raw)
    except ValueError as err:
        raise Passing(f"expected JSON, got {raw[:100]!r}") from err


def _read_completion(raw: bytes) -> Answer:
    """Read the body of a completion.

    Raises:
        Passing: If it is none, or was broken off.
    """
    body = _read_json(raw)
    try:
        choice, usage = body["choices"][0], body.get("usage") or {}
        ended = choice["finish_reason"]
        answer = Answer(
            ids=choice.get("token_ids"),
            logprobs=(choice.get("logprobs") or {}).get("token_logprobs"),
            n_cached=int((usage.get("prompt_tokens_details") or {}).get("cached_tokens") or 0),
        )
    except (ValueError, KeyError, IndexError, TypeError, AttributeError) as err:
        raise Passing(f"expected a completion, got {type(err).__name__} in {raw[:100]!r}") from err
    if ended not in ("stop", "length"):
        raise Passing(f"expected finish_reason stop or length, got {ended!r}")
    return answer


def _remove_older(folder: Path, *, newest: Path) -> None:
    """Remove what earlier transfers left, but for the latest two."""
    older = [f for f in folder.iterdir() if re.fullmatch(r"update-\d{6,}", f.name) and f != newest]
    for old in sorted(older, key=lambda f: f.stat().st_mtime)[: 1 - _N_FOLDERS]:
        shutil.rmtree(old, ignore_errors=True)
