"""Writes the README's table of environments from the cards, the docstrings of the environment classes.

    python docs/env_table.py

A card has the sections of `SECTIONS`, each headed by its name and a colon on a line of its own. The table
shows the first paragraph of some of them. A test compares the README with what `render` gives.
"""

import inspect
import re
from pathlib import Path

import gymnasium as gym

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
SHOWN = ("Task", "Observation", "Action", "Episode end")


def card(env_id: str) -> dict[str, str]:
    """Return the sections of an environment's card.

    Raises:
        ValueError: If a section is missing or empty.
    """
    env_class = gym.envs.registration.load_env_creator(ENVS[env_id].entry_point)
    heading = re.compile(rf"^({'|'.join(SECTIONS)}):[ \t]*$", re.MULTILINE)
    pieces = heading.split(inspect.getdoc(env_class) or "")
    sections = {
        name: inspect.cleandoc("\n" + text) for name, text in zip(pieces[1::2], pieces[2::2], strict=True)
    }
    missing = [name for name in SECTIONS if not sections.get(name)]
    if missing:
        raise ValueError(f"the card of {env_id} lacks: {', '.join(missing)}")
    return sections


def table() -> str:
    """Return the Markdown table, one row an environment."""
    rows = [["Environment", *SHOWN], ["---"] * (len(SHOWN) + 1)]
    for env_id in ENVS:
        sections = card(env_id)
        rows.append([f"`{env_id}`", *(_first_paragraph(sections[name]) for name in SHOWN)])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _first_paragraph(text: str) -> str:
    return " ".join(text.partition("\n\n")[0].split()).replace("|", "\\|")


def render(readme: str) -> str:
    """Return `readme` with the table between its two markers."""
    before, _, rest = readme.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{table()}\n{END}{after}"


if __name__ == "__main__":
    README.write_text(render(README.read_text(encoding="utf-8")), encoding="utf-8")
