"""Episodes that survive an interruption: each is kept in a file as it ends, and not played again.

The file is a recording like any other (`records.read_trajectories`, `arl-gym replay`). When more tasks or
samples are asked for, the episodes that it has are taken over.
"""

import dataclasses
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from arl_gym.agents.records import append_trajectory, read_records
from arl_gym.agents.types import Episode, Trajectory
from arl_gym.errors import ArlGymError, ConfigError

Key = tuple[str, str, int]
"""Env id, task id, copy: what tells the episodes of a file apart."""


def resume_episodes(
    episodes: Sequence[Episode],
    play: Callable[..., list[Trajectory]],
    *,
    file: Path,
    env_id: str,
    settings: Mapping[str, Any],
) -> list[Trajectory]:
    """Play what a file does not hold yet, and return all the trajectories in the order of `episodes`.

    An episode that the environment's failure ended is not kept: the next run plays it again.

    Args:
        episodes: All that is wanted; task and copy tell them apart.
        play: Plays those it is given, and calls its `on_episode` as `rollout` does.
        file: A `.jsonl` file; made if missing. A line that was cut off by the end of a process is dropped.
        env_id: The episodes' environment.
        settings: What the outcome depends on beside the task and the copy.

    Raises:
        ConfigError: If the file holds episodes of this environment played with other settings.
    """
    if file.suffix != ".jsonl":
        raise ConfigError(f"episodes are added to a .jsonl file as they end, got {file}")
    settings = _as_json(settings)
    done = _finished(file, env_id, settings)
    left = [e for e in episodes if (env_id, e.task_id, e.copy) not in done]

    def keep(_index: int, trajectory: Trajectory) -> None:
        if trajectory.stop != "env_error":
            append_trajectory(file, trajectory, settings=settings)

    file.parent.mkdir(parents=True, exist_ok=True)
    for episode, trajectory in zip(left, play(left, on_episode=keep), strict=True):
        done[env_id, episode.task_id, episode.copy] = trajectory
    return [dataclasses.replace(done[env_id, e.task_id, e.copy], group=e.group) for e in episodes]


def _as_json(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings as they are read back, so that old and new ones can be compared."""
    text = json.dumps(settings, default=lambda x: getattr(x, "__qualname__", str(x)))
    return dict(json.loads(text))


def _finished(file: Path, env_id: str, settings: Mapping[str, Any]) -> dict[Key, Trajectory]:
    if not file.exists():
        return {}
    _drop_cut_line(file)
    done: dict[Key, Trajectory] = {}
    for trajectory, played_with in read_records(file):
        if trajectory.env_id != env_id:
            continue
        for name in sorted(settings.keys() | played_with.keys()):
            old, new = played_with.get(name), settings.get(name)
            if old != new:
                raise ConfigError(
                    f"{file} holds episodes of {env_id} played with {name}={old!r}, now it is {new!r}: "
                    "choose another file"
                )
        done[env_id, trajectory.task_id, trajectory.copy] = trajectory
    return done


def _drop_cut_line(file: Path) -> None:
    """Cut a file behind its last whole line."""
    try:
        with file.open("r+b") as f:
            whole = f.read().rfind(b"\n") + 1
            f.truncate(whole)
    except OSError as err:
        raise ArlGymError(f"cannot use {file} to resume: {err}") from err
