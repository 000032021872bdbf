"""SkyRL: the environments as `BaseTextEnv` of SkyRL-gym, one episode each.

In the process that runs the generator, before it makes environments:

    register()

The rows of `task_dataset(id, split, n=..., library="skyrl")` name this environment and say which task it is.
"""

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from arl_gym.errors import ConfigError, DependencyMissing, EpisodeOverError

try:
    import skyrl_gym
    from skyrl_gym.envs.base_text_env import BaseTextEnv, BaseTextEnvStepOutput
except ImportError as err:
    raise DependencyMissing("SkyRL", "skyrl") from err

from arl_gym.adapters.episode import TextEpisode, text_of
from arl_gym.adapters.tasks import NAME
from arl_gym.core import Message


def register() -> None:
    """Register the environment with SkyRL-gym, as "arl_gym"; a second call changes nothing."""
    if NAME not in skyrl_gym.registry:
        skyrl_gym.register(NAME, "arl_gym.adapters.skyrl:SkyRLEnv")


class SkyRLEnv(BaseTextEnv):
    """One episode in the hands of SkyRL's generator, which keeps the dialogue and sums the rewards.

    A step's metadata is the environment's info, with `terminated` and `truncated`; the last one also has the
    last messages as `observations`, which go nowhere else, and the episode's `record`.

    Args:
        env_config: Nothing is read from it.
        extras: A row of `task_dataset(library="skyrl")`, without the columns that SkyRL takes out, and
            `max_turns`, which SkyRL puts in: after so many turns the episode is truncated.

    Raises:
        ConfigError: If `extras` is no such row, or asks for a memory window.
    """

    def __init__(self, env_config: Any = None, extras: Mapping[str, Any] | None = None):
        super().__init__()
        row = extras or {}
        for column in ("env_id", "task_id", "seed", "env_kwargs", "max_turns"):
            if column not in row:
                raise ConfigError(f'a row of task_dataset(library="skyrl") has {column!r}, got {sorted(row)}')
        kwargs = json.loads(row["env_kwargs"])
        if kwargs.get("window") not in (None, "dialogue"):
            raise ConfigError(
                f"SkyRL keeps the whole dialogue: window must be None, got {kwargs['window']!r}"
            )
        self.max_turns = min(row["max_turns"], kwargs.get("max_episode_steps", row["max_turns"]))
        self._kwargs = {**kwargs, "max_episode_steps": self.max_turns}
        self._row = row
        self._episode: TextEpisode | None = None

    def init(self, prompt: Sequence[Mapping[str, Any]]) -> tuple[list[dict[str, str]], dict[str, Any]]:
        """Begin the episode and return its first messages, which are those of the row, and its info.

        Raises:
            ConfigError: If there are images in the observations.
        """
        self.close()
        self.turns = 0
        self._episode = TextEpisode(
            self._row["env_id"], self._kwargs, task_id=self._row["task_id"], seed=self._row["seed"]
        )
        return _texts(self._episode.messages), dict(self._episode.info)

    def step(self, action: str) -> BaseTextEnvStepOutput:
        """Play one turn with the model's whole response.

        Raises:
            EpisodeOverError: If the episode is over, or none has begun.
        """
        if self._episode is None:
            raise EpisodeOverError(f"no episode of {self._row['env_id']} has begun: call init() first")
        messages, reward, terminated, truncated, info = self._episode.act(action)
        self.turns += 1
        seen = _texts(messages)
        metadata = {**info, "terminated": terminated, "truncated": truncated}
        if self._episode.done:
            # SkyRL would add the messages to a dialogue that nobody answers.
            metadata |= {"observations": seen, "record": self._episode.record()}
            seen = []
        return BaseTextEnvStepOutput(
            observations=seen, reward=reward, done=self._episode.done, metadata=metadata
        )

    def get_metrics(self) -> dict[str, Any]:
        """Return what the episode brought; nothing if it has not begun."""
        if self._episode is None:
            return {}
        record = self._episode.record()
        return {
            "env_id": record["env_id"],
            "success": record["success"],
            "score": record["score"],
            "env_return": record["env_return"],
            "return": sum(record["rewards"]),
            # Also where SkyRL has cut the episode short, at its limit of tokens.
            "truncated": record["stop"] != "terminated",
            "turns": self.turns,
            "format_valid": sum(record["format_valid"]),
            "action_valid": sum(record["action_valid"]),
        }

    @staticmethod
    def aggregate_metrics(metrics: Sequence[Mapping[str, Any]]) -> dict[str, float]:
        """Return means by environment, as "ARL/Sokoban-v0/success".

        `format_valid` and `action_valid` are shares of the turns, the rest are means over the episodes.
        """
        by_env = defaultdict(list)
        for metric in metrics:
            if metric:
                by_env[metric["env_id"]].append(metric)
        return {
            f"{env_id}/{key}": value for env_id, own in by_env.items() for key, value in _means(own).items()
        }

    def close(self) -> None:
        """Free what the episode holds; twice is fine."""
        if self._episode is not None:
            self._episode.close()


def _means(metrics: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    sums = {key: sum(metric[key] for metric in metrics) for key in metrics[0] if key != "env_id"}
    per_turn = ("format_valid", "action_valid")
    return {
        key: value / max(sums["turns"] if key in per_turn else len(metrics), 1) for key, value in sums.items()
    }


def _texts(messages: Sequence[Message]) -> list[dict[str, str]]:
    return [{"role": message["role"], "content": text_of([message])} for message in messages]
