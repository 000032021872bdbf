"""From a model's whole response to an action, and what a broken format costs.

The rules are pure (`parse_response`); the wrapper applies them and keeps env reward and penalty apart.

>>> parse_response("<think>wall on the left</think><action>Up</action>", "strict")
Parsed(action='up', valid=True)
"""

import math
import re
from collections.abc import Callable
from itertools import islice
from typing import Any, NamedTuple

import gymnasium as gym
from gymnasium import spaces

from arl_gym.core import Unicode
from arl_gym.errors import ActionError, ConfigError, UnknownNameError

FORMATS = ("strict", "lenient", "action_only", "none")
PENALISE = ("format", "action")

# Possessive and ASCII-only: no input makes them backtrack, and no Unicode look-alike is a tag.
_FLAGS = re.IGNORECASE | re.ASCII
_TAG = re.compile(r"<(/?(?:think|action))>", _FLAGS)
_ACTION_TAG = re.compile(r"<(/?)action>", _FLAGS)
_EXACT_OPEN = re.compile("<action>", _FLAGS)
_EXACT_CLOSE = re.compile("</action>", _FLAGS)
_SPACED_OPEN = re.compile(r"<\s*+action\s*+>", _FLAGS)
_SPACED_CLOSE = re.compile(r"<\s*+/\s*+action\s*+>", _FLAGS)
_CJK = re.compile("[\u4e00-\u9fff]")


class Parsed(NamedTuple):
    """What a response says: the action, None without an action block, and whether the format is kept."""

    action: str | None
    valid: bool


def parse_response(text: str, format: str) -> Parsed:
    """Read the action out of a response. Tags are case-insensitive; takes linear time on any input.

    - strict: nothing but `<think>…</think>` and `<action>…</action>`, each tag once, white space around and
      between them, no CJK ideograph. Empty blocks pass.
    - lenient: an action block and both think tags somewhere, no CJK ideograph.
    - action_only: exactly one opening and one closing action tag, in this order, anywhere.
    - none: the whole response is the action, unchanged.

    A response that breaks the rules but has an action block (white space inside its tags allowed) keeps its
    first one as action. Actions are stripped and lower-cased, except with "none".

    Raises:
        UnknownNameError: If `format` is none of the four.
    """
    if format == "none":
        return Parsed(text, True)
    if format not in _RULES:
        raise UnknownNameError("format", format, FORMATS)
    block = _RULES[format](text)
    if block is not None:
        return Parsed(block.strip().lower(), True)
    block = _first_block(text, _SPACED_OPEN, _SPACED_CLOSE)
    return Parsed(None if block is None else block.strip().lower(), False)


def _strict(text: str) -> str | None:
    """Return the action block of a well-formed response, else None; so do the other rules."""
    tags = list(islice(_TAG.finditer(text), 5))
    if [t[1].lower() for t in tags] != ["think", "/think", "action", "/action"]:
        return None
    think, think_end, action, action_end = tags
    outside = (text[: think.start()], text[think_end.end() : action.start()], text[action_end.end() :])
    if any(map(str.strip, outside)) or _CJK.search(text):
        return None
    return text[action.end() : action_end.start()]


def _lenient(text: str) -> str | None:
    tags = {t[1].lower() for t in _TAG.finditer(text)}
    if not {"think", "/think"} <= tags or _CJK.search(text):
        return None
    return _first_block(text, _EXACT_OPEN, _EXACT_CLOSE)


def _action_only(text: str) -> str | None:
    tags = list(islice(_ACTION_TAG.finditer(text), 3))
    if [t[1] for t in tags] != ["", "/"]:
        return None
    return text[tags[0].end() : tags[1].start()]


def _first_block(text: str, opening: re.Pattern[str], closing: re.Pattern[str]) -> str | None:
    start = opening.search(text)
    if start is None:
        return None
    end = closing.search(text, start.end())
    return None if end is None else text[start.end() : end.start()]


_RULES: dict[str, Callable[[str], str | None]] = {
    "strict": _strict,
    "lenient": _lenient,
    "action_only": _action_only,
}

_THINK_FIRST = (
    "Think first inside <think> and </think>, then give exactly one action inside <action> and </action>. "
    "Write nothing outside these tags."
)
_INSTRUCTIONS = {
    "strict": _THINK_FIRST,
    "lenient": _THINK_FIRST,
    "action_only": "Give exactly one action inside <action> and </action>.",
    "none": "",
}


def format_instructions(format: str) -> str:
    """Return the sentences that tell a model how to answer in `format`; empty for "none".

    Raises:
        UnknownNameError: If `format` is unknown.
    """
    if format not in _INSTRUCTIONS:
        raise UnknownNameError("format", format, FORMATS)
    return _INSTRUCTIONS[format]


class FormatPenalty(gym.Wrapper[Any, str, Any, Any], gym.utils.RecordConstructorArgs):
    """Takes the model's whole response as action, steps the env with what it says, and punishes bad form.

    Without an action block the env gets the empty string, and `info["action_valid"]` is False whatever the
    env makes of it. The reward is the env's minus the penalty. `info` on every step: `format_valid: bool`,
    `action: str` (what the env got), `env_reward: float`, `format_penalty: float` (what was subtracted, at
    least 0); on reset they are True, "", 0.0, 0.0.

    Args:
        env: Any environment whose actions are strings.
        format: "strict", "lenient", "action_only" or "none"; see `parse_response`.
        penalty: Subtracted from the reward of a bad turn.
        penalise: What makes a turn bad: "format", a broken format; "action", `info["action_valid"]` being
            false (an env that does not say takes every action as valid).

    Raises:
        ConfigError: If a name is unknown, the penalty is negative, or the env takes no strings.

    References:
        ARLArena, arXiv:2602.21534: "format" is the paper's rule, "action" that of its released code.
    """

    def __init__(
        self,
        env: gym.Env[Any, Any],
        *,
        format: str = "strict",
        penalty: float = 0.1,
        penalise: str = "format",
    ):
        gym.utils.RecordConstructorArgs.__init__(self, format=format, penalty=penalty, penalise=penalise)
        gym.Wrapper.__init__(self, env)
        if format not in FORMATS:
            raise UnknownNameError("format", format, FORMATS)
        if penalise not in PENALISE:
            raise UnknownNameError("penalise", penalise, PENALISE)
        if not (math.isfinite(penalty) and penalty >= 0):
            raise ConfigError(f"penalty is subtracted and must be at least 0, got {penalty}")
        numeric = (spaces.Discrete, spaces.Box, spaces.MultiDiscrete, spaces.MultiBinary)
        if isinstance(env.action_space, numeric):
            raise ConfigError(
                f"FormatPenalty needs an env that takes strings; {env} takes {env.action_space}"
            )
        self.format, self.penalty, self.penalise = format, float(penalty), penalise
        self.action_space = Unicode()

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Start an episode; see the wrapped env."""
        obs, info = self.env.reset(seed=seed, options=options)
        info["format_valid"], info["action"] = True, ""
        info["env_reward"], info["format_penalty"] = 0.0, 0.0
        return obs, info

    def step(self, action: str) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Carry out what the response `action` says.

        Raises:
            ActionError: If the response is not a string.
        """
        if not isinstance(action, str):
            raise ActionError(f"FormatPenalty takes the response as a string, got {type(action).__name__}")
        parsed = parse_response(action, self.format)
        taken = "" if parsed.action is None else parsed.action
        obs, reward, terminated, truncated, info = self.env.step(taken)
        if parsed.action is None:
            info["action_valid"] = False
        good = parsed.valid if self.penalise == "format" else info.get("action_valid", True)
        env_reward, penalty = float(reward), 0.0 if good else self.penalty
        info["format_valid"], info["action"] = parsed.valid, taken
        info["env_reward"], info["format_penalty"] = env_reward, penalty
        return obs, env_reward - penalty, terminated, truncated, info


def has_format_penalty(env: gym.Env[Any, Any]) -> bool:
    """Return whether a `FormatPenalty` is among the env's wrappers, so that `info["action"]` is its own."""
    while isinstance(env, gym.Wrapper):
        if isinstance(env, FormatPenalty):
            return True
        env = env.env
    return False
