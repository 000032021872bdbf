"""What a run recorded of its training steps: the actions of the episodes, and the scores of their tokens.

Reads `trajectories/step-*.jsonl.gz`; numpy only. Prompts and pictures are left where they are.

    for step in recorded_steps(run_dir):
        print(step.step, len(step.episodes), len(step.turns))
"""

import gzip
import json
import math
import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from arl_gym.errors import DataError
from arl_gym.train.actions import Move

Floats = npt.NDArray[np.float64]


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


def recorded_steps(run_dir: Path) -> list[RecordedStep]:
    """Return the recorded steps of a run, in order of steps.

    Raises:
        DataError: If there are none, or one cannot be read.
    """
    found = [
        (int(m[1]), p) for p in (run_dir / "trajectories").glob("*.jsonl.gz") if (m := _STEP.match(p.name))
    ]
    if not found:
        raise DataError(f"{run_dir.name} has no trajectories/step-*.jsonl.gz")
    return [read_step(path) for _, path in sorted(found)]


_STEP = re.compile(r"step-(\d+)\.")


def read_step(path: Path) -> RecordedStep:
    """Read one file of trajectories, called `step-NUMBER.jsonl.gz`.

    Raises:
        DataError: If it is called otherwise, cannot be read, or is not of the schema.
    """
    name = _STEP.match(path.name)
    if name is None:
        raise DataError(f"expected a file called step-NUMBER.jsonl.gz, got {path}")
    episodes, turns = [], []
    try:
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            for place, line in enumerate(lines):
                record = json.loads(line)
                episodes.append(_played(record))
                turns += [s for turn in record["turns"] if (s := _scores(place, turn)) is not None]
    except (OSError, EOFError, zlib.error, ValueError, KeyError, TypeError, AttributeError) as err:
        raise DataError(f"cannot read the trajectories of {path.name}: {type(err).__name__} {err}") from err
    return RecordedStep(step=int(name[1]), episodes=tuple(episodes), turns=tuple(turns))


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
