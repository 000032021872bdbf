"""The recorded episodes of a run, and the fields of their turns that people look for.

No torch. Reads what the trainer wrote to `trajectories/`; what a recording lacks has no field.

    episodes = load_episodes(recorded_steps(Path("runs/default"))[10])
    fields = [turn_fields(episode) for episode in episodes]
"""

import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from arl_gym.errors import DataError

TOKEN_LISTS = ("old_logprobs", "new_logprobs", "ref_logprobs", "entropies")


def recorded_steps(run: Path) -> dict[int, Path]:
    """Return the files of recorded episodes by training step, in order.

    Raises:
        DataError: If the run has none.
    """
    files = (run / "trajectories").glob("step-*.jsonl.gz")
    steps = {int(number): path for path in files if (number := path.name[5:].split(".")[0]).isdecimal()}
    if not steps:
        raise DataError(f"{run} has no recorded episodes: trajectories/step-*.jsonl.gz is missing")
    return dict(sorted(steps.items()))


def episode_fields(episode: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a recorded episode.

    `group`, `copy`, `task`, `kind`, `success`, `score`, `stop`, `return` (before penalties), `turns` (their
    number).

    Raises:
        DataError: If it lacks something that every recording has.
    """
    with _named(episode):
        return {
            "group": episode.get("group", 0),
            "copy": episode.get("copy", 0),
            "task": episode["task_id"],
            "kind": episode.get("task_type", ""),
            "success": episode["success"],
            "score": episode["score"],
            "stop": episode["stop"],
            "return": sum(turn["env_reward"] for turn in episode["turns"]),
            "turns": len(episode["turns"]),
        }


def turn_fields(episode: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the fields of every turn of a recorded episode, beside those of the episode.

    `turn` (from 1), `prompt` (the text of its last message), `response`, `action`, `env_reward`, `penalty`,
    `reward` (after it), `format_valid`, `action_valid`, `finish`, `n_tokens`.

    Where it was recorded: `advantage`; lists over tokens `old_logprobs`, `new_logprobs`, `ref_logprobs`,
    `entropies`, `ratios` (new to old probability); `entropy` (their mean) and `ratio` (their geometric mean).

    Raises:
        DataError: If a turn lacks something that every recording has.
    """
    shared = episode_fields(episode)
    with _named(episode):
        return [shared | _turn_fields(k, turn) for k, turn in enumerate(episode["turns"], start=1)]


@contextmanager
def _named(episode: Mapping[str, Any]) -> Iterator[None]:
    try:
        yield
    except (KeyError, TypeError, AttributeError) as err:
        place = f"recorded episode of task {episode.get('task_id')!r}"
        raise DataError(f"{place}: not of the schema: {type(err).__name__} {err}") from err


def _turn_fields(number: int, turn: Mapping[str, Any]) -> dict[str, Any]:
    fields = {
        "turn": number,
        "prompt": message_text(turn["messages"][-1]) if turn.get("messages") else "",
        **{key: turn[key] for key in ("response", "action", "env_reward")},
        "penalty": turn["format_penalty"],
        "reward": turn["env_reward"] - turn["format_penalty"],
        **{key: turn[key] for key in ("format_valid", "action_valid")},
        "finish": turn.get("finish", "stop"),
        "n_tokens": turn.get("n_kept", 0),
        **{key: turn[key] for key in ("advantage", *TOKEN_LISTS) if key in turn},
    }
    if "new_logprobs" in turn and "old_logprobs" in turn:
        logs = _log_ratios(turn["old_logprobs"], turn["new_logprobs"])
        fields["ratios"] = [None if log is None else math.exp(log) for log in logs]
        if known := [log for log in logs if log is not None]:
            fields["ratio"] = math.exp(statistics.fmean(known))
    if known := [e for e in turn.get("entropies", ()) if e is not None]:
        fields["entropy"] = statistics.fmean(known)
    return fields


def _log_ratios(old: Sequence[float | None], new: Sequence[float | None]) -> list[float | None]:
    """Return the logarithm of new to old probability, within ±20, per token; None where one is unknown."""
    return [
        None if a is None or b is None else max(-20.0, min(20.0, b - a))
        for a, b in zip(old, new, strict=True)
    ]


def message_text(message: Mapping[str, Any]) -> str:
    """Return the text of a recorded message; an image is named by its hash."""
    content = message["content"]
    if isinstance(content, str):
        return content
    return "\n".join(
        part["text"] if part["type"] == "text" else f"[image {part['hash']}]" for part in content
    )
