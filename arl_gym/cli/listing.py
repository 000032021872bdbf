"""`arl-gym list`: the environments, from the registration table and their cards."""

import argparse
import inspect
import re

from gymnasium.envs.registration import load_env_creator

from arl_gym.envs import ENVS


def run(args: list[str]) -> int:
    """Print a few lines per environment."""
    argparse.ArgumentParser(
        prog="arl-gym list",
        description="Show the environments and their defaults. The docstring of each env class is its card.",
    ).parse_args(args)
    for env_id, entry in ENVS.items():
        make = load_env_creator(entry.entry_point)
        card = inspect.getdoc(make) or ""
        max_steps = inspect.signature(make).parameters["max_steps"].default or "by task"
        window = "dialogue" if entry.window is None else entry.window
        print(f"{env_id}  max_steps {max_steps}, window {window}, format {entry.format}")
        print(f"  {card.partition(chr(10))[0]}")
        for section in ("Observation", "Action"):
            print(f"  {section.lower()}: {_opening(card, section)}")
    return 0


def _opening(card: str, section: str) -> str:
    """Return the first clause of a section of a card."""
    found = re.search(rf"^## {section}\n(.+?)(?:[:;]\s|\.\s|\n\n|\Z)", card, re.DOTALL | re.MULTILINE)
    return " ".join(found[1].split()) if found else "see the card"
