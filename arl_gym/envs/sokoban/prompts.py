"""Prompt layouts of Sokoban: `default` explains the game, `compact` shows the board and nothing else.

A board may be a text, a picture, or a dict of both. Pictures are parts of the message, in their place between
the texts. `TOOLS` are what a model may call instead of writing an action; the default layout serves them too.
"""

from collections.abc import Sequence
from typing import Literal

from arl_gym.core import Message, Prompt, PromptView, compose, observation_parts
from arl_gym.tools import Tool

_RULES = """\
You play Sokoban on a board of cells. {legend}
Cells beyond the edge of the board are walls.

Goal: {task}
Rules:
- Each step you go one cell {moves}.
- If a box is in that cell, you push it one cell further in the same direction.
- A push fails if a wall or another box is behind the box. You cannot pull.
- A box in a corner that is no target is lost, so think before you push."""

_LEGENDS = {
    "text": """\
Each symbol is one cell:
# wall, _ floor, O target, X box, √ box on a target, P you, S you on a target.""",
    "image": """\
Each square of the picture is one cell:
- wall: reddish brown bricks
- floor: plain dark grey
- target: black, outlined in red, with a small red diamond
- box: a yellow crate with an orange X
- box on a target: a pale crate with a green check mark, outlined in red
- you: a small green alien
- you on a target: the green alien on black, outlined in red""",
}


def default(view: PromptView) -> list[Message]:
    """Explain the game, then show the window, the step number, the board and how to answer."""
    if view.append and view.step > 0:
        return _user([f"Board after step {view.step}:\n", view.observation])
    legend = "\n".join(_LEGENDS[part["type"]] for part in observation_parts(view.observation))
    pieces = [_RULES.format(legend=legend, task=view.task, moves=_either(view.admissible))]
    if view.history:
        pieces.append(f"\n\nYou have taken {view.step} steps. The last {len(view.history)}:")
    for n, seen, action in view.history:
        pieces += [f"\n\nStep {n}, board:\n", seen, f"\nStep {n}, action: {action}"]
    pieces += [f"\n\nThis is step {view.step + 1}. Board now:\n", view.observation]
    if view.admissible:
        pieces.append(f"\n\nPossible actions: {', '.join(view.admissible)}.")
    if view.instructions:
        pieces.append(f"\n\n{view.instructions}")
    return _user(pieces)


def compact(view: PromptView) -> list[Message]:
    """Show the board alone; above it the boards and actions of the window, if there are any."""
    if view.append and view.step > 0:
        return _user([view.observation])
    past = [piece for _, seen, action in view.history for piece in (seen, f"\n{action}\n")]
    return _user([*past, view.observation])


def _either(names: tuple[str, ...]) -> str:
    return ", ".join(names[:-1]) + " or " + names[-1] if len(names) > 1 else "in a direction"


def _user(pieces: Sequence[object]) -> list[Message]:
    return [{"role": "user", "content": compose(pieces)}]


def move(direction: Literal["up", "down", "left", "right"]) -> str:
    """Go one cell, pushing the box that is there if the cell behind it is free; see the board after it.

    Args:
        direction: Where to go.
    """
    return direction


PROMPTS: dict[str, Prompt] = {"default": default, "tools": default, "compact": compact}
TOOLS: tuple[Tool, ...] = (move,)
