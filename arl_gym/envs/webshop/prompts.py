"""Prompt layouts of WebShop: `default` explains the shop, `tools` does so for tool calls.

`compact` is a few words for tiny models. `TOOLS` are what a model may call instead of writing an action.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from arl_gym.core import Message, Prompt, PromptView, compose
from arl_gym.tools import Tool

_RULES = """\
You shop in a web store by {means}, one per turn. You buy once, which ends the visit.

Your task: {task}

The actions:
- {search} looks for products. It works on every page; all words count, none has to occur.
- {click} presses a button, opens a product by its id or chooses an option value.

How the store works:
- A results page shows up to ten products with their prices; "Next >" shows more.
- On the page of a product, choose a value in each group that the task says something about. Clicking another
  value of the same group replaces the first.
- Description, Features and Reviews say more about a product. "< Prev" goes back.
- Before you buy, compare product, options and price with the task. Then {buy}."""

_PICTURES = """

You see the store through a browser window, as pictures. Where clickable things carry a numbered label,
{seven} presses the one with the label 7."""


class _Wording(NamedTuple):
    """How actions are written: as text, or as calls of `TOOLS`."""

    means: str
    search: str
    click: str
    more: str = ""


_TEXT = _Wording(
    "text actions", "search[words]", "click[{}]", " scroll[down] and scroll[up] show the rest of a long page."
)
_CALLS = _Wording("calling tools", "search(words)", "click({})")

_SEPARATOR = " [SEP] "
# Fields that are on every page of their kind: a tiny model does well without them.
_ALWAYS = {"Back to Search", "< Prev", "Rating: N.A.", "Description", "Features", "Reviews", "Attributes"}


def default(view: PromptView) -> list[Message]:
    """Explain the shop, then show the window, the page, what can be clicked and how to answer.

    Screenshots are shown where the observation has them.
    """
    return _explained(_TEXT, view)


def tools(view: PromptView) -> list[Message]:
    """Show the same to a model that calls `search` and `click`."""
    return _explained(_CALLS, view)


def _explained(words: _Wording, view: PromptView) -> list[Message]:
    clicks = _clicks(words, view.admissible)
    if view.append and view.step > 0:
        return _user(["The page now:\n", *_page(view.observation, view.task), "\n\n", *clicks])
    pieces: list[object] = [
        _RULES.format(
            task=view.task,
            means=words.means,
            search=words.search,
            click=words.click.format("name"),
            buy=words.click.format("buy now"),
        )
    ]
    if _picture(view.observation) is not None:
        pieces.append(_PICTURES.format(seven=words.click.format("#7")) + words.more)
    if view.history:
        pieces.append(f"\n\nYou have taken {view.step} steps. The last {len(view.history)}:")
    for n, seen, action in view.history:
        pieces += [f"\n\nStep {n}, the page: ", *_page(seen, view.task), f"\nStep {n}, you did: {action}"]
    pieces += [f"\n\nThis is step {view.step + 1}. The page now:\n", *_page(view.observation, view.task)]
    pieces += ["\n\n", *clicks]
    if view.instructions:
        pieces.append(f"\n\n{view.instructions}")
    return _user(pieces)


def _page(observation: object, task: str) -> list[object]:
    """Return a page without the task, which the prompt has already, and its picture."""
    picture = _picture(observation)
    if isinstance(observation, Mapping):
        observation = observation["text"]
    elif picture is not None:
        return [picture]
    head, found, rest = str(observation).partition(f"Instruction:{_SEPARATOR}{task}{_SEPARATOR}")
    text = head + rest if found else str(observation)
    return [text] if picture is None else [text, "\n", picture]


def _picture(observation: object) -> object:
    seen = observation.get("image") if isinstance(observation, Mapping) else observation
    return None if isinstance(seen, str) else seen


def _clicks(words: _Wording, admissible: Sequence[str]) -> list[str]:
    names = [action[len("click[") : -1] for action in admissible if action.startswith("click[")]
    return ["Possible actions:", f"\n- {words.search}", *(f"\n- {words.click.format(n)}" for n in names)]


def compact(view: PromptView) -> list[Message]:
    """Show the task and the fields of the page, one a line, without those that every page has."""
    opening = [] if view.append and view.step > 0 else [view.task]
    past = [] if view.append else [f"> {action}" for _, _, action in view.history]
    page = "".join(map(str, _page(view.observation, view.task)[:1]))
    fields = [f.partition(" (Total")[0] for f in page.split(_SEPARATOR) if f not in _ALWAYS]
    # With the blank a word at the start of a line is the same token as within one.
    return _user(["\n ".join([*opening, *past, *fields])])


def _user(pieces: Sequence[object]) -> list[Message]:
    return [{"role": "user", "content": compose(pieces)}]


def search(words: str) -> str:
    """Look for products, on any page of the store.

    Args:
        words: What to look for; all words count, none has to occur.
    """
    return f"search[{words}]"


def click(name: str) -> str:
    """Press a button, open a product or choose an option value of the page.

    Args:
        name: What to click, as the possible actions have it.
    """
    return f"click[{name}]"


PROMPTS: dict[str, Prompt] = {"default": default, "tools": tools, "compact": compact}
TOOLS: tuple[Tool, ...] = (search, click)
