"""What can play a game: the native `House`, or the real TextWorld with a `House` beside it."""

import json
from contextlib import suppress
from typing import Protocol

from arl_gym.envs.alfworld.game import read_game
from arl_gym.envs.alfworld.grammars import UnknownRules
from arl_gym.envs.alfworld.house import House
from arl_gym.envs.alfworld.reference import ReferenceGame
from arl_gym.rng import digest


class Engine(Protocol):
    """A game being played."""

    @property
    def house(self) -> House | None:
        """The native engine in the same state; None for games whose rules it does not know."""
        ...

    @property
    def task(self) -> str:
        """The goal in words."""
        ...

    @property
    def grammar(self) -> str:
        """Version of the text grammar."""
        ...

    @property
    def content_hash(self) -> str:
        """Digest of the game."""
        ...

    @property
    def state_key(self) -> str:
        """Digest of the state."""
        ...

    @property
    def won(self) -> bool:
        """Whether the goal holds now."""
        ...

    def conditions(self) -> tuple[int, int]:
        """Return how many conditions of the goal hold, and how many there are."""
        ...

    def intro(self) -> str:
        """Return the text the game starts with."""
        ...

    def act(self, text: str) -> str:
        """Carry out a command; return what the game says."""
        ...

    def commands(self) -> list[str]:
        """Return the commands that can be carried out, sorted."""
        ...


class TextWorldEngine:
    """The real TextWorld. Texts, commands and the end of the game are its own.

    What it does not tell (conditions, keys, the state an expert needs) comes from a `House` that plays along.
    Games with rules unknown to `House` have their one condition, and a key of their facts.

    Args:
        file_text: The `.tw-pddl` file.

    Raises:
        DependencyMissing: If alfworld or textworld is not installed.
        DataError: If the file cannot be played.
    """

    def __init__(self, file_text: str):
        self.house: House | None = None
        with suppress(UnknownRules):
            self.house = House(read_game(file_text))
        self._game = ReferenceGame(file_text)
        self._file_hash = digest(json.dumps(json.loads(file_text), sort_keys=True))

    @property
    def task(self) -> str:
        """The goal in words, as the game words it."""
        return self.intro().rpartition("Your task is to: ")[2]

    @property
    def grammar(self) -> str:
        """Version of the text grammar, or "unknown"."""
        return self.house.grammar if self.house else "unknown"

    @property
    def content_hash(self) -> str:
        """Digest of the game: the same as with the native engine where that knows the rules."""
        return self.house.content_hash if self.house else self._file_hash

    @property
    def state_key(self) -> str:
        """Digest of the state."""
        return self.house.state_key if self.house else digest("\n".join(self._game.facts()))

    @property
    def won(self) -> bool:
        """Whether the goal holds now."""
        return self._game.won

    def conditions(self) -> tuple[int, int]:
        """Return how many conditions of the goal hold, and how many there are."""
        return self.house.conditions() if self.house else (int(self.won), 1)

    def intro(self) -> str:
        """Return the text the game starts with."""
        return self._game.intro()

    def act(self, text: str) -> str:
        """Carry out a command; return what the game says."""
        if self.house is not None:
            self.house.act(text)
        return self._game.act(text)

    def commands(self) -> list[str]:
        """Return the commands that can be carried out, sorted."""
        return self._game.commands()

    def close(self) -> None:
        """Give the real environment back to the pool."""
        self._game.close()
