"""From observations to chat messages: what the model sees of the past, and how the prompt is laid out.

A prompt is a function from `core.PromptView` to messages. This module has a generic one, for environments
that bring none of their own; `core.compose` helps to write others.
"""

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium as gym

from arl_gym.core import Chat, Message, Prompt, PromptView, compose, keep_images
from arl_gym.errors import ConfigError, EpisodeOverError
from arl_gym.wrappers.format_penalty import format_instructions, has_format_penalty


class MemoryWindow(gym.Wrapper[list[Message], Any, Any, Any], gym.utils.RecordConstructorArgs):
    """Makes every observation a list of chat messages.

    With a number as window, each observation is a whole prompt that shows the last `window` pairs of
    observation and action. With None the dialogue is append-only: each observation holds only the messages to
    add after the model's last response (`info["append"]` is then True on every step), and an episode whose
    dialogue passes `max_chars` is truncated with `info["context_full"]` instead of losing text. Both keys are
    on every reset and step, False where they do not apply.

    Args:
        env: Any environment.
        window: Past turns shown, at least 0, or None for the append-only dialogue.
        prompt: Lays out one turn; None is `generic_prompt`.
        format: How the response must look; only sets `PromptView.instructions` (`FormatPenalty` judges).
        max_chars: Most characters of an append-only dialogue, prompts and responses together.

    Raises:
        ConfigError: If `window`, `format` or `max_chars` is not one of the above.
    """

    def __init__(
        self,
        env: gym.Env[Any, Any],
        *,
        window: int | None,
        prompt: Prompt | None = None,
        format: str = "none",
        max_chars: int = 1_000_000,
    ):
        gym.utils.RecordConstructorArgs.__init__(
            self, window=window, prompt=prompt, format=format, max_chars=max_chars
        )
        gym.Wrapper.__init__(self, env)
        if window is not None and (not isinstance(window, int) or isinstance(window, bool) or window < 0):
            raise ConfigError(f"window must be a whole number of at least 0, or None, got {window!r}")
        if max_chars < 1:
            raise ConfigError(f"max_chars must be at least 1, got {max_chars}")
        self.window, self.max_chars = window, max_chars
        self.observation_space = Chat()
        self._prompt: Prompt = generic_prompt if prompt is None else prompt
        self._instructions = format_instructions(format)
        self._formatted = has_format_penalty(env)
        self._append = window is None
        self._history: deque[tuple[int, Any, str]] = deque(maxlen=window or 0)
        self._seen: Any = None
        self._n_steps = self._n_chars = 0
        self._full = False

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[list[Message], dict[str, Any]]:
        """Start an episode; see the wrapped env."""
        obs, info = self.env.reset(seed=seed, options=options)
        obs = keep_images(obs)
        self._history.clear()
        self._seen, self._n_steps, self._full = obs, 0, False
        messages = self._messages(obs, info)
        self._n_chars = _n_chars(messages)
        info["append"] = info["context_full"] = False
        return messages, info

    def step(self, action: Any) -> tuple[list[Message], Any, bool, bool, dict[str, Any]]:
        """Carry out one action; see the wrapped env.

        Raises:
            EpisodeOverError: If a full context has ended the episode.
        """
        if self._full:
            raise EpisodeOverError("the context is full, which ended the episode: call reset() first")
        obs, reward, terminated, truncated, info = self.env.step(action)
        obs = keep_images(obs)
        self._n_steps += 1
        taken = info["action"] if self._formatted else str(action)
        self._history.append((self._n_steps, self._seen, taken))
        self._seen = obs
        messages = self._messages(obs, info)
        if self._append:
            self._n_chars += len(str(action)) + _n_chars(messages)
            self._full = self._n_chars > self.max_chars and not (terminated or truncated)
        info["append"], info["context_full"] = self._append, self._full
        return messages, reward, terminated, truncated or self._full, info

    def _messages(self, obs: Any, info: Mapping[str, Any]) -> list[Message]:
        return self._prompt(
            PromptView(
                task=info.get("task", ""),
                observation=obs,
                step=self._n_steps,
                history=tuple(self._history),
                admissible=tuple(info.get("admissible_actions", ())),
                instructions=self._instructions,
                append=self._append,
            )
        )


def _n_chars(messages: Sequence[Message]) -> int:
    n = 0
    for message in messages:
        content = message["content"]
        if isinstance(content, str):
            n += len(content)
        else:
            n += sum(len(part["text"]) for part in content if part["type"] == "text")
    return n


def generic_prompt(view: PromptView) -> list[Message]:
    """Lay out a turn of any environment as one user message: task, history, observation, actions, format."""
    pieces: list[Any] = []
    opening = not (view.append and view.step > 0)
    if opening and view.task:
        pieces.append(f"Task: {view.task}\n\n")
    if not view.append and view.step > 0:
        pieces.append(f"Steps taken so far: {view.step}.\n\n")
    for k, seen, action in view.history:
        pieces += [f"Step {k} observation:\n", seen, f"\nStep {k} action: {action}\n\n"]
    pieces += ["Observation now:\n", view.observation]
    if view.admissible:
        pieces.append(f"\n\nAdmissible actions: {', '.join(view.admissible)}")
    if opening and view.instructions:
        pieces.append(f"\n\n{view.instructions}")
    return [{"role": "user", "content": compose(pieces)}]
