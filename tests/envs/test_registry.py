"""The contract of every registered environment, over the whole registration table and all options.

The options that need nothing beside the package are in `options.py`, and every value of each is tried with
every value of every other one, in some 60 environments. Whole products were tried once, without a find:
Sokoban's views (135), TIR-Math's rules (24), WebShop's pages (32), kinds and rooms of ALFWorld (16).
"""

import importlib
import inspect
import pickle
from functools import partial
from itertools import islice
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.envs.registration import EnvSpec, load_env_creator
from gymnasium.utils.env_checker import check_env, data_equivalence
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from arl_gym import check_text_env, checker, evaluate, make_chat_env
from arl_gym.checker import conformance, surroundings, values
from arl_gym.core import INFO_TYPES, SPLITS
from arl_gym.envs import ENVS
from arl_gym.errors import UnknownNameError
from arl_gym.rng import Rng
from tests.envs.options import BESIDE, LEVEL, OPTIONS, pairwise

EVERY_ENV = pytest.mark.parametrize("env_id", ENVS)
CHOICES = [(env_id, kwargs) for env_id, options in OPTIONS.items() for kwargs in pairwise(options)]
CHOICE_IDS = [f"{env_id}-{k}" for env_id in OPTIONS for k in range(len(pairwise(OPTIONS[env_id])))]
MEASURED = {"queue_ms", "run_ms"}
"""Info keys that no two runs have in common."""


@EVERY_ENV
def test_gymnasiums_check_passes(env_id):
    check_env(gym.make(env_id).unwrapped)


@EVERY_ENV
def test_our_own_check_passes(env_id):
    check_text_env(partial(gym.make, f"arl_gym:{env_id}"))


@EVERY_ENV
def test_every_option_has_its_place_in_the_table(env_id):
    arguments = set(inspect.signature(load_env_creator(ENVS[env_id].entry_point)).parameters)
    assert OPTIONS[env_id].keys() | BESIDE[env_id] | {"render_mode"} == arguments


@pytest.mark.slow
@pytest.mark.parametrize(("env_id", "kwargs"), CHOICES, ids=CHOICE_IDS)
def test_every_pair_of_options_keeps_the_contract(env_id, kwargs, monkeypatch):
    apart = {  # these have tests of their own here
        values.gymnasium_accepts_the_environment,
        surroundings.vector_runs_from_one_seed_are_alike,
        surroundings.make_env_works_in_another_process,
        surroundings.another_process_plays_the_same_episode,
    }
    monkeypatch.setattr(checker, "RULES", tuple(rule for rule in checker.RULES if rule not in apart))
    check_env(gym.make(env_id, **kwargs).unwrapped)
    assert conformance(partial(gym.make, env_id, **kwargs), episodes=1).broken == []


def vector_run(env_id, mode, kwargs):
    vec = gym.make_vec(env_id, num_envs=2, autoreset_mode=mode, **kwargs)
    vec.action_space.seed(3)
    out: list[Any] = [vec.reset(seed=11)]
    for _ in range(24):
        out.append(vec.step(vec.action_space.sample()))
        ended = out[-1][2] | out[-1][3]
        if mode is AutoresetMode.DISABLED and ended.any():
            out.append(vec.reset(options={"reset_mask": ended}))
    vec.close()
    return out


@pytest.mark.slow
@pytest.mark.parametrize(("env_id", "kwargs"), CHOICES, ids=CHOICE_IDS)
def test_make_vec_runs_from_one_seed_are_alike_in_every_autoreset_mode(env_id, kwargs):
    for mode in AutoresetMode:
        one, two = (vector_run(env_id, mode, kwargs) for _ in range(2))
        assert data_equivalence(one, two, exact=True)
        if kwargs["max_steps"] not in (None, 50):
            assert sum((m[2] | m[3]).sum() for m in one if len(m) == 5) >= 2


@pytest.mark.parametrize(("size", "boxes"), [([7, 6], 2), ([10, 10], 4)])
def test_other_rooms_keep_the_contract(size, boxes):
    make = partial(gym.make, "arl_gym:ARL/Sokoban-v0", obs_mode="grid", dim_room=size, num_boxes=boxes)
    check_text_env(make, episodes=1)


def test_levels_of_ones_own_keep_the_contract_but_are_in_every_split():
    report = conformance(partial(gym.make, "arl_gym:ARL/Sokoban-v0", levels=LEVEL), episodes=1)
    assert [finding.title for finding in report.broken] == [
        "No task id is in two splits",
        "No content is in two splits, by `content_hash`",
    ]


@EVERY_ENV
def test_the_spec_with_its_options_pickles_and_survives_json(env_id):
    for kwargs in ({}, *pairwise(OPTIONS[env_id])[:3]):
        spec: Any = gym.make(env_id, **kwargs).unwrapped.spec
        assert spec.kwargs == kwargs
        assert pickle.loads(pickle.dumps(spec)) == spec
        assert EnvSpec.from_json(spec.to_json()) == spec


def record(vec, seed):
    """Play some episodes in Gymnasium's own vector env: the expert, random and garbage; return all of it."""
    rng, ended = Rng("registry", seed), np.zeros(3, dtype=bool)
    out: list[Any] = [vec.reset(seed=seed)]
    actions: list[Any] = []
    for _ in range(14):
        if vec.metadata["autoreset_mode"] is AutoresetMode.DISABLED and ended.any():
            actions.append(ended)
            out.append(vec.reset(options={"reset_mask": ended.copy()}))
            ended = np.zeros(3, dtype=bool)
            continue
        legal = vec.envs[1].unwrapped._admissible() or ["```python\nprint(6 * 7)\n```", "\\boxed{42}", ""]
        chosen = ["", rng.choice(legal), "no such action"]
        if not ended[0] or vec.metadata["autoreset_mode"] is AutoresetMode.SAME_STEP:
            chosen[0] = vec.envs[0].unwrapped.expert_action()
        actions.append(tuple(chosen))
        out.append(vec.step(actions[-1]))
        ended = out[-1][2] | out[-1][3]
    return actions, out


def replay(vec, seed, actions):
    out = [vec.reset(seed=seed)]
    for action in actions:
        is_reset = isinstance(action, np.ndarray)
        out.append(vec.reset(options={"reset_mask": action}) if is_reset else vec.step(action))
    return out


def comparable(moment):
    """Leave out what is measured, and what our vector env adds."""

    def without(infos):
        dropped = MEASURED | {f"_{key}" for key in MEASURED} | {"active", "_active"}
        return {
            key: without(value) if isinstance(value, dict) else value
            for key, value in infos.items()
            if key not in dropped
        }

    *values, infos = moment
    return [*values, without(infos)]


SMALL: dict[str, dict[str, Any]] = {
    "ARL/ALFWorld-v0": {"max_steps": 4},
    "ARL/Sokoban-v0": {"max_steps": 4, "obs_mode": "both", "tile_size": 16},
    # A busy machine would cut programs off.
    "ARL/TIRMath-v0": {"max_steps": 3, "on_void": "continue", "timeout_s": 60.0},
    "ARL/WebShop-v0": {"max_steps": 4},
}


@pytest.mark.parametrize("mode", AutoresetMode)
@EVERY_ENV
def test_make_vec_plays_what_gymnasiums_vector_env_plays_over_several_episodes(env_id, mode):
    make = partial(gym.make, env_id, **SMALL[env_id])
    ours = {"autoreset_mode": mode, **SMALL[env_id]}
    reference = SyncVectorEnv([make] * 3, autoreset_mode=mode)
    actions, expected = record(reference, seed=7)
    reference.close()
    n_ends = sum(int((moment[2] | moment[3]).sum()) for moment in expected if len(moment) == 5)
    assert n_ends >= 6
    for workers in (0,) if mode is AutoresetMode.DISABLED else (0, 2):  # a process costs a second
        vec = gym.make_vec(env_id, num_envs=3, workers=workers, **ours)
        got = replay(vec, 7, actions)
        vec.close()
        for t, (x, y) in enumerate(zip(expected, got, strict=True)):
            for one, two in zip(comparable(x), comparable(y), strict=True):
                assert data_equivalence(one, two, exact=True), (workers, t, one, two)


@EVERY_ENV
def test_splits_share_no_content(env_id):
    seen: dict[str, str] = {}
    for split in SPLITS:
        env = gym.make(env_id, split=split)
        for task_id in islice(env.get_wrapper_attr("task_ids")(split), 40):
            _, info = env.reset(options={"task_id": task_id})
            assert info["split"] == split
            assert seen.setdefault(info["content_hash"], split) == split
        env.close()


@EVERY_ENV
def test_an_unknown_split_is_named(env_id):
    with pytest.raises(UnknownNameError, match="did you mean 'test'"):
        gym.make(env_id, split="tst")


@EVERY_ENV
def test_infos_are_complete(env_id):
    env = gym.make(env_id)
    _, info = env.reset(seed=1)
    assert set(INFO_TYPES) <= set(info)
    env.close()


@EVERY_ENV
def test_make_vec_gives_our_vector_env_with_gymnasiums_autoreset(env_id):
    vec = gym.make_vec(env_id, num_envs=3)
    assert type(vec).__name__ == "TextVectorEnv"
    assert vec.metadata["autoreset_mode"] is gym.vector.AutoresetMode.NEXT_STEP
    observations, infos = vec.reset(seed=5)
    assert len(observations) == 3
    assert len(infos["task_id"]) == 3
    vec.close()


@EVERY_ENV
def test_prompts_are_messages_of_the_chat_space(env_id):
    prompts = importlib.import_module(ENVS[env_id].prompts).PROMPTS
    assert "default" in prompts
    for name in prompts:
        for window in (0, 2, None):
            env = make_chat_env(env_id, prompt=name, window=window, expert=True)
            messages, info = env.reset(seed=0)
            assert env.observation_space.contains(messages)
            response = f"<think></think><action>{info['expert_action']}</action>"
            messages, *_ = env.step(response)
            assert env.observation_space.contains(messages)
            env.close()


@EVERY_ENV
def test_the_expert_beats_random_play(env_id):
    scores = [evaluate(p, env_id, split="val", episodes=8).return_mean for p in ("expert", "random")]
    assert scores[0] > scores[1]
