"""The environments behind OpenEnv: a server whose sessions are episodes, and its client.

The server keeps the dialogue append-only unless it is started with a memory window. Nothing here knows a
model, and nothing is remembered between two sessions.

    arl-gym serve-openenv ARL/Sokoban-v0 --port 8000

    with ChatClient(base_url="http://127.0.0.1:8000").sync() as client:
        result = client.reset(task_id="train-000007")
        while not result.done:
            result = client.step(ChatAction(response=model(result.observation.messages)))
    print(result.observation.record["success"])
"""

import secrets
import uuid
from collections.abc import Mapping
from functools import partial
from typing import Any

from arl_gym.adapters.episode import TextEpisode
from arl_gym.core import check_count, to_openai
from arl_gym.errors import DependencyMissing, EpisodeOverError, UnknownNameError

try:
    from openenv.core import Action, EnvClient, Environment, Observation, State, create_app
    from openenv.core.client_types import StepResult
except ImportError as err:
    raise DependencyMissing("OpenEnv", "openenv") from err


class ChatAction(Action):
    """What a turn sends."""

    response: str
    """The model's whole response."""


class ChatObservation(Observation):
    """What a reset or a turn brings, beside OpenEnv's own `reward` and `done`."""

    messages: list[dict[str, Any]]
    """In OpenAI's form, images as PNG data URLs."""
    append: bool
    """Whether the messages extend the dialogue; they are the whole next prompt otherwise."""
    task_id: str
    anchor: str
    """What the next response answers, for step-level advantages."""
    terminated: bool = False
    truncated: bool = False
    format_valid: bool = True
    action_valid: bool = True
    success: bool = False
    record: dict[str, Any] | None = None
    """The episode at its end; see `TextEpisode.record`."""


class ChatEnvironment(Environment):
    """One session: plays one episode after another.

    Args:
        env_id: A registered id.
        kwargs: Keyword arguments of `make_chat_env`.
    """

    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self, env_id: str, kwargs: Mapping[str, Any]):
        super().__init__()
        self._env_id, self._kwargs = env_id, kwargs
        self._episode: TextEpisode | None = None
        self._episode_id: str | None = None

    def reset(
        self,
        seed: int | None = None,
        episode_id: str | None = None,
        *,
        task_id: str | None = None,
        **unknown: Any,
    ) -> ChatObservation:
        """Begin an episode.

        Args:
            seed: Picks the task if there is no `task_id`; drawn if there is neither, as in Gymnasium.
            episode_id: A name for the episode; drawn if not given.
            task_id: The task to play. Sessions of one group share it.
            unknown: Anything else that a client may have sent.

        Raises:
            UnknownNameError: If the task id is unknown, or an argument.
        """
        for name in unknown:
            raise UnknownNameError("reset argument", name, ("seed", "episode_id", "task_id"), self._env_id)
        if task_id is None and seed is None:
            seed = secrets.randbits(31)
        self.close()
        self._episode = TextEpisode(self._env_id, self._kwargs, task_id=task_id, seed=seed)
        self._episode_id = episode_id or uuid.uuid4().hex
        return self._observe(self._episode)

    def step(self, action: ChatAction, timeout_s: float | None = None, **_: Any) -> ChatObservation:
        """Play one turn.

        Raises:
            EpisodeOverError: If no episode is running: a client that lost its connection has a new session.
        """
        if self._episode is None:
            raise EpisodeOverError(f"a step in {self._env_id} needs an episode in this session: reset first")
        # Half a surrogate pair gets here through JSON, but no observation that quotes it would get back.
        step = self._episode.act(action.response.encode(errors="replace").decode())
        return self._observe(
            self._episode,
            reward=step.reward,
            done=self._episode.done,
            terminated=step.terminated,
            truncated=step.truncated,
            record=self._episode.record() if self._episode.done else None,
        )

    def _observe(self, episode: TextEpisode, **more: Any) -> ChatObservation:
        info = episode.info
        return ChatObservation(
            messages=to_openai(episode.messages),
            append=info["append"],
            task_id=info["task_id"],
            anchor=info["anchor"],
            format_valid=info.get("format_valid", True),
            action_valid=info.get("action_valid", True),
            success=info["success"],
            **more,
        )

    @property
    def state(self) -> State:
        """The running episode's id and number of turns."""
        turns = self._episode.record()["rewards"] if self._episode else []
        return State(episode_id=self._episode_id, step_count=len(turns))

    def close(self) -> None:
        """End the episode."""
        if self._episode is not None:
            self._episode.close()
        self._episode = self._episode_id = None


def app(env_id: str, kwargs: Mapping[str, Any] | None = None, *, max_concurrent_envs: int = 64) -> Any:
    """Return the FastAPI application that serves an environment.

    Args:
        env_id: A registered id.
        kwargs: Keyword arguments of `make_chat_env`.
        max_concurrent_envs: Most sessions at once; a client beyond them is refused.

    Raises:
        UnknownNameError, ConfigError: As `make_chat_env`.
    """
    check_count("max_concurrent_envs", max_concurrent_envs)
    # One episode now: a wrong setting is told to who starts the server, and no client waits for the data.
    TextEpisode(env_id, kwargs, seed=0).close()
    environment = partial(ChatEnvironment, env_id, kwargs or {})
    return create_app(environment, ChatAction, ChatObservation, max_concurrent_envs=max_concurrent_envs)


class ChatClient(EnvClient):
    """A session with a server of this module, sync or async as OpenEnv's clients are."""

    def _step_payload(self, action: ChatAction) -> dict[str, Any]:
        return {"response": action.response}

    def _parse_result(self, payload: Mapping[str, Any]) -> Any:
        reward, done = payload["reward"], payload["done"]
        observation = ChatObservation(**payload["observation"], reward=reward, done=done)
        return StepResult(observation=observation, reward=reward, done=done)

    def _parse_state(self, payload: Mapping[str, Any]) -> State:
        return State(**payload)
