"""Rules about what surrounds an environment: its spec, drawing, processes, vector environments, closing."""

import contextlib
import os
import pickle
import random
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.envs.registration import EnvSpec
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import iterate

from arl_gym.checker.probe import (
    Mismatch,
    Moment,
    NotApplicable,
    Probe,
    draw_action,
    require,
    require_equal,
    require_same,
    require_same_play,
    reset,
    step,
)
from arl_gym.core import is_image
from arl_gym.rng import Rng
from arl_gym.vector import TextVectorEnv

_DRAWN_STEPS = 3
"""Steps of an episode that is drawn."""
_VECTOR_STEPS = 120
"""Most steps of a vector run."""
_GRACE_S = 2.0
"""How long what an environment started may take to end after `close`."""


def the_spec_survives_pickle_and_json(probe: Probe) -> None:
    """Its spec survives pickling and JSON, and makes the same environment again.

    Register the entry point as a string, "module:Class", and let keyword arguments be JSON.
    """
    with probe.env() as env:
        if env.spec is None:
            raise NotApplicable("it was not made by gym.make")
        pickled = pickle.loads(pickle.dumps(env.spec))
        require(pickled == env.spec, f"the spec {env.spec}", pickled, "pickled")
        text = env.spec.to_json()
        again = EnvSpec.from_json(text)
        require(again.to_json() == text, text, again.to_json(), "from JSON")
        made = gym.make(again)
        try:
            require_same(reset(env, probe.seed), reset(made, probe.seed), "made from JSON")
        finally:
            made.close()


def declared_render_modes_are_honoured(probe: Probe) -> None:
    """Declared render modes give a string ("ansi") or a picture ("rgb_array"), and drawing changes nothing.

    A picture is uint8 of shape (H, W, 3). "human" is not tried.
    """
    with probe.env() as env:
        modes = [m for m in env.metadata.get("render_modes", ()) if m in ("ansi", "rgb_array")]
        moments, actions = probe.play(env, probe.seed)
    if not modes:
        raise NotApplicable("it declares neither ansi nor rgb_array")
    for mode in modes:
        with probe.variant("render_mode", mode) as env:
            drawn = [reset(env, probe.seed)]
            _require_frame(env, mode)
            for action in actions[:_DRAWN_STEPS]:
                drawn.append(step(env, action))
                _require_frame(env, mode)
        require_same_play(moments[: len(drawn)], drawn, f"drawn as {mode}")


def _require_frame(env: Any, mode: str) -> None:
    frame = env.render()
    if mode == "ansi":
        require(type(frame) is str, "a string from render()", type(frame), mode)
    else:
        shown = f"{frame.dtype} {frame.shape}" if isinstance(frame, np.ndarray) else type(frame)
        require(is_image(frame), "uint8 of shape (H, W, 3) from render()", shown, mode)
    require_equal(frame, env.render(), "the same frame again", mode)


def an_unknown_render_mode_is_refused(probe: Probe) -> None:
    """An unknown render mode is refused when the environment is made."""
    try:
        with probe.variant("render_mode", "no such mode"):
            pass
    except NotApplicable:
        raise
    except Exception:
        return
    raise Mismatch("expected an exception for render_mode='no such mode', got an environment")


def make_env_works_in_another_process(probe: Probe) -> None:
    """`make_env` works in another process.

    It goes there by cloudpickle: open files, locks and connections inside it. Import inside it what registers
    an id, as `gym.make("module:Id")` does.
    """
    _start_worker(probe).close()


def another_process_plays_the_same_episode(probe: Probe) -> None:
    """Another process plays the same episode.

    There `hash(text)` and the order of a set are others: use `arl_gym.rng.derive`, and `sorted`.
    """
    with probe.env() as env:
        here = [probe.play(env, seed) for seed in probe.seeds()]
    try:
        vec = _start_worker(probe)
    except Exception as err:
        raise NotApplicable("make_env does not work there") from err
    try:
        for seed, (moments, actions) in zip(probe.seeds(), here, strict=True):
            vec.send_reset(0, seed=seed)
            there = vec.recv()
            for action in actions:
                error = there[-1].info.get("env_error")
                require(error is None, "no error", error, f"seed {seed}, another process")
                vec.send(0, action)
                there += vec.recv()
            got = [Moment(r.observation, r.reward, r.terminated, r.truncated, r.info) for r in there]
            require_same_play(moments, got, f"seed {seed}, another process")
    finally:
        vec.close()


def _start_worker(probe: Probe) -> TextVectorEnv:
    """Make the environment in a process that hashes strings otherwise than this one."""
    with _another_hash_seed():
        return TextVectorEnv([probe.make_env], workers=1)


@contextmanager
def _another_hash_seed() -> Iterator[None]:
    """Fix the hash seed of processes that start now, to another one than this process may have fixed."""
    name = "PYTHONHASHSEED"
    own = os.environ.get(name)
    os.environ[name] = "2" if own == "1" else "1"
    try:
        yield
    finally:
        del os.environ[name]
        if own is not None:
            os.environ[name] = own


def vector_runs_from_one_seed_are_alike(probe: Probe) -> None:
    """Vector runs from the same seed are alike, after automatic resets too."""
    for mode in (AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP):
        # One after the other: a space of the class would give both runs of its random actions.
        runs = [list(_vector_run(probe, mode)) for _ in range(2)]
        for t, (one, two) in enumerate(zip(*runs, strict=False)):
            for what, x, y in zip(("observations", "rewards", "ends", "infos"), one, two, strict=True):
                require_equal(x, y, f"the same {what}", f"autoreset {mode.name}, step {t}")


def _vector_run(probe: Probe, mode: AutoresetMode) -> Iterator[tuple[Any, Any, Any, dict[str, Any]]]:
    """Give observations, rewards, ends and infos of two environments until each has ended twice."""
    vec = TextVectorEnv([probe.make_env] * 2, autoreset_mode=mode)
    try:
        vec.single_action_space.seed(probe.seed)
        rng, ends = Rng("vector check", probe.seed), np.zeros(2)
        obs, infos = vec.reset(seed=probe.seed)
        yield obs, np.zeros(2), np.zeros(2), infos
        for _ in range(_VECTOR_STEPS):
            legal = infos.get("admissible_actions", [None] * 2)
            each = [{"admissible_actions": actions} for actions in legal]
            obs, rewards, terminations, truncations, infos = vec.step(
                [draw_action(vec.single_action_space, info, rng) for info in each]
            )
            yield obs, rewards, terminations * 2 + truncations, infos
            ends += terminations | truncations
            if (ends >= 2).all():
                return
    finally:
        vec.close()


def autoreset_keeps_the_last_observation(probe: Probe) -> None:
    """Vector environments keep the last observation and info of an episode, in every autoreset mode.

    An environment that fills the same array or dict again at its reset overwrites what the caller has.
    """
    with probe.env() as env:
        moments, actions = probe.play(env, probe.seed)
    last = moments[-1]
    if not last.is_last:
        raise NotApplicable(f"no episode ended within {len(actions)} steps")
    for mode in AutoresetMode:
        vec = TextVectorEnv([probe.make_env], autoreset_mode=mode)
        try:
            obs, infos = vec.reset(seed=probe.seed)
            for action in actions:
                obs, *_, infos = vec.step([action])
            if mode is AutoresetMode.SAME_STEP:
                obs, infos = infos["final_obs"][0], infos["final_info"]
            else:
                obs = next(iter(iterate(vec.observation_space, obs)))
            if mode is AutoresetMode.NEXT_STEP:
                vec.step(actions[-1:])
            where = f"autoreset {mode.name}"
            require_equal(last.obs, obs, "the last observation", where)
            for key in ("task_id", "success"):
                require(
                    infos[key][0] == last.info[key],
                    f"the last {key}, {last.info[key]!r}",
                    infos[key][0],
                    where,
                )
        finally:
            vec.close()


def global_random_generators_are_left_alone(probe: Probe) -> None:
    """The global random generators are left alone.

    Draw from `self.np_random`, or from a generator of your own.
    """
    saved = random.getstate(), np.random.get_state()  # noqa: NPY002 - the legacy generator is the point
    random.random(), np.random.rand()  # noqa: NPY002 - away from where a `seed()` leaves the state
    before = random.getstate(), pickle.dumps(np.random.get_state())  # noqa: NPY002
    with probe.env() as env:
        probe.play(env, probe.seed)
    after = random.getstate(), pickle.dumps(np.random.get_state())  # noqa: NPY002
    random.setstate(saved[0])
    np.random.set_state(saved[1])  # noqa: NPY002
    for name, a, b in zip(("random", "numpy.random"), before, after, strict=True):
        require(a == b, f"the state of {name} as before the episode", "another one")


def closing_works_at_any_time_and_twice(probe: Probe) -> None:
    """Closing works before the first reset, in the middle of an episode, and twice."""
    probe.make_env().close()
    env = probe.make_env()
    env.reset(seed=probe.seed)
    env.close()
    env.close()


def closing_leaves_nothing_behind(probe: Probe) -> None:
    """Closing ends the threads and processes that an environment has started, and closes its files.

    End them in `close`; what all environments of a process share, and the first one starts, may stay.
    """
    _use(probe)  # starts what is shared
    before = _belongings()
    _use(probe)
    until = time.monotonic() + _GRACE_S
    while (left := _added(before, _belongings())) and time.monotonic() < until:
        time.sleep(0.05)
    require(not left, "nothing left of a closed environment", ", ".join(left))


def _use(probe: Probe) -> None:
    with probe.env() as env:
        try:
            probe.play_by_expert(env, probe.seed)
        except NotApplicable:
            probe.play(env, probe.seed)


def _belongings() -> dict[str, set[str]]:
    """Return the threads of this process and, where there is /proc, its child processes and open files."""
    files, processes = set(), set()
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it has just ended
            name, _, rest = stat.read_text().rpartition(")")
            state, parent = rest.split()[:2]
            if int(parent) == os.getpid() and state != "Z":
                processes.add(f"{name})")
    for fd in Path("/proc/self/fd").glob("*"):
        with contextlib.suppress(OSError):  # the one that lists the folder
            files.add(f"{fd.readlink()} (open as {fd.name})")
    threads = {f"{thread.name} {thread.ident}" for thread in threading.enumerate()}
    return {"thread": threads, "process": processes, "file": files}


def _added(before: dict[str, set[str]], after: dict[str, set[str]]) -> list[str]:
    """Return what is new, of the kinds of which there is more: something shared may have been replaced."""
    return [
        f"{kind} {name}"
        for kind, names in after.items()
        if len(names) > len(before[kind])
        for name in sorted(names - before[kind])
    ]


RULES = (
    the_spec_survives_pickle_and_json,
    declared_render_modes_are_honoured,
    an_unknown_render_mode_is_refused,
    make_env_works_in_another_process,
    another_process_plays_the_same_episode,
    vector_runs_from_one_seed_are_alike,
    autoreset_keeps_the_last_observation,
    global_random_generators_are_left_alone,
    closing_works_at_any_time_and_twice,
    closing_leaves_nothing_behind,
)
