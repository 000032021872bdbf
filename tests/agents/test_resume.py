import dataclasses
import json
from typing import Any

import pytest

from arl_gym.agents.endpoint import EndpointPolicy
from arl_gym.agents.evaluate import evaluate
from arl_gym.agents.policies import ScriptedPolicy
from arl_gym.agents.records import read_trajectories
from arl_gym.errors import ConfigError, PolicyError
from tests.agents.counting import ID, say
from tests.agents.stub_server import StubServer, completion, failure

UP = ScriptedPolicy(lambda _: say("up"))


def test_an_evaluation_over_a_server_goes_on_where_it_was_killed(tmp_path):
    file, said = tmp_path / "new" / "e.jsonl", []

    def answer(body):
        said.append(body)
        # The goals are 1, 2, 3, 1: the fifth answer belongs to the third episode.
        return failure(401, "out of credit") if len(said) == 5 else completion(say("up"))

    def run(url):
        with EndpointPolicy(base_url=url, model="m", api_key="", concurrency=1) as policy:
            return evaluate(policy, ID, episodes=4, num_envs=1, resume=file)

    with StubServer(answer) as server:
        with pytest.raises(PolicyError, match="out of credit"):
            run(server.url)
        assert [t.task_id for t in read_trajectories(file)] == ["test/0", "test/1"]
        result = run(server.url)
        # 3 answers before the failure were for episodes that ended, then 3 and 1 are needed.
        assert (len(said), result.usage["requests"]) == (5 + 4, 4)
        again = run(server.url)
    assert (result.successes, result.length_mean) == ((True,) * 4, (1 + 2 + 3 + 1) / 4)
    assert len(said) == 9
    assert dataclasses.replace(again, usage=result.usage) == result
    assert len(read_trajectories(file)) == 4


def test_a_resumed_evaluation_is_the_uninterrupted_one(tmp_path):
    file = tmp_path / "e.jsonl"
    dials: dict[str, Any] = {"episodes": 6, "samples": 2, "seed": 3}
    whole = evaluate("random", ID, **dials, resume=file)
    lines = file.read_text().splitlines(keepends=True)
    file.write_text("".join(lines[:5]) + lines[5][:40])  # killed in the middle of a line
    assert evaluate("random", ID, **dials, resume=file) == whole
    assert len(file.read_text().splitlines()) == 12
    assert evaluate("random", ID, **dials) == whole


def test_more_tasks_and_samples_take_over_what_there_is(tmp_path):
    file = tmp_path / "e.jsonl"
    evaluate("random", ID, episodes=2, resume=file)
    first = file.read_text()
    grown = evaluate("random", ID, episodes=3, samples=2, resume=file)
    assert file.read_text().startswith(first)
    assert len(file.read_text().splitlines()) == 6
    assert grown == evaluate("random", ID, episodes=3, samples=2)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"seed": 1}, "seed=0, now it is 1"),
        ({"max_steps": 2}, "max_steps=None, now it is 2"),
        ({"policy": "expert"}, "expert=None, now it is True"),
    ],
)
def test_other_settings_are_refused(tmp_path, changes, says):
    file = tmp_path / "e.jsonl"
    evaluate("random", ID, episodes=1, resume=file)
    with pytest.raises(ConfigError, match=says):
        evaluate(**({"policy": "random", "env": ID, "episodes": 1, "resume": file} | changes))


def test_episodes_of_other_environments_in_the_file_are_left_alone(tmp_path):
    file = tmp_path / "e.jsonl"
    evaluate("random", "ARL/Sokoban-v0", episodes=1, resume=file)
    evaluate("random", ID, episodes=1, resume=file)
    assert [t.env_id for t in read_trajectories(file)] == ["ARL/Sokoban-v0", ID]


def test_an_episode_that_the_environment_broke_is_played_again(tmp_path):
    file = tmp_path / "e.jsonl"
    evaluate(ScriptedPolicy(lambda _: say("crash")), ID, episodes=1, resume=file)
    assert not file.exists()
    assert evaluate(UP, ID, episodes=1, resume=file).successes == (True,)


def test_only_a_plain_jsonl_file_can_grow(tmp_path):
    with pytest.raises(ConfigError, match=r"to a \.jsonl file"):
        evaluate(UP, ID, episodes=1, resume=tmp_path / "e.jsonl.gz")


def test_the_settings_are_beside_every_episode(tmp_path):
    file = tmp_path / "e.jsonl"
    evaluate(UP, ID, episodes=1, resume=file, format="action_only")
    settings = json.loads(file.read_text())["settings"]
    assert settings == {"policy": "ScriptedPolicy", "seed": 0, "split": "test", "format": "action_only"}
