"""Writes what happened, one JSON line an episode, and reads it back.

The schema of a line; the trainer's trajectory files have the same one:

- `env_id`, `task_id`, `dataset`, `split`, `content_hash`: str, "" where the env does not say;
- `success`: bool; `score`: float;
- `stop`: "terminated", "truncated" or "context_full"; "unfinished" for an episode cut short by a reset or
  close; trajectory files also have "env_error";
- `turns`: list of `{messages | observation, response, action, reward, env_reward, format_penalty,
  format_valid, action_valid, anchor}`: what was shown (`messages` in a chat env, else `observation`), what
  was answered, what the env got, what it brought.

An image is `{"type": "image", "hash": …}`; the picture lies once under `images/<hash>.png` beside the file.
To replay, reset with `task_id` and step a plain env with each turn's `action`, or a chat env with `response`.
"""

import gzip
import json
import os
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
from PIL import Image

from arl_gym.core import Chat, is_image
from arl_gym.errors import ArlGymError, DataError
from arl_gym.wrappers.anchor_observation import observation_key
from arl_gym.wrappers.format_penalty import has_format_penalty

EPISODE_KEYS = (
    "env_id",
    "task_id",
    "dataset",
    "split",
    "content_hash",
    "success",
    "score",
    "stop",
    "turns",
)


class RecordEpisode(gym.Wrapper[Any, Any, Any, Any], gym.utils.RecordConstructorArgs):
    """Appends each episode to `folder/name.jsonl` when it ends, or is cut short by a reset or close.

    A line is written in one piece, so many envs and processes may share a file, and an interrupted write
    leaves a line that `load_episodes` refuses rather than takes for whole.

    Args:
        env: Any environment; best the outermost wrapper.
        folder: Made if missing.
        name: File name without ".jsonl"; default "episodes".

    Raises:
        ArlGymError: If the folder cannot be written.
    """

    def __init__(self, env: gym.Env[Any, Any], folder: str | Path, *, name: str | None = None):
        gym.utils.RecordConstructorArgs.__init__(self, folder=str(folder), name=name)
        gym.Wrapper.__init__(self, env)
        self.path = Path(folder) / f"{name or 'episodes'}.jsonl"
        self._images = self.path.parent / "images"
        self._shown_key = "messages" if isinstance(env.observation_space, Chat) else "observation"
        self._formatted = has_format_penalty(env)
        self._env_id = env.spec.id if env.spec is not None else type(env.unwrapped).__name__
        self._turns: list[dict[str, Any]] = []
        self._shown: Any = None
        self._info: Mapping[str, Any] = {}
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("ab"):
                pass
        except OSError as err:
            raise ArlGymError(f"cannot record episodes to {self.path}: {err}") from err

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Start an episode, after writing an unfinished one."""
        self._write("unfinished")
        obs, info = self.env.reset(seed=seed, options=options)
        self._shown, self._info = self._jsonable(obs), info
        return obs, info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Carry out one action and note it."""
        obs, reward, terminated, truncated, info = self.env.step(action)
        response = self._jsonable(action)
        self._turns.append(
            {
                self._shown_key: self._shown,
                "response": response,
                "action": info["action"] if self._formatted else response,
                "reward": float(reward),
                "env_reward": float(info.get("env_reward", reward)),
                "format_penalty": float(info.get("format_penalty", 0.0)),
                "format_valid": bool(info.get("format_valid", True)),
                "action_valid": bool(info.get("action_valid", True)),
                "anchor": self._info.get("anchor", ""),
            }
        )
        self._shown, self._info = self._jsonable(obs), info
        if terminated:
            self._write("terminated")
        elif truncated:
            self._write("context_full" if info.get("context_full") else "truncated")
        return obs, reward, terminated, truncated, info

    def close(self) -> None:
        """Write an unfinished episode and close the env."""
        self._write("unfinished")
        super().close()

    def _write(self, stop: str) -> None:
        if not self._turns:
            return
        info, success = self._info, bool(self._info.get("success", False))
        episode = {
            "env_id": self._env_id,
            **{key: str(info.get(key, "")) for key in ("task_id", "dataset", "split", "content_hash")},
            "success": success,
            "score": float(info.get("score", success)),
            "stop": stop,
            "turns": self._turns,
        }
        self._turns = []
        append_line(self.path, json.dumps(episode))

    def _jsonable(self, x: Any) -> Any:
        if x is None or isinstance(x, (str, bool, int, float)):
            return x
        if isinstance(x, Image.Image) or is_image(x):
            return {"type": "image", "hash": save_image(x, self._images)}
        if isinstance(x, Mapping):
            if x.get("type") == "image" and "image" in x:
                return self._jsonable(x["image"])
            return {str(k): self._jsonable(v) for k, v in x.items()}
        if isinstance(x, (list, tuple)):
            return [self._jsonable(v) for v in x]
        return x.tolist() if isinstance(x, (np.ndarray, np.generic)) else str(x)


def save_image(image: Any, folder: Path) -> str:
    """Write a PIL image or array to `folder/<hash>.png`, once, and return the hash.

    Raises:
        ArlGymError: If it cannot be written.
    """
    key = image_hash(image)
    path = folder / f"{key}.png"
    if not path.exists():
        picture = image if isinstance(image, Image.Image) else Image.fromarray(image)
        draft = folder / f".{key}.{os.getpid()}.png"
        try:
            folder.mkdir(exist_ok=True)
            picture.save(draft)
            draft.replace(path)
        except OSError as err:
            raise ArlGymError(f"cannot record an image to {path}: {err}") from err
    return key


def image_hash(image: Any) -> str:
    """Return the hash that names an image in records: equal for a PIL image and its array."""
    return observation_key(np.asarray(image))


def append_line(path: Path, line: str) -> None:
    """Append a line of text to a file with a single write, closing a line that was cut off before it.

    Raises:
        ArlGymError: If it cannot be written whole.
    """
    raw = line.encode() + b"\n"
    try:
        fd = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o666)
        try:
            size = os.fstat(fd).st_size
            if size and os.pread(fd, 1, size - 1) != b"\n":
                raw = b"\n" + raw
            if os.write(fd, raw) != len(raw):
                raise OSError("the disk took only a part of the line")
        finally:
            os.close(fd)
    except OSError as err:
        raise ArlGymError(f"cannot record an episode to {path}: {err}") from err


def load_episodes(path: str | Path) -> Iterator[dict[str, Any]]:
    """Yield the episodes of a JSONL file (or its gzip, by the ending ".gz") in order.

    Raises:
        DataError: If the file cannot be read, or a line is not a whole JSON object or lacks a key of the
            schema; names file and line. The episodes before it have been yielded.
    """
    path = Path(path)
    number = 0
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            for number, line in enumerate(file, 1):
                if line.strip():
                    yield _episode(line, f"{path}, line {number}")
    except (OSError, EOFError, zlib.error) as err:
        raise DataError(f"cannot read episodes from {path} after line {number}: {err}") from err


def _episode(line: bytes, where: str) -> dict[str, Any]:
    try:
        episode = json.loads(line)
    except ValueError as err:
        raise DataError(f"{where}: expected one JSON object, got {err}") from err
    if not isinstance(episode, dict):
        raise DataError(f"{where}: expected a JSON object, got {type(episode).__name__}")
    missing = [key for key in EPISODE_KEYS if key not in episode]
    if missing:
        raise DataError(f"{where}: the episode lacks {', '.join(missing)}")
    return episode
