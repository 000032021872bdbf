"""Whether a policy's log-probs are those that the trainer gives its tokens.

An engine that samples with old weights, or with the present ones in part, goes on without a word, and a run
learns from it all the same. So a few tokens are sampled after every transfer of weights and scored.

    found = agreement(policy, engine, codec, n_tokens=16)
    require_agreement(found, largest_difference(cfg), "the vLLM engine")
"""

from typing import NamedTuple, Protocol

import numpy as np
from PIL import Image

from arl_gym.agents.types import Policy, Reply, Request, Trajectory, Turn
from arl_gym.core import Message, Part, pictures_of
from arl_gym.errors import PolicyError
from arl_gym.rng import derive
from arl_gym.train import distributed
from arl_gym.train.batch import Batch, pack
from arl_gym.train.chat import ChatCodec
from arl_gym.train.config import RunConfig

# Several blocks of a key-value cache: one that still holds the work of older weights shows.
_LONGEST = 256
# Pixels a side of a picture: a token or a few.
_SIDE = 32
_LIMITS = {"float32": 1e-4, "bfloat16": 0.05}


class Scorer(Protocol):
    """What gives a batch the trainer's log-probs: its engine."""

    def score(self, batch: Batch, *, reference: bool) -> Batch:
        """Return the batch with `old_logprobs`, and perhaps with those of a reference model."""
        ...


class Agreement(NamedTuple):
    """How far log-probs of sampling and training lie apart, in nats."""

    mean: float
    """Of the absolute differences."""
    max: float
    n: int
    """Tokens compared."""


def agreement(
    policy: Policy, scorer: Scorer, codec: ChatCodec, n_tokens: int, *, picture: bool = False
) -> Agreement:
    """Sample tokens after a fixed prompt and compare their log-probs with the trainer's.

    All ranks call it alike, each with its own policy or its part of one, and all get the same answer.

    Args:
        policy: Samples at the trainer's temperature, with no request under way.
        scorer: The trainer's engine.
        codec: The policy's.
        n_tokens: How many tokens every rank or team samples at least.
        picture: Whether the prompt begins with a picture, which shows whether the weights that read it agree.

    Raises:
        PolicyError: If the policy has no room even for a prompt of one word, or gives no ids.
        Exception: Whatever the policy of some rank raised, on all ranks.
    """

    def sample() -> list[Trajectory]:
        asked = _sample(policy, n_tokens, picture)
        return [_trajectory(request, reply, distributed.rank()) for request, reply in asked]

    everyone = distributed.gather_played(policy, sample)
    batch = scorer.score(pack(everyone, pad_id=codec.pad_id), reference=False)
    assert batch.old_logprobs is not None
    gap = np.abs(batch.old_logprobs - batch.rollout_logprobs)[batch.action_mask]
    return Agreement(mean=float(gap.mean()), max=float(gap.max()), n=len(gap))


def largest_difference(cfg: RunConfig) -> float:
    """Return the mean difference that is still put down to rounding."""
    return cfg.vllm.max_difference or _LIMITS[cfg.model.dtype]


def require_agreement(found: Agreement, limit: float, who: str) -> None:
    """Raise if log-probs of sampling and training differ by more than `limit` in the mean.

    Args:
        found: What `agreement` returned.
        limit: In nats.
        who: Names the policy in the error.

    Raises:
        PolicyError: If they do, or are no numbers.
    """
    if not found.mean <= limit:  # NaN is no agreement either
        raise PolicyError(
            f"{who} does not sample with the trainer's weights: the log-probs of {found.n} tokens differ by "
            f"{found.mean:.2g} in the mean (at most {found.max:.2g}), expected {limit:g} or less "
            "(vllm.max_difference)"
        )


def _sample(policy: Policy, n_tokens: int, picture: bool) -> list[tuple[Request, Reply]]:
    """Ask one request after the other until there are enough tokens."""
    answered: list[tuple[Request, Reply]] = []
    n_words, n_sampled = _LONGEST, 0
    while n_sampled < n_tokens:
        request = _request(_prompt(n_words, picture), key=len(answered))
        policy.submit([request])
        reply = policy.poll()[0]
        if reply.finish == "context_full":
            if n_words == 1:
                raise PolicyError("expected room for a prompt of one word and a token, got context_full")
            n_words //= 2
            continue
        if not reply.completion_ids:
            raise PolicyError(f"expected token ids from {type(policy).__name__}, got none")
        answered.append((request, reply))
        n_sampled += len(reply.completion_ids)
    return answered


def _prompt(n_words: int, picture: bool) -> list[Message]:
    words = " ".join(str(i % 10) for i in range(n_words))
    if not picture:
        return [{"role": "user", "content": words}]
    image: Part = {"type": "image", "image": Image.linear_gradient("L").resize((_SIDE, _SIDE))}
    return [{"role": "user", "content": [image, {"type": "text", "text": words}]}]


def _request(prompt: list[Message], *, key: int) -> Request:
    stream = derive("agreement", distributed.rank(), key)
    pictures = pictures_of(prompt)
    return Request(key=key, messages=prompt, info={}, context_ids=None, stream=stream, pictures=pictures)


def _trajectory(request: Request, reply: Reply, group: int) -> Trajectory:
    """Return a reply as an episode of one turn, for `pack`."""
    turn = Turn(
        messages=request.messages,
        response=reply.response,
        action="",
        env_reward=0.0,
        format_penalty=0.0,
        anchor="",
        format_valid=True,
        action_valid=True,
        finish=reply.finish,
        prompt_ids=reply.prompt_ids,
        completion_ids=reply.completion_ids,
        logprobs=reply.logprobs,
        n_kept=len(reply.completion_ids or ()),
    )
    return Trajectory(
        env_id="",
        task_id="agreement",
        dataset="",
        split="",
        content_hash="",
        group=group,
        copy=reply.key,
        turns=(turn,),
        stop="truncated",
        success=False,
        score=0.0,
    )
