"""What the site needs to know of recorded episodes; those of `agents.types` are such.

Nothing here knows that package: environments do not import what is built on them.
"""

# ruff: noqa: D102 - the classes say what their attributes are

from collections.abc import Sequence
from typing import Protocol

from arl_gym.core import Message


class RecordedTurn(Protocol):
    """What is shown of a turn; `agents.types.Turn` is one."""

    @property
    def messages(self) -> Sequence[Message]: ...
    @property
    def response(self) -> str: ...
    @property
    def action(self) -> str: ...
    @property
    def env_reward(self) -> float: ...
    @property
    def format_penalty(self) -> float: ...
    @property
    def format_valid(self) -> bool: ...
    @property
    def action_valid(self) -> bool: ...


class Recorded(Protocol):
    """What is shown of an episode; `agents.types.Trajectory` is one."""

    @property
    def env_id(self) -> str: ...
    @property
    def task_id(self) -> str: ...
    @property
    def content_hash(self) -> str: ...
    @property
    def turns(self) -> Sequence[RecordedTurn]: ...
    @property
    def stop(self) -> str: ...
    @property
    def success(self) -> bool: ...
    @property
    def score(self) -> float: ...
    @property
    def error(self) -> str: ...
