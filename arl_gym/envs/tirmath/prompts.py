r"""Prompt layouts of TIR-Math: `default` explains the tool, `compact` is the bare dialogue for tiny models.

Both write the window of turns out where the prompt is made anew for each turn.
"""

from collections.abc import Iterable

from arl_gym.core import Message, Prompt, PromptView

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


def default(view: PromptView) -> list[Message]:
    """Explain the task and the tool once; after that, show the output of the last program."""
    if view.append and view.step > 0:
        return _user([str(view.observation)])
    pieces = [_RULES, view.task]
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


PROMPTS: dict[str, Prompt] = {"default": default, "compact": compact}
