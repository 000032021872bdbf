import json
import re
import sys
from types import SimpleNamespace

import pytest

from arl_gym.agents.policies import ScriptedPolicy
from arl_gym.agents.records import read_trajectories
from arl_gym.cli import main
from tests.agents.counting import ID, say
from tests.agents.stub_server import StubServer, completion, failure


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
        ([ID, "--policy", "openai", "--model", "m"], "needs --base-url"),
        ([ID, "--policy", "openai", "--base-url", "http://h"], "--model goes with"),
        ([ID, "--policy", "hf", "--model", "m", "--base-url", "http://h"], "--base-url goes with"),
        ([ID, "--policy", "random", "--chat-template-kwargs", "[1]"], "expected a JSON object"),
        ([ID, "--policy", "random", "--extra-body", "{"], "expected a JSON object"),
    ],
)
def test_bad_usage(monkeypatch, capsys, args, says):
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
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
        "top_p": 1.0,
        "top_k": 0,
        "max_tokens": 512,
        "batch_size": 64,
        "max_context": 2048,
        "enable_thinking": True,
        "chat_template_kwargs": {},
    }
    assert "100.0%" in capsys.readouterr().out


def test_sampling_goes_by_vllms_names_and_the_template_gets_its_arguments(monkeypatch):
    seen: dict[str, object] = {}

    def load_policy(model, **kwargs):
        seen.update(kwargs)
        return ScriptedPolicy(lambda _: say("up"))

    monkeypatch.setitem(sys.modules, "arl_gym.train.policies.hf", SimpleNamespace(load_policy=load_policy))
    sampling = ["--top-p", "0.95", "--top-k", "20", "--max-tokens", "9", "--max-model-len", "99"]
    template = ["--chat-template-kwargs", '{"enable_thinking": false, "effort": "low"}']
    assert main(["eval", ID, "--model", "m", "--episodes", "1", *sampling, *template]) == 0
    assert (seen["top_p"], seen["top_k"], seen["max_tokens"], seen["max_context"]) == (0.95, 20, 9, 99)
    assert (seen["enable_thinking"], seen["chat_template_kwargs"]) == (False, {"effort": "low"})


def test_a_server_is_evaluated_and_the_tokens_are_told(monkeypatch, capsys, tmp_path):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    with StubServer(lambda _: completion(say("up"))) as server:
        args = ["--base-url", server.url, "--model", "m", "--top-k", "5", "--episodes", "3"]
        more = ["--chat-template-kwargs", '{"enable_thinking": false}', "--extra-body", '{"min_p": 0.1}']
        kept = tmp_path / "e.jsonl"
        assert (
            main(["eval", ID, *args, *more, "--resume", str(kept), "--json", str(tmp_path / "r.json")]) == 0
        )
        shown = capsys.readouterr().out
        assert main(["eval", ID, *args, *more, "--resume", str(kept)]) == 0
        assert len(server.bodies) == 6  # goals 1, 2 and 3; nothing was played again
    body = server.bodies[0]
    assert (body["top_k"], body["min_p"]) == (5, 0.1)
    assert body["chat_template_kwargs"] == {"enable_thinking": False}
    assert f"openai on {ID}" in shown
    assert re.search(r"prompt tokens +60 ", shown)
    assert re.search(r"return, by step +0\.667 ", shown)  # (1 * 1 + 2 * 0.75 + 3 * 0.5) / 6
    assert re.search(r"score +1\.000 ", shown)
    written = kept.read_text() + (tmp_path / "r.json").read_text() + shown
    assert "sk-secret" not in written


def test_a_refusing_server_fails_with_what_it_said(capsys):
    with StubServer(lambda _: failure(404, "no such model")) as server:
        args = ["--backend", "openai", "--base-url", server.url, "--model", "m", "--episodes", "1"]
        assert main(["eval", ID, *args]) == 1
    assert capsys.readouterr().err.rstrip().endswith("HTTP 404: no such model")


def test_broken_episodes_are_in_the_table(capsys):
    assert main(["eval", ID, "--policy", "expert", "--episodes", "2", "--env", "broken=test/0"]) == 0
    shown = capsys.readouterr().out
    assert "50.0%" in shown
    assert "no such level" in shown
