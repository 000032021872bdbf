"""Rules about what `reset` and `step` return."""

import math
import warnings
from copy import deepcopy
from typing import Any

import numpy as np
from gymnasium.utils.env_checker import check_env

from arl_gym.checker.probe import Probe, require, require_same_play, reset, step
from arl_gym.core import INFO_TYPES

_REQUIRED = ("task_id", "success")
_OF_THE_TASK = ("task_id", "task", "dataset", "split", "content_hash")


def gymnasium_accepts_the_environment(probe: Probe) -> None:
    """Gymnasium's `check_env` passes.

    `arl_gym.core.Unicode()` is a space of any string; Gymnasium's `Text` refuses blanks and empty strings.
    """
    with probe.base() as env, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check_env(env, skip_render_check=True, skip_close_check=True)


def observations_lie_in_their_space(probe: Probe) -> None:
    """Every observation lies in the observation space."""
    with probe.env() as env:
        for seed in probe.seeds():
            for t, moment in enumerate(probe.play(env, seed)[0]):
                inside = env.observation_space.contains(moment.obs)
                require(inside, f"an observation in {env.observation_space}", moment.obs, f"step {t}")


def returned_values_have_their_exact_types(probe: Probe) -> None:
    """Rewards are numbers, `terminated` and `truncated` are bool.

    A comparison of NumPy values gives a NumPy bool: put `bool(...)` around it.
    """
    with probe.env() as env:
        for seed in probe.seeds():
            for t, m in enumerate(probe.play(env, seed)[0]):
                flags = (type(m.terminated), type(m.truncated))
                require(flags == (bool, bool), "terminated and truncated as bool", flags, f"step {t}")
                is_number = isinstance(m.reward, (int, float, np.integer, np.floating))
                require(is_number, "a number as reward", m.reward, f"step {t}")
                require(math.isfinite(m.reward), "a finite reward", m.reward, f"step {t}")


def infos_have_their_keys_and_exact_types(probe: Probe) -> None:
    """The info has its keys, each with its exact type, on every reset and step.

    `task_id` and `success` are needed; `arl_gym.core.INFO_TYPES` lists the others.
    """
    with probe.env() as env:
        for seed in probe.seeds():
            for t, moment in enumerate(probe.play(env, seed)[0]):
                _check_info(moment.info, f"step {t}")


def _check_info(info: dict[str, Any], where: str) -> None:
    for key in _REQUIRED:
        require(key in info, f"info[{key!r}]", sorted(info), where)
    for key, kind in INFO_TYPES.items():
        if key in info:
            require(type(info[key]) is kind, f"info[{key!r}] of {kind}", type(info[key]), where)
    score = info.get("score", 0.0)
    require(0.0 <= score <= 1.0, "info['score'] in [0, 1]", score, where)
    actions = info.get("admissible_actions", [])
    require(all(type(a) is str for a in actions), "admissible actions as strings", actions, where)


def infos_survive_json(probe: Probe) -> None:
    """Infos are JSON: plain numbers, strings, lists and dicts, nothing of NumPy.

    `.item()` makes a plain number of a NumPy scalar, `.tolist()` a list of an array; a picture belongs into
    the observation.
    """
    with probe.env() as env:
        for seed in probe.seeds():
            for t, moment in enumerate(probe.play(env, seed)[0]):
                _check_json(moment.info, "info", f"step {t}")


def _check_json(value: Any, path: str, where: str) -> None:
    if type(value) is dict:
        for key, inner in value.items():
            require(type(key) is str, f"strings as keys of {path}", key, where)
            _check_json(inner, f"{path}[{key!r}]", where)
    elif type(value) in (list, tuple):
        for k, inner in enumerate(value):
            _check_json(inner, f"{path}[{k}]", where)
    else:
        is_plain = value is None or type(value) in (bool, int, float, str)
        require(is_plain, f"{path} of a JSON type", f"{type(value)}: {value!r}", where)
        require(type(value) is not float or math.isfinite(value), f"a finite {path}", value, where)


def info_values_keep_their_type(probe: Probe) -> None:
    """An info key has one type, on every reset and step.

    Vector environments make one array of a key: leave a key out rather than giving None.
    """
    kinds: dict[str, type] = {}
    with probe.env() as env:
        for seed in probe.seeds():
            for t, moment in enumerate(probe.play(env, seed)[0]):
                for key, value in moment.info.items():
                    kind = kinds.setdefault(key, type(value))
                    require(type(value) is kind, f"info[{key!r}] of {kind}", type(value), f"step {t}")


def an_episode_keeps_its_task(probe: Probe) -> None:
    """`task_id`, `task`, `dataset`, `split` and `content_hash` stay the same through an episode."""
    with probe.env() as env:
        for seed in probe.seeds():
            first, *later = (m.info for m in probe.play(env, seed)[0])
            for key in (k for k in _OF_THE_TASK if k in first):
                for t, info in enumerate(later, 1):
                    got = info.get(key)
                    require(got == first[key], f"info[{key!r}] = {first[key]!r}", got, f"step {t}")


def observations_and_infos_are_fresh_objects(probe: Probe) -> None:
    """Observations and infos are fresh objects and do not change later.

    Return copies: `list(self.items)`, `dict(self.info)`, `self.board.copy()`.
    """
    with probe.env() as env:
        actions = probe.play(env, probe.seed)[1]
        kept = [reset(env, probe.seed)]
        copies = deepcopy(kept)
        for action in actions:
            kept.append(step(env, action))
            copies.append(deepcopy(kept[-1]))
        env.reset(seed=probe.seed)
        require_same_play(copies, kept, "returned earlier, looked at later")
        seen: set[int] = set()
        for t, moment in enumerate(kept):
            for name, value in [("obs", moment.obs), ("info", moment.info), *moment.info.items()]:
                if isinstance(value, (list, dict, set, np.ndarray)):
                    is_new = id(value) not in seen
                    require(is_new, f"a new object as {name}", "one returned before", f"step {t}")
                    seen.add(id(value))


RULES = (
    gymnasium_accepts_the_environment,
    observations_lie_in_their_space,
    returned_values_have_their_exact_types,
    infos_have_their_keys_and_exact_types,
    infos_survive_json,
    info_values_keep_their_type,
    an_episode_keeps_its_task,
    observations_and_infos_are_fresh_objects,
)
