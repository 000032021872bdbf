"""The conformance test for text environments: what everything above the environments relies on.

For authors of environments, ours and anybody's. Needs `task_id` and `success` in the info; everything else of
the contract is checked where the environment offers it.

    >>> check_text_env(lambda: gym.make("ARL/Sokoban-v0"))  # doctest: +SKIP
"""

import json
import pickle
import random
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, SupportsFloat

import gymnasium as gym
import numpy as np
from gymnasium.utils.env_checker import check_env, data_equivalence

from arl_gym.core import INFO_TYPES, SPLITS
from arl_gym.errors import ConfigError, ConformanceError
from arl_gym.rng import Rng
from arl_gym.vector import TextVectorEnv
from arl_gym.worker import one_line

Env = gym.Env[Any, Any]
Rule = Callable[["Probe"], None]

_REQUIRED = ("task_id", "success")
_GARBAGE = ("", " \n\t", "no such action", "<|im_end|><|endoftext|>", "好🙂\x00\u202e", "x" * 100_000)
_STEP_CAP = 200
"""Steps after which an episode of unknown length is left."""
_FEW = 200
"""How many ids of a long sequence are looked at."""


class _Mismatch(Exception):
    """A rule does not hold."""


def _require(holds: bool, expected: str, got: object, where: str = "") -> None:
    if not holds:
        shown = got if isinstance(got, str) else repr(got)
        raise _Mismatch(f"expected {expected}, got {shown[:300]}" + (f" ({where})" if where else ""))


@dataclass(frozen=True, slots=True)
class Moment:
    """What a reset or step returned; reward and flags of a reset are 0 and False."""

    obs: Any
    reward: SupportsFloat
    terminated: bool
    truncated: bool
    info: dict[str, Any]

    @property
    def is_last(self) -> bool:
        """Whether the episode is over."""
        return bool(self.terminated or self.truncated)


@dataclass(frozen=True, slots=True)
class Probe:
    """The environment under test, and ways to play it."""

    make_env: Callable[[], Env]
    episodes: int
    seed: int

    @contextmanager
    def env(self) -> Iterator[Env]:
        """Make an environment and close it afterwards."""
        env = self.make_env()
        try:
            yield env
        finally:
            env.close()

    @contextmanager
    def base(self) -> Iterator[Any]:
        """Make an environment and give what is inside its wrappers."""
        with self.env() as env:
            yield env.unwrapped

    def seeds(self) -> range:
        """Return the seed of each episode."""
        return range(self.seed, self.seed + self.episodes)

    def play(self, env: Env, seed: int, actions: list[Any] | None = None) -> tuple[list[Moment], list[Any]]:
        """Play one episode, by the given actions or by seeded random ones; return moments and actions.

        Random actions come from the admissible ones where the info lists them, now and then from the space.
        """
        moments, taken = [_reset(env, seed)], list[Any]()
        env.action_space.seed(seed)
        rng = Rng("check", seed)
        limit = _max_steps(env) or _STEP_CAP
        while not moments[-1].is_last and len(taken) < (limit if actions is None else len(actions)):
            legal = moments[-1].info.get("admissible_actions") or []
            if actions is not None:
                action = actions[len(taken)]
            elif legal and env.action_space.contains(legal[0]) and rng.below(8):
                action = rng.choice(legal)
            else:
                action = env.action_space.sample()
            taken.append(action)
            moments.append(_step(env, action))
        return moments, taken


def _reset(env: Env, seed: int) -> Moment:
    obs, info = env.reset(seed=seed)
    return Moment(obs, 0.0, False, False, info)


def _step(env: Env, action: Any) -> Moment:
    obs, reward, terminated, truncated, info = env.step(action)
    return Moment(obs, reward, terminated, truncated, info)


def _max_steps(env: Env) -> int | None:
    """Return the step limit of the episode, if the environment or its spec tells it."""
    limit = getattr(env.unwrapped, "max_steps", None) or (env.spec and env.spec.max_episode_steps)
    return int(limit) if limit else None


def _same(a: Any, b: Any, what: str) -> None:
    """Require two moments, or lists of them, to be equal."""
    if isinstance(a, Moment):
        _require(data_equivalence(a.obs, b.obs), f"the same observation: {a.obs!r}"[:300], b.obs, what)
        x, y = ((float(m.reward), m.terminated, m.truncated) for m in (a, b))
        _require(x == y, f"the same reward, terminated and truncated: {x}", y, what)
        _same_info(a.info, b.info, what)
    else:
        _require(len(a) == len(b), f"{len(a)} moments", len(b), what)
        for t, (x, y) in enumerate(zip(a, b, strict=True)):
            _same(x, y, f"{what}, step {t}")


def _same_info(a: dict[str, Any], b: dict[str, Any], what: str) -> None:
    _require(a.keys() == b.keys(), f"info keys {sorted(a)}", sorted(b), what)
    for key, value in a.items():
        _require(data_equivalence(value, b[key]), f"info[{key!r}] = {value!r}"[:300], b[key], what)


# ---- the rules, in the order of the report


def gymnasium_accepts_the_environment(probe: Probe) -> None:
    """Gymnasium's `check_env` passes (drawing is left to the environment's own tests)."""
    with probe.base() as env, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check_env(env, skip_render_check=True, skip_close_check=True)


def observations_lie_in_their_space(probe: Probe) -> None:
    """Every observation lies in the observation space."""
    with probe.env() as env:
        for seed in probe.seeds():
            for t, moment in enumerate(probe.play(env, seed)[0]):
                inside = env.observation_space.contains(moment.obs)
                _require(inside, f"an observation in {env.observation_space}", moment.obs, f"step {t}")


def returned_values_have_their_exact_types(probe: Probe) -> None:
    """Rewards are numbers, `terminated` and `truncated` are bool."""
    with probe.env() as env:
        for seed in probe.seeds():
            for t, m in enumerate(probe.play(env, seed)[0]):
                flags = (type(m.terminated), type(m.truncated))
                _require(flags == (bool, bool), "terminated and truncated as bool", flags, f"step {t}")
                is_number = isinstance(m.reward, (int, float, np.integer, np.floating))
                _require(is_number, "a number as reward", m.reward, f"step {t}")


def infos_have_their_keys_and_exact_types(probe: Probe) -> None:
    """The info has its keys, each with its exact type, on every reset and step."""
    with probe.env() as env:
        for seed in probe.seeds():
            for t, moment in enumerate(probe.play(env, seed)[0]):
                _check_info(moment.info, f"step {t}")


def _check_info(info: dict[str, Any], where: str) -> None:
    for key in _REQUIRED:
        _require(key in info, f"info[{key!r}]", sorted(info), where)
    for key, kind in INFO_TYPES.items():
        if key in info:
            _require(type(info[key]) is kind, f"info[{key!r}] of {kind}", type(info[key]), where)
    score = info.get("score", 0.0)
    _require(0.0 <= score <= 1.0, "info['score'] in [0, 1]", score, where)
    actions = info.get("admissible_actions", [])
    _require(all(type(a) is str for a in actions), "admissible actions as strings", actions, where)


def the_same_seed_plays_the_same_episode(probe: Probe) -> None:
    """The same seed and actions play the same episode."""
    with probe.env() as one, probe.env() as two:
        for seed in probe.seeds():
            moments, actions = probe.play(one, seed)
            _same(moments, probe.play(two, seed, actions)[0], f"seed {seed}")


def another_process_plays_the_same_episode(probe: Probe) -> None:
    """Another process plays the same episode."""
    # Another process has another hash seed: the order of a set or `hash(str)` in the content shows.
    with probe.env() as env:
        moments, actions = probe.play(env, probe.seed)
    vec = TextVectorEnv([probe.make_env], workers=1)
    try:
        vec.send_reset(0, seed=probe.seed)
        there = vec.recv()
        for action in actions:
            _require("env_error" not in there[-1].info, "no error", there[-1].info.get("env_error"))
            vec.send(0, action)
            there += vec.recv()
    finally:
        vec.close()
    _same(
        moments, [Moment(r.observation, r.reward, r.terminated, r.truncated, r.info) for r in there], "worker"
    )


def a_task_id_gives_its_task(probe: Probe) -> None:
    """`reset(options={"task_id": ...})` gives that task and its first observation."""
    with probe.env() as one, probe.env() as two:
        for seed in probe.seeds():
            obs, info = one.reset(seed=seed)
            task_id = info["task_id"]
            again, its_info = two.reset(options={"task_id": task_id})
            where = f"reset(options={{'task_id': {task_id!r}}})"
            _require(its_info["task_id"] == task_id, f"task {task_id!r}", its_info["task_id"], where)
            _require(data_equivalence(obs, again), f"the same first observation: {obs!r}"[:300], again, where)


def garbage_costs_a_step_and_never_raises(probe: Probe) -> None:
    """Any string is a legal action: garbage costs a step and never raises."""
    with probe.env() as env:
        if not env.action_space.contains(""):
            return
        limit = _max_steps(env)
        env.reset(seed=probe.seed)
        for t in range(limit or len(_GARBAGE)):
            action = _GARBAGE[t % len(_GARBAGE)]
            try:
                _, _, terminated, truncated, _ = env.step(action)
            except Exception as err:
                raise _Mismatch(
                    f"expected no exception, got {one_line(err)} (action {action[:40]!r})"
                ) from err
            if terminated or truncated:
                return
        _require(limit is None, f"the end after {limit} garbage actions", "a running episode")


def an_episode_ends_once_and_in_time(probe: Probe) -> None:
    """An episode is terminated or truncated, not both, and in time."""
    with probe.env() as env:
        limit = _max_steps(env)
        for seed in probe.seeds():
            moments, actions = probe.play(env, seed)
            last = moments[-1]
            _require(not (last.terminated and last.truncated), "terminated or truncated", "both")
            _require(
                limit is None or last.is_last,
                f"the end after {limit} steps",
                f"{len(actions)} steps and no end",
            )


def stepping_after_the_end_raises(probe: Probe) -> None:
    """A step after the end raises."""
    with probe.base() as env:
        moments, actions = probe.play(env, probe.seed)
        if not moments[-1].is_last:
            return
        try:
            env.step(actions[-1])
        except Exception:
            return
        raise _Mismatch("expected an exception from step() after the end, got a result")


def observations_and_infos_are_fresh_objects(probe: Probe) -> None:
    """Observations and infos are fresh objects and do not change later."""
    with probe.env() as env:
        actions = probe.play(env, probe.seed)[1]
        kept = [_reset(env, probe.seed)]
        copies = deepcopy(kept)
        for action in actions:
            kept.append(_step(env, action))
            copies.append(deepcopy(kept[-1]))
        env.reset(seed=probe.seed)
        _same(copies, kept, "returned earlier, looked at later")
        seen: set[int] = set()
        for t, moment in enumerate(kept):
            for name, value in [("obs", moment.obs), ("info", moment.info), *moment.info.items()]:
                if isinstance(value, (list, dict, set, np.ndarray)):
                    _require(
                        id(value) not in seen, f"a new object as {name}", "one returned before", f"step {t}"
                    )
                    seen.add(id(value))


def global_random_generators_are_left_alone(probe: Probe) -> None:
    """The global random generators are left alone."""
    saved = random.getstate(), np.random.get_state()  # noqa: NPY002 - the legacy generator is the point
    random.random(), np.random.rand()  # noqa: NPY002 - away from where a `seed()` leaves the state
    before = random.getstate(), pickle.dumps(np.random.get_state())  # noqa: NPY002
    with probe.env() as env:
        probe.play(env, probe.seed)
    after = random.getstate(), pickle.dumps(np.random.get_state())  # noqa: NPY002
    random.setstate(saved[0])
    np.random.set_state(saved[1])  # noqa: NPY002
    for name, a, b in zip(("random", "numpy.random"), before, after, strict=True):
        _require(a == b, f"the state of {name} as before the episode", "another one")


def closing_twice_works(probe: Probe) -> None:
    """Closing twice works."""
    env = probe.make_env()
    env.reset(seed=probe.seed)
    env.close()
    env.close()


def task_ids_are_finite_lazy_and_stable(probe: Probe) -> None:
    """`task_ids()` is finite, lazy, stable and knows its ids."""
    with probe.base() as env, probe.base() as other:
        if not hasattr(env, "task_ids"):
            return
        ids = env.task_ids()
        n = len(ids)
        _require(n > 0, "at least one task", n)
        _require(
            n <= 10_000 or not isinstance(ids, (list, tuple)),
            "a lazy sequence",
            f"a {type(ids).__name__} of {n}",
        )
        some = [ids[k] for k in range(min(n, _FEW))]
        _require(all(type(i) is str for i in some), "ids of type str", some[:3])
        _require(len(set(some)) == len(some), "ids that occur once", some[:10])
        _require(some[0] in ids and ids[n - 1] in ids, "its own ids in the sequence", (some[0], ids[n - 1]))
        _require("no such task" not in ids, "'no such task' not in the sequence", "it is")
        theirs = other.task_ids()
        _require(some == [theirs[k] for k in range(len(some))], f"the same ids again: {some[:3]}", theirs[0])
        task_id = env.reset(seed=probe.seed)[1]["task_id"]
        _require(task_id in ids, "the task of a seeded reset among task_ids()", task_id)


def splits_share_no_task(probe: Probe) -> None:
    """No task is in two splits."""
    with probe.base() as env:
        if not hasattr(env, "task_ids"):
            return
        splits = {}
        for split in SPLITS:
            try:
                splits[split] = env.task_ids(split)
            except ConfigError:
                continue  # not every environment has every split
        for a, ids in splits.items():
            for b in splits.keys() - {a}:
                shared = [ids[k] for k in range(min(len(ids), _FEW)) if ids[k] in splits[b]]
                _require(not shared, f"no task of {a} in {b}", shared[:3])


def a_snapshot_returns_to_its_moment(probe: Probe) -> None:
    """A snapshot survives JSON and returns to its moment, from where play goes on alike."""
    with probe.base() as one, probe.base() as two:
        if not (hasattr(one, "get_state") and hasattr(one, "set_state")):
            return
        for seed in probe.seeds():
            moments, actions = probe.play(one, seed)
            half = len(actions) // 2
            probe.play(one, seed, actions[:half])
            state = json.loads(json.dumps(one.get_state()))
            obs, info = two.set_state(state)
            _same_info(moments[half].info, info, "after set_state")
            _require(
                data_equivalence(moments[half].obs, obs), f"{moments[half].obs!r}"[:300], obs, "set_state"
            )
            rest = [_step(two, action) for action in actions[half:]]
            _same(moments[half + 1 :], rest, "played on after set_state")


def the_expert_succeeds(probe: Probe) -> None:
    """The expert succeeds."""
    with probe.base() as env:
        if not hasattr(env, "expert_action"):
            return
        for seed in probe.seeds():
            _, info = env.reset(seed=seed)
            over, n_steps = False, 0
            while not over and n_steps < (_max_steps(env) or _STEP_CAP):
                try:
                    action = env.expert_action()
                except NotImplementedError:
                    return
                _, _, terminated, truncated, info = env.step(action)
                over, n_steps = terminated or truncated, n_steps + 1
            _require(
                info["success"] is True, "success", f"{info['success']} after {n_steps} steps", f"seed {seed}"
            )


RULES: tuple[Rule, ...] = (
    gymnasium_accepts_the_environment,
    observations_lie_in_their_space,
    returned_values_have_their_exact_types,
    infos_have_their_keys_and_exact_types,
    the_same_seed_plays_the_same_episode,
    another_process_plays_the_same_episode,
    a_task_id_gives_its_task,
    garbage_costs_a_step_and_never_raises,
    an_episode_ends_once_and_in_time,
    stepping_after_the_end_raises,
    observations_and_infos_are_fresh_objects,
    global_random_generators_are_left_alone,
    closing_twice_works,
    task_ids_are_finite_lazy_and_stable,
    splits_share_no_task,
    a_snapshot_returns_to_its_moment,
    the_expert_succeeds,
)


def check_text_env(make_env: Callable[[], Env], *, episodes: int = 3, seed: int = 0) -> None:
    """Check an environment against the contract of this package.

    Args:
        make_env: Makes the environment; it travels to a worker process by cloudpickle.
        episodes: How many seeds each rule is tried on.
        seed: The first of them.

    Raises:
        ConformanceError: With one line per broken rule: expected, got, where.
    """
    probe = Probe(make_env, episodes, seed)
    broken = [line for rule in RULES if (line := _broken(rule, probe))]
    if broken:
        count = f"{len(broken)} of {len(RULES)} rules are broken"
        raise ConformanceError("\n- ".join([f"{count}:", *broken]))


def _broken(rule: Rule, probe: Probe) -> str:
    """Say how a rule is broken; an empty string if it holds."""
    title = (rule.__doc__ or rule.__name__).removesuffix(".")
    try:
        rule(probe)
    except _Mismatch as err:
        return f"{title}: {err}"
    except Exception as err:  # an environment of others may raise anything
        return f"{title}: expected no exception, got {one_line(err)}"
    return ""
