"""The recorded episodes of a run: the fields of their turns that people look for, the scores of their tokens.

No torch. Reads what the trainer wrote to `trajectories/`; what a recording lacks has no field, and no scores.

    episodes = load_episodes(recording_paths(Path("runs/default"))[10])
    fields = [turn_fields(episode) for episode in episodes]
    for step in recorded_steps(Path("runs/default")):
        print(step.step, len(step.episodes), len(step.turns))
"""

import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from arl_gym.errors import DataError
from arl_gym.train.actions import Move
from arl_gym.wrappers import load_episodes

Floats = npt.NDArray[np.float64]

TOKEN_LISTS = ("old_logprobs", "new_logprobs", "ref_logprobs", "entropies")


def recording_paths(run: Path) -> dict[int, Path]:
    """Return the files of recorded episodes by training step, in order.

    Raises:
        DataError: If the run has none.
    """
    files = (run / "trajectories").glob("step-*.jsonl.gz")
    steps = {int(number): path for path in files if (number := path.name[5:].split(".")[0]).isdecimal()}
    if not steps:
        raise DataError(f"{run.resolve().name} has no recorded episodes (trajectories/step-*.jsonl.gz)")
    return dict(sorted(steps.items()))


# ---- fields, for people


def episode_fields(episode: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a recorded episode.

    `env`, `group`, `copy`, `task`, `kind`, `success`, `score`, `stop`, `return` (before penalties), `turns`
    (their number).

    Raises:
        DataError: If it lacks something that every recording has.
    """
    with _of_the_schema(_place(episode)):
        return {
            "env": episode["env_id"],
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
    with _of_the_schema(_place(episode)):
        return [shared | _turn_fields(k, turn) for k, turn in enumerate(episode["turns"], start=1)]


def _place(episode: Mapping[str, Any]) -> str:
    return f"recorded episode of task {episode.get('task_id')!r}"


@contextmanager
def _of_the_schema(place: str) -> Iterator[None]:
    try:
        yield
    except (KeyError, TypeError, AttributeError, ValueError) as err:
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


# ---- scores, for numpy


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnScores:
    """The kept completion tokens of one turn that was trained on; every array has shape (n,), n > 0."""

    trajectory: int
    """Place of the episode in its file."""
    advantage: float
    old: Floats
    """Log-probability before the update, in nats."""
    new: Floats
    """Log-probability in the forward pass of the token's own minibatch."""
    ref: Floats | None
    """Log-probability under the reference model; None without one."""
    entropy: Floats
    """Entropy of the policy at the token, in nats."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """One episode's course: what it did, and whether it succeeded."""

    env_id: str
    moves: tuple[Move, ...]
    success: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedStep:
    """One file of trajectories."""

    step: int
    episodes: tuple[Played, ...]
    turns: tuple[TurnScores, ...]
    """Empty where the run recorded no scores of tokens."""


def recorded_steps(run: Path) -> list[RecordedStep]:
    """Return the recorded steps of a run, in order of steps.

    Raises:
        DataError: If there are none, or one cannot be read.
    """
    return [read_step(step, path) for step, path in recording_paths(run).items()]


def read_step(step: int, path: Path) -> RecordedStep:
    """Read the file of one training step.

    Raises:
        DataError: If it cannot be read, or is not of the schema.
    """
    episodes, turns = [], []
    for place, record in enumerate(load_episodes(path)):
        with _of_the_schema(f"{path}, {_place(record)}"):
            episodes.append(_played(record))
            turns += [s for turn in record["turns"] if (s := _scores(place, turn)) is not None]
    return RecordedStep(step=step, episodes=tuple(episodes), turns=tuple(turns))


def _played(record: Mapping[str, Any]) -> Played:
    moves = tuple(
        Move(
            action=t["action"], observation=str(t.get("anchor", "")), valid=bool(t.get("action_valid", True))
        )
        for t in record["turns"]
    )
    return Played(env_id=str(record["env_id"]), moves=moves, success=bool(record["success"]))


def _scores(trajectory: int, turn: Mapping[str, Any]) -> TurnScores | None:
    """Return the scores of a turn; None if it was not trained on, or by a version that recorded none."""
    advantage = turn.get("advantage")
    if advantage is None or not math.isfinite(advantage) or not turn.get("new_logprobs"):
        return None
    old, new = _floats(turn["old_logprobs"]), _floats(turn["new_logprobs"])
    ref = _floats(turn["ref_logprobs"]) if turn.get("ref_logprobs") else None
    entropy = _floats(turn["entropies"])
    lengths = {len(a) for a in (old, new, ref, entropy) if a is not None}
    if len(lengths) != 1:
        raise ValueError(f"the scores of a turn differ in length: {sorted(lengths)}")
    return TurnScores(
        trajectory=trajectory, advantage=float(advantage), old=old, new=new, ref=ref, entropy=entropy
    )


def _floats(values: Any) -> Floats:
    return np.array(values, dtype=np.float64)
