"""From a request to the ids that a model reads, and from the ids that it samples to a reply."""

from collections.abc import Sequence
from functools import partial

from arl_gym.agents.types import Finish, Reply, Request
from arl_gym.errors import ConfigError
from arl_gym.train.chat import ChatCodec


def check_sampling(*, max_tokens: int, temperature: float, top_p: float = 1.0, top_k: int = 0) -> None:
    """Check what a policy is told of sampling.

    Raises:
        ConfigError: If a value is out of range.
    """
    if temperature < 0 or max_tokens < 1:
        raise ConfigError(
            f"a policy needs temperature >= 0 and max_tokens >= 1, got {temperature}, {max_tokens}"
        )
    if not 0 < top_p <= 1 or top_k < -1:
        raise ConfigError(f"a policy needs top_p in (0, 1] and top_k >= -1, got {top_p}, {top_k}")


def prompt_of(request: Request, codec: ChatCodec) -> list[int]:
    """Return the ids of a request's whole prompt."""
    context = request.context_ids
    if context is None:
        return codec.encode_prompt(request.messages)
    return context + codec.encode_bridge(context, request.messages)


def has_ended(ids: Sequence[int], stop: Sequence[str], codec: ChatCodec) -> bool:
    """Return whether the last of the sampled ids ends the response: an end token, or one of the strings.

    Args:
        ids: At least one; no earlier one has ended it.
        stop: The strings, of ASCII characters.
        codec: Of the model that samples.
    """
    if ids[-1] in codec.eos_ids:
        return True
    # Every token but those that are left out adds a character or a part of one.
    tail = codec.decode(ids[-max(map(len, stop)) :]) if stop else ""
    return any(text in tail for text in stop)


def reply_to(
    request: Request, codec: ChatCodec, *, prompt_ids: list[int], ids: list[int], logprobs: list[float]
) -> Reply:
    """Return the reply of sampled ids; none means that the prompt left no room."""
    finish: Finish = "length"
    if not ids:
        finish = "context_full"
    elif len(ids) == 1 and ids[-1] in codec.eos_ids:
        finish = "empty"
    elif has_ended(ids, request.stop, codec):
        finish = "stop"
    return Reply(
        key=request.key,
        response=codec.decode(ids),
        finish=finish,
        prompt_ids=prompt_ids,
        completion_ids=ids,
        logprobs=logprobs,
        n_tokens=partial(codec.count_tokens, ids),
    )
