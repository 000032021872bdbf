"""Verifiers' own machinery, with a stub on loopback for the model."""

import asyncio
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import verifiers.v1 as vf
from verifiers.v1.cli.eval import main as vf_eval
from verifiers.v1.cli.eval.runner import run_eval
from verifiers.v1.configs.cli.eval import EvalConfig
from verifiers.v1.utils.loaders import load_environment

from arl_gym.adapters.verifiers import ChatEnv
from arl_gym.agents.types import Trajectory
from arl_gym.core import to_openai
from arl_gym.make import make_chat_env
from tests.adapters.examples import run_example
from tests.adapters.likeness import assert_like_the_library
from tests.adapters.page import run_section
from tests.adapters.peer_verifiers import peer_modules
from tests.adapters.scripted import FIRST_TASKS, native_episodes, rewards_of
from tests.agents.stub_server import Answer, StubServer, failure

SOKOBAN, ALFWORLD = "ARL/Sokoban-v0", "ARL/ALFWorld-v0"
NOWHERE = "http://127.0.0.1:9"
Messages = list[dict[str, Any]]


@pytest.fixture(autouse=True)
def _home(tmp_path, monkeypatch):
    monkeypatch.setattr("verifiers.v1.runtimes.subprocess.CACHE_DIR", tmp_path / "cache")


def play(env_id: str, n: int, **kwargs: Any) -> list[Trajectory]:
    """Play the first n training tasks in the native loop."""
    return native_episodes(env_id, [f"train-{i:06d}" for i in range(n)], **kwargs)


def completion(content: str, **message: Any) -> Answer:
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": content, **message},
        "finish_reason": "stop",
    }
    usage = {"prompt_tokens": 10, "completion_tokens": 3, "total_tokens": 13}
    body = {"id": "1", "object": "chat.completion", "created": 0, "model": "stub", "usage": usage}
    return 200, {**body, "choices": [choice]}, {}


def responses(trajectories: Sequence[Trajectory]) -> Callable[[dict[str, Any]], Answer]:
    """Answer a conversation as it was answered in one of these episodes."""
    said = {}
    for trajectory in trajectories:
        conversation: Messages = []
        for turn in trajectory.turns:
            conversation = [*(conversation if turn.append else []), *to_openai(turn.messages)]
            said[json.dumps(conversation)] = turn.response
            conversation.append({"role": "assistant", "content": turn.response})
    return lambda body: completion(said[json.dumps(body["messages"])])


def run_config(url: str, folder: Path, env: dict[str, Any], **more: Any) -> EvalConfig:
    config: EvalConfig = EvalConfig.model_validate(
        {
            "env": {**env, "taskset": {"id": "arl-gym-verifiers", **env["taskset"]}},
            "model": "stub",
            "client": {"base_url": url},
            "push": False,
            "rich": None,
            "output_dir": folder,
            **more,
        }
    )
    return config


def evaluate(
    answer: Callable[[dict[str, Any]], Answer], folder: Path, env: dict[str, Any], **more: Any
) -> tuple[list[Any], StubServer]:
    with StubServer(answer) as stub:
        return asyncio.run(run_eval(run_config(stub.url, folder, env, **more))), stub


def read_traces(folder: Path) -> Iterator[dict[str, Any]]:
    for path in folder.rglob("traces.jsonl"):
        for line in path.read_text().splitlines():
            yield from json.loads(line)["traces"]


@pytest.mark.parametrize(("env_id", "n"), FIRST_TASKS.items())
def test_episodes_of_an_evaluation_are_those_of_the_native_loop(env_id, n, tmp_path):
    trajectories = play(env_id, n)
    assert {trajectory.success for trajectory in trajectories} == {True, False}
    env = {"taskset": {"env_id": env_id, "n": n}}
    episodes, _ = evaluate(responses(trajectories), tmp_path, env)
    assert len(list(read_traces(tmp_path))) == n
    for episode, trajectory in zip(episodes, trajectories, strict=True):
        assert episode.ok, episode.errors
        (trace,) = episode.traces
        assert (trace.task.data.id, trace.task.key) == (trajectory.task_id, f"{env_id}/{trajectory.task_id}")
        record = trace.info["arl_gym"]
        assert record["rewards"] == rewards_of(trajectory)
        assert record["anchors"] == [turn.anchor for turn in trajectory.turns]
        assert record["format_valid"] == [turn.format_valid for turn in trajectory.turns]
        assert record["action_valid"] == [turn.action_valid for turn in trajectory.turns]
        assert record["stop"] == trajectory.stop
        assert trace.reward == sum(rewards_of(trajectory))
        assert trace.metrics["success"] == trajectory.success
        assert trace.metrics["score"] == trajectory.score
        assert trace.num_branches == 1
        assert [m.content or "" for m in trace.assistant_messages] == [t.response for t in trajectory.turns]


def test_what_the_trace_keeps_is_in_its_file(tmp_path):
    trajectories = play(SOKOBAN, 2)
    episodes, _ = evaluate(responses(trajectories), tmp_path, {"taskset": {"env_id": SOKOBAN, "n": 2}})
    written = {trace["task"]["data"]["id"]: trace for trace in read_traces(tmp_path)}
    for episode in episodes:
        (trace,) = episode.traces
        assert written[trace.task.data.id]["info"]["arl_gym"] == trace.info["arl_gym"]
        assert written[trace.task.data.id]["rewards"]["return"]["score"] == trace.reward


def test_a_group_shares_its_task_and_first_prompt(tmp_path):
    moves = iter(["look", "inventory", "go to shelf 1", "help"] * 100)

    def answer(body: dict[str, Any]) -> Answer:
        return completion(f"<think></think><action>{next(moves)}</action>")

    env = {"taskset": {"env_id": ALFWORLD, "n": 2, "split": "val", "env_kwargs": {"max_steps": 3}}}
    episodes, _ = evaluate(answer, tmp_path, env, num_rollouts=4)
    groups: dict[str, list[Any]] = {}
    for episode in episodes:
        groups.setdefault(episode.task.key, []).append(episode.traces[0])
    assert {key: len(traces) for key, traces in groups.items()} == {
        f"{ALFWORLD}/val-000000": 4,
        f"{ALFWORLD}/val-000001": 4,
    }
    for traces in groups.values():
        assert len({trace.info["arl_gym"]["anchors"][0] for trace in traces}) == 1
        assert len({trace.messages[0].content for trace in traces}) == 1


def test_with_a_memory_window_every_turn_is_a_branch_with_its_own_prompt(tmp_path):
    trajectories = play(SOKOBAN, 4, window=1)
    env = {"taskset": {"env_id": SOKOBAN, "n": 4, "env_kwargs": {"window": 1}}}
    episodes, stub = evaluate(responses(trajectories), tmp_path, env)
    assert all(len(body["messages"]) == 1 for body in stub.bodies)
    for episode, trajectory in zip(episodes, trajectories, strict=True):
        (trace,) = episode.traces
        assert trace.info["arl_gym"]["rewards"] == rewards_of(trajectory)
        assert trace.num_branches == len(trajectory.turns)
        for branch, turn in zip(trace.branches, trajectory.turns, strict=True):
            prompt, answer = branch.messages
            assert (prompt.content, answer.content or "") == (turn.messages[0]["content"], turn.response)


def test_a_memory_window_needs_our_harness(tmp_path):
    env = {
        "taskset": {"env_id": SOKOBAN, "n": 1, "env_kwargs": {"window": 1}},
        "player": {"harness": {"id": "plain_harness"}},
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(tmp_path)
        (tmp_path / "plain_harness.py").write_text(
            "import verifiers.v1 as vf\n"
            "from arl_gym.adapters.verifiers import ChatHarness\n"
            "class Plain(vf.Harness[vf.HarnessConfig]):\n"
            "    NEEDS_CONTAINER, SUPPORTS_RESUME = False, True\n"
            "    launch = ChatHarness.launch\n"
            "__all__ = ['Plain']\n"
        )
        (episode,), _ = evaluate(lambda body: completion("up"), tmp_path, env)
    assert not episode.ok
    assert "leave player.harness out" in episode.errors[0].message


def test_images_reach_the_model(tmp_path):
    trajectories = play(SOKOBAN, 1, obs_mode="image")
    env = {"taskset": {"env_id": SOKOBAN, "n": 1, "env_kwargs": {"obs_mode": "image"}}}
    (episode,), stub = evaluate(responses(trajectories), tmp_path, env)
    assert episode.traces[0].metrics["success"] == 1
    parts = [part for message in stub.bodies[-1]["messages"] for part in message["content"]]
    images = [part for part in parts if isinstance(part, dict) and part["type"] == "image_url"]
    assert len(images) == len(trajectories[0].turns)


def test_a_thought_that_the_server_keeps_apart_counts_as_said(tmp_path):
    env = {"taskset": {"env_id": ALFWORLD, "n": 1, "env_kwargs": {"max_steps": 2}}}

    def answer(body):
        return completion("<action>up</action>", reasoning_content="hm")

    (episode,), _ = evaluate(answer, tmp_path, env)
    assert episode.traces[0].info["arl_gym"]["format_valid"] == [True, True]


def test_a_limit_of_verifiers_ends_the_episode_unfinished(tmp_path):
    env = {"taskset": {"env_id": SOKOBAN, "n": 1}, "player": {"max_turns": 2}}
    said = iter(["", "garbage \x00 好"])
    (episode,), _ = evaluate(lambda body: completion(next(said)), tmp_path, env)
    (trace,) = episode.traces
    assert episode.ok
    assert trace.stop_condition == "max_turns"
    assert trace.info["arl_gym"]["stop"] == "unfinished"
    assert trace.reward == pytest.approx(-0.4)


def test_a_server_that_refuses_fails_the_episode_without_a_reward(tmp_path):
    env = {"taskset": {"env_id": SOKOBAN, "n": 1}}
    (episode,), _ = evaluate(lambda body: failure(400, "no such model"), tmp_path, env)
    (trace,) = episode.traces
    assert not episode.ok
    assert "no such model" in trace.last_error.message
    assert trace.rewards == {}
    assert trace.info["arl_gym"]["rewards"] == []


def test_an_environment_that_fails_is_the_episodes_error(tmp_path):
    async def run() -> Any:
        env = load_environment(run_config(NOWHERE, tmp_path, {"taskset": {"env_id": SOKOBAN, "n": 1}}).env)
        (task,) = env.taskset
        context = vf.ModelContext(model="stub", client=vf.EvalClientConfig(base_url=NOWHERE))
        async with env.serving():
            return await env.run_episode(task.with_data(id="train-1"), context)

    episode = asyncio.run(run())
    assert not episode.ok
    assert "unknown task_id 'train-1'" in episode.errors[0].message


def test_the_taskset_is_a_finite_list_of_the_splits_first_tasks(tmp_path):
    config = run_config(NOWHERE, tmp_path, {"taskset": {"env_id": SOKOBAN, "n": 3, "split": "val"}})
    env = load_environment(config.env)
    assert isinstance(env, ChatEnv)
    tasks = list(env.taskset)
    assert env.taskset.bounded
    assert [task.data.id for task in tasks] == ["val-000000", "val-000001", "val-000002"]
    assert [task.key for task in env.taskset.take(2)] == [task.key for task in tasks[:2]]
    with closing(make_chat_env(SOKOBAN, window=None, split="val")) as native:
        messages, _ = native.reset(seed=0, options={"task_id": "val-000001"})
    assert tasks[1].data.prompt[0].content == messages[0]["content"]


def test_an_unknown_setting_is_refused(tmp_path):
    with pytest.raises(ValueError, match="spilt"):
        run_config(NOWHERE, tmp_path, {"taskset": {"env_id": SOKOBAN, "spilt": "test"}})


def test_the_command_of_verifiers_finds_the_taskset(tmp_path, monkeypatch):
    trajectories = play(ALFWORLD, 2, max_steps=9)
    command = ["arl-gym-verifiers", "--env.taskset.env-id", ALFWORLD]
    command += ["--env.taskset.env-kwargs", '{"max_steps": 9}', "-n", "2"]
    command += ["-m", "stub", "--no-push", "--no-rich", "-o", str(tmp_path)]
    # The command replaces both for good; it owns its process.
    monkeypatch.setattr(sys, "argv", ["vf-eval"])
    monkeypatch.setattr(vf_eval, "install_interrupt", lambda: None)
    with StubServer(responses(trajectories)) as stub:
        vf_eval.main([*command, "--client.base-url", stub.url])
    traces = {trace["task"]["data"]["id"]: trace for trace in read_traces(tmp_path)}
    for trajectory in trajectories:
        assert traces[trajectory.task_id]["info"]["arl_gym"]["rewards"] == rewards_of(trajectory)


def test_the_code_on_the_page_evaluates(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with StubServer(lambda body: completion("<action>up</action>")) as stub:
        episodes = run_section("verifiers", MODEL="stub", URL=stub.url, asyncio=asyncio)["episodes"]
    assert [episode.ok for episode in episodes] == [True] * 64
    ids = {trace.task.data.id for episode in episodes for trace in episode.traces}
    assert ids == {f"val-{i:06d}" for i in range(64)}


def test_the_example_runs(tmp_path):
    assert run_example("verifiers_eval.py", tmp_path, HOME=str(tmp_path)).count("success 1.0") == 4


def test_the_peer_of_the_other_tests_is_like_the_library():
    assert_like_the_library(peer_modules())
