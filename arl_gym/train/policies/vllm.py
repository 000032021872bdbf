"""Rollouts with a vLLM engine in this process: continuous batching, prefixes read once.

The only module that imports vLLM. An engine does not follow the trainer's weights by itself: `samplers`
brings them over. Prompts go in as ids and come out as the same ids, or the rollout ends.

    llm = open_engine("runs/sokoban/model", dtype="float32", max_context=2048, seed=0)
    policy = VLLMPolicy(llm, codec, max_tokens=64, temperature=1.0, max_context=2048)
"""

import gc
import importlib.util
import inspect
import os
import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from itertools import count
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor

from arl_gym.agents.types import Reply, Request
from arl_gym.errors import ConfigError, DependencyMissing, PolicyError, UnknownNameError
from arl_gym.train import distributed
from arl_gym.train.chat import ChatCodec
from arl_gym.train.config import VLLMConfig
from arl_gym.train.model import load_model
from arl_gym.train.policies.exchange import check_sampling, prompt_of, reply_to
from arl_gym.train.streams import random_state, set_random_state

_CPU_SETTINGS = {"VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_CPU_OMP_THREADS_BIND": "nobind"}
"""GiB of cache, and threads that stay where the trainer's are; without them an engine takes the machine."""


@dataclass(frozen=True, slots=True)
class _Asked:
    """A request that is under way."""

    request: Request
    prompt_ids: list[int]


class VLLMPolicy:
    """Samples from a vLLM engine, which has whatever weights it was given last.

    Args:
        llm: An engine of `open_engine`.
        codec: The tokenizer side.
        max_tokens: Most tokens of one response.
        temperature: 0 is greedy; the log-probs are then those at temperature 1.
        max_context: Most tokens of prompt and response together; the engine's own limit or less.
        top_p: Share of the probability that is drawn from, the likeliest tokens first; counts after `top_k`.
        top_k: Number of likeliest tokens that are drawn from; 0 or -1 is all of them.

    The log-probs are those of the distribution that was drawn from: with `top_p` or `top_k`, of what these
    leave. Equal streams give equal responses on one machine, other ones than `HFPolicy` gives (but greedy).

    Raises:
        ConfigError: If a value is out of range.
    """

    def __init__(
        self,
        llm: Any,
        codec: ChatCodec,
        *,
        max_tokens: int,
        temperature: float,
        max_context: int,
        top_p: float = 1.0,
        top_k: int = 0,
    ):
        check_sampling(max_tokens=max_tokens, temperature=temperature, top_p=top_p, top_k=top_k)
        self.llm, self.codec = llm, codec
        self.max_tokens, self.temperature = max_tokens, temperature
        self.top_p, self.top_k = top_p, top_k
        self.max_context = max_context
        self.n_requests = 0
        """Requests that the engine has answered."""
        self.n_prompt_tokens = 0
        """Tokens of their prompts."""
        self.n_cached_tokens = 0
        """Those of them that the engine did not have to read: an earlier prompt began with them."""
        self._numbers = count()
        self._asked: dict[str, _Asked] = {}
        self._ready: list[Reply] = []

    @property
    def settings(self) -> dict[str, Any]:
        """What the answers depend on beside the model."""
        names = ("temperature", "top_p", "top_k", "max_tokens", "max_context")
        return {name: getattr(self, name) for name in names} | self.codec.settings

    def submit(self, requests: Sequence[Request]) -> None:
        """Give requests to the engine.

        Raises:
            PolicyError: If the engine does not take one.
        """
        for request in requests:
            prompt_ids = prompt_of(request, self.codec)
            room = min(self.max_tokens, self.max_context - len(prompt_ids))
            if room <= 0:
                none = reply_to(request, self.codec, prompt_ids=prompt_ids, ids=[], logprobs=[])
                self._ready.append(none)
                continue
            name = str(next(self._numbers))  # a key may come again
            with _failing("take a request"):
                self.llm.llm_engine.add_request(
                    name, self._prompt(prompt_ids, request.pictures), self._sampling(request, room)
                )
            self._asked[name] = _Asked(request, prompt_ids)

    def poll(self) -> list[Reply]:
        """Let the engine work until some request is answered, and return what is.

        Raises:
            PolicyError: If the engine fails, or reads a prompt otherwise than the trainer will.
        """
        replies, self._ready = self._ready, []
        while self._asked and not replies:
            with _failing("sample"):
                outputs = self.llm.llm_engine.step()
            replies = [self._answer(output) for output in outputs]
        return replies

    def _prompt(self, prompt_ids: list[int], pictures: Sequence[Any]) -> dict[str, Any]:
        if self.codec.vision is None or not pictures:
            return {"prompt_token_ids": prompt_ids}
        # vLLM resizes with another library, to other pixels: leave it nothing to resize.
        fitted = [self.codec.vision.fitted(picture) for picture in pictures]
        return {
            "prompt_token_ids": self.codec.collapse(prompt_ids),
            "multi_modal_data": {"image": fitted},
        }

    def _sampling(self, request: Request, room: int) -> Any:
        from vllm import SamplingParams
        from vllm.sampling_params import RequestOutputKind

        return SamplingParams(
            temperature=self.temperature,
            top_p=self.top_p,
            top_k=max(self.top_k, 0),
            seed=request.stream >> 1,  # vLLM's seeds are signed
            max_tokens=room,
            logprobs=0,  # of the sampled token only
            # Ours decide, not those in the model's generation_config.
            ignore_eos=True,
            stop_token_ids=sorted(self.codec.eos_ids),
            logit_bias=dict.fromkeys(self.codec.banned, -torch.inf) or None,
            stop=list(request.stop),
            detokenize=bool(request.stop),
            output_kind=RequestOutputKind.FINAL_ONLY,
        )

    def _answer(self, output: Any) -> Reply:
        """Turn what the engine says of a finished request into its reply, and count it."""
        asked, sampled = self._asked.pop(output.request_id), output.outputs[0]
        if list(output.prompt_token_ids) != asked.prompt_ids:
            raise PolicyError(
                "vLLM reads a prompt otherwise than the trainer will: expected "
                f"{len(asked.prompt_ids)} tokens with {len(asked.request.pictures)} pictures, got "
                f"{len(output.prompt_token_ids)}"
            )
        if sampled.finish_reason not in ("stop", "length"):
            raise PolicyError(f"vLLM gave up on a request: finish_reason {sampled.finish_reason!r}")
        self.n_requests += 1
        self.n_prompt_tokens += len(asked.prompt_ids)
        self.n_cached_tokens += output.num_cached_tokens or 0
        ids = list(sampled.token_ids)
        logprobs = [of[token].logprob for token, of in zip(ids, sampled.logprobs, strict=True)]
        return reply_to(asked.request, self.codec, prompt_ids=asked.prompt_ids, ids=ids, logprobs=logprobs)


class LoadedPolicy(VLLMPolicy):
    """A `VLLMPolicy` with an engine of its own."""

    def close(self) -> None:
        """End the engine; the policy answers no more."""
        close_engine(self.llm)


def load_policy(
    path: str | Path,
    *,
    temperature: float,
    max_tokens: int,
    top_p: float = 1.0,
    top_k: int = 0,
    max_context: int = 2048,
    enable_thinking: bool = True,
    chat_template_kwargs: Mapping[str, Any] | None = None,
    dtype: Literal["float32", "bfloat16"] | None = None,
) -> LoadedPolicy:
    """Return a policy with an engine of its own from a Hugging Face folder; close it when it is done.

    Args:
        path: As in `load_model`, but not "tiny".
        temperature: As in `VLLMPolicy`, like the next four.
        max_tokens: See there.
        top_p: See there.
        top_k: See there.
        max_context: See there.
        enable_thinking: As in `ChatCodec`.
        chat_template_kwargs: As in `ChatCodec`.
        dtype: Type of the parameters; None is bfloat16 on a GPU and float32 on the CPU.

    Raises:
        ConfigError: If the folder lacks weights or a tokenizer, or vLLM cannot open it.
        DependencyMissing: If vLLM is not installed.
    """
    dtype = dtype or ("bfloat16" if torch.cuda.is_available() else "float32")
    loaded = load_model(str(path), dtype=dtype, seed=0)  # for the checks and the tokenizer
    codec = ChatCodec(
        loaded.tokenizer,
        vision=loaded.vision,
        enable_thinking=enable_thinking,
        chat_template_kwargs=chat_template_kwargs,
    )
    del loaded
    llm = open_engine(path, dtype=dtype, max_context=max_context, seed=0, dials=VLLMConfig(memory=0.9))
    return LoadedPolicy(
        llm,
        codec,
        max_tokens=max_tokens,
        temperature=temperature,
        top_p=top_p,
        top_k=top_k,
        max_context=max_context,
    )


def open_engine(
    path: str | Path,
    *,
    dtype: Literal["float32", "bfloat16"],
    max_context: int,
    seed: int,
    dials: VLLMConfig,
    weights: bool = True,
) -> Any:
    """Start a vLLM engine in this process: one on every rank, or a part of one. All ranks call this together.

    Args:
        path: Folder or hub id of a model and its tokenizer.
        dtype: Type of the parameters.
        max_context: Most tokens of prompt and response together.
        seed: Of what no request's own seed decides.
        dials: Memory and more of vLLM's own settings. With `tensor_parallel` above 1 so many consecutive
            ranks share an engine, and ask it the same in the same order: see `distributed.TeamPolicy`.
        weights: Whether to load the folder's weights; else they are noise until `give_weights`.

    Returns:
        A `vllm.LLM`; end it with `close_engine`.

    Raises:
        ConfigError: If `dials.kwargs` has an argument that vLLM does not know, or the engine does not start.
        DependencyMissing: If vLLM is not installed.
    """
    distributed.start()  # vLLM would make a group of its own, and the trainer then find that
    on_gpu = torch.cuda.is_available()
    arguments = {
        "model": str(path),
        "dtype": dtype,
        "max_model_len": max_context,
        "seed": seed,
        "load_format": "auto" if weights else "dummy",
        "logprobs_mode": "processed_logprobs",
        "tensor_parallel_size": dials.tensor_parallel,
        "gpu_memory_utilization": dials.memory,
        "enforce_eager": dials.eager or not on_gpu,
        "enable_sleep_mode": dials.sleep and on_gpu,
        "enable_prefix_caching": True,
        "limit_mm_per_prompt": {"video": 0},
        # On the device it has numbers of its own, which no checkpoint holds and "dummy" overwrites.
        "mm_device_do_normalize": False,
        "use_tqdm_on_load": False,
        **dials.kwargs,
    }
    if distributed.world_size() > 1:
        # vLLM then takes the group of ranks that there is, and asks the environment for this one's number.
        arguments["distributed_executor_backend"] = "external_launcher"
        os.environ["RANK"] = str(distributed.rank())
    with _own_process():
        _check_arguments(dials.kwargs)
        try:
            from vllm import LLM

            llm = LLM(**arguments)
        except Exception as err:  # whatever is the matter with model, memory or build
            raise ConfigError(f"vLLM does not start with {path}: {_reason(err)}") from err
    # At the end of the process it would end the trainer's group of ranks too, or fail because that has ended.
    llm.llm_engine.engine_core._finalizer.detach()
    return llm


def close_engine(llm: Any) -> None:
    """Free an engine's memory; the groups of ranks, which the trainer and other engines use too, stay."""
    llm.llm_engine.engine_core.engine_core.model_executor.shutdown()
    gc.unfreeze()  # the engine had frozen what was there when it started
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


def give_weights(llm: Any, weights: Iterable[tuple[str, Tensor]]) -> None:
    """Replace an engine's weights in place, and forget what it has read with the old ones.

    Args:
        llm: The engine.
        weights: Every parameter under its Hugging Face name, the output layer also where it is tied: a tied
            one that is left out stays as it was. A tensor may be reused once the next one is asked for. All
            of them are asked for, even if vLLM does not want them: other ranks may do so as well.

    Raises:
        PolicyError: If the engine does not take them.
    """
    # The engine puts a layer together from several tensors, and so holds on to them.
    held = ((name, tensor.clone()) for name, tensor in weights)
    with _failing("take the trainer's weights"):
        llm.collective_rpc("reload_weights", kwargs={"weights_iterator": held})
        for _ in held:
            pass
        llm.reset_prefix_cache()
        llm.llm_engine.reset_encoder_cache()  # pictures, which prefixes go by too


@contextmanager
def _own_process() -> Iterator[None]:
    """Let an engine start inside the block, and keep what it changes in the whole process as it was."""
    if importlib.util.find_spec("vllm") is None:
        raise DependencyMissing("sampling with vLLM", "vllm")
    os.environ["VLLM_ENABLE_V1_MULTIPROCESSING"] = "0"
    os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")
    os.environ.setdefault("VLLM_NO_USAGE_STATS", "1")
    if not torch.cuda.is_available():
        for name, value in _CPU_SETTINGS.items():
            os.environ.setdefault(name, value)
        torch.compiler.set_stance("force_eager")  # a minute of compiling for what the CPU gains nothing by
    set_num_threads, streams = torch.set_num_threads, random_state()
    # vLLM's build for CPUs looks for its kernels in every module, and trips over this one of numba's.
    hidden = {name: sys.modules.pop(name) for name in ("llvmlite.binding.ffi",) if name in sys.modules}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        sys.modules.update(hidden)
        torch.set_num_threads = set_num_threads
        set_random_state(streams)


def _check_arguments(given: Mapping[str, Any]) -> None:
    """Raise if vLLM does not know an argument."""
    from vllm import LLM, EngineArgs

    known = {f.name for f in fields(EngineArgs)} | set(inspect.signature(LLM).parameters)
    for name in given:
        if name not in known:
            raise UnknownNameError("argument of vllm.LLM", name, known, "vllm.kwargs")


@contextmanager
def _failing(doing: str) -> Iterator[None]:
    """Turn whatever the engine raises into one error."""
    try:
        yield
    except Exception as err:  # its classes are vLLM's, torch's or CUDA's
        raise PolicyError(f"the vLLM engine could not {doing}: {_reason(err)}") from err


def _reason(err: Exception) -> str:
    return f"{type(err).__name__}: {' '.join(str(err).split())[:400]}"
