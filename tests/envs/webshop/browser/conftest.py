"""Tests with a real browser: `make test-browser` runs them."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from arl_gym.envs.webshop.browser import Browser, find_programs
from arl_gym.envs.webshop.env import WebShopEnv
from arl_gym.errors import BrowserError
from tests.conftest import require


@pytest.fixture(scope="session", autouse=True)
def _browser_is_there() -> None:
    try:
        find_programs()
        missing = ""
    except BrowserError as err:
        missing = str(err)
    require(not missing, missing)


@pytest.fixture
def new_env() -> Iterator[Callable[..., WebShopEnv]]:
    """Return what makes environments with a browser; they are closed after the test."""
    made: list[WebShopEnv] = []

    def make(**kwargs: Any) -> WebShopEnv:
        chosen: dict[str, Any] = {"catalogue": "mini", "num_products": 200, "frontend": "browser"} | kwargs
        made.append(WebShopEnv(**chosen))
        return made[-1]

    yield make
    for env in made:
        env.close()


def browser_of(env: WebShopEnv) -> Browser:
    session: Any = env._session
    browser: Browser = session.browser
    return browser


def living(group: int) -> dict[int, str]:
    """Return the processes of a group that have not ended, with their command lines."""
    found = {}
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            state, _, pgrp = (folder / "stat").read_text().rpartition(")")[2].split()[:3]
            command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:  # it has ended meanwhile
            continue
        if int(pgrp) == group and state != "Z":
            found[int(folder.name)] = command
    return found


def pid_of(group: int, program: str) -> int:
    """Return the process of a group whose command line begins with a program: the oldest one."""
    return min(
        pid for pid, command in living(group).items() if program in os.path.basename(command.split(" ")[0])
    )
