"""What several commands share: the environment argument, its keyword arguments, and the progress bar."""

import argparse
import json
import sys
import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from arl_gym.agents.tasks import split_kwargs
from arl_gym.core import SPLITS
from arl_gym.errors import ConfigError, UnknownNameError
from arl_gym.make import env_parameters, find_spec
from arl_gym.vector import parse_workers
from arl_gym.wrappers.format_penalty import FORMATS


class _Help(argparse.ArgumentDefaultsHelpFormatter):
    """Shows the defaults that are values."""

    def _get_help_string(self, action: argparse.Action) -> str | None:
        return action.help if action.default in (None, False, []) else super()._get_help_string(action)


def parser(name: str, description: str) -> argparse.ArgumentParser:
    """Return the parser of a command; its help shows the defaults."""
    return argparse.ArgumentParser(
        prog=f"arl-gym {name}",
        description=description,
        formatter_class=_Help,
    )


def add_env_options(parser: argparse.ArgumentParser, *, split: str) -> None:
    """Add the environment's id, its split and `--env KEY=VALUE`."""
    parser.add_argument("id", type=env_id, metavar="ID", help="environment id, e.g. ARL/Sokoban-v0")
    parser.add_argument("--split", default=split, help=f"one of {', '.join(SPLITS)}, or the data's own name")
    add_kwargs_option(parser, "keyword argument of the environment")


def add_kwargs_option(parser: argparse.ArgumentParser, what: str) -> None:
    """Add `--env KEY=VALUE`."""
    parser.add_argument(
        "--env",
        action="append",
        type=key_value,
        default=[],
        metavar="KEY=VALUE",
        help=f"{what}; the value as in TOML or JSON; may be repeated",
    )


def add_chat_options(parser: argparse.ArgumentParser, *, window: str) -> None:
    """Add `--window`, `--format` and `--prompt`: how a chat environment speaks with the model."""
    parser.add_argument("--window", type=_window, default=window, help="past turns shown, or 'dialogue'")
    parser.add_argument(
        "--format", choices=["default", *FORMATS], default="default", help="form of a response"
    )
    parser.add_argument("--prompt", default="default", help="prompt layout of the environment")


def _window(text: str) -> int | str | None:
    if text == "dialogue":
        return None
    if text != "default" and not text.isdecimal():
        raise argparse.ArgumentTypeError(f"expected a number of turns, 'dialogue' or 'default', got {text!r}")
    return text if text == "default" else int(text)


def positive_int(text: str) -> int:
    """Parse a whole number of at least 1."""
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, got {value}")
    return value


def add_workers_option(parser: argparse.ArgumentParser) -> None:
    """Add `--workers`."""
    parser.add_argument(
        "--workers",
        type=_workers,
        default=0,
        help="worker processes, 0 plays in this one; or ray, ray:N: actors of a Ray cluster",
    )


def _workers(text: str) -> int | str:
    value = int(text) if text.lstrip("-").isdecimal() else text
    try:
        parse_workers(value)
    except ConfigError as err:
        raise argparse.ArgumentTypeError(str(err)) from err
    return value


def env_id(text: str) -> str:
    """Check that an id is registered; `module:id` imports the module first, as `gym.make` does."""
    try:
        return find_spec(text).id
    except ConfigError as err:
        raise argparse.ArgumentTypeError(str(err)) from err


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
    """Return the environment's keyword arguments, its split among them where it knows splits.

    Raises:
        UnknownNameError: If the environment does not take one of them.
    """
    known = env_parameters(find_spec(args.id))
    for key, _ in args.env:
        if key == "split" or (known is not None and key not in known):
            own = (known or set()) - {"split", "render_mode"}
            raise UnknownNameError("--env key", key, own, f"{args.id} (the split has its own option)")
    return {**split_kwargs(args.id, args.split), **dict(args.env)}


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
