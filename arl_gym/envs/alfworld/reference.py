"""The reference engine: games as the real ALFWorld and TextWorld play them, one command in 0.1 seconds.

Needs the extra `alfworld`. It is the measure of the native engine, and plays games whose rules that one does
not know. Threads take turns; use processes for speed.

>>> game = ReferenceGame(Path("game.tw-pddl").read_text())  # doctest: +SKIP
"""

import contextlib
import os
import sys
import threading
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

from arl_gym.envs.alfworld.game import read_record
from arl_gym.errors import ConfigError, DataError, DependencyMissing, EpisodeOverError

# What the rules read and commands change; not what was looked at, nor a switch that nothing reads.
_STATE = {"atlocation", "holds", "inreceptacle", "not_inreceptacle", "objectatlocation", "opened"}
_STATE |= {"isclean", "ishot", "iscool", "istoggled", "issliced"}

# Its parsers are shared by the whole process: two threads in them at once break both.
_LOCK = threading.RLock()
# An environment keeps 2 MB for good, so none is thrown away.
_FREE: list[Any] = []
_made = 0


def made() -> int:
    """Return how many real environments this process has built so far."""
    return _made


def available() -> bool:
    """Return whether the packages are installed and run on this Python."""
    return sys.version_info < (3, 13) and all(map(find_spec, ("alfworld", "textworld", "fast_downward")))


class ReferenceGame:
    """A game played by the real packages, from its `.tw-pddl` file.

    Offers what `House` offers of the game: `intro`, `act`, `commands`, `won`. Close it when done, so that the
    next one can use its environment. May be used from any thread.

    Raises:
        DependencyMissing: If the packages are not installed.
        ConfigError: If they do not run on this Python.
        DataError: If they cannot load the game.
    """

    def __init__(self, file_text: str):
        record = read_record(file_text)
        with _textworld():
            self._env = _FREE.pop() if _FREE else _new_environment()
            try:
                self._env.load(record)
                self._state = self._env.reset()
            # Whatever is wrong with the game; the translator exits where it cannot go on.
            except (Exception, SystemExit) as err:
                self.close()
                raise DataError(f"TextWorld cannot load the game: {type(err).__name__}: {err}") from err
        self._intro = str(self._state["feedback"])

    def intro(self) -> str:
        """Return the text the game starts with."""
        return self._intro

    def act(self, text: str) -> str:
        """Carry out a command; return what the game says.

        Raises:
            EpisodeOverError: If the game was closed.
        """
        with _textworld():
            self._state, _, _ = self._opened().step(text)
        return str(self._state["feedback"])

    def commands(self) -> list[str]:
        """Return the commands that can be carried out, sorted."""
        return list(self._state["admissible_commands"])

    @property
    def won(self) -> bool:
        """Whether the goal holds now."""
        return bool(self._state["won"])

    def facts(self) -> tuple[str, ...]:
        """Return what is true now and may change, sorted: equal for states that play alike."""
        facts = (fact for fact in self._state["facts"] if fact.name in _STATE)
        return tuple(sorted(f"{fact.name}({', '.join(a.name for a in fact.arguments)})" for fact in facts))

    def plan(self) -> list[str]:
        """Return commands that lead to the goal, by the packages' planner; empty if it finds none.

        It may take a minute and much memory: for two objects, above all.

        Raises:
            EpisodeOverError: If the game was closed.
        """
        with _textworld():
            env = self._opened().unwrapped
            return list(env._pddl_state.replan(env._entity_infos))

    def close(self) -> None:
        """Give the environment back for the next game; the last state can still be read."""
        with _LOCK:
            if self._env is not None:
                _FREE.append(self._env)
                self._env = None

    def _opened(self) -> Any:
        if self._env is None:
            raise EpisodeOverError("the game was closed")
        return self._env


def _new_environment() -> Any:
    global _made
    if sys.version_info >= (3, 13):
        raise ConfigError(
            "ALFWorld(engine='textworld') needs Python 3.11 or 3.12, because TextWorld 1.7 fails on"
            f" later ones; this is {sys.version.split()[0]}. engine='native' plays the same"
        )
    if not available():
        raise DependencyMissing("ALFWorld(engine='textworld')", "alfworld")
    with _same_variables():
        from alfworld.agents.environment.alfred_tw_env import AlfredDemangler
        from textworld import EnvInfos
        from textworld.envs.pddl import PddlEnv
    _made += 1
    return AlfredDemangler(PddlEnv(EnvInfos(won=True, admissible_commands=True, facts=True)), shuffle=False)


@contextlib.contextmanager
def _same_variables() -> Iterator[None]:
    """Undo what `import alfworld` does to ALFWORLD_DATA: the variable says where the real games are."""
    before = os.environ.get("ALFWORLD_DATA")
    try:
        yield
    finally:
        os.environ.pop("ALFWORLD_DATA", None)
        if before is not None:
            os.environ["ALFWORLD_DATA"] = before


@contextlib.contextmanager
def _textworld() -> Iterator[None]:
    """Let one thread in; give the process its arguments and output back, which the translator swaps."""
    with _LOCK:
        arguments, output = sys.argv, sys.stdout
        try:
            yield
        finally:
            sys.argv, sys.stdout = arguments, output
