"""Every type that flows between environments, policies and the trainer.

`rollout` turns exchanges (`Request` → `Reply`) into `Turn`s and `Trajectory`s. No torch, no tokenizer: token
ids are plain lists that only a policy makes and only the trainer reads.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from arl_gym.core import Message

Finish = Literal["stop", "length", "empty", "context_full"]
"""Why a reply ended: by its end token or a stop string, at the token limit, with no token at all, or before
it began because the prompt leaves no room."""

Stop = Literal["terminated", "truncated", "context_full", "env_error", "unfinished"]
"""Why an episode ended; "unfinished" only in recordings of `RecordEpisode`, never from the rollout."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Episode:
    """One episode to play: which task, and which member of which group it is."""

    task_id: str
    group: int
    copy: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What a policy is asked: answer `messages`."""

    key: int
    """Identifies the episode among the live ones; comes back in the reply."""
    messages: list[Message]
    info: dict[str, Any]
    """The env's info of this turn; token policies ignore it, torch-free ones read it."""
    context_ids: list[int] | None
    """Append-only dialogues after the first turn: all ids so far, which the prompt must extend. Else None."""
    stream: int
    """64-bit seed of this turn's sampling, derived from (seed, step, task, copy, turn)."""
    pictures: list[Any] = field(default_factory=list)
    """The images of the whole prompt, in order: those of `messages`, after those that `context_ids` hold."""

    @property
    def stop(self) -> tuple[str, ...]:
        """Strings that end a response: the env reads nothing after them (`info["stop"]`)."""
        return tuple(self.info.get("stop", ()))


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """A policy's answer. Ids and log-probs are None for policies that have none."""

    key: int
    response: str
    """The whole response, with whatever the chat template had prefilled."""
    finish: Finish
    prompt_ids: list[int] | None = None
    completion_ids: list[int] | None = None
    logprobs: list[float] | None = None
    n_tokens: Callable[[int], int] | None = None
    """From a number of the response's first characters to how many completion ids they take."""


class Policy(Protocol):
    """Anything that answers requests. `submit` never blocks on the model; `poll` does."""

    def submit(self, requests: Sequence[Request]) -> None:
        """Queue requests."""
        ...

    def poll(self) -> list[Reply]:
        """Return at least one reply if any request is outstanding, in any order; [] if none is."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One exchange: what was shown, what was answered, what it brought."""

    messages: list[Message]
    response: str
    action: str
    env_reward: float
    format_penalty: float
    anchor: str
    """What this turn's action answered, for GiGPO: the raw observation or a state key."""
    format_valid: bool
    action_valid: bool
    finish: Finish
    append: bool = False
    """Whether `messages` continue a dialogue instead of being the whole prompt."""
    prompt_ids: list[int] | None = None
    completion_ids: list[int] | None = None
    logprobs: list[float] | None = None
    n_kept: int = 0
    """How many completion tokens the env consumed."""
    n_chars: int | None = None
    """How many of the response's first characters the env consumed; None if it does not say, as environments
    that read all of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trajectory:
    """One episode, from reset to its end."""

    env_id: str
    task_id: str
    dataset: str
    split: str
    content_hash: str
    group: int
    copy: int
    turns: tuple[Turn, ...]
    stop: Stop
    success: bool
    score: float
    task_type: str = ""
    """`info["task_type"]` of environments that tell kinds of task apart."""
    error: str = ""

    @property
    def env_return(self) -> float:
        """Undiscounted sum of env rewards, before penalties."""
        return sum(t.env_reward for t in self.turns)

    @property
    def is_valid(self) -> bool:
        """Whether the trainer may learn from it: it has turns and no infrastructure failed."""
        return len(self.turns) > 0 and self.stop != "env_error"
