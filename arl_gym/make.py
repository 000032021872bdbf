"""One call from an id to an environment that speaks chat messages.

>>> env = make_chat_env("ARL/Sokoban-v0", window=2, format="strict")  # doctest: +SKIP
>>> messages, info = env.reset(seed=0)  # doctest: +SKIP
"""

import functools
import importlib
import inspect
from collections.abc import Set
from pathlib import Path
from typing import Any

import gymnasium as gym
from gymnasium.envs.registration import EnvSpec, load_env_creator
from gymnasium.vector import AutoresetMode, VectorEnv

from arl_gym.core import Prompt
from arl_gym.envs import ENVS
from arl_gym.errors import ConfigError, UnknownNameError
from arl_gym.tools import Tool, act
from arl_gym.vector import TextVectorEnv
from arl_gym.wrappers import (
    AnchorObservation,
    ExpertInfo,
    FormatPenalty,
    MemoryWindow,
    RecordEpisode,
    generic_prompt,
)


def make_chat_env(
    id: str | EnvSpec,
    *,
    window: int | str | None = "default",
    format: str = "default",
    penalty: float = 0.1,
    penalise: str = "format",
    anchor: str = "observation",
    prompt: str | Prompt = "default",
    expert: bool = False,
    record: str | Path | None = None,
    max_chars: int = 1_000_000,
    **env_kwargs: Any,
) -> gym.Env[Any, str]:
    """Make an environment whose observations are chat messages and whose actions are a model's responses.

    Args:
        id: A registered id, with or without its module ("arl_gym:ARL/Sokoban-v0"), or its spec.
            Environments of other packages need `info["task_id"]` and `info["success"]` only.
        window: Past turns in the prompt; None or "dialogue" is the append-only dialogue; "default" the choice
            of the registration table, 2 for other environments.
        format: "strict", "lenient", "action_only", "none" (see `wrappers.parse_response`), or "default": the
            table's, "strict" for other environments.
        penalty: Subtracted from the reward of a bad turn.
        penalise: "format": a turn with a broken format is bad; "action": one with an invalid action.
        anchor: What `info["anchor"]` is: the raw "observation", or the "state" key.
        prompt: A name from the env's `PROMPTS`, or a function from `core.PromptView` to messages.
        expert: Whether `info` carries the expert's action and thought.
        record: Folder for one JSON line an episode; None records nothing.
        max_chars: Most characters of an append-only dialogue; beyond them the episode is truncated.
        env_kwargs: Keyword arguments of the environment.

    Raises:
        UnknownNameError: If the id, a choice or a keyword argument is unknown (names the nearest).
        ConfigError: If a value is out of range.
    """
    spec = find_spec(id)
    _check_kwargs(spec, env_kwargs)
    prompt = _find_prompt(spec.id, prompt)
    window = _window(spec.id, window)
    if format == "default":
        format = ENVS[spec.id].format if spec.id in ENVS else "strict"
    base: gym.Env[Any, Any] = gym.make(spec, disable_env_checker=True, **env_kwargs)
    try:
        env = ExpertInfo(base) if expert else base
        env = AnchorObservation(env, anchor)
        env = FormatPenalty(env, format=format, penalty=penalty, penalise=penalise)
        env = MemoryWindow(env, window=window, prompt=prompt, format=format, max_chars=max_chars)
        return env if record is None else RecordEpisode(env, record)
    except Exception:
        base.close()
        raise


def make_chat_vec(
    id: str | EnvSpec,
    num_envs: int,
    *,
    workers: int | str = 0,
    step_timeout_s: float = 60.0,
    **kwargs: Any,
) -> TextVectorEnv:
    """Make `num_envs` environments of `make_chat_env` behind one vector env, without autoreset.

    Args:
        id: As in `make_chat_env`.
        num_envs: At least 1.
        workers: Processes that hold the environments, 0 keeps them in this one; or "ray", "ray:N", actors
            of a Ray cluster (see `TextVectorEnv`).
        step_timeout_s: A worker that takes longer for one step is restarted.
        kwargs: Everything else `make_chat_env` takes.

    Raises:
        UnknownNameError: As `make_chat_env`.
        ConfigError: If `num_envs` is below 1, and as `make_chat_env`.
    """
    # The spec travels, not the id: a worker process need not have imported what registered it.
    make = functools.partial(make_chat_env, find_spec(id), **kwargs)
    return _vector(make, num_envs, workers, step_timeout_s, AutoresetMode.DISABLED)


def alfworld_vec(num_envs: int = 1, **kwargs: Any) -> TextVectorEnv:
    """Make ALFWorld environments for `gymnasium.make_vec`, side by side."""
    return _plain_vec("ARL/ALFWorld-v0", num_envs, **kwargs)


def sokoban_vec(num_envs: int = 1, **kwargs: Any) -> VectorEnv[Any, Any, Any]:
    """Make Sokoban environments for `gymnasium.make_vec`: boards in arrays, or plain ones side by side.

    Numeric observations and actions come from a `SokobanVectorEnv`, the rest from a `TextVectorEnv`.
    """
    mode, action_mode = kwargs.get("obs_mode"), kwargs.get("action_mode")
    numbers = action_mode == "discrete" or (action_mode is None and mode != "image")
    if mode in ("grid", "planes", "image") and numbers:
        from arl_gym.envs.sokoban.batch import SokobanVectorEnv

        spec = find_spec("ARL/Sokoban-v0")
        _check_kwargs(spec, kwargs, {"autoreset_mode", "copy", "backend"})
        return SokobanVectorEnv(num_envs, **kwargs)
    return _plain_vec("ARL/Sokoban-v0", num_envs, **kwargs)


def tirmath_vec(num_envs: int = 1, **kwargs: Any) -> TextVectorEnv:
    """Make TIR-Math environments for `gymnasium.make_vec`, side by side."""
    return _plain_vec("ARL/TIRMath-v0", num_envs, **kwargs)


def webshop_vec(num_envs: int = 1, **kwargs: Any) -> TextVectorEnv:
    """Make WebShop environments for `gymnasium.make_vec`, side by side."""
    return _plain_vec("ARL/WebShop-v0", num_envs, **kwargs)


def _plain_vec(
    id: str,
    num_envs: int,
    *,
    workers: int | str = 0,
    step_timeout_s: float = 60.0,
    autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
    **kwargs: Any,
) -> TextVectorEnv:
    spec = find_spec(id)
    _check_kwargs(spec, kwargs)
    make = functools.partial(gym.make, spec, disable_env_checker=True, **kwargs)
    return _vector(make, num_envs, workers, step_timeout_s, AutoresetMode(autoreset_mode))


def _vector(
    make: "functools.partial[gym.Env[Any, Any]]",
    num_envs: int,
    workers: int | str,
    step_timeout_s: float,
    autoreset_mode: AutoresetMode,
) -> TextVectorEnv:
    if num_envs < 1:
        raise ConfigError(f"num_envs must be at least 1, got {num_envs}")
    return TextVectorEnv(
        [make] * num_envs, workers=workers, step_timeout_s=step_timeout_s, autoreset_mode=autoreset_mode
    )


def find_spec(id: str | EnvSpec) -> EnvSpec:
    """Return the spec of an id, importing its module first if it names one.

    Raises:
        ConfigError: If the module cannot be imported.
        UnknownNameError: If the id is not registered.
    """
    if isinstance(id, EnvSpec):
        return id
    module, _, name = id.rpartition(":")
    if module:
        try:
            importlib.import_module(module)
        except ImportError as err:
            raise ConfigError(f"cannot import {module!r} for the environment {id!r}: {err}") from err
    if name not in gym.registry:
        raise UnknownNameError("environment", name, ENVS)
    return gym.spec(name)


def env_parameters(spec: EnvSpec) -> set[str] | None:
    """Return the names of the env's keyword arguments; None if it takes any."""
    entry = spec.entry_point
    creator = load_env_creator(entry) if isinstance(entry, str) else entry
    known = {} if creator is None else inspect.signature(creator).parameters
    if creator is None or any(p.kind is p.VAR_KEYWORD for p in known.values()):
        return None
    return set(known)


def _check_kwargs(spec: EnvSpec, kwargs: dict[str, Any], more: Set[str] = frozenset()) -> None:
    known = env_parameters(spec)
    if known is None:
        return
    # `gym.make` takes the one, this module's functions the others: a slip in either should be named.
    own = inspect.signature(make_chat_env).parameters.keys() - {"id", "env_kwargs"}
    for key in kwargs:
        if key not in known | more and key != "max_episode_steps":
            raise UnknownNameError(
                "keyword argument", key, {*known, *own, *more, "max_episode_steps"}, spec.id
            )


def _find_prompt(env_id: str, prompt: str | Prompt) -> Prompt:
    if not isinstance(prompt, str):
        return prompt
    prompts: dict[str, Prompt] = {"default": generic_prompt, "tools": generic_prompt}
    if env_id in ENVS:
        prompts = importlib.import_module(ENVS[env_id].prompts).PROMPTS
    if prompt not in prompts:
        raise UnknownNameError("prompt", prompt, prompts, env_id)
    return prompts[prompt]


def tools_of(id: str) -> tuple[Tool, ...]:
    """Return the tools a model may call in an environment: `act` alone where it brings none of its own.

    Raises:
        ConfigError, UnknownNameError: As `find_spec`.
    """
    env_id = find_spec(id).id
    if env_id not in ENVS:
        return (act,)
    tools: tuple[Tool, ...] = importlib.import_module(ENVS[env_id].prompts).TOOLS
    return tools


def _window(env_id: str, window: int | str | None) -> int | None:
    if window == "default":
        return ENVS[env_id].window if env_id in ENVS else 2
    if window == "dialogue":
        return None
    if isinstance(window, str):
        raise UnknownNameError("window", window, ["default", "dialogue", "a whole number"])
    return window
