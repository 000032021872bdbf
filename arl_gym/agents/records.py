"""Trajectories on disk: compressed JSONL with the schema of `wrappers.record_episode`, and a little more.

An episode also has `task_type, group, copy, error`; a turn also `finish, append, n_kept, n_chars` and, from
policies that have tokens, `prompt_ids, completion_ids, logprobs`. Whoever writes may add more to a turn,
which reading ignores. Pictures lie under `images/` beside the file.
"""

import gzip
import json
import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from PIL import Image

from arl_gym.agents.types import Trajectory, Turn
from arl_gym.core import Message, Part
from arl_gym.errors import DataError
from arl_gym.wrappers import load_episodes
from arl_gym.wrappers.record_episode import append_line, save_image

_EPISODE_KEYS = ("env_id", "task_id", "dataset", "split", "content_hash", "success", "score", "stop")
_MORE_KEYS = ("task_type", "group", "copy", "error")
_TURN_KEYS = ("response", "action", "env_reward", "format_penalty", "anchor", "format_valid", "action_valid")
_REPLY_KEYS = ("finish", "append", "n_kept", "n_chars")
_TOKEN_KEYS = ("prompt_ids", "completion_ids", "logprobs")


def write_trajectories(
    path: str | Path,
    trajectories: Iterable[Trajectory],
    extras: Sequence[Sequence[Mapping[str, Any]]] | None = None,
) -> None:
    """Write a `.jsonl.gz` file; it appears under its name only when it is complete.

    Args:
        path: The file; folders above it are made.
        trajectories: The episodes.
        extras: Per trajectory and turn, what to add to the turn's record; must be JSON.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    draft = Path(name)
    try:
        with os.fdopen(handle, "wb") as raw, gzip.GzipFile("", "wb", fileobj=raw, mtime=0) as packed:
            for j, trajectory in enumerate(trajectories):
                record = _record(trajectory, path.parent / "images")
                if extras is not None:
                    record["turns"] = [t | e for t, e in zip(record["turns"], extras[j], strict=True)]
                packed.write(json.dumps(record).encode() + b"\n")
        draft.chmod(0o644)
        draft.replace(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


def append_trajectory(path: Path, trajectory: Trajectory, *, settings: Mapping[str, Any]) -> None:
    """Add an episode to a `.jsonl` file in one piece, with what it was played with as `settings`.

    Raises:
        ArlGymError: If it cannot be written.
    """
    record = {**_record(trajectory, path.parent / "images"), "settings": settings}
    append_line(path, json.dumps(record))


def read_trajectories(path: str | Path) -> list[Trajectory]:
    """Read a `.jsonl.gz` or `.jsonl` file of this module or of `RecordEpisode`.

    An image whose picture is gone becomes the text "[image HASH]".

    Raises:
        DataError: If the file cannot be read or holds anything but episodes; names the file and the place.
    """
    return [trajectory for trajectory, _ in read_records(path)]


def read_records(path: str | Path) -> Iterator[tuple[Trajectory, dict[str, Any]]]:
    """Yield the episodes of a file as `read_trajectories` reads them, each with the settings beside it.

    Raises:
        DataError: As `read_trajectories`.
    """
    path = Path(path)
    for number, episode in enumerate(load_episodes(path)):
        try:
            yield _trajectory(episode, path.parent / "images"), dict(episode.get("settings", {}))
        except KeyError as err:
            raise DataError(f"{path}, episode {number}: a turn lacks {err}") from err
        except (TypeError, ValueError, AttributeError) as err:
            raise DataError(f"{path}, episode {number}: not of the schema: {err}") from err


def _record(trajectory: Trajectory, images: Path) -> dict[str, Any]:
    return {
        **{key: getattr(trajectory, key) for key in (*_EPISODE_KEYS, *_MORE_KEYS)},
        "turns": [_turn_record(turn, images) for turn in trajectory.turns],
    }


def _turn_record(turn: Turn, images: Path) -> dict[str, Any]:
    return {
        "messages": [{"role": m["role"], "content": _content_record(m, images)} for m in turn.messages],
        **{key: getattr(turn, key) for key in (*_TURN_KEYS, *_REPLY_KEYS)},
        "reward": turn.env_reward - turn.format_penalty,
        **{key: getattr(turn, key) for key in _TOKEN_KEYS if getattr(turn, key) is not None},
    }


def _content_record(message: Message, images: Path) -> str | list[dict[str, str]]:
    content = message["content"]
    if isinstance(content, str):
        return content
    return [
        {"type": "text", "text": part["text"]}
        if part["type"] == "text"
        else {"type": "image", "hash": save_image(part["image"], images)}
        for part in content
    ]


def _trajectory(record: Mapping[str, Any], images: Path) -> Trajectory:
    return Trajectory(
        **{key: record[key] for key in _EPISODE_KEYS},
        # `RecordEpisode` knows no groups.
        **{"group": 0, "copy": 0, **{key: record[key] for key in _MORE_KEYS if key in record}},
        turns=tuple(_turn(turn, images) for turn in record["turns"]),
    )


def _turn(record: Mapping[str, Any], images: Path) -> Turn:
    # A recording of a plain env has an observation where a chat env has messages.
    shown = record.get("messages") or [{"role": "user", "content": _observation(record["observation"])}]
    rest: dict[str, Any] = {"finish": "stop"}
    rest |= {key: record[key] for key in (*_REPLY_KEYS, *_TOKEN_KEYS) if key in record}
    return Turn(
        messages=[_message(m, images) for m in shown],
        **{key: record[key] for key in _TURN_KEYS},
        **rest,
    )


def _observation(record: Any) -> str | list[dict[str, str]]:
    """Return a recorded observation as the content of a message: images stay images."""
    if not isinstance(record, Mapping):
        return str(record)
    parts = [record] if "hash" in record else [record[key] for key in ("text", "image") if key in record]
    if not parts:
        return str(record)
    return [{"type": "text", "text": part} if isinstance(part, str) else dict(part) for part in parts]


def _message(record: Mapping[str, Any], images: Path) -> Message:
    content = record["content"]
    if not isinstance(content, str):
        content = [_part(part, images) for part in content]
    return {"role": record["role"], "content": content}


def _part(record: Mapping[str, str], images: Path) -> Part:
    if record["type"] == "text":
        return {"type": "text", "text": record["text"]}
    try:
        with Image.open(images / f"{record['hash']}.png") as picture:
            return {"type": "image", "image": picture.copy()}
    except OSError:
        return {"type": "text", "text": f"[image {record['hash']}]"}
