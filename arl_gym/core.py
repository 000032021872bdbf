"""What every environment and wrapper shares: spaces, messages, info keys, and the `TextEnv` base.

Environments speak text and images, never tokens; nothing here knows a model.
"""

import sys
import textwrap
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, NotRequired, TypedDict, overload

import gymnasium as gym
import numpy as np
import numpy.typing as npt

from arl_gym.errors import ActionError, ConfigError, EpisodeOverError, UnknownNameError
from arl_gym.rng import Rng

SPLITS = ("train", "val", "test", "test_ood")

# One fixed type per key, on every reset and step of every environment.
INFO_TYPES: dict[str, type] = {
    "task_id": str,
    "task": str,
    "success": bool,
    "score": float,
    "admissible_actions": list,
    "action_valid": bool,
    "state_key": str,
    "dataset": str,
    "split": str,
    "content_hash": str,
}


class Part(TypedDict):
    """One part of a multimodal message: text, or an image (a `PIL.Image.Image`)."""

    type: Literal["text", "image"]
    text: NotRequired[str]
    image: NotRequired[Any]


class Message(TypedDict):
    """One chat message."""

    role: Literal["system", "user", "assistant"]
    content: str | list[Part]


class Unicode(gym.Space[str]):
    """Any string of at most `max_length` characters.

    Gymnasium's `Text` needs a charset and its check costs milliseconds on long pages; this one looks at the
    length only. It is no subclass of `Text`, so that `AsyncVectorEnv`'s shared memory, which corrupts text,
    refuses it with a clear error.
    """

    _SAMPLES = "abcdefghijklmnopqrstuvwxyz ABC 0123456789 .,;:!?[]<>/\\\"'`{}\n\t √ é 好 🙂"

    def __init__(self, max_length: int = 1 << 20, seed: int | np.random.Generator | None = None):
        if max_length < 1:
            raise ConfigError(f"Unicode needs max_length >= 1, got {max_length}")
        self.max_length = int(max_length)
        super().__init__(dtype=str, seed=seed)

    @property
    def is_np_flattenable(self) -> bool:
        """Whether the space flattens to a Box: never."""
        return False

    def sample(self, mask: None = None, probability: None = None) -> str:
        """Return a short string of letters, markup and non-ASCII characters, possibly empty."""
        n = int(self.np_random.integers(0, min(self.max_length, 24) + 1))
        return "".join(self._SAMPLES[i] for i in self.np_random.integers(0, len(self._SAMPLES), n))

    def contains(self, x: Any) -> bool:
        """Return whether `x` is a string that is not too long."""
        return isinstance(x, str) and len(x) <= self.max_length

    def __repr__(self) -> str:
        return f"Unicode({self.max_length})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Unicode) and other.max_length == self.max_length

    __hash__ = None  # type: ignore[assignment]  # mutable like every Gymnasium space: it carries a generator


class Chat(gym.Space[list[Message]]):
    """A list of chat messages, each `{"role", "content"}`; the content is text or a list of parts."""

    ROLES = ("system", "user", "assistant")

    def __init__(self, seed: int | np.random.Generator | None = None):
        super().__init__(seed=seed)

    @property
    def is_np_flattenable(self) -> bool:
        """Whether the space flattens to a Box: never."""
        return False

    def sample(self, mask: None = None, probability: None = None) -> list[Message]:
        """Return one short user message."""
        words = self.np_random.integers(0, 10, int(self.np_random.integers(1, 5)))
        return [{"role": "user", "content": " ".join(map(str, words))}]

    def contains(self, x: Any) -> bool:
        """Return whether `x` is a non-empty list of messages; parts are checked by type only."""
        return isinstance(x, list) and len(x) > 0 and all(map(self._is_message, x))

    @classmethod
    def _is_message(cls, m: Any) -> bool:
        if not isinstance(m, dict) or m.get("role") not in cls.ROLES:
            return False
        content = m.get("content")
        if isinstance(content, str):
            return True
        return isinstance(content, list) and all(
            isinstance(p, dict) and p.get("type") in ("text", "image") and p["type"] in p for p in content
        )

    def __repr__(self) -> str:
        return "Chat()"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Chat)

    __hash__ = None  # type: ignore[assignment]  # as above


def to_openai(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """Return the messages in the form of OpenAI-compatible servers: images become PNG data URLs."""
    import base64
    import io

    def part(p: Part) -> dict[str, Any]:
        if p["type"] == "text":
            return {"type": "text", "text": p["text"]}
        buffer = io.BytesIO()
        p["image"].save(buffer, format="PNG")
        url = "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode()
        return {"type": "image_url", "image_url": {"url": url}}

    return [
        {
            "role": m["role"],
            "content": m["content"] if isinstance(m["content"], str) else [part(p) for p in m["content"]],
        }
        for m in messages
    ]


def pictures_of(messages: Sequence[Message]) -> list[Any]:
    """Return the images of messages, in order."""
    return [
        part["image"]
        for message in messages
        if not isinstance(message["content"], str)
        for part in message["content"]
        if part["type"] == "image"
    ]


def compose(pieces: Sequence[Any]) -> str | list[Part]:
    """Join strings and observations to a message's content: a plain string unless there is an image."""
    parts: list[Part] = []
    for piece in pieces:
        for part in observation_parts(piece):
            if part["type"] == "text" and parts and parts[-1]["type"] == "text":
                parts[-1] = {"type": "text", "text": parts[-1]["text"] + part["text"]}
            else:
                parts.append(part)
    if all(part["type"] == "text" for part in parts):
        return "".join(part["text"] for part in parts)
    return parts


def observation_parts(observation: Any) -> list[Part]:
    """Return an observation as message parts.

    A uint8 array of shape (H, W, 3) or a PIL image becomes an image, a dict with "text" or "image" these two
    in this order, and anything else its text.
    """
    if isinstance(observation, str):
        return [{"type": "text", "text": observation}]
    from PIL import Image  # here, so that text never loads it

    if isinstance(observation, Image.Image):
        return [{"type": "image", "image": observation}]
    if is_image(observation):
        return [{"type": "image", "image": Image.fromarray(observation)}]
    if isinstance(observation, Mapping) and ("text" in observation or "image" in observation):
        return [
            part
            for key in ("text", "image")
            if key in observation
            for part in observation_parts(observation[key])
        ]
    return [{"type": "text", "text": str(observation)}]


def keep_images(observation: Any) -> Any:
    """Return an observation with its image arrays as PIL images: converted once, safe from later changes."""
    if is_image(observation):
        from PIL import Image

        return Image.fromarray(observation)
    if isinstance(observation, Mapping):
        return {key: keep_images(value) for key, value in observation.items()}
    return observation


def is_image(x: Any) -> bool:
    """Return whether `x` is a uint8 array of shape (H, W, 3)."""
    return isinstance(x, np.ndarray) and x.dtype == np.uint8 and x.ndim == 3 and x.shape[2] == 3


def check_count(name: str, value: int | None) -> None:
    """Check that an argument, if it is given, counts at least one.

    Raises:
        ConfigError: If it does not.
    """
    if value is not None and (not isinstance(value, int) or value < 1):
        raise ConfigError(f"{name} must be a whole number of at least 1, got {value!r}")


class NumberedIds(Sequence[str]):
    """The ids `<name>-000007` of numbered tasks, without storing them."""

    def __init__(self, name: str, numbers: range):
        self._name, self._numbers = name, numbers

    def __len__(self) -> int:
        return len(self._numbers)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> list[str]: ...
    def __getitem__(self, index: int | slice) -> str | list[str]:
        if isinstance(index, slice):
            return [self.of(number) for number in self._numbers[index]]
        return self.of(self._numbers[index])

    def __iter__(self) -> Iterator[str]:
        return map(self.of, self._numbers)

    def __contains__(self, task_id: object) -> bool:
        return isinstance(task_id, str) and self._position(task_id) >= 0

    def of(self, number: int) -> str:
        """Return the id of a number, whether or not it is among them."""
        return f"{self._name}-{number:06d}"

    def index(self, value: str, start: int = 0, stop: int | None = None) -> int:
        """Return the position of a task id.

        Raises:
            ValueError: If it is not among them.
        """
        position = self._position(value)
        if position < 0 or position not in range(len(self))[start:stop]:
            raise ValueError(f"{value!r} is no task id of {self._name!r}")
        return position

    def _position(self, task_id: str) -> int:
        digits = task_id.removeprefix(self._name + "-")
        number = int(digits) if digits.isascii() and digits.isdigit() and len(digits) == 6 else -1
        known = number in self._numbers and self.of(number) == task_id
        return self._numbers.index(number) if known else -1


class TaskIds(NumberedIds):
    """The ids of n tasks of a split, `<split>-000000` and so on, without storing them."""

    def __init__(self, split: str, n: int):
        if split not in SPLITS:
            raise UnknownNameError("split", split, SPLITS, "TaskIds")
        super().__init__(split, range(n))


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptView:
    """Everything a prompt may show for one turn."""

    task: str
    observation: Any
    step: int
    """Env steps taken so far; 0 on the first turn."""
    history: tuple[tuple[int, Any, str], ...]
    """The window: (1-based step, observation before the action, action), oldest first."""
    admissible: tuple[str, ...]
    instructions: str
    """How the answer must look, worded for the format in force; empty when there is no format."""
    append: bool
    """True in an append-only dialogue: for `step > 0` only the new messages are wanted."""


Prompt = Callable[[PromptView], list[Message]]


class Outcome(NamedTuple):
    """What one action did: `reward`, whether the task is over, and whether the action was a legal one."""

    reward: float
    terminated: bool
    valid: bool


class TextEnv(gym.Env[Any, Any]):
    """Base of the environments: task choice, step count, info keys, snapshots and rendering.

    A subclass says what a task is (`task_ids`, `_begin`), what an action does (`_apply`) and what is seen
    (`_observation` and the small hooks below it). Everything a caller may rely on is enforced here once.
    """

    metadata: dict[str, Any] = {  # noqa: RUF012 - Gymnasium declares it as an instance variable
        "render_modes": ["ansi", "rgb_array", "human"],
        "render_fps": 4,
    }
    reset_options: tuple[str, ...] = ("task_id",)
    """Keys that `reset(options=…)` takes."""

    def __init__(self, *, dataset: str, split: str, max_steps: int, render_mode: str | None = None):
        if render_mode is not None and render_mode not in self.metadata["render_modes"]:
            raise UnknownNameError(
                "render_mode", render_mode, self.metadata["render_modes"], type(self).__name__
            )
        check_count("max_steps", max_steps)
        self.dataset, self.split, self.max_steps = dataset, split, max_steps
        self.render_mode = render_mode
        self._stream: Rng | None = None
        self._running = False
        self._n_steps = 0
        self._actions: list[Any] = []
        self._task_id = ""
        self._valid = True

    # ---- what a subclass provides

    @abstractmethod
    def task_ids(self, split: str | None = None) -> Sequence[str]:
        """Return the stable ids of a split (default: the env's own), as a finite lazy sequence."""

    @abstractmethod
    def _begin(self, task_id: str) -> None:
        """Put the task in its first state."""

    @abstractmethod
    def _apply(self, action: Any) -> Outcome:
        """Carry out one action; garbage is a legal action that costs a step."""

    @abstractmethod
    def _observation(self) -> Any:
        """Return the observation of the present state, as a fresh object."""

    @abstractmethod
    def _task(self) -> str:
        """Return the instruction of the task."""

    @abstractmethod
    def _content_hash(self) -> str:
        """Return the digest of the task's content, equal for equal content."""

    @abstractmethod
    def _success(self) -> bool: ...

    @abstractmethod
    def _score(self) -> float: ...

    @abstractmethod
    def _state_key(self) -> str:
        """Return the digest of the full state, without step count and history."""

    def _pool(self, options: Mapping[str, Any]) -> Sequence[str]:
        """Return the ids that the reset options leave to choose from, at least one."""
        return self.task_ids()

    def _admissible(self) -> list[str]:
        return []

    def _extra_info(self) -> dict[str, Any]:
        return {}

    def _ansi(self) -> str:
        return str(self._observation())

    def expert_action(self) -> Any:
        """Return the env's own expert's next action in the present state, as `step` takes it."""
        raise NotImplementedError(f"{type(self).__name__} has no expert")

    def expert_thought(self) -> str:
        """Return the short reasoning text that goes with `expert_action`."""
        return ""

    # ---- the Gymnasium interface

    def reset(
        self, *, seed: int | None = None, options: Mapping[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Start an episode.

        Args:
            seed: Picks a task; the same seed gives the same task everywhere. None continues the stream.
            options: `{"task_id": id}` picks that task.

        Raises:
            UnknownNameError: If an option or the task id is unknown.
        """
        super().reset(seed=seed)
        chosen = self._choose_task(seed, options or {})
        self._running = False  # a failing `_begin` must not leave half a task behind
        self._begin(chosen)
        self._task_id = chosen
        self._running, self._n_steps, self._actions, self._valid = True, 0, [], True
        if self.render_mode == "human":
            self.render()
        return self._observation(), self._info()

    def _choose_task(self, seed: int | None, options: Mapping[str, Any]) -> str:
        if seed is not None:
            self._stream = Rng("task", seed)
        elif self._stream is None:
            self._stream = Rng("task", int(self.np_random.integers(0, 1 << 62)))
        for key in options:
            if key not in self.reset_options:
                raise UnknownNameError("reset option", key, self.reset_options, type(self).__name__)
        ids = self._pool(options)
        if "task_id" not in options:
            return ids[self._stream.below(len(ids))]
        if options["task_id"] not in ids:
            raise UnknownNameError(
                "task_id", options["task_id"], [ids[0], "…", ids[-1]], f"split {self.split!r}"
            )
        return str(options["task_id"])

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Carry out one action.

        Raises:
            EpisodeOverError: Before the first reset and after the end of the episode.
            ActionError: If the action is not of the type the environment takes.
        """
        if not self._running:
            raise EpisodeOverError(f"{type(self).__name__}.step needs a running episode: call reset() first")
        self._check_action(action)
        out = self._apply(action)
        self._actions.append(action.tolist() if isinstance(action, np.generic | np.ndarray) else action)
        self._n_steps += 1
        self._valid = out.valid
        truncated = not out.terminated and self._n_steps >= self.max_steps
        self._running = not (out.terminated or truncated)
        if self.render_mode == "human":
            self.render()
        return self._observation(), float(out.reward), out.terminated, truncated, self._info()

    def _check_action(self, action: Any) -> None:
        if not isinstance(action, str):
            raise ActionError(
                f"{type(self).__name__} takes a string as action, got {type(action).__name__}: {action!r}"
            )

    def _info(self) -> dict[str, Any]:
        return {
            "task_id": self._task_id,
            "task": self._task(),
            "success": self._success(),
            "score": self._score(),
            "admissible_actions": self._admissible(),
            "action_valid": self._valid,
            "state_key": self._state_key(),
            "dataset": self.dataset,
            "split": self.split,
            "content_hash": self._content_hash(),
            **self._extra_info(),
        }

    # ---- snapshots

    def get_state(self) -> dict[str, Any]:
        """Return a JSON-able snapshot: the task and the actions so far."""
        if not self._task_id:
            raise EpisodeOverError(f"{type(self).__name__}.get_state needs an episode: call reset() first")
        return {"task_id": self._task_id, "actions": list(self._actions)}

    def set_state(self, state: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
        """Return to a snapshot by replaying it; give the observation and info of that moment.

        Raises:
            ConfigError: If the snapshot lacks a key.
        """
        for key in ("task_id", "actions"):
            if key not in state:
                raise ConfigError(f"a snapshot needs the keys task_id and actions, got {sorted(state)}")
        shown, self.render_mode = self.render_mode, None
        try:
            obs, info = self.reset(options={"task_id": state["task_id"]})
            for action in state["actions"]:
                obs, _, _, _, info = self.step(action)
        finally:
            self.render_mode = shown
        return obs, info

    # ---- rendering

    def render(self) -> str | npt.NDArray[np.uint8] | None:
        """Return the picture of the present state in the env's `render_mode`; `human` writes it to stdout."""
        if self.render_mode is None:
            gym.logger.warn("render() was called without a render_mode: pass one to gym.make")
            return None
        if not self._task_id:
            raise EpisodeOverError(f"{type(self).__name__}.render needs an episode: call reset() first")
        if self.render_mode == "rgb_array":
            return self._rgb()
        if self.render_mode == "ansi":
            return self._ansi()
        sys.stdout.write(self._ansi() + "\n")
        return None

    def _rgb(self) -> npt.NDArray[np.uint8]:
        """Draw the text of the present state, long lines wrapped."""
        from PIL import Image, ImageDraw

        lines = (textwrap.wrap(line, 100) or [""] for line in self._ansi().split("\n"))
        text = "\n".join(part for wrapped in lines for part in wrapped)
        box = ImageDraw.Draw(Image.new("RGB", (1, 1))).multiline_textbbox((8, 8), text)
        image = Image.new("RGB", (int(box[2]) + 8, int(box[3]) + 8), "white")
        ImageDraw.Draw(image).multiline_text((8, 8), text, fill="black")
        return np.asarray(image, dtype=np.uint8)
