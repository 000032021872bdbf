"""What several commands share: the environment argument, its keyword arguments, and the progress bar."""

import argparse
import importlib
import inspect
import json
import sys
import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import gymnasium as gym

from arl_gym.core import SPLITS
from arl_gym.errors import ConfigError, UnknownNameError


def parser(name: str, description: str) -> argparse.ArgumentParser:
    """Return the parser of a command; its help shows the defaults."""
    return argparse.ArgumentParser(
        prog=f"arl-gym {name}",
        description=description,
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )


def add_env_options(parser: argparse.ArgumentParser, *, split: str) -> None:
    """Add the environment's id, its split and `--env KEY=VALUE`."""
    parser.add_argument("id", type=env_id, metavar="ID", help="environment id, e.g. ARL/Sokoban-v0")
    parser.add_argument("--split", default=split, help=f"one of {', '.join(SPLITS)}, or the data's own name")
    parser.add_argument(
        "--env",
        action="append",
        type=key_value,
        default=[],
        metavar="KEY=VALUE",
        help="keyword argument of the environment, value as in TOML or JSON; may be repeated",
    )


def positive_int(text: str) -> int:
    """Parse a whole number of at least 1."""
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, got {value}")
    return value


def env_id(text: str) -> str:
    """Check that an id is registered; `module:id` imports the module first, as `gym.make` does."""
    module, _, name = text.rpartition(":")
    if module:
        try:
            importlib.import_module(module)
        except ModuleNotFoundError as err:
            raise argparse.ArgumentTypeError(f"cannot import {module!r}: {err}") from err
    if name not in gym.registry:
        known = [known for known in gym.registry if known.startswith("ARL/")]
        raise argparse.ArgumentTypeError(str(UnknownNameError("environment", name, known)))
    return name


def key_value(text: str) -> tuple[str, Any]:
    """Parse KEY=VALUE."""
    key, equals, value = text.partition("=")
    if not equals or not key.isidentifier():
        raise argparse.ArgumentTypeError(f"expected KEY=VALUE, got {text!r}")
    return key, literal(value)


def literal(text: str) -> Any:
    """Return a TOML or JSON literal as its value, anything else as the text it is.

    >>> literal("3"), literal("[6, 6]"), literal("null"), literal("grid")
    (3, [6, 6], None, 'grid')
    """
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        try:
            return json.loads(text)
        except ValueError:
            return text
    # A date is TOML, but no environment takes one.
    return value if isinstance(value, bool | int | float | str | list | dict) else text


def env_kwargs(args: argparse.Namespace) -> dict[str, Any]:
    """Return the environment's keyword arguments, its split among them.

    Raises:
        UnknownNameError: If the environment does not take one of them.
    """
    kwargs = dict(args.env)
    if "split" in kwargs:
        raise ConfigError("the split is chosen by --split, not by --env split=…")
    parameters = inspect.signature(entry_point(args.id)).parameters.values()
    if not any(p.kind is p.VAR_KEYWORD for p in parameters):
        for key in kwargs:
            if key not in {p.name for p in parameters}:
                known = {p.name for p in parameters} - {"self", "split", "render_mode"}
                raise UnknownNameError("keyword argument", key, known, args.id)
    return {"split": args.split, **kwargs}


def entry_point(env_id: str) -> Callable[..., Any]:
    """Return what makes the env of a registered id: its class or a function."""
    entry = gym.spec(env_id).entry_point
    if isinstance(entry, str):
        module, _, name = entry.partition(":")
        return getattr(importlib.import_module(module), name)  # type: ignore[no-any-return]
    if entry is None:
        raise ConfigError(f"{env_id} has no entry point: it can only be made as a vector env")
    return entry


@contextmanager
def progress_bar(what: str) -> Iterator[Callable[[int, int], None] | None]:
    """Give a function (done, total) that draws a bar on stderr, or None where nobody would see it."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
