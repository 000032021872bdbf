"""Tests of the real ALFWorld and TextWorld: `make test-alfworld` runs them in a venv of their own."""

from collections.abc import Callable, Iterator

import pytest

from arl_gym.envs.alfworld.reference import ReferenceGame, available
from tests.conftest import require


@pytest.fixture(autouse=True)
def _real_packages() -> None:
    require(available(), "needs the extra alfworld: make test-alfworld")


@pytest.fixture
def new_game() -> Iterator[Callable[[str], ReferenceGame]]:
    """Return what starts games; they are closed after the test."""
    games: list[ReferenceGame] = []

    def start(file_text: str) -> ReferenceGame:
        games.append(ReferenceGame(file_text))
        return games[-1]

    yield start
    for game in games:
        game.close()
