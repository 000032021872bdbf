import functools
import pickle

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

import arl_gym.make
from arl_gym.envs import ENVS, EnvEntry
from arl_gym.errors import ConfigError, UnknownNameError
from arl_gym.make import make_chat_env, make_chat_vec, sokoban_vec
from arl_gym.wrappers import (
    AnchorObservation,
    ExpertInfo,
    FormatPenalty,
    MemoryWindow,
    RecordEpisode,
    load_episodes,
)
from tests.wrappers.fakes import terse

OURS, THEIRS = "Fake/Ours-v0", "Fake/Theirs-v0"
RIGHT = "<think>a</think><action>right</action>"


@pytest.fixture(autouse=True)
def _registered(monkeypatch):
    entry = EnvEntry(
        entry_point="tests.wrappers.fakes:FullCorridor",
        vector_entry_point="arl_gym.make:sokoban_vec",
        prompts="tests.wrappers.fakes",
        window=1,
        format="action_only",
    )
    monkeypatch.setitem(ENVS, OURS, entry)
    gym.register(OURS, entry.entry_point)
    gym.register(THEIRS, "tests.wrappers.fakes:Corridor")
    yield
    gym.registry.pop(OURS)
    gym.registry.pop(THEIRS)


def layers(env):
    names = []
    while isinstance(env, gym.Wrapper):
        names.append(type(env))
        env = env.env
    return names


def only_text(messages):
    (message,) = messages
    return message["content"]


def test_the_table_gives_window_format_and_prompt():
    env = make_chat_env(OURS)
    assert only_text(env.reset(seed=0)[0]) == "[0]  | cell 0"
    messages, reward, *_, info = env.step("I go <action>right</action>")
    assert only_text(messages) == "[1] 1:cell 0>right | cell 1"
    assert (reward, info["format_valid"], info["anchor"]) == (-0.5, True, "cell 1")
    assert only_text(env.step("<action>left</action>")[0]) == "[2] 2:cell 1>left | cell 1"


def test_an_env_of_another_package_gets_two_turns_strict_tags_and_the_generic_prompt():
    env = make_chat_env(THEIRS)
    env.reset(seed=0)
    for response in (RIGHT, "<think>a</think><action>stay</action>"):
        env.step(response)
    messages, reward, terminated, _, info = env.step("<action>right</action>")
    assert only_text(messages).startswith(
        "Steps taken so far: 3.\n\n"
        "Step 2 observation:\ncell 1\nStep 2 action: stay\n\n"
        "Step 3 observation:\ncell 1\nStep 3 action: right\n\n"
        "Observation now:\ncell 2\n\nThink first"
    )
    assert reward == pytest.approx(0.15)
    assert (info["format_valid"], terminated) == (False, False)


def test_the_layers_come_in_order(tmp_path):
    everything = make_chat_env(OURS, expert=True, record=tmp_path)
    expected = [RecordEpisode, MemoryWindow, FormatPenalty, AnchorObservation, ExpertInfo]
    assert layers(everything)[:5] == expected
    assert layers(make_chat_env(OURS))[:3] == [MemoryWindow, FormatPenalty, AnchorObservation]


def test_every_choice_reaches_its_layer(tmp_path):
    env = make_chat_env(
        OURS,
        window=0,
        format="strict",
        penalty=2.0,
        penalise="action",
        anchor="state",
        prompt="loud",
        expert=True,
        record=tmp_path,
        length=1,
    )
    messages, info = env.reset(seed=0)
    assert (only_text(messages), info["anchor"], info["expert_action"]) == ("CELL 0", "key0", "right")
    _, reward, *_ = env.step("<think>a</think><action>fly</action>")
    assert reward == -2.5
    _, reward, terminated, *_ = env.step("<action>right</action>")
    assert (reward, terminated) == (10.0, True)
    assert len(list(load_episodes(tmp_path / "episodes.jsonl"))) == 1


@pytest.mark.parametrize("window", [None, "dialogue"])
def test_the_append_only_dialogue_has_two_names_and_a_limit(window):
    env = make_chat_env(OURS, window=window, prompt=terse, max_chars=40)
    env.reset(seed=0)
    *_, truncated, info = env.step("x" * 20)
    assert (truncated, info["append"], info["context_full"]) == (True, True, True)


def test_a_prompt_may_be_a_function():
    env = make_chat_env(THEIRS, prompt=lambda view: [{"role": "user", "content": f"<{view.observation}>"}])
    assert only_text(env.reset(seed=0)[0]) == "<cell 0>"


def test_an_id_may_name_the_module_that_registers_it():
    assert str(make_chat_env("arl_gym:" + OURS)).endswith(f"<FullCorridor<{OURS}>>>>>>")


def test_gymnasiums_own_step_limit_may_be_set():
    env = make_chat_env(OURS, max_episode_steps=1)
    env.reset(seed=0)
    assert env.step("")[3] is True


def test_a_failing_layer_closes_the_env(monkeypatch):
    closed = []
    monkeypatch.setattr(
        "tests.wrappers.fakes.FullCorridor.close", lambda self: closed.append(self), raising=False
    )
    with pytest.raises(ConfigError):
        make_chat_env(OURS, penalty=-1.0)
    assert len(closed) == 1


@pytest.mark.parametrize(
    ("id", "kwargs", "message"),
    [
        ("ARL/Sokobann-v0", {}, "did you mean 'ARL/Sokoban-v0'"),
        ("arl_gym:ARL/Sokoban", {}, "did you mean 'ARL/Sokoban-v0'"),
        (OURS, {"prompt": "lout"}, "did you mean 'loud'"),
        (THEIRS, {"prompt": "loud"}, "unknown prompt 'loud'"),
        (OURS, {"format": "strcit"}, "did you mean 'strict'"),
        (OURS, {"penalise": "actions"}, "did you mean 'action'"),
        (OURS, {"anchor": "obs"}, "unknown anchor 'obs'"),
        (OURS, {"window": "dialog"}, "did you mean 'dialogue'"),
        (OURS, {"lengths": 4}, "'lengths' in Fake/Ours-v0: did you mean 'length'"),
        (OURS, {"windw": 4}, "did you mean 'window'"),
        (THEIRS, {"length": 4}, "unknown keyword argument 'length'"),
    ],
)
def test_a_slip_in_a_name_is_answered_with_the_nearest_one(id, kwargs, message):
    with pytest.raises(UnknownNameError, match=message):
        make_chat_env(id, **kwargs)


def test_a_module_that_cannot_be_imported_is_named():
    with pytest.raises(ConfigError, match="cannot import 'no_such_module'"):
        make_chat_env("no_such_module:X-v0")


def test_a_negative_window_is_refused():
    with pytest.raises(ConfigError, match="got -1"):
        make_chat_env(OURS, window=-1)


def test_the_maker_of_a_chat_env_pickles():
    make = functools.partial(make_chat_env, gym.spec(OURS), window=0)
    env = pickle.loads(pickle.dumps(make))()
    assert only_text(env.reset(seed=0)[0]) == "[0]  | cell 0"


@pytest.mark.parametrize("workers", [0, 1])
def test_a_chat_vec_plays_without_autoreset(workers):
    envs = make_chat_vec(OURS, 2, workers=workers, window=0, format="strict", prompt=terse, length=1)
    try:
        assert envs.num_envs == 2
        assert envs.metadata["autoreset_mode"] is AutoresetMode.DISABLED
        observations, _ = envs.reset(seed=0)
        assert [only_text(m) for m in observations] == ["[0]  | cell 0"] * 2
        observations, rewards, terminations, *_ = envs.step([RIGHT, "stay"])
        assert [only_text(m) for m in observations] == ["[1]  | cell 1", "[1]  | cell 0"]
        assert rewards.tolist() == pytest.approx([10.0, -0.6])
        assert terminations.tolist() == [True, False]
    finally:
        envs.close()


def test_a_slip_is_named_from_a_worker_too():
    with pytest.raises(UnknownNameError, match="did you mean 'strict'"):
        make_chat_vec(OURS, 1, workers=1, format="strcit")


def test_a_vec_of_no_envs_is_refused():
    with pytest.raises(ConfigError, match="num_envs must be at least 1, got 0"):
        make_chat_vec(OURS, 0)


def test_the_vector_entry_point_makes_plain_envs_that_reset_themselves(monkeypatch):
    monkeypatch.setattr(arl_gym.make, "sokoban_vec", functools.partial(arl_gym.make._plain_vec, OURS))
    gym.register(
        "Fake/Vec-v0", "tests.wrappers.fakes:FullCorridor", vector_entry_point="arl_gym.make:sokoban_vec"
    )
    try:
        envs = gym.make_vec("Fake/Vec-v0", num_envs=2, workers=0, max_episode_steps=5, length=1)
        assert envs.metadata["autoreset_mode"] is AutoresetMode.NEXT_STEP
        assert envs.reset(seed=0)[0] == ("cell 0", "cell 0")
        assert envs.step(["right", "left"])[0] == ("cell 1", "cell 0")
        observations, rewards, *_ = envs.step(["right", "right"])
        assert observations == ("cell 0", "cell 1")
        assert np.array_equal(rewards, [0.0, 10.0])
        envs.close()
    finally:
        gym.registry.pop("Fake/Vec-v0")


def test_the_vector_entry_point_takes_another_autoreset_mode_and_names_slips():
    envs = arl_gym.make._plain_vec(OURS, 1, autoreset_mode="Disabled")
    assert envs.metadata["autoreset_mode"] is AutoresetMode.DISABLED
    envs.close()
    with pytest.raises(UnknownNameError, match="did you mean 'length'"):
        arl_gym.make._plain_vec(OURS, 1, lengths=2)
    with pytest.raises(ConfigError, match="num_envs"):
        arl_gym.make._plain_vec(OURS, 0)


def test_sokoban_has_its_entry_point():
    assert ENVS["ARL/Sokoban-v0"].vector_entry_point == "arl_gym.make:sokoban_vec"
    assert callable(sokoban_vec)
