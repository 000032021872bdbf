"""A codec whose tokens are letters, in the place of `arl_gym.train.chat`, which needs torch."""

from collections.abc import Sequence
from types import ModuleType
from typing import Any

from arl_gym.core import Message

END = 0
"""The token that ends a response."""


def ids_of(text: str) -> list[int]:
    return [ord(letter) for letter in text]


def text_of_ids(ids: Sequence[int]) -> str:
    """Return ids as text, ends as $."""
    return "".join("$" if i == END else chr(i) for i in ids)


def rendered(messages: Sequence[Message]) -> str:
    """Return messages of text as the prompt that they make here."""
    return "".join(f"({message['role']}) {message['content']}" for message in messages) + "(assistant) "


class Letters:
    """What the adapters use of a `ChatCodec`."""

    def __init__(
        self,
        tokenizer: Any,
        vision: Any = None,
        *,
        enable_thinking: bool = True,
        chat_template_kwargs: Any = None,
    ):
        self.settings = (tokenizer, enable_thinking, chat_template_kwargs)

    def encode_prompt(self, messages: Sequence[Message]) -> list[int]:
        return ids_of(rendered(messages))

    def encode_bridge(self, context_ids: Sequence[int], messages: Sequence[Message]) -> list[int]:
        return [*([] if context_ids[-1] == END else [END]), *self.encode_prompt(messages)]

    def decode(self, completion_ids: Sequence[int]) -> str:
        return "".join(chr(i) for i in completion_ids if i != END)

    def count_tokens(self, completion_ids: Sequence[int], n_chars: int) -> int:
        return n_chars


def module() -> ModuleType:
    """Return the module `arl_gym.train.chat` with `Letters` as its codec."""
    made = ModuleType("arl_gym.train.chat")
    vars(made).update(ChatCodec=Letters)
    return made
