"""Rollouts with the trainer's own transformers model: batched decoding with a key-value cache.

Only live episodes are generated for, and a row leaves the batch when its response ends. Every request draws
from its own stream, so a response does not depend on who shares its batch (up to float rounding).
"""

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import torch
from transformers import DynamicCache, PreTrainedModel

from arl_gym.agents.types import Reply, Request
from arl_gym.errors import ConfigError
from arl_gym.rng import Rng
from arl_gym.train.chat import ChatCodec
from arl_gym.train.model import load_model
from arl_gym.train.policies.exchange import check_sampling, has_ended, prompt_of, reply_to
from arl_gym.train.vision import PictureKey, check_pictures, picture_key


@dataclass(slots=True)
class _Row:
    """One response in the making."""

    request: Request
    prompt_ids: list[int]
    room: int
    rng: Rng
    ids: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)


class HFPolicy:
    """Samples from `model`, by reference: it always speaks with the present weights.

    Args:
        model: A causal language model; one that reads pictures if the codec has its `vision`.
        codec: The tokenizer side.
        max_tokens: Most tokens of one response.
        temperature: 0 is greedy; the log-probs are then those at temperature 1.
        top_p: Share of the probability that is drawn from, the likeliest tokens first; counts after `top_k`.
        top_k: Number of likeliest tokens that are drawn from; 0 or -1 is all of them.
        batch_size: Most rows decoded together.
        max_context: Most tokens of prompt and response together.

    The log-probs are those of the whole distribution at the temperature, whatever `top_p` and `top_k` leave
    of it: keep both off where a trainer compares them with its own. Tokens that the codec bans are no part of
    the distribution.

    Raises:
        ConfigError: If a value is out of range, or the model keeps no cache.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        codec: ChatCodec,
        *,
        max_tokens: int,
        temperature: float,
        batch_size: int,
        max_context: int,
        top_p: float = 1.0,
        top_k: int = 0,
    ):
        check_sampling(max_tokens=max_tokens, temperature=temperature, top_p=top_p, top_k=top_k)
        if batch_size < 1:
            raise ConfigError(f"a policy needs batch_size >= 1, got {batch_size}")
        self.model, self.codec = model, codec
        self.max_tokens, self.temperature = max_tokens, temperature
        self.top_p, self.top_k = top_p, top_k
        self.batch_size, self.max_context = batch_size, max_context
        self._cache_argument = cache_argument(model)
        self._queue: list[Request] = []

    @property
    def settings(self) -> dict[str, Any]:
        """What the answers depend on beside the model."""
        names = ("temperature", "top_p", "top_k", "max_tokens", "max_context")
        return {name: getattr(self, name) for name in names} | self.codec.settings

    def submit(self, requests: Sequence[Request]) -> None:
        """Queue requests for the next `poll`."""
        self._queue.extend(requests)

    def poll(self) -> list[Reply]:
        """Answer everything queued."""
        queue, self._queue = self._queue, []
        rows = [self._row(request) for request in queue]
        live = sorted((r for r in rows if r.room > 0), key=lambda r: len(r.prompt_ids))
        training = self.model.training
        self.model.train(False)
        try:
            for i in range(0, len(live), self.batch_size):
                self._decode(live[i : i + self.batch_size])
        finally:
            self.model.train(training)
        return [self._reply(row) for row in rows]

    def _row(self, request: Request) -> _Row:
        prompt_ids = prompt_of(request, self.codec)
        room = min(self.max_tokens, self.max_context - len(prompt_ids))
        return _Row(request=request, prompt_ids=prompt_ids, room=room, rng=Rng(request.stream))

    def _reply(self, row: _Row) -> Reply:
        return reply_to(
            row.request, self.codec, prompt_ids=row.prompt_ids, ids=row.ids, logprobs=row.logprobs
        )

    def _is_over(self, row: _Row) -> bool:
        return len(row.ids) >= row.room or has_ended(row.ids, row.request.stop, self.codec)

    @torch.inference_mode()
    def _decode(self, rows: list[_Row]) -> None:
        """Fill `ids` and `logprobs` of every row."""
        device = self.model.device
        # Copies of a task begin with the same prompt, and often meet again: each prompt is read once.
        keys = [_prompt_key(r) for r in rows]
        prompts = dict(zip(keys, rows, strict=True))
        number = {key: u for u, key in enumerate(prompts)}
        pick: torch.Tensor | None = torch.tensor([number[key] for key in keys], device=device)
        ids, mask = self._left_padded([r.prompt_ids for r in prompts.values()], device)  # (U, T)
        seen, positions = self._seen(list(prompts.values()), ids, mask)
        cache = {self._cache_argument: DynamicCache(config=self.model.config)}
        while rows:
            logits = self.model(
                input_ids=ids,
                attention_mask=mask,
                position_ids=positions,
                use_cache=True,
                logits_to_keep=1,
                **cache,
                **seen,
            ).logits[:, -1]  # (U, V) after the prompts, then (N, V)
            tokens = self._sample(logits.float() if pick is None else logits.float()[pick], rows)
            ended = [self._is_over(r) for r in rows]
            if pick is not None or any(ended):
                live = torch.tensor(
                    [n for n, e in enumerate(ended) if not e], dtype=torch.long, device=device
                )
                keep = live if pick is None else pick[live]
                rows = [r for r, e in zip(rows, ended, strict=True) if not e]
                tokens, mask, positions, pick = tokens[live], mask[keep], positions[..., keep, :], None
                if rows:
                    cache[self._cache_argument].batch_select_indices(keep)
            ids, seen = tokens[:, None], {}
            positions = _following(positions)
            mask = torch.cat([mask, mask.new_ones(len(rows), 1)], dim=1)

    def _seen(
        self, rows: Sequence[_Row], ids: torch.Tensor, mask: torch.Tensor
    ) -> tuple[dict[str, torch.Tensor], torch.Tensor]:
        """Return the model's arguments of pictures, {} without, and positions (U, T) or (3, U, T)."""
        vision = self.codec.vision
        if vision is None:
            return {}, (mask.cumsum(1) - 1).clamp(min=0)
        for row in rows:
            check_pictures(
                vision, row.prompt_ids, row.request.pictures, f"the prompt of episode {row.request.key}"
            )
        pixels = vision.pixels([picture for row in rows for picture in row.request.pictures])
        positions = vision.positions(ids, mask, pixels["image_grid_thw"])
        has_any = len(pixels["image_grid_thw"]) > 0
        return {name: t.to(ids.device) for name, t in pixels.items()} if has_any else {}, positions

    def _left_padded(
        self, prompts: Sequence[Sequence[int]], device: torch.device
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return ids and attention mask, both (N, T)."""
        longest = max(map(len, prompts))
        pads = [longest - len(prompt) for prompt in prompts]
        ids = [[self.codec.pad_id] * p + list(prompt) for p, prompt in zip(pads, prompts, strict=True)]
        mask = [[0] * p + [1] * (longest - p) for p in pads]
        return torch.tensor(ids, device=device), torch.tensor(mask, device=device)

    def _sample(self, logits: torch.Tensor, rows: list[_Row]) -> torch.Tensor:
        """Append one token to every row and return the tokens (N,)."""
        logits[:, list(self.codec.banned)] = -torch.inf
        logp = torch.log_softmax(logits / (self.temperature or 1.0), dim=-1)  # (N, V)
        if self.temperature == 0:
            tokens = logp.argmax(-1)
        else:
            # Inverse transform on a 64-bit grid: one uniform number a token, from the request's own stream.
            cdf = truncated(logp.double().exp(), top_p=self.top_p, top_k=self.top_k).cumsum(-1)
            draws = torch.tensor([[r.rng.uniform()] for r in rows], dtype=torch.float64, device=logits.device)
            tokens = torch.searchsorted(cdf, draws * cdf[:, -1:], right=True).squeeze(1)
            tokens = tokens.clamp(max=logits.shape[-1] - 1)
        chosen = logp.gather(1, tokens[:, None]).squeeze(1)
        for row, token, lp in zip(rows, tokens.tolist(), chosen.tolist(), strict=True):
            row.ids.append(token)
            row.logprobs.append(lp)
        return tokens


def _prompt_key(row: _Row) -> tuple[tuple[int, ...], tuple[PictureKey, ...]]:
    """Return what tells prompts apart: equal ids may stand for other pictures."""
    return tuple(row.prompt_ids), tuple(picture_key(p) for p in row.request.pictures)


def _following(positions: torch.Tensor) -> torch.Tensor:
    """Return the position after (N, T) or (3, N, T), equal along all three axes: (N, 1) or (3, N, 1)."""
    last = positions.amax(-1, keepdim=True)
    if last.ndim == 3:
        last = last.amax(0, keepdim=True).expand(3, -1, -1)
    return last + 1


def cache_argument(model: PreTrainedModel) -> str:
    """Return the name of the argument by which a model's forward pass takes its cache.

    Transformers has renamed it, and a pass ignores an argument that it does not know.

    Raises:
        ConfigError: If there is none.
    """
    known = inspect.signature(model.forward).parameters
    for name in ("cache", "past_key_values"):
        if name in known:
            return name
    raise ConfigError(f"{type(model).__name__} takes no cache: it cannot generate token by token")


def truncated(probs: torch.Tensor, *, top_p: float, top_k: int) -> torch.Tensor:
    """Return probabilities (N, V) with zeros for tokens that are not to be drawn; the rest is not rescaled.

    The `top_k` likeliest tokens stay, and of these the fewest that hold `top_p` of their probability.

    References:
        Nucleus sampling: Holtzman et al., arXiv:1904.09751.
    """
    if top_p == 1 and top_k <= 0:
        return probs
    ordered, order = probs.sort(dim=-1, descending=True, stable=True)
    if top_k > 0:
        ordered[:, top_k:] = 0
    before = ordered.cumsum(-1) - ordered  # of every token, the probability of those likelier
    if top_p < 1:
        ordered = ordered * (before < top_p * ordered.sum(-1, keepdim=True))
    return torch.zeros_like(probs).scatter(-1, order, ordered)


def load_policy(
    path: str | Path,
    *,
    temperature: float,
    max_tokens: int,
    top_p: float = 1.0,
    top_k: int = 0,
    batch_size: int = 64,
    max_context: int = 2048,
    enable_thinking: bool = True,
    chat_template_kwargs: Mapping[str, Any] | None = None,
    dtype: Literal["float32", "bfloat16"] | None = None,
) -> HFPolicy:
    """Return a policy from a Hugging Face folder.

    Args:
        path: As in `load_model`.
        temperature: As in `HFPolicy`, like the next five.
        max_tokens: See there.
        top_p: See there.
        top_k: See there.
        batch_size: See there.
        max_context: See there.
        enable_thinking: As in `ChatCodec`.
        chat_template_kwargs: As in `ChatCodec`.
        dtype: Type of the parameters; None is bfloat16 on a GPU and float32 on the CPU.

    Raises:
        ConfigError: If the folder lacks weights or a tokenizer.
    """
    has_gpu = torch.cuda.is_available()
    loaded = load_model(str(path), dtype=dtype or ("bfloat16" if has_gpu else "float32"), seed=0)
    if has_gpu:
        loaded.model.to("cuda")  # type: ignore[arg-type]
    codec = ChatCodec(
        loaded.tokenizer,
        loaded.vision,
        enable_thinking=enable_thinking,
        chat_template_kwargs=chat_template_kwargs,
    )
    return HFPolicy(
        loaded.model,
        codec,
        max_tokens=max_tokens,
        temperature=temperature,
        top_p=top_p,
        top_k=top_k,
        batch_size=batch_size,
        max_context=max_context,
    )
