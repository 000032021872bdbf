"""The README's table of environments and the page of their cards, the docstrings of the environment classes.

    python -m docs.generate

A card opens with "Name: what to do." and has at least the sections of `SECTIONS`, each headed `## Name`.
"""

import inspect
import re
from pathlib import Path

from gymnasium.envs.registration import load_env_creator

from arl_gym.envs import ENVS

README = Path(__file__).resolve().parent.parent / "README.md"
BEGIN, END = "<!-- environments: begin -->", "<!-- environments: end -->"
SECTIONS = (
    "Task",
    "Observation",
    "Action",
    "Reward",
    "Episode end",
    "Info",
    "Reset options",
    "Determinism",
    "Data and licence",
    "Baselines",
    "Version history",
)
_INTRODUCTION = """\
# Environments

The cards of the environments, made from the docstrings of their classes by `make docs`. What all of them
share is in the [README](../README.md#environments); [wrappers](wrappers.md) says how a model plays them."""
COLUMNS = ("Environment", "Task", "Observation", "Action", "Reward", "Episode end")


def card(env_id: str) -> dict[str, str]:
    """Return the sections of an environment's card by name, its first paragraph as "".

    Raises:
        ValueError: If a section is missing or empty.
    """
    text = _docstring(env_id)
    opening, *rest = re.split(r"^## (.+)$", text, flags=re.MULTILINE)
    sections = {name: body.strip() for name, body in zip(rest[::2], rest[1::2], strict=True)}
    missing = [name for name in SECTIONS if not sections.get(name)]
    if missing:
        raise ValueError(f"the card of {env_id} lacks: {', '.join(missing)}")
    return {"": opening.strip(), **sections}


def _docstring(env_id: str) -> str:
    return inspect.getdoc(load_env_creator(ENVS[env_id].entry_point)) or ""


def table() -> str:
    """Return the Markdown table, one row an environment."""
    rows = [COLUMNS, ("---",) * len(COLUMNS), *(_row(env_id, card(env_id)) for env_id in ENVS)]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _row(env_id: str, sections: dict[str, str]) -> tuple[str, ...]:
    task = sections[""].partition(": ")[2].capitalize()
    observation, action, end = (
        _first_sentence(sections[name]) for name in ("Observation", "Action", "Episode end")
    )
    return f"`{env_id}`", task, observation, action, _rewards(sections["Reward"]), end


def _first_sentence(text: str) -> str:
    paragraph = " ".join(text.partition("\n\n")[0].split())
    return re.split(r"(?<=\.) ", paragraph)[0]


def _rewards(section: str) -> str:
    """Return the rows "| event | reward |" of the section's table as lines of one cell."""
    rows = re.findall(r"^\| (.+) \| (.+) \|$", section, re.MULTILINE)
    return "<br>".join(f"{reward}: {event}" for event, reward in rows if event != "event")


def render(readme: str) -> str:
    """Return `readme` with the table between its two markers."""
    before, _, rest = readme.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{table()}\n{END}{after}"


def page() -> str:
    """Return the page of all cards."""
    return "\n\n".join([_INTRODUCTION, *map(_card, ENVS)]) + "\n"


def _card(env_id: str) -> str:
    """Return a card as a section of the page, its own headings one level below."""
    name, module = ENVS[env_id].entry_point.rpartition(":")[2], ENVS[env_id].entry_point.split(".")[2]
    text = re.sub(r"^## ", "### ", _docstring(env_id), flags=re.MULTILINE)
    links = f"`arl_gym.envs.{module}.env.{name}`; how to use it: [{module}.md]({module}.md)"
    return f"## {env_id}\n\n{links}\n\n{text}"
