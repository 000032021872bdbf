"""Where a run's responses come from: the trained model itself, a vLLM engine beside it, or servers.

>>> sampler = open_sampler(cfg, engine, loaded, codec)  # doctest: +SKIP
>>> with sampler.playing(temperature=1.0) as policy:  # doctest: +SKIP
...     trajectories = rollout(vec, policy, episodes, env_id="ARL/Sokoban-v0", seed=0)
"""

import tempfile
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Protocol

import numpy as np
import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from arl_gym.agents.types import Policy
from arl_gym.train import distributed
from arl_gym.train.chat import ChatCodec
from arl_gym.train.config import RunConfig
from arl_gym.train.distributed import TeamPolicy
from arl_gym.train.engine import Engine
from arl_gym.train.gpu import peak_memory
from arl_gym.train.model import Loaded, plain_weights
from arl_gym.train.policies.agreement import agreement, largest_difference, require_agreement
from arl_gym.train.policies.hf import HFPolicy
from arl_gym.train.policies.server import ServerSampler
from arl_gym.train.policies.vllm import VLLMPolicy, close_engine, give_weights, open_engine
from arl_gym.train.state import gathered


class Sampler(Protocol):
    """Where responses come from; keeps up with the trained weights."""

    def playing(self, *, temperature: float) -> AbstractContextManager[Policy]:
        """Give a policy with the present weights, for use inside the block. All ranks call this alike."""
        ...

    def metrics(self) -> dict[str, float]:
        """Return what there is to say of the latest transfer of weights and the latest block."""
        ...

    def close(self) -> None:
        """Free what the sampler holds; twice is fine."""
        ...


def open_sampler(cfg: RunConfig, engine: Engine, loaded: Loaded, codec: ChatCodec) -> Sampler:
    """Return the sampler that `rollout.backend` names. All ranks call this alike.

    Raises:
        ConfigError: If it cannot be opened with these settings.
        PolicyError: If a server does not answer.
        DependencyMissing: If vLLM is wanted and not installed.
    """
    if cfg.rollout.backend == "vllm":
        return VLLMSampler(cfg, engine, loaded, codec)
    if cfg.rollout.backend == "server":
        return ServerSampler(cfg, engine, loaded.model, codec, lambda: sampling_weights(loaded.model))
    return HFSampler(cfg, engine, codec)


class HFSampler:
    """Samples from the trained model through transformers: it has the present weights anyway."""

    def __init__(self, cfg: RunConfig, engine: Engine, codec: ChatCodec):
        self._cfg, self._engine, self._codec = cfg, engine, codec

    @contextmanager
    def playing(self, *, temperature: float) -> Iterator[HFPolicy]:
        """See `Sampler`."""
        yield HFPolicy(
            self._engine.rollout_model(),
            self._codec,
            max_tokens=self._cfg.rollout.max_tokens,
            temperature=temperature,
            batch_size=self._cfg.rollout.batch_size,
            max_context=self._cfg.model.max_context,
        )

    def metrics(self) -> dict[str, float]:
        """See `Sampler`."""
        return {}

    def close(self) -> None:
        """See `Sampler`."""


class VLLMSampler:
    """A vLLM engine on every rank, beside the trainer; or one on several, each of which has a part of it.

    It gets the weights before it is asked anything and whenever they have changed. On a GPU it sleeps while
    the trainer trains: its memory is given back, weights included, so that each waking brings a transfer.

    Args:
        cfg: The run.
        engine: Has the weights.
        loaded: The model in `engine`.
        codec: Its tokenizer side.

    Raises:
        ConfigError: If vLLM does not start.
        DependencyMissing: If vLLM is not installed.
    """

    def __init__(self, cfg: RunConfig, engine: Engine, loaded: Loaded, codec: ChatCodec):
        self._cfg, self._engine, self._model, self._codec = cfg, engine, loaded.model, codec
        size = cfg.vllm.tensor_parallel
        self._team = distributed.form_teams(size) if size > 1 else None
        with tempfile.TemporaryDirectory(prefix="arl-gym-vllm-") as folder:
            describe(loaded, Path(folder))
            self._llm = open_engine(
                folder,
                dtype=cfg.model.dtype,
                max_context=cfg.model.max_context,
                seed=cfg.seed,
                dials=cfg.vllm,
                weights=False,
            )
        self._sleeps = cfg.vllm.sleep and torch.cuda.is_available()
        self._sent: int | None = None  # updates in the weights that the engine has; None: it has none
        self._metrics: dict[str, float] = {}
        self._is_open = True

    @contextmanager
    def playing(self, *, temperature: float) -> Iterator[Policy]:
        """See `Sampler`.

        Raises:
            PolicyError: If the engine fails, or does not sample with the trainer's weights.
        """
        if self._sent != self._engine.n_updates:
            self._transfer()
        policy = self._policy(temperature)
        yield self._shared(policy)
        counts = np.array([policy.n_prompt_tokens, policy.n_cached_tokens])
        # Every rank of a team has counted what the team was asked.
        prompt, cached = (distributed.sum_arrays(counts) // self._cfg.vllm.tensor_parallel).tolist()
        self._metrics |= {"rollout/prompt_tokens": prompt, "rollout/cached_tokens": cached}
        if self._sleeps:
            self._llm.sleep(level=2)
            self._sent = None

    def _policy(self, temperature: float) -> VLLMPolicy:
        return VLLMPolicy(
            self._llm,
            self._codec,
            max_tokens=self._cfg.rollout.max_tokens,
            temperature=temperature,
            max_context=self._cfg.model.max_context,
        )

    def _shared(self, policy: VLLMPolicy) -> Policy:
        return policy if self._team is None else TeamPolicy(policy, self._team)

    def _transfer(self) -> None:
        """Bring the present weights over, and see whether the engine samples with them."""
        start = time.perf_counter()
        with peak_memory("sync", self._metrics):
            distributed.check_together(self._bring)
        self._metrics["sync/seconds"] = time.perf_counter() - start
        if n_tokens := self._cfg.vllm.check_tokens:
            policy = self._shared(self._policy(self._cfg.rollout.temperature))
            sees = self._codec.vision is not None
            found = agreement(policy, self._engine, self._codec, n_tokens, picture=sees)
            self._metrics |= {"sync/logprob_diff_mean": found.mean, "sync/logprob_diff_max": found.max}
            who = f"vLLM, after {self._engine.n_updates} updates,"
            require_agreement(found, largest_difference(self._cfg), who)
        self._sent = self._engine.n_updates

    def _bring(self) -> None:
        if self._sleeps:
            torch.cuda.empty_cache()
            self._llm.wake_up(tags=["weights"])
        give_weights(self._llm, sampling_weights(self._model))
        if self._sleeps:
            self._llm.wake_up(tags=["kv_cache"])

    def metrics(self) -> dict[str, float]:
        """See `Sampler`."""
        return dict(self._metrics)

    def close(self) -> None:
        """See `Sampler`."""
        if self._is_open:
            close_engine(self._llm)
        self._is_open = False


def sampling_weights(model: PreTrainedModel) -> Iterator[tuple[str, Tensor]]:
    """Yield what `plain_weights` yields, and the output layer also where it is tied to the embeddings.

    Engines may keep a copy of a tied layer, which only goes by its own name.
    """
    yield from plain_weights(model)
    head = model.get_output_embeddings()
    weight: nn.Parameter = head.weight
    if weight is model.get_input_embeddings().weight:
        name = next(name for name, module in model.named_modules() if module is head)
        with gathered([weight]):
            yield f"{name}.weight", weight.detach()


def describe(loaded: Loaded, folder: Path) -> None:
    """Write what an engine must know of a model beside its weights."""
    loaded.model.config.architectures = [type(loaded.model).__name__]
    loaded.model.config.save_pretrained(folder)
    loaded.tokenizer.save_pretrained(folder)
    if loaded.vision is not None:
        loaded.vision.save(folder)
