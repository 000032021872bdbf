r"""Prompt layouts of TIR-Math: `default` explains programs in text, `tools` leaves them to tool calls.

`compact` is the bare dialogue for tiny models. All write the window of turns out where the prompt is made
anew for each turn. `TOOLS` are what a model may call instead of writing.
"""

from collections.abc import Iterable

from arl_gym.core import Message, Prompt, PromptView
from arl_gym.errors import ActionError
from arl_gym.tools import Tool

_RULES = r"""Solve the mathematics problem below, step by step.

You may use Python. Write a program between a line ```python and a line ```, complete with its imports, and
print what you want to know: only what is printed comes back, after "Code execution result:". Write nothing
after the program; you go on when you have seen its output. Each program runs by itself: nothing of an earlier
one is left.

When you are sure, end with the answer in a box, \boxed{answer}, or call final_answer(answer) in a program.

An example of a turn:
The last two digits of 7^2024 are 7^2024 modulo 100.
```python
print(pow(7, 2024, 100))
```

The problem:
"""

_TOOL_RULES = """Solve the mathematics problem below, step by step.

You may run Python programs. Each is complete with its imports and runs by itself: nothing of an earlier one
is left. Only what a program prints comes back. When you are sure, give your answer, once.

The problem:
"""


def default(view: PromptView) -> list[Message]:
    """Explain the task and the tool once; after that, show the output of the last program."""
    return _explained(_RULES, view)


def tools(view: PromptView) -> list[Message]:
    """Explain the task to a model that calls `run_python` and `answer`."""
    return _explained(_TOOL_RULES, view)


def _explained(rules: str, view: PromptView) -> list[Message]:
    if view.append and view.step > 0:
        return _user([str(view.observation)])
    pieces = [rules, view.task]
    pieces += _past(view)
    if view.instructions:
        pieces.append(f"\n\n{view.instructions}")
    return _user(pieces)


def compact(view: PromptView) -> list[Message]:
    """Show the question, and after that only what programs gave."""
    if view.append and view.step > 0:
        return _user([str(view.observation)])
    return _user([view.task, *_past(view)])


def _past(view: PromptView) -> list[str]:
    if view.step == 0:
        return []
    pieces = []
    for k, (_, seen, action) in enumerate(view.history):
        pieces += [f"\n\n{seen}"] if k > 0 else []
        pieces.append(f"\n\n{action}")
    return [*pieces, f"\n\n{view.observation}"]


def _user(pieces: Iterable[str]) -> list[Message]:
    return [{"role": "user", "content": "".join(pieces)}]


def run_python(code: str) -> str:
    """Run a Python program and get what it prints.

    Args:
        code: The whole program, with its imports.

    Raises:
        ActionError: If a line of it begins with three backticks, which would end it.
    """
    if any(line.lstrip().startswith("```") for line in code.split("\n")):
        raise ActionError("code of tool run_python must have no line that begins with three backticks")
    return f"```python\n{code}\n```"


def answer(value: str) -> str:
    r"""Give the answer to the problem, which ends it.

    Args:
        value: The answer in LaTeX or as a number, for example 12 or \frac{1}{3}.
    """
    return f"\\boxed{{{value}}}"


PROMPTS: dict[str, Prompt] = {"default": default, "tools": tools, "compact": compact}
TOOLS: tuple[Tool, ...] = (run_python, answer)
