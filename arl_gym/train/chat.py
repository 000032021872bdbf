"""Token identity: the one place where messages become token ids.

A prompt is rendered by the model's own chat template. Text of environments is tokenised as text: a special
token spelled inside it (`<|im_end|>`) stays the characters it is. What was sampled is never tokenised again:
a dialogue grows by a *bridge*, the ids between a completion and the next generation prompt.
"""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, cast

from transformers import PreTrainedTokenizerBase

from arl_gym.core import Message
from arl_gym.errors import ConfigError
from arl_gym.rng import digest

_PROBE: list[Message] = [{"role": "user", "content": "."}]
# Part of the response even where a tokenizer counts them among its special tokens.
_TAGS = frozenset({"<think>", "</think>", "<action>", "</action>"})
_OWN_ARGUMENTS = frozenset({"conversation", "tokenize", "add_generation_prompt", "enable_thinking"})


class ChatCodec:
    """Encodes prompts and decodes completions for one tokenizer.

    Args:
        tokenizer: A fast tokenizer with a chat template and an end token.
        enable_thinking: Passed to templates that have the switch.
        chat_template_kwargs: Further arguments of the template.

    Raises:
        ConfigError: If the tokenizer has no chat template or no end token, or is a slow one, or the template
            does not know one of the arguments.
    """

    def __init__(
        self,
        tokenizer: PreTrainedTokenizerBase,
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
        self.tokenizer = tokenizer
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

    def fingerprint(self) -> str:
        """Return a digest of vocabulary and template: equal ones make the same ids of the same text."""
        return digest(self.tokenizer.backend_tokenizer.to_str() + str(self.tokenizer.chat_template))

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
        """Return the ids of a whole prompt, generation prompt included."""
        return self._encode(messages, lambda m: self._render(m, True))

    def encode_bridge(self, context_ids: Sequence[int], messages: Sequence[Message]) -> list[int]:
        """Return the ids that join `context_ids` (ending in a completion) to a prompt with the new messages.

        The end token is part of the bridge exactly if the completion lacks it.
        """
        mark = _mark("A", messages)

        def render(new: Sequence[Message]) -> str:
            answered: list[Message] = [*_PROBE, {"role": "assistant", "content": mark}, *new]
            return self._render(answered, True).split(mark, 1)[1]

        ids = self._encode(messages, render)
        ended = bool(context_ids) and context_ids[-1] in self.eos_ids
        return ids[1:] if ended and ids and ids[0] == context_ids[-1] else ids

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

    def _encode(self, messages: Sequence[Message], render: Any) -> list[int]:
        texts = [_text(m) for m in messages]
        if not any(s in t for t in texts for s in self._special):
            return self._tokenise(render(messages), special=True)
        # Somebody spelled a special token: render with marks in place of the contents, so that the template's
        # own special tokens and the characters of the contents are tokenised apart.
        marks = [_mark(str(i), messages) for i in range(len(texts))]
        rest = render([{"role": m["role"], "content": mark} for m, mark in zip(messages, marks, strict=True)])
        ids: list[int] = []
        for mark, text in zip(marks, texts, strict=True):
            before, rest = rest.split(mark, 1)
            ids += self._tokenise(before, special=True) + self._tokenise(text, special=False)
        return ids + self._tokenise(rest, special=True)

    def _tokenise(self, text: str, *, special: bool) -> list[int]:
        out = self.tokenizer(text, add_special_tokens=False, split_special_tokens=not special)
        return list(out["input_ids"])


def _text(message: Message) -> str:
    content = message["content"]
    if isinstance(content, str):
        return content
    kinds = [p["type"] for p in content if p["type"] != "text"]
    if kinds:
        raise ConfigError(f"this policy reads text only, got a message with {kinds[0]} parts: use obs text")
    return "".join(p["text"] for p in content)


def _mark(name: str, messages: Sequence[Message]) -> str:
    """Return a string of private-use characters that occurs in no message."""
    mark = f"\ue000{name}\ue001"
    while any(mark in _text(m) for m in messages):
        mark = f"\ue000{mark}\ue001"
    return mark
