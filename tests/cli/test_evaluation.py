import json
import re
import sys
from types import SimpleNamespace

import pytest

from arl_gym.agents.policies import ScriptedPolicy
from arl_gym.agents.records import read_trajectories
from arl_gym.cli import main
from tests.agents.counting import ID, say


def test_the_table_shows_rates_and_intervals(capsys):
    assert main(["eval", ID, "--policy", "expert", "--episodes", "6"]) == 0
    shown = capsys.readouterr().out
    assert f"expert on {ID}" in shown
    assert "100.0%" in shown
    assert "61.0% … 100.0%" in shown  # Wilson, 6 of 6
    assert "generated data, split test" in shown


def test_kinds_of_task_have_a_row_each_also_without_episodes(capsys):
    assert main(["eval", "ARL/ALFWorld-v0", "--policy", "expert", "--episodes", "2"]) == 0
    shown = capsys.readouterr().out
    assert re.search(r"success, pick_and_place_simple +1 of 1 ", shown)
    assert re.search(r"success, pick_two_obj_and_place +0 of 0 +0.0% … 100.0%", shown)


def test_result_and_episodes_are_written(tmp_path, capsys):
    args = [
        "--policy",
        "random",
        "--episodes",
        "3",
        "--split",
        "val",
        "--env",
        "max_steps=2",
        "--num-envs",
        "2",
    ]
    assert main(["eval", ID, *args, "--json", str(tmp_path / "r.json"), "--record", str(tmp_path)]) == 0
    result = json.loads((tmp_path / "r.json").read_text())
    assert (result["n"], result["split"], result["task_ids"]) == (3, "val", ["val/0", "val/1", "val/2"])
    recorded = read_trajectories(tmp_path / "eval-Counting-v0-val.jsonl.gz")
    assert [t.success for t in recorded] == result["successes"]
    assert max(len(t.turns) for t in recorded) == 2


def test_the_agent_layer_is_chosen_by_options(tmp_path):
    layer = ["--window", "dialogue", "--format", "action_only", "--record", str(tmp_path)]
    assert main(["eval", ID, "--policy", "expert", "--episodes", "2", *layer]) == 0
    (turn, _) = read_trajectories(tmp_path / "eval-Counting-v0-test.jsonl.gz")[1].turns
    assert turn.response == "<action>up</action>"


@pytest.mark.parametrize(
    ("args", "says"),
    [
        ([ID], "say who plays"),
        ([ID, "--model", "random"], "say --policy random"),
        ([ID, "--policy", "random", "--model", "x"], "--model goes with --policy hf"),
        ([ID, "--policy", "hf"], "--model goes with --policy hf"),
        (["ARL/Sokobn-v0", "--policy", "random"], "did you mean 'ARL/Sokoban-v0'"),
        ([ID, "--policy", "random", "--episodes", "0"], "at least 1"),
        ([ID, "--policy", "random", "--window", "-1"], "window"),
    ],
)
def test_bad_usage(capsys, args, says):
    assert main(["eval", *args]) == 2
    assert says in capsys.readouterr().err


@pytest.mark.parametrize("pair", ["max_step=3", "window=3", "split=val"])
def test_a_wrong_env_key_fails(capsys, pair):
    assert main(["eval", ID, "--policy", "random", "--env", pair]) == 1
    assert capsys.readouterr().err.startswith("arl-gym: unknown --env key")


def test_a_model_is_loaded_by_the_trainers_policy(monkeypatch, capsys):
    seen: dict[str, object] = {}

    def load_policy(model, **kwargs):
        seen.update(kwargs, model=model)
        return ScriptedPolicy(lambda _: say("up"))

    monkeypatch.setitem(sys.modules, "arl_gym.train.policies.hf", SimpleNamespace(load_policy=load_policy))
    assert main(["eval", ID, "--model", "some/model", "--temperature", "0.5", "--episodes", "2"]) == 0
    assert seen == {
        "model": "some/model",
        "temperature": 0.5,
        "max_tokens": 512,
        "batch_size": 64,
        "max_context": 2048,
    }
    assert "100.0%" in capsys.readouterr().out


def test_broken_episodes_are_in_the_table(capsys):
    assert main(["eval", ID, "--policy", "expert", "--episodes", "2", "--env", "broken=test/0"]) == 0
    shown = capsys.readouterr().out
    assert "50.0%" in shown
    assert "no such level" in shown
