"""Recorded episodes on the site: what an agent saw before each turn, what it said, what that brought.

The pages are not recorded: the actions are played again in this shop, with the options of this site. Where
that cannot be what the agent saw, a notice says so. Shows recorded text as text, whatever is in it.

>>> app = create_app(tasks, episodes=[("e.jsonl", trajectory)])  # doctest: +SKIP
"""

import io
import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from flask import Blueprint, Response, abort, render_template, request

from arl_gym.core import Message
from arl_gym.envs.webshop.goal import Goal
from arl_gym.envs.webshop.session import Session
from arl_gym.envs.webshop.site import views
from arl_gym.envs.webshop.site.recorded import Recorded, RecordedTurn
from arl_gym.envs.webshop.tasks import Tasks, content_hash, find_goal

ENV_ID = "ARL/WebShop-v0"
"""Only episodes of this environment have pages."""

_LISTED = 50
_MARK = re.compile(r"\s*click\[(#\d+)\]", re.IGNORECASE)


class Entry(NamedTuple):
    """An episode, where it was read, and its goal if this shop has it."""

    file: str
    number: int
    """Its place in the file, from 0."""
    episode: Recorded
    goal: Goal | None
    is_same_task: bool
    """Whether the goal and the shop are those of the recording."""


def episodes_blueprint(
    tasks: Tasks, options: Mapping[str, Any], episodes: Sequence[tuple[str, Recorded]]
) -> Blueprint:
    """Return the pages below `/episodes`.

    Args:
        tasks: The shop and its goals.
        options: Keyword arguments of every `Session`.
        episodes: With the names of their files.
    """
    pages = Blueprint("episodes", __name__)
    entries = list(_entries(tasks, episodes))

    def find(k: int, turn: int = 1) -> tuple[Entry, int]:
        """Return an episode and its number of turns; `turn` may be one more, the end."""
        if k not in range(len(entries)):
            abort(404, f"There are {len(entries)} episodes, counted from 0.")
        n_turns = len(entries[k].episode.turns)
        if turn not in range(1, n_turns + 2):
            abort(404, f"The episode has {n_turns} turns, counted from 1.")
        return entries[k], n_turns

    def play(entry: Entry, n_turns: int) -> tuple[Session, list[bool]]:
        """Return a session after so many turns, and which of them could be played."""
        assert entry.goal is not None
        session = Session(tasks.store, **options)
        session.begin(entry.goal, entry.episode.task_id)
        return session, [carry_out(session, turn) for turn in entry.episode.turns[:n_turns]]

    @pages.get("/episodes")
    def listed() -> Response:
        outcome, first = request.args.get("outcome", "all"), request.args.get("first", 0, type=int)
        if outcome not in _OUTCOMES:
            abort(404, f"There is no outcome {outcome!r}.")
        chosen = [(k, entry) for k, entry in enumerate(entries) if _OUTCOMES[outcome](entry.episode)]
        if first not in range(len(chosen) or 1):
            abort(404, f"There are {len(chosen)} such episodes, counted from 0.")
        counts = {name: sum(holds(e.episode) for e in entries) for name, holds in _OUTCOMES.items()}
        return _answer(
            "episodes.html", rows=chosen[first : first + _LISTED], outcome=outcome, counts=counts,
            first=first, step=_LISTED, total=len(chosen), env_id=ENV_ID,
        )  # fmt: skip

    @pages.get("/episodes/<int:k>")
    @pages.get("/episodes/<int:k>/<int:turn>")
    def shown(k: int, turn: int = 1) -> Response:
        entry, n_turns = find(k, turn)
        said = entry.episode.turns[turn - 1] if turn <= n_turns else None
        prompt, n_images = ([], 0) if said is None else _prompt(said.messages)
        notices = [*_notices(entry, None if entry.goal is None else play(entry, n_turns))]
        return _answer(
            "episode.html", k=k, turn=turn, entry=entry, episode=entry.episode, n_turns=n_turns, said=said,
            prompt=prompt, n_images=n_images, notices=notices,
        )  # fmt: skip

    @pages.get("/episodes/<int:k>/<int:turn>/page")
    def page(k: int, turn: int) -> Response:
        entry, _ = find(k, turn)
        if entry.goal is None:
            abort(404, "This shop has no pages of this episode.")
        session, _ = play(entry, turn - 1)
        template, found = views.page(session, with_parts=True)
        return _answer(template, inert=True, **found)

    @pages.get("/episodes/<int:k>/<int:turn>/images/<int:number>.png")
    def image(k: int, turn: int, number: int) -> Response:
        entry, n_turns = find(k, turn)
        images = [*_images(entry.episode.turns[turn - 1].messages)] if turn <= n_turns else []
        if number not in range(len(images)):
            abort(404, f"The turn has {len(images)} images, counted from 0.")
        file = io.BytesIO()
        images[number].save(file, "PNG")
        return Response(file.getvalue(), mimetype="image/png")

    return pages


_OUTCOMES: Mapping[str, Callable[[Recorded], bool]] = {
    "all": lambda episode: True,
    "success": lambda episode: episode.success,
    "failure": lambda episode: not episode.success,
}


def _entries(tasks: Tasks, episodes: Sequence[tuple[str, Recorded]]) -> Iterator[Entry]:
    numbers = Counter[str]()
    for file, episode in episodes:
        goal = find_goal(tasks, episode.task_id) if episode.env_id == ENV_ID else None
        is_same = goal is not None and episode.content_hash == content_hash(tasks.store, goal)
        yield Entry(file, numbers[file], episode, goal, is_same)
        numbers[file] += 1


def carry_out(session: Session, turn: RecordedTurn) -> bool:
    """Carry out the action of a turn, also one that names a number of a screenshot with marks."""
    if session.act(turn.action):
        return True
    mark = _MARK.match(turn.action)
    name = session.marks().get(mark[1]) if mark and turn.action_valid else None
    return name is not None and session.act(f"click[{name}]")


def _notices(entry: Entry, played: tuple[Session, list[bool]] | None) -> Iterator[str]:
    """Yield why the pages cannot be those that the agent saw."""
    episode = entry.episode
    if episode.env_id != ENV_ID:
        yield f"Not WebShop: this is an episode of {episode.env_id}, which has no pages here."
        return
    if played is None:
        yield f"This shop has no task {episode.task_id}: the episode is of another catalogue."
        return
    if not entry.is_same_task:
        yield f"The task {episode.task_id} is another one here: the episode is of another catalogue."
    session, valid = played
    bought = session.reward
    score, success = (0.0, False) if bought is None else (bought.total, bought.perfect)
    if not math.isclose(score, episode.score, abs_tol=1e-9) or success != episode.success:
        yield f"Played again here the episode scores {score:g}, recorded were {episode.score:g}: {_OTHER}."
    odd = [k for k, turn in enumerate(episode.turns) if valid[k] != turn.action_valid and not _scrolls(turn)]
    if odd:
        yield f"From turn {odd[0] + 1} on the pages here are not those of the recording: {_OTHER}."


_OTHER = "the site runs another catalogue or other options"


def _scrolls(turn: RecordedTurn) -> bool:
    return turn.action.strip().lower().startswith("scroll[")  # shows another part of the same page


def _prompt(messages: Sequence[Message]) -> tuple[list[tuple[str, list[str | int]]], int]:
    """Return roles with texts and numbers of images, and how many images there are."""
    prompt, n_images = list[tuple[str, list[str | int]]](), 0
    for message in messages:
        parts: list[str | int] = []
        for text in _texts(message):
            parts.append(n_images if text is None else text)
            n_images += text is None
        prompt.append((message["role"], parts))
    return prompt, n_images


def _texts(message: Message) -> Iterator[str | None]:
    """Yield the texts of a message, None for an image."""
    content = message["content"]
    if isinstance(content, str):
        yield content
    else:
        yield from (part["text"] if part["type"] == "text" else None for part in content)


def _images(messages: Sequence[Message]) -> Iterator[Any]:
    for message in messages:
        if not isinstance(message["content"], str):
            yield from (part["image"] for part in message["content"] if part["type"] == "image")


def _answer(template: str, **found: Any) -> Response:
    # Recorded text may hold halves of characters, which no answer can.
    body = render_template(template, **found).encode("utf-8", "backslashreplace")
    return Response(body, mimetype="text/html")
