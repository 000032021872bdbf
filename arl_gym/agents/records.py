"""Episodes on disk: one JSON object a line, gzip-compressed (`.jsonl.gz`) or plain (`.jsonl`).

A line holds `env_id, task_id, dataset, split, content_hash, group, copy, success, score, stop, error, turns`;
a turn `messages, response, action, reward, env_reward, format_penalty, format_valid, action_valid, anchor,
finish, n_kept` and, from policies that have tokens, `prompt_ids, completion_ids, logprobs`. `reward` is
env_reward - format_penalty, for readers; images are named by a digest in the messages and kept once per line,
as PNG, under `images`.
"""

import base64
import gzip
import hashlib
import io
import json
import os
import tempfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any

from PIL import Image

from arl_gym.agents.types import Trajectory, Turn
from arl_gym.core import Message, Part
from arl_gym.errors import DataError

_EPISODE_KEYS = (
    "env_id", "task_id", "dataset", "split", "content_hash", "group", "copy", "success", "score", "stop", "error",
)  # fmt: skip
_TURN_KEYS = (
    "response", "action", "env_reward", "format_penalty", "anchor", "format_valid", "action_valid", "finish", "n_kept",
)  # fmt: skip
_TOKEN_KEYS = ("prompt_ids", "completion_ids", "logprobs")


def write_trajectories(path: str | Path, trajectories: Iterable[Trajectory]) -> None:
    """Write a `.jsonl.gz` file; it appears under its name only when it is complete."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as raw, gzip.GzipFile("", "wb", fileobj=raw, mtime=0) as packed:
            for trajectory in trajectories:
                packed.write(json.dumps(to_record(trajectory), ensure_ascii=False).encode() + b"\n")
        Path(temporary).chmod(0o644)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def read_trajectories(path: str | Path) -> list[Trajectory]:
    """Read a `.jsonl.gz` or `.jsonl` file.

    Raises:
        DataError: If the file cannot be read or a line is not an episode; names the file and the line.
    """
    number = 0
    try:
        with _open(Path(path)) as lines:
            out = []
            for number, line in enumerate(lines, start=1):  # noqa: B007 - the handler names the line
                if line.strip():
                    out.append(from_record(json.loads(line)))
            return out
    except FileNotFoundError as err:
        raise DataError(f"no such file: {path}") from err
    except (OSError, EOFError, zlib.error) as err:
        raise DataError(f"{path}:{number + 1}: cannot be read: {err}") from err
    except KeyError as err:
        raise DataError(f"{path}:{number}: expected an episode, found no key {err}") from err
    except (ValueError, TypeError, AttributeError) as err:
        raise DataError(f"{path}:{number}: expected an episode as one JSON object: {err}") from err


def _open(path: Path) -> IO[bytes]:
    return gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb")  # type: ignore[return-value]


def to_record(trajectory: Trajectory) -> dict[str, Any]:
    """Return the JSON-able form of an episode."""
    images: dict[str, str] = {}
    record: dict[str, Any] = {key: getattr(trajectory, key) for key in _EPISODE_KEYS}
    record["turns"] = [_turn_record(turn, images) for turn in trajectory.turns]
    if images:
        record["images"] = images
    return record


def from_record(record: Mapping[str, Any]) -> Trajectory:
    """Return the episode of a record.

    Raises:
        KeyError, TypeError, ValueError: If it is not one.
    """
    images = {name: _decode(png) for name, png in record.get("images", {}).items()}
    values = {key: record[key] for key in _EPISODE_KEYS}
    return Trajectory(**values, turns=tuple(_turn(turn, images) for turn in record["turns"]))


def _turn_record(turn: Turn, images: dict[str, str]) -> dict[str, Any]:
    record: dict[str, Any] = {"messages": [_message_record(m, images) for m in turn.messages]}
    record |= {key: getattr(turn, key) for key in _TURN_KEYS}
    record["reward"] = turn.env_reward - turn.format_penalty
    record |= {key: getattr(turn, key) for key in _TOKEN_KEYS if getattr(turn, key) is not None}
    return record


def _turn(record: Mapping[str, Any], images: Mapping[str, Image.Image]) -> Turn:
    messages: list[Message] = [_message(m, images) for m in record["messages"]]
    values = {key: record[key] for key in _TURN_KEYS}
    return Turn(messages=messages, **values, **{key: record.get(key) for key in _TOKEN_KEYS})


def _message_record(message: Message, images: dict[str, str]) -> dict[str, Any]:
    content = message["content"]
    if not isinstance(content, str):
        return {"role": message["role"], "content": [_part_record(p, images) for p in content]}
    return {"role": message["role"], "content": content}


def _part_record(part: Part, images: dict[str, str]) -> dict[str, str]:
    if part["type"] == "text":
        return {"type": "text", "text": part["text"]}
    buffer = io.BytesIO()
    part["image"].save(buffer, format="PNG")
    name = hashlib.blake2b(buffer.getvalue(), digest_size=8).hexdigest()
    images[name] = base64.b64encode(buffer.getvalue()).decode()
    return {"type": "image", "image": name}


def _message(record: Mapping[str, Any], images: Mapping[str, Image.Image]) -> Message:
    content = record["content"]
    if not isinstance(content, str):
        content = [{**p, "image": images[p["image"]]} if p["type"] == "image" else p for p in content]
    return {"role": record["role"], "content": content}


def _decode(png: str) -> Image.Image:
    image = Image.open(io.BytesIO(base64.b64decode(png)))
    image.load()
    return image
