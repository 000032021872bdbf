"""The recorded episodes of a run in the terminal: a table of them, and the turns that match a condition."""

import statistics
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from arl_gym.cli.replay import verdict
from arl_gym.errors import ConfigError
from arl_gym.train.conditions import Condition
from arl_gym.train.config import load_toml
from arl_gym.train.recordings import episode_fields, recording_paths, turn_fields
from arl_gym.train.viewer import write_viewer
from arl_gym.wrappers import load_episodes

_TURNS = 10
_PROMPT_LINES = 12
_PROMPT_CHARACTERS = 600

Episode = Mapping[str, Any]
Fields = Mapping[str, Any]


def show_episodes(
    run: Path,
    *,
    step: int | None = None,
    where: str | None = None,
    group: int | None = None,
    limit: int | None = None,
    html: Path | None = None,
) -> Iterator[str]:
    """Yield lines about the recorded episodes of a step, or write them as a page and yield where it is.

    Args:
        run: The run folder.
        step: The training step; None is the last recorded one.
        where: Only episodes with a turn that meets this condition, and these turns.
        group: Only episodes of this group.
        limit: At most so many turns, or without `where` (and in the page) episodes.
        html: The page to write; an empty path is `step-N.html` in the run folder.

    Raises:
        ConfigError: If there is no such step or group, or the condition is none.
        DataError: If there are no recordings, or they cannot be read.
    """
    steps = recording_paths(run)
    step = max(steps) if step is None else step
    if step not in steps:
        raise ConfigError(
            f"{run} recorded no episodes of step {step}; it did of {', '.join(map(str, steps))}"
        )
    episodes = _of_group(list(load_episodes(steps[step])), group)
    turns = [turn_fields(episode) for episode in episodes]
    if where is not None:
        condition = Condition(where, {name for fields in turns for turn in fields for name in turn})
        turns = [[turn for turn in fields if condition.matches(turn)] for fields in turns]
        episodes = [episode for episode, found in zip(episodes, turns, strict=True) if found]
    if html is not None:
        out = run / f"step-{step}.html" if html == Path() else html
        write_viewer(episodes[:limit], steps[step].parent / "images", out, title=_title(run, step))
        yield f"{counted(len(episodes[:limit]), 'episode')} of step {step}: {out}"
        return
    yield f"step {step}"
    if episodes:
        yield from _table(episodes if where is not None else episodes[:limit])
    if where is not None:
        yield from _turns([turn for found in turns for turn in found], limit or _TURNS, len(episodes))


def _of_group(episodes: list[Episode], group: int | None) -> list[Episode]:
    if group is None:
        return episodes
    chosen = [episode for episode in episodes if episode.get("group", 0) == group]
    if not chosen:
        groups = sorted({episode.get("group", 0) for episode in episodes})
        raise ConfigError(f"there is no group {group} in this step; there are {', '.join(map(str, groups))}")
    return chosen


def _title(run: Path, step: int) -> str:
    return f"Step {step} of {run.resolve().name}: {load_toml(run / 'config.toml').get('method', 'SAMPO')}"


def _table(episodes: Sequence[Episode]) -> Iterator[str]:
    rows = [["group", "copy", "task", "return", "success", "turns", "stop", "valid", "advantage"]]
    for episode in episodes:
        f, turns = episode_fields(episode), turn_fields(episode)
        valid = f"{statistics.fmean(t['format_valid'] for t in turns):.2f}" if turns else "-"
        advantages = [t["advantage"] for t in turns if t.get("advantage") is not None]
        rows.append(
            [
                *(str(f["group"]), str(f["copy"]), printable(f["task"]), f"{f['return']:.2f}"),
                *("yes" if f["success"] else "no", str(f["turns"]), f["stop"], valid),
                f"{statistics.fmean(advantages):+.2f}" if advantages else "-",
            ]
        )
    yield from columns(rows, ">><><><>>")
    solved = sum(bool(e["success"]) for e in episodes)
    yield f"{counted(len(episodes), 'episode')}, {solved} solved"


def _turns(turns: Sequence[Fields], limit: int, n_episodes: int) -> Iterator[str]:
    for turn in turns[:limit]:
        yield from _turn(turn)
    of = f"{counted(len(turns), 'turn')} of {counted(n_episodes, 'episode')}"
    more = f", of which {limit} are shown (--limit)" if len(turns) > limit else ""
    yield f"\n{of} {'matches' if len(turns) == 1 else 'match'}{more}"


def _turn(turn: Fields) -> Iterator[str]:
    place = f"group {turn['group']}, copy {turn['copy']}, turn {turn['turn']} of {turn['turns']}"
    yield f"\n── {place} {'─' * max(0, 70 - len(place))}"
    yield f"[prompt]\n{printable(_tail(turn['prompt']))}"
    yield f"[response]\n{printable(turn['response'])}"
    yield printable(
        verdict(
            turn["action"],
            reward=turn["env_reward"],
            penalty=turn["penalty"],
            format_valid=turn["format_valid"],
            action_valid=turn["action_valid"],
            finish=turn["finish"],
            numbers=[
                f"{name} {turn[name]:.3f}"
                for name in ("advantage", "ratio", "entropy")
                if turn.get(name) is not None
            ],
        )
    )


def _tail(text: str) -> str:
    """Return the end of a prompt, which holds what is new."""
    shown = "\n".join(text.splitlines()[-_PROMPT_LINES:])[-_PROMPT_CHARACTERS:]
    return shown if len(shown) == len(text) else f"… {shown}"


def counted(n: int, noun: str) -> str:
    """Return a number of things, for example "2 turns"."""
    return f"{n} {noun}{'' if n == 1 else 's'}"


def printable(text: str) -> str:
    """Return a text without what would steer the terminal."""
    return "".join(c if c.isprintable() or c in "\n\t" else c.encode("unicode_escape").decode() for c in text)


def columns(rows: Sequence[Sequence[str]], align: str) -> list[str]:
    """Return rows of cells as lines of columns, each aligned to `<` or `>`."""
    widths = [max(map(len, cells)) for cells in zip(*rows, strict=True)]
    return [
        "  ".join(f"{cell:{side}{w}}" for cell, side, w in zip(row, align, widths, strict=True)).rstrip()
        for row in rows
    ]
