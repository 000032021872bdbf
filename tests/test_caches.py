import fcntl
import io
import sys

import pytest

from arl_gym import caches
from arl_gym.caches import locked, with_bar


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_one_at_a_time_holds_the_lock(tmp_path):
    cache = tmp_path / "new" / "rooms"
    with locked(cache) as first, locked(cache, timeout_s=0.05) as second:
        assert (first, second) == (True, False)
    with locked(cache) as again:
        assert again


def test_without_locks_everybody_goes_on(tmp_path, monkeypatch):
    def refuse(*args: object) -> None:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(fcntl, "flock", refuse)
    with locked(tmp_path / "rooms") as holds:
        assert not holds


@pytest.mark.parametrize(
    ("after_s", "stream", "shown"),
    [
        (-1.0, Terminal, True),
        (-1.0, io.StringIO, False),
        (60.0, Terminal, False),
    ],
)
def test_a_bar_is_drawn_on_a_terminal_when_it_takes_long(monkeypatch, after_s, stream, shown):
    monkeypatch.setattr(caches, "_BAR_AFTER_S", after_s)
    monkeypatch.setattr(sys, "stderr", stderr := stream())
    assert list(with_bar(iter("abc"), "reading", total=30, done=lambda item: 10 * ord(item))) == [
        "a",
        "b",
        "c",
    ]
    assert ("reading" in stderr.getvalue()) == shown


def test_a_bar_goes_with_an_error(monkeypatch):
    monkeypatch.setattr(caches, "_BAR_AFTER_S", -1.0)
    monkeypatch.setattr(sys, "stderr", Terminal())
    with pytest.raises(ZeroDivisionError):
        list(with_bar((1 // n for n in (1, 0)), "dividing", total=2))
