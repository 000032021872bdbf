"""The adapter in SkyRL-gym itself. What drives it is `peer_skyrl.generate`: SkyRL's trainer is not needed."""

import inspect
from functools import partial
from importlib import import_module

import datasets
import pytest
import skyrl_gym
from skyrl_gym.metrics import aggregate_for_environment

from arl_gym.adapters.skyrl import SkyRLEnv, register
from arl_gym.adapters.tasks import task_dataset
from tests.adapters import peer_skyrl
from tests.adapters.examples import run_example
from tests.adapters.page import run_section
from tests.adapters.scripted import FIRST_TASKS, native_episodes, response_to, rewards_of

register()


def play(row, max_turns=50):
    return peer_skyrl.generate(skyrl_gym.make, row, max_turns, partial(response_to, row["env_id"]))


def test_twenty_episodes_bring_what_they_bring_in_our_own_loop():
    stops, metrics = [], []
    for env_id, n in FIRST_TASKS.items():
        rows = task_dataset(env_id, n=n, library="skyrl", expert=True)
        native = native_episodes(env_id, [row["task_id"] for row in rows])
        for row, t in zip(rows, native, strict=True):
            played = play(row)
            assert played.rewards == pytest.approx(rewards_of(t))
            record = played.metadata[-1]["record"]
            assert (record["task_id"], record["success"], record["stop"]) == (t.task_id, t.success, t.stop)
            assert record["anchors"] == [turn.anchor for turn in t.turns]
            # The dialogue is what our own loop shows, message by message.
            shown = [message for turn in t.turns for message in turn.messages]
            assert [m for m in played.dialogue if m["role"] != "assistant"] == shown
            stops.append(t.stop)
            metrics.append(played.metrics)
        means = aggregate_for_environment("arl_gym", metrics[-n:])
        assert means[f"{env_id}/success"] == sum(t.success for t in native) / n
        n_turns = sum(len(t.turns) for t in native)
        assert means[f"{env_id}/turns"] == n_turns / n
        n_valid = sum(turn.format_valid for t in native for turn in t.turns)
        assert means[f"{env_id}/format_valid"] == n_valid / n_turns
    assert len(stops) == 20
    assert set(stops) == {"terminated", "truncated"}
    assert sum(m["format_valid"] for m in metrics) < sum(m["turns"] for m in metrics)


def test_rows_of_two_environments_come_back_from_one_parquet_file(tmp_path):
    rows = task_dataset("ARL/Sokoban-v0", n=1, library="skyrl", max_steps=2, expert=True)
    rows += task_dataset("ARL/TIRMath-v0", n=1, library="skyrl", expert=True)
    parts = [datasets.Dataset.from_list([row]) for row in rows]
    datasets.concatenate_datasets(parts).to_parquet(tmp_path / "train.parquet")
    read = datasets.Dataset.from_parquet(str(tmp_path / "train.parquet"), cache_dir=str(tmp_path))
    assert [dict(row) for row in read] == rows
    for row, again in zip(rows, read, strict=True):
        assert play(row)[:2] == play(again)[:2]  # dialogue and rewards: the metadata has times


def test_the_generators_limit_of_turns_ends_the_episode():
    (row,) = task_dataset("ARL/Sokoban-v0", n=1, library="skyrl", expert=True)
    played = play(row, max_turns=2)
    assert len(played.rewards) == 2
    assert played.metadata[-1]["truncated"]


def test_the_environment_is_registered_by_name_and_twice_is_fine():
    register()
    spec = skyrl_gym.spec("arl_gym")
    assert skyrl_gym.envs.registration.EnvSpec.from_json(spec.to_json()) == spec


def test_a_with_block_closes_the_environment():
    (row,) = task_dataset("ARL/Sokoban-v0", n=1, library="skyrl")
    with skyrl_gym.make("arl_gym", env_config={}, extras={**row, "max_turns": 3}) as env:
        assert isinstance(env, SkyRLEnv)
        env.init(row["prompt"])


def public(thing):
    return {name for name in vars(thing) if not name.startswith("_")}


def test_the_stand_in_has_only_what_skyrl_has():
    for module, stand_in in peer_skyrl.modules().items():
        real = import_module(module)
        for name in public(stand_in):
            theirs, ours = getattr(real, name), getattr(stand_in, name)
            if inspect.isfunction(ours):
                assert list(inspect.signature(ours).parameters) == list(inspect.signature(theirs).parameters)


def test_the_stand_ins_environment_has_the_methods_of_skyrls():
    from skyrl_gym.envs.base_text_env import BaseTextEnv, BaseTextEnvStepOutput

    for name in public(peer_skyrl.BaseTextEnv):
        theirs, ours = getattr(BaseTextEnv, name), getattr(peer_skyrl.BaseTextEnv, name)
        assert list(inspect.signature(ours).parameters) == list(inspect.signature(theirs).parameters)
    fields = peer_skyrl.BaseTextEnvStepOutput.__annotations__
    assert list(fields) == list(BaseTextEnvStepOutput.__annotations__)
    assert vars(peer_skyrl.BaseTextEnv()) == {
        name: value for name, value in vars(BaseTextEnv()).items() if "tool" not in name
    }


def test_the_code_on_the_page_writes_rows_that_can_be_played(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run_section("SkyRL")
    rows = datasets.Dataset.from_parquet("train.parquet", cache_dir="cache")
    assert len(rows) == 2000
    assert play({**rows[1500], "env_kwargs": '{"expert": true}'}).metadata[-1]["record"]["success"]


def test_the_example_runs(tmp_path):
    assert "environment/ARL/Sokoban-v0/success: 1.00" in run_example("skyrl_episode.py", tmp_path)
