"""Prompt layouts of Sokoban: `default` explains the game, `compact` shows the board and nothing else."""

from arl_gym.core import Message, Prompt, PromptView

_RULES = """\
You play Sokoban on a board of cells. Each symbol is one cell:
# wall, _ floor, O target, X box, √ box on a target, P you, S you on a target.
Cells beyond the edge of the board are walls.

Goal: {task}
Rules:
- Each step you go one cell {moves}.
- If a box is in that cell, you push it one cell further in the same direction.
- A push fails if a wall or another box is behind the box. You cannot pull.
- A box in a corner that is no target is lost, so think before you push."""


def default(view: PromptView) -> list[Message]:
    """Explain the game, then show the window, the step number, the board and how to answer."""
    if view.append and view.step > 0:
        return _user(f"Board after step {view.step}:\n{view.observation}")
    parts = [_RULES.format(task=view.task, moves=_either(view.admissible))]
    if view.history:
        parts.append(f"You have taken {view.step} steps. The last {len(view.history)}:")
        parts += [f"Step {n}, board:\n{seen}\nStep {n}, action: {action}" for n, seen, action in view.history]
    parts.append(f"This is step {view.step + 1}. Board now:\n{view.observation}")
    if view.admissible:
        parts.append(f"Possible actions: {', '.join(view.admissible)}.")
    if view.instructions:
        parts.append(view.instructions)
    return _user("\n\n".join(parts))


def compact(view: PromptView) -> list[Message]:
    """Show the board alone; above it the boards and actions of the window, if there are any."""
    if view.append and view.step > 0:
        return _user(str(view.observation))
    past = [f"{seen}\n{action}" for _, seen, action in view.history]
    return _user("\n".join([*past, str(view.observation)]))


def _either(names: tuple[str, ...]) -> str:
    return ", ".join(names[:-1]) + " or " + names[-1] if len(names) > 1 else "in a direction"


def _user(text: str) -> list[Message]:
    return [{"role": "user", "content": text}]


PROMPTS: dict[str, Prompt] = {"default": default, "compact": compact}
