"""`arl-gym check`: try an environment against the contract, and print the report."""

import argparse
import importlib
from collections.abc import Callable
from functools import partial
from typing import Any

import gymnasium as gym
from gymnasium.envs.registration import EnvSpec

from arl_gym.checker import conformance
from arl_gym.cli.options import add_kwargs_option, parser, positive_int
from arl_gym.errors import ConfigError, UnknownNameError
from arl_gym.make import env_parameters, find_spec


def run(args: list[str]) -> int:
    """Print the report; fail if a rule is broken."""
    p = parser("check", "Try an environment against the contract: yours, or a registered one.")
    p.add_argument(
        "target",
        type=_target,
        metavar="ENV",
        help="module:Class, or an id, as module:id where the module registers it",
    )
    add_kwargs_option(p, "keyword argument of the environment")
    p.add_argument("--episodes", type=positive_int, default=3, help="seeds that most rules are tried on")
    p.add_argument("--seed", type=int, default=0, help="the first of them")
    options = p.parse_args(args)
    report = conformance(_maker(options.target, options.env), episodes=options.episodes, seed=options.seed)
    print(report)
    return 1 if report.broken else 0


def _target(text: str) -> EnvSpec | Callable[..., Any]:
    """Return what is named: the spec of an id, or a class or function of a module."""
    module, _, name = text.rpartition(":")
    try:
        if not (module and name.isidentifier()):
            return find_spec(text)
        members = vars(importlib.import_module(module))
    except (ConfigError, ImportError) as err:
        raise argparse.ArgumentTypeError(str(err)) from err
    if name not in members:
        known = [key for key, value in members.items() if isinstance(value, type)]
        raise argparse.ArgumentTypeError(str(UnknownNameError("environment", name, known, module)))
    target: Callable[..., Any] = members[name]
    return target


def _maker(target: EnvSpec | Callable[..., Any], kwargs: list[tuple[str, Any]]) -> Callable[..., Any]:
    make: Callable[..., Any]
    if isinstance(target, EnvSpec):
        make, known = partial(gym.make, target), env_parameters(target)
    else:
        make, known = target, env_parameters(EnvSpec("Own/Target-v0", target))
    for key, _ in kwargs:
        if known is not None and key not in known:
            raise UnknownNameError("--env key", key, known)
    return partial(make, **dict(kwargs))
