"""Prompt layouts of ALFWorld: `default` explains the game, `compact` is a few words for tiny models.

`TOOLS` are what a model may call instead of writing a command; the default layout serves them too.
"""

from collections.abc import Iterable

from arl_gym.core import Message, Prompt, PromptView
from arl_gym.tools import Tool

_RULES = """\
You are in a room of a house and act by text commands, one per turn.

Task: {task}

How the house works:
- You see what a receptacle (a cabinet, a table, a fridge ...) holds only where you stand: go there first.
- Some receptacles are closed: open them to see and reach what is inside.
- You carry one thing at a time.
- Clean things at a sinkbasin, heat them with a microwave and cool them with a fridge, holding them.
- To look at something under a lamp, hold it where the lamp stands and use the lamp.
- "Nothing happens." means that the command was not possible."""

# Commands that neither change anything nor show anything new where one stands.
_IDLE = ("examine", "look", "inventory", "close")


def default(view: PromptView) -> list[Message]:
    """Explain the game, then show the window, the step number, what is seen, the commands, how to answer."""
    if view.append and view.step > 0:
        return _user([view.observation, "\n\n", *_commands(view.admissible)])
    pieces = [_RULES.format(task=view.task)]
    if view.history:
        pieces.append(f"\n\nYou have taken {view.step} steps. The last {len(view.history)}:")
    for n, seen, action in view.history:
        pieces.append(f"\n\nStep {n}, you saw: {seen}\nStep {n}, you did: {action}")
    pieces += [
        f"\n\nThis is step {view.step + 1}. You see:\n{view.observation}\n\n",
        *_commands(view.admissible),
    ]
    if view.instructions:
        pieces.append(f"\n\n{view.instructions}")
    return _user(pieces)


def _commands(admissible: Iterable[str]) -> list[str]:
    return ["Possible commands:", *(f"\n- {command}" for command in admissible)]


def compact(view: PromptView) -> list[Message]:
    """Show the task, the commands of the window, what is seen, and the commands that change something."""
    opening = [] if view.append and view.step > 0 else [view.task]
    past = [] if view.append else [f"> {action}" for _, _, action in view.history]
    seen = [view.observation] if view.step > 0 else []  # the first one repeats the task and the commands
    useful = [command for command in view.admissible if not command.startswith(_IDLE)]
    return _user(["\n".join([*opening, *past, *seen, *useful])])


def _user(pieces: Iterable[str]) -> list[Message]:
    return [{"role": "user", "content": "".join(pieces)}]


def do(command: str) -> str:
    """Carry out one command in the house and see what happens.

    Args:
        command: One of the possible commands shown last, word for word.
    """
    return command


PROMPTS: dict[str, Prompt] = {"default": default, "tools": default, "compact": compact}
TOOLS: tuple[Tool, ...] = (do,)
