"""One episode in the hands of somebody else's loop: messages out, the model's text in.

Every adapter is a thin layer over this. Loops of other libraries keep the dialogue themselves, so that an
episode is append-only (`window=None`) unless its keyword arguments say otherwise.

    episode = TextEpisode("ARL/Sokoban-v0", task_id="train-000007")
    messages = episode.messages
    while not episode.done:
        messages, reward, *_ = episode.act(model(messages))
    print(episode.record()["success"])
"""

import asyncio
import threading
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from arl_gym.agents.tasks import episode_seed
from arl_gym.core import Message
from arl_gym.errors import ActionError, AlreadyPendingError, ArlGymError, ConfigError, UnknownNameError
from arl_gym.make import make_chat_env, tools_of
from arl_gym.tools import call_tool

EPISODE_OVER = "The episode is over. Nothing more can be done in it."
"""What a tool call answers after the end, in libraries whose loop goes on."""

TOOL_KWARGS = {"prompt": "tools", "format": "none"}
"""Keyword arguments of `make_chat_env` for a model that calls tools."""


class Step(NamedTuple):
    """What a response brought."""

    messages: list[Message]
    """What to add to the dialogue, or the whole next prompt where the episode has a memory window."""
    reward: float
    """The env's, minus the format penalty."""
    terminated: bool
    truncated: bool
    info: dict[str, Any]


class TextEpisode:
    """One episode of a chat environment, begun when it is made.

    Not for two threads at once. Exceptions of the environment are raised as they are.

    Args:
        env_id: A registered id, with or without its module ("mine:Mine/Game-v0").
        kwargs: Keyword arguments of `make_chat_env`, the environment's among them. The window is None, an
            append-only dialogue, if they do not say otherwise.
        task_id: The task to play. Members of a group share it.
        seed: Picks the task if there is no `task_id`; what goes with the `task_id` if not given.
        tools: Whether the model calls tools (`call`) instead of writing actions; sets prompt and format.

    Attributes:
        messages: The first messages, then those of the last step.
        info: The environment's info of the last reset or step.
        done: Whether the episode is over.

    Raises:
        ConfigError: If neither `task_id` nor `seed` is given, and as `make_chat_env`.
        UnknownNameError: If the task id is unknown.
    """

    def __init__(
        self,
        env_id: str,
        kwargs: Mapping[str, Any] | None = None,
        *,
        task_id: str | None = None,
        seed: int | None = None,
        tools: bool = False,
    ):
        if task_id is None and seed is None:
            raise ConfigError(f"an episode of {env_id} needs a task_id or a seed, got neither")
        self.env_id = env_id
        self._tools = tools_of(env_id) if tools else ()
        chosen = {"window": None, **(TOOL_KWARGS if tools else {}), **(kwargs or {})}
        self._env = make_chat_env(env_id, **chosen)
        self._busy = threading.Lock()
        self._turns: list[dict[str, Any]] = []
        self.done = False
        self._stop = "unfinished"
        self.messages: list[Message]
        self.info: dict[str, Any]
        try:
            if task_id is None:
                self.messages, self.info = self._env.reset(seed=seed)
            else:
                seed = episode_seed(task_id) if seed is None else seed
                self.messages, self.info = self._env.reset(seed=seed, options={"task_id": task_id})
        except BaseException:
            self._env.close()
            raise

    def act(self, text: str) -> Step:
        """Play one turn with the model's whole response.

        Raises:
            EpisodeOverError: If the episode is over.
            ActionError: If the response is not a string.
            AlreadyPendingError: If another thread is in the middle of a turn.
        """
        if not self._busy.acquire(blocking=False):
            raise AlreadyPendingError(f"an episode of {self.env_id} is in the middle of a turn")
        try:
            answered = self.info.get("anchor", "")
            messages, reward, terminated, truncated, info = self._env.step(text)
            step = Step(messages, float(reward), terminated, truncated, info)
            self.messages, self.info = step.messages, step.info
            self.done = step.terminated or step.truncated
            self._stop = _stop(step)
            told = {key: info.get(key, True) for key in _OF_INFO.values()}
            self._turns.append({"reward": step.reward, "anchor": answered, **told})
            return step
        finally:
            self._busy.release()

    def call(self, name: str, arguments: Mapping[str, Any]) -> Step:
        """Play one turn by calling a tool.

        A call that makes no sense is played as an action that cannot be carried out: it costs a step, and
        its messages begin with what is wrong with it.

        Raises:
            ConfigError: If the episode was made without tools.
            EpisodeOverError, AlreadyPendingError: As `act`.
        """
        if not self._tools:
            raise ConfigError(f"an episode of {self.env_id} takes tool calls if made with tools=True")
        try:
            action = call_tool(self._tools, name, arguments)
        except (ActionError, UnknownNameError) as err:
            step = self.act("")
            return step._replace(messages=[{"role": "user", "content": f"{err}."}, *step.messages])
        return self.act(action)

    def record(self) -> dict[str, Any]:
        """Return what the episode brought so far, as JSON.

        Lists have one entry a turn: `rewards` (with penalties), `env_rewards`, `format_penalties`, `anchors`
        (what the turn answered, for step-level advantages), `actions`, `format_valid`, `action_valid`.
        `stop` is "terminated", "truncated", "context_full" or "unfinished".
        """
        return {
            "env_id": self.env_id,
            **{key: str(self.info.get(key, "")) for key in ("task_id", "dataset", "split", "content_hash")},
            "success": bool(self.info.get("success", False)),
            "score": float(self.info.get("score", 0.0)),
            "env_return": sum(turn["env_reward"] for turn in self._turns),
            "stop": self._stop,
            "rewards": [turn["reward"] for turn in self._turns],
            "anchors": [turn["anchor"] for turn in self._turns],
            **{name: [turn[key] for turn in self._turns] for name, key in _OF_INFO.items()},
        }

    def close(self) -> None:
        """Free what the environment holds; twice is fine. Waits for a turn in another thread."""
        with self._busy:
            self._env.close()

    def __enter__(self) -> "TextEpisode":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


_OF_INFO = {
    "env_rewards": "env_reward",
    "format_penalties": "format_penalty",
    "actions": "action",
    "format_valid": "format_valid",
    "action_valid": "action_valid",
}
"""Lists of a record, and the info key that each collects."""


def _stop(step: Step) -> str:
    if step.terminated:
        return "terminated"
    if step.truncated:
        return "context_full" if step.info.get("context_full", False) else "truncated"
    return "unfinished"


class AsyncTextEpisode:
    """A `TextEpisode` for asyncio: resets and steps run in threads, and no episode waits for another.

    Takes the arguments of `TextEpisode`. Environments that compute in Python share one core: a
    `TextVectorEnv` with workers uses several.

        async with AsyncTextEpisode("ARL/Sokoban-v0", seed=0) as episode:
            messages = episode.messages
            step = await episode.act("<think></think><action>up</action>")
    """

    def __init__(
        self,
        env_id: str,
        kwargs: Mapping[str, Any] | None = None,
        *,
        task_id: str | None = None,
        seed: int | None = None,
        tools: bool = False,
    ):
        self._make = lambda: TextEpisode(env_id, kwargs, task_id=task_id, seed=seed, tools=tools)
        self._episode: TextEpisode | None = None

    @property
    def sync(self) -> TextEpisode:
        """The episode itself, for its attributes and `record`.

        Raises:
            ArlGymError: If it has not begun.
        """
        if self._episode is None:
            raise ArlGymError("the episode has not begun: use `async with`, or await start() first")
        return self._episode

    @property
    def messages(self) -> list[Message]:
        """See `TextEpisode`."""
        return self.sync.messages

    @property
    def done(self) -> bool:
        """See `TextEpisode`."""
        return self.sync.done

    async def start(self) -> list[Message]:
        """Make the environment and begin the episode, once; return the first messages."""
        if self._episode is None:
            self._episode = await asyncio.to_thread(self._make)
        return self._episode.messages

    async def act(self, text: str) -> Step:
        """Play one turn with the model's whole response; see `TextEpisode.act`."""
        return await asyncio.to_thread(self.sync.act, text)

    async def call(self, name: str, arguments: Mapping[str, Any]) -> Step:
        """Play one turn by calling a tool; see `TextEpisode.call`."""
        return await asyncio.to_thread(self.sync.call, name, arguments)

    def record(self) -> dict[str, Any]:
        """See `TextEpisode`."""
        return self.sync.record()

    async def close(self) -> None:
        """Free what the environment holds, after a turn that a cancelled `act` has left running."""
        if self._episode is not None:
            await asyncio.to_thread(self._episode.close)

    async def __aenter__(self) -> "AsyncTextEpisode":
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


def text_of(messages: Sequence[Message]) -> str:
    """Return messages as one text, for libraries whose observations are strings.

    Raises:
        ConfigError: If there is an image in them.
    """
    texts = []
    for message in messages:
        content = message["content"]
        parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
        for part in parts:
            if part["type"] != "text":
                raise ConfigError(
                    "expected messages of text alone, got one with an image: choose an obs_mode of text"
                )
            texts.append(part["text"])
    return "\n\n".join(texts)
