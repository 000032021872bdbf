"""Token identity: the one place where messages become token ids.

A prompt is rendered by the model's own chat template. Text of environments is tokenised as text: a special
token spelled inside it (`<|im_end|>`) stays the characters it is. What was sampled is never tokenised again:
a dialogue grows by a *bridge*, the ids between a completion and the next generation prompt. A picture becomes
as many copies of one token, its *placeholders*, as the model takes for it; nothing else makes that token.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import groupby
from typing import Any, cast

from transformers import PreTrainedTokenizerBase

from arl_gym.core import Message, Part, pictures_of
from arl_gym.errors import ConfigError
from arl_gym.rng import digest
from arl_gym.train.vision import Vision

_PROBE: list[Message] = [{"role": "user", "content": "."}]
# Part of the response even where a tokenizer counts them among its special tokens.
_TAGS = frozenset({"<think>", "</think>", "<action>", "</action>"})
_OWN_ARGUMENTS = frozenset({"conversation", "tokenize", "add_generation_prompt", "enable_thinking"})


class ChatCodec:
    """Encodes prompts and decodes completions for one tokenizer.

    Args:
        tokenizer: A fast tokenizer with a chat template and an end token.
        vision: How the model reads pictures; None for a model of text, which refuses them.
        enable_thinking: Passed to templates that have the switch.
        chat_template_kwargs: Further arguments of the template.

    Raises:
        ConfigError: If the tokenizer has no chat template or no end token, or is a slow one, or the template
            does not know one of the arguments.
    """

    def __init__(
        self,
        tokenizer: PreTrainedTokenizerBase,
        vision: Vision | None = None,
        *,
        enable_thinking: bool = True,
        chat_template_kwargs: Mapping[str, Any] | None = None,
    ):
        name = tokenizer.name_or_path or type(tokenizer).__name__
        if not tokenizer.chat_template:
            raise ConfigError(
                f"the tokenizer {name} has no chat template: expected chat_template.jinja beside it"
            )
        if tokenizer.eos_token_id is None:
            raise ConfigError(f"the tokenizer {name} has no eos token: responses could not end")
        if not tokenizer.is_fast:
            raise ConfigError(f"the tokenizer {name} is a slow one: expected a tokenizer.json")
        self.tokenizer, self.vision = tokenizer, vision
        self.enable_thinking = enable_thinking
        self.chat_template_kwargs = dict(chat_template_kwargs or {})
        for key in self.chat_template_kwargs:
            if key in _OWN_ARGUMENTS or key not in str(tokenizer.chat_template):
                raise ConfigError(f"the chat template of {name} has no argument {key!r} of its own to set")
        self.end_id = self._end_of_turn()
        """The token that ends a response."""
        self.eos_ids: frozenset[int] = frozenset({self.end_id, int(tokenizer.eos_token_id)})
        """All tokens that end one."""

    @property
    def pad_id(self) -> int:
        """The id that fills padding; masks go by position, so it may equal the end token."""
        pad = self.tokenizer.pad_token_id
        return int(pad if pad is not None else self.tokenizer.eos_token_id)

    @property
    def banned(self) -> tuple[int, ...]:
        """Tokens that no response may hold: they would pass for pictures."""
        return self.vision.banned if self.vision is not None else ()

    @property
    def settings(self) -> dict[str, Any]:
        """What prompts depend on beside the tokenizer, for the record of a result."""
        return {"enable_thinking": self.enable_thinking, **self.chat_template_kwargs}

    def fingerprint(self) -> str:
        """Return a digest of vocabulary, template and sizes of pictures: equal ones make equal ids."""
        sizes = self.vision.settings if self.vision is not None else ""
        return digest(self.tokenizer.backend_tokenizer.to_str() + str(self.tokenizer.chat_template) + sizes)

    @cached_property
    def prefill(self) -> str:
        """What the generation prompt already writes of the response, e.g. an opening `<think>`."""
        tail = self._render(_PROBE, True)[len(self._render(_PROBE, False)) :]
        return tail[tail.index("<think>") :] if "<think>" in tail else ""

    @cached_property
    def _special(self) -> tuple[str, ...]:
        return tuple(t.content for t in self.tokenizer.added_tokens_decoder.values() if t.special)

    @cached_property
    def _hidden(self) -> frozenset[int]:
        """Special tokens that are no part of a response's text."""
        tokens = self.tokenizer.added_tokens_decoder.items()
        return frozenset(i for i, t in tokens if t.special and t.content not in _TAGS)

    def _end_of_turn(self) -> int:
        """Return the special token that the template writes after an answer; else the tokenizer's end token.

        They differ in base models, whose own end token no chat template writes.
        """
        mark = _mark("A", _PROBE)
        tail = self._render([*_PROBE, {"role": "assistant", "content": mark}], False).split(mark, 1)[1]
        ids = self._tokenise(tail, special=True)
        return ids[0] if ids and ids[0] in self._hidden else int(self.tokenizer.eos_token_id)

    def encode_prompt(self, messages: Sequence[Message]) -> list[int]:
        """Return the ids of a whole prompt, generation prompt included.

        Raises:
            ConfigError: If there is a picture and the model reads text only, or its template leaves one out.
        """
        return self._encode(messages, lambda m: self._render(m, True))

    def encode_bridge(self, context_ids: Sequence[int], messages: Sequence[Message]) -> list[int]:
        """Return the ids that join `context_ids` (ending in a completion) to a prompt with the new messages.

        The end token is part of the bridge exactly if the completion lacks it.

        Raises:
            ConfigError: As in `encode_prompt`.
        """
        mark = _mark("A", messages)

        def render(new: Sequence[Message]) -> str:
            answered: list[Message] = [*_PROBE, {"role": "assistant", "content": mark}, *new]
            return self._render(answered, True).split(mark, 1)[1]

        ids = self._encode(messages, render)
        ended = bool(context_ids) and context_ids[-1] in self.eos_ids
        return ids[1:] if ended and ids and ids[0] == context_ids[-1] else ids

    def collapse(self, ids: Sequence[int]) -> list[int]:
        """Return the ids with one placeholder a picture, as vLLM wants them."""
        image_id = self.vision.image_id if self.vision is not None else None
        return [i for key, run in groupby(ids) for i in ([key] if key == image_id else run)]

    def encode_response(self, text: str) -> list[int]:
        """Return the ids of a response that a demonstrator wrote, end token included.

        Raises:
            ConfigError: If it does not begin with what the template prefills.
        """
        if not text.startswith(self.prefill):
            raise ConfigError(
                f"a demonstration must begin with the template's {self.prefill!r}, got {text[:40]!r}"
            )
        return [*self._tokenise(text[len(self.prefill) :], special=False), self.end_id]

    def decode(self, completion_ids: Sequence[int]) -> str:
        """Return the whole response: the prefill and the text of the sampled ids, special tokens left out.

        Tags of thoughts and actions stay, also where the tokenizer calls them special.
        """
        shown = [i for i in completion_ids if i not in self._hidden]
        return self.prefill + str(self.tokenizer.decode(shown, skip_special_tokens=False))

    def count_tokens(self, completion_ids: Sequence[int], n_chars: int) -> int:
        """Return how many of the ids make up the first characters of the whole response."""
        counts = range(len(completion_ids) + 1)
        n = bisect_left(counts, n_chars, key=lambda n: len(self.decode(completion_ids[:n])))
        # The first tokens of a character that takes several show a stand-in for it.
        wanted = self.decode(completion_ids)[:n_chars]
        while self.decode(completion_ids[:n])[:n_chars] != wanted:
            n += 1
        return n

    def _render(self, messages: Sequence[Message], generation_prompt: bool) -> str:
        text = self.tokenizer.apply_chat_template(
            cast("list[dict[str, str]]", messages),
            tokenize=False,
            add_generation_prompt=generation_prompt,
            enable_thinking=self.enable_thinking,
            **self.chat_template_kwargs,
        )
        return str(text)

    def _encode(self, messages: Sequence[Message], render: Callable[[Sequence[Message]], str]) -> list[int]:
        shown = [_plain(m) for m in messages]
        pictures = pictures_of(shown)
        if pictures and self.vision is None:
            raise ConfigError("this model reads text only, got an image: set obs_mode to text")
        texts = [text for message in shown for text in _texts(message)]
        if any(s in t for t in texts for s in self._special):
            ids = self._encode_apart(shown, texts, render)
        else:
            ids = self._tokenise(render(shown), special=True)
        return self._expand(ids, pictures) if self.vision is not None else ids

    def _encode_apart(
        self, messages: Sequence[Message], texts: Sequence[str], render: Callable[[Sequence[Message]], str]
    ) -> list[int]:
        """Return the ids where somebody spelled a special token.

        Renders with marks in place of the texts, so that the template's own special tokens and the characters
        of the texts are tokenised apart.
        """
        marks = [_mark(str(i), messages) for i in range(len(texts))]
        left = iter(marks)
        rest = render([_with_texts(message, left) for message in messages])
        ids: list[int] = []
        for mark, text in zip(marks, texts, strict=True):
            before, rest = rest.split(mark, 1)
            ids += self._tokenise(before, special=True) + self._tokenise(text, special=False)
        return ids + self._tokenise(rest, special=True)

    def _expand(self, ids: Sequence[int], pictures: Sequence[Any]) -> list[int]:
        """Return the ids with as many placeholders for each picture as it takes."""
        assert self.vision is not None
        if (found := ids.count(self.vision.image_id)) != len(pictures):
            raise ConfigError(f"the chat template writes {found} placeholders for {len(pictures)} pictures")
        sizes = iter([self.vision.n_tokens(picture) for picture in pictures])
        return [i for key in ids for i in [key] * (next(sizes) if key == self.vision.image_id else 1)]

    def _tokenise(self, text: str, *, special: bool) -> list[int]:
        out = self.tokenizer(text, add_special_tokens=False, split_special_tokens=not special)
        return list(out["input_ids"])


def _plain(message: Message) -> Message:
    """Return the message with a string as its content, unless there is a picture."""
    if pictures_of([message]):
        return message
    return {"role": message["role"], "content": "".join(_texts(message))}


def _texts(message: Message) -> list[str]:
    """Return the texts of a message, in order."""
    content = message["content"]
    if isinstance(content, str):
        return [content]
    return [part["text"] for part in content if part["type"] == "text"]


def _with_texts(message: Message, texts: Iterator[str]) -> Message:
    """Return the message with other texts, taken one after another."""
    content = message["content"]
    if isinstance(content, str):
        return {"role": message["role"], "content": next(texts)}
    parts: list[Part] = [{"type": "text", "text": next(texts)} if p["type"] == "text" else p for p in content]
    return {"role": message["role"], "content": parts}


def _mark(name: str, messages: Sequence[Message]) -> str:
    """Return a string of private-use characters that occurs in no message."""
    mark = f"\ue000{name}\ue001"
    while any(mark in text for m in messages for text in _texts(m)):
        mark = f"\ue000{mark}\ue001"
    return mark
