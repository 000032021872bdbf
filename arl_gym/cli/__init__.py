"""The command line: `arl-gym COMMAND …`.

A table of commands; the module of a command is imported when it is chosen, so that `arl-gym list` is quick
and nothing but the training commands needs torch.
"""

import argparse
import importlib
import io
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import gymnasium

from arl_gym import __version__
from arl_gym.cli.extras import extra_of
from arl_gym.errors import ArlGymError, DependencyMissing, UnknownNameError


@dataclass(frozen=True, slots=True)
class Command:
    """One row of the table: what it does, and where the function `(args) -> exit code` is."""

    help: str
    module: str
    function: str = "run"

    def load(self) -> Callable[[list[str]], int]:
        """Import the module and return the function."""
        return getattr(importlib.import_module(self.module), self.function)  # type: ignore[no-any-return]


_TRAINING = "arl_gym.cli.training"

COMMANDS: dict[str, Command] = {
    "list": Command("show the environments", "arl_gym.cli.listing"),
    "play": Command("play an environment in the terminal", "arl_gym.cli.play"),
    "eval": Command("measure a policy on a fixed list of tasks", "arl_gym.cli.evaluation"),
    "check": Command("try an environment against the contract", "arl_gym.cli.checking"),
    "bench": Command("measure the speed of an environment", "arl_gym.cli.bench"),
    "replay": Command("show recorded episodes in the terminal or as a web page", "arl_gym.cli.replay"),
    "serve-webshop": Command("serve the web store to people and browsers", "arl_gym.cli.serve_webshop"),
    "serve-sandbox": Command("run TIR-Math's programs for other machines", "arl_gym.cli.serve_sandbox"),
    "serve-openenv": Command("serve an environment to clients of OpenEnv", "arl_gym.cli.serve_openenv"),
    "data": Command("check, import and export the data of environments", "arl_gym.cli.data"),
    "doctor": Command("check the installation", "arl_gym.cli.doctor"),
    "selftest": Command("check the trainer on this machine", "arl_gym.cli.selftest"),
    "demo": Command("train a tiny agent on the CPU in minutes, with a report", _TRAINING, "demo"),
    "tiny-model": Command("make a small random model to train", _TRAINING, "tiny_model"),
    "collect": Command("record episodes worth cloning", "arl_gym.cli.cloning", "collect"),
    "bc": Command("clone the expert or recorded episodes", "arl_gym.cli.cloning", "bc"),
    "train": Command("train a policy", _TRAINING, "train"),
    "export": Command("make a Hugging Face folder of a checkpoint", _TRAINING, "export"),
    "sweep": Command("train over a grid of settings and pick the best", "arl_gym.cli.sweep"),
    "methods": Command("show the methods and their dials", "arl_gym.cli.methods"),
    "plot": Command("draw figures and tables of runs", "arl_gym.cli.plotting"),
    "show": Command("show a run: settings, metrics, alarms, recorded episodes", "arl_gym.cli.showing"),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code.

    Returns:
        0 done, 1 failed (the last line of stderr says why), 2 bad usage.
    """
    args = list(sys.argv[1:] if argv is None else argv)
    name = args[0] if args else ""
    if isinstance(sys.stdout, io.TextIOWrapper):
        # What a model wrote may hold what no terminal can show.
        sys.stdout.reconfigure(errors="backslashreplace")
    if "" not in sys.path:
        sys.path.append("")  # environments of the folder one works in, module:id, are rarely installed
    try:
        code = _run(args)
        sys.stdout.flush()  # a closed pipe shows here rather than at exit
        return code
    except SystemExit as err:  # argparse
        return err.code if isinstance(err.code, int) else 1
    except KeyboardInterrupt:
        return _fail("interrupted")
    except BrokenPipeError:
        # The reader has gone; without this the interpreter complains when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except (ArlGymError, gymnasium.error.Error, OSError) as err:
        return _fail(err)
    except ModuleNotFoundError as err:
        extra = extra_of(err.name or "")
        if extra is None:
            raise
        return _fail(DependencyMissing(f"arl-gym {name}", extra))


def _run(args: list[str]) -> int:
    top = _parser()
    if not args:
        top.print_help()
        return 2
    name = top.parse_args(args[:1]).command
    if name not in COMMANDS:
        top.error(str(UnknownNameError("command", name, COMMANDS)))
    return COMMANDS[name].load()(args[1:])


def _parser() -> argparse.ArgumentParser:
    rows = "\n".join(f"  {name:<15}{command.help}" for name, command in COMMANDS.items())
    parser = argparse.ArgumentParser(
        prog="arl-gym",
        usage="arl-gym COMMAND …",
        description="Environments for language agents, and an integrated trainer.",
        epilog=f"commands:\n{rows}\n\narl-gym COMMAND --help says more.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("command", metavar="COMMAND", help="one of those below")
    parser.add_argument("--version", action="version", version=f"arl-gym {__version__}")
    return parser


def _fail(reason: object) -> int:
    print(f"arl-gym: {' '.join(str(reason).split())}", file=sys.stderr)
    return 1
