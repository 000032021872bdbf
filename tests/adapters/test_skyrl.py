"""The adapter to SkyRL against a stand-in for it; `real/test_skyrl.py` has the same in SkyRL-gym itself."""

import importlib
import json
import sys
from itertools import chain, repeat

import pytest

from arl_gym.adapters.tasks import task_dataset
from arl_gym.errors import ConfigError, DependencyMissing, EpisodeOverError
from tests.adapters import peer_skyrl
from tests.agents.counting import ID, say

ADAPTER = "arl_gym.adapters.skyrl"
SOKOBAN = "ARL/Sokoban-v0"


@pytest.fixture
def adapter(monkeypatch):
    for name, module in peer_skyrl.modules().items():
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.delitem(sys.modules, ADAPTER, raising=False)
    adapter = importlib.import_module(ADAPTER)
    adapter.register()
    yield adapter
    sys.modules.pop(ADAPTER, None)


def play(row, *responses, max_turns=50):
    """Play a row's episode with the responses, the last of them over and over."""
    script = chain(responses, repeat(responses[-1]))
    return peer_skyrl.generate(peer_skyrl.make, row, max_turns, lambda _: next(script))


def counting_row(i, **kwargs):
    """Return the row of the task with the goal 1 + i % 3."""
    return task_dataset(ID, n=12, library="skyrl", **kwargs)[i]


def test_without_skyrl_the_import_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "skyrl_gym", None)
    monkeypatch.delitem(sys.modules, ADAPTER, raising=False)
    with pytest.raises(DependencyMissing, match=r"pip install 'arl-gym\[skyrl\]'"):
        importlib.import_module(ADAPTER)


def test_registering_twice_is_fine(adapter):
    adapter.register()
    assert peer_skyrl.registry["arl_gym"].entry_point == "arl_gym.adapters.skyrl:SkyRLEnv"


def test_rows_of_different_environments_have_columns_of_the_same_types():
    (first,) = task_dataset(ID, n=1, library="skyrl", max_steps=3)
    (second,) = task_dataset(SOKOBAN, "test", n=1, library="skyrl", tile_size=16)
    assert {k: type(v) for k, v in first.items()} == {k: type(v) for k, v in second.items()}
    assert first["env_class"] == second["env_class"] == "arl_gym"
    assert (second["data_source"], second["split"]) == (SOKOBAN, "test")
    assert json.loads(second["env_kwargs"]) == {"tile_size": 16, "split": "test"}


def test_rows_of_pictures_are_refused_in_one_line():
    with pytest.raises(ConfigError, match="choose an obs_mode of text"):
        task_dataset(SOKOBAN, n=1, library="skyrl", obs_mode="image")


def test_pictures_are_refused_in_one_line_by_the_environment_too(adapter):
    (row,) = task_dataset(SOKOBAN, n=1, library="skyrl")
    row["env_kwargs"] = json.dumps({"obs_mode": "image"})
    with pytest.raises(ConfigError, match="choose an obs_mode of text"):
        play(row, say("up"))


def test_the_dialogue_begins_with_the_prompt_of_the_row(adapter):
    (row,) = task_dataset(SOKOBAN, "val", n=1, library="skyrl")
    played = play(row, say("up"))
    assert played.dialogue[0] == row["prompt"][0]
    assert {m["task_id"] for m in played.metadata} == {row["task_id"]}
    assert [m["role"] for m in played.dialogue[:4]] == ["user", "assistant", "user", "assistant"]


def test_a_won_episode(adapter):
    played = play(counting_row(1), say("up"), "up without tags", say("up"))
    assert played.rewards == [-0.25, -0.35, 1.0]
    assert [m["terminated"] for m in played.metadata] == [False, False, True]
    assert not any(m["truncated"] for m in played.metadata)
    assert [m["format_valid"] for m in played.metadata] == [True, False, True]
    assert [m["anchor"] for m in played.metadata[:2]] == ["1 of 2", "1 of 2"]
    assert played.metadata[-1]["record"]["anchors"] == ["0 of 2", "1 of 2", "1 of 2"]
    assert played.metrics == {
        "env_id": ID,
        "success": True,
        "score": 1.0,
        "env_return": 0.5,
        "return": 0.4,
        "truncated": False,
        "turns": 3,
        "format_valid": 2,
        "action_valid": 2,
    }


def test_the_last_observation_is_in_the_metadata_only(adapter):
    played = play(counting_row(0), say("up"))
    assert played.dialogue[-1] == {"role": "assistant", "content": say("up")}
    assert "1 of 1" in played.metadata[-1]["observations"][0]["content"]


def test_the_step_limit_of_the_environment_truncates(adapter):
    played = play(counting_row(0), say("down"))
    assert len(played.rewards) == 4
    assert (played.metadata[-1]["terminated"], played.metadata[-1]["truncated"]) == (False, True)
    assert (played.metrics["truncated"], played.metrics["success"]) == (True, False)


@pytest.mark.parametrize(("max_turns", "limit", "turns"), [(2, 3, 2), (3, 2, 2), (9, 9, 4)])
def test_the_turns_end_at_the_lowest_limit(adapter, max_turns, limit, turns):
    row = counting_row(0, max_episode_steps=limit)
    played = play(row, say("down"), max_turns=max_turns)
    assert len(played.rewards) == turns
    assert played.metadata[-1]["truncated"]
    assert played.metadata[-1]["record"]["stop"] == "truncated"


@pytest.mark.parametrize("garbage", ["", "\x00\ud800<action><action>", "<action>" * 500])
def test_garbage_costs_a_turn_and_the_penalty(adapter, garbage):
    played = play(counting_row(0), garbage)
    assert played.rewards == [-0.35] * 4
    assert played.metrics["format_valid"] == 0


def test_a_group_plays_one_task(adapter):
    (row,) = task_dataset(SOKOBAN, n=1, library="skyrl")
    first, second = (play(dict(row), say("up"), say("left"), "what?") for _ in range(2))
    assert first == second


def test_keyword_arguments_reach_the_environment(adapter):
    played = play(counting_row(0, max_steps=2, penalty=0.5), "no tags")
    assert played.rewards == [-0.75] * 2


def test_a_memory_window_is_refused(adapter):
    row = counting_row(0, window=2)
    with pytest.raises(ConfigError, match="window must be None, got 2"):
        play(row, say("up"))


def test_extras_that_are_no_row_are_refused(adapter):
    with pytest.raises(ConfigError, match=r"has 'env_id', got \['answer'\]"):
        adapter.SkyRLEnv({}, {"answer": "42"})
    with pytest.raises(ConfigError, match="has 'max_turns'"):
        adapter.SkyRLEnv({}, counting_row(0))


def test_a_step_outside_an_episode_is_an_error(adapter):
    env = adapter.SkyRLEnv({}, {**counting_row(0), "max_turns": 5})
    assert env.get_metrics() == {}
    env.close()
    with pytest.raises(EpisodeOverError, match="call init"):
        env.step(say("up"))
    env.init([])
    env.step(say("up"))
    with pytest.raises(EpisodeOverError):
        env.step(say("up"))


def test_an_episode_that_skyrl_cuts_short_counts_as_truncated(adapter):
    env = adapter.SkyRLEnv({}, {**counting_row(1), "max_turns": 5})
    env.init([])
    assert env.get_metrics()["truncated"] is True
    env.step(say("up"))
    assert env.get_metrics()["truncated"] is True
    env.step(say("up"))
    assert env.get_metrics()["truncated"] is False


def test_metrics_are_means_by_environment_and_shares_of_all_turns(adapter):
    def metric(env_id, success, turns, format_valid):
        return {
            "env_id": env_id,
            "success": success,
            "turns": turns,
            "format_valid": format_valid,
            "action_valid": turns,
        }

    episodes = [
        metric("A", True, 1, 1),
        {},  # a prompt that was too long is never played
        metric("A", False, 9, 4),
        metric("B", True, 0, 0),
    ]
    assert adapter.SkyRLEnv.aggregate_metrics(episodes) == {
        "A/success": 0.5,
        "A/turns": 5.0,
        "A/format_valid": 0.5,
        "A/action_valid": 1.0,
        "B/success": 1.0,
        "B/turns": 0.0,
        "B/format_valid": 0.0,
        "B/action_valid": 0.0,
    }
    assert adapter.SkyRLEnv.aggregate_metrics([]) == {}


def test_the_metrics_of_played_episodes_can_be_aggregated(adapter):
    won, lost = play(counting_row(0), say("up")), play(counting_row(0), say("down"))
    means = adapter.SkyRLEnv.aggregate_metrics([won.metrics, lost.metrics])
    assert means[f"{ID}/success"] == 0.5
    assert means[f"{ID}/return"] == 0.0  # 1.0 and four times -0.25
    assert means[f"{ID}/turns"] == 2.5
