"""The adapter of verifiers against a peer that has verifiers' names and no network."""

import asyncio
import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from types import ModuleType
from typing import Any

import pytest

import arl_gym.adapters
from arl_gym.agents.types import Trajectory
from arl_gym.core import to_openai
from arl_gym.errors import ConfigError, DependencyMissing, UnknownNameError
from tests.adapters.peer_verifiers import Agents, Harness, HarnessConfig, peer_modules, typed
from tests.adapters.scripted import native_episodes, rewards_of
from tests.conftest import ROOT

SOKOBAN, ALFWORLD = "ARL/Sokoban-v0", "ARL/ALFWorld-v0"
NAME = "arl_gym.adapters.verifiers"
Model = Callable[[list[dict[str, Any]]], str | None]


@pytest.fixture
def adapter(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    for name, module in peer_modules().items():
        monkeypatch.setitem(sys.modules, name, module)
    yield import_module(NAME)
    del sys.modules[NAME]
    delattr(arl_gym.adapters, "verifiers")


def play(env_id: str, n: int, **kwargs: Any) -> list[Trajectory]:
    """Play the first n training tasks in the native loop."""
    return native_episodes(env_id, [f"train-{i:06d}" for i in range(n)], **kwargs)


def replay(trajectories: Sequence[Trajectory]) -> Model:
    """Answer a conversation as it was answered in one of these episodes."""
    said = {}
    for trajectory in trajectories:
        conversation: list[dict[str, Any]] = []
        for turn in trajectory.turns:
            conversation = [*(conversation if turn.append else []), *to_openai(turn.messages)]
            said[json.dumps(conversation)] = turn.response
            conversation.append({"role": "assistant", "content": turn.response})
    return lambda messages: said[json.dumps(messages)]


def load(adapter: Any, **settings: Any) -> list[Any]:
    """Return the tasks of a taskset, prompts typed as verifiers does it."""
    taskset = adapter.ChatTaskset(adapter.ChatTasksetConfig(id="arl-gym-verifiers", **settings))
    tasks = list(taskset.load())
    for task in tasks:
        task.data.prompt = typed(task.data.prompt)
    return tasks


def run(adapter: Any, task: Any, model: Model, harness: Any = None) -> Any:
    env = adapter.ChatEnv(adapter.ChatEnvConfig())
    agents = Agents(harness or adapter.ChatHarness(HarnessConfig()), model)
    asyncio.run(env.run(task, agents))
    return agents.trace


@pytest.mark.parametrize("env_id", [SOKOBAN, "ARL/ALFWorld-v0"])
def test_an_episode_is_the_same_as_in_the_native_loop(adapter, env_id):
    trajectories = play(env_id, 4)
    model = replay(trajectories)
    for task, trajectory in zip(load(adapter, env_id=env_id, n=4), trajectories, strict=True):
        trace = run(adapter, task, model)
        record = trace.info["arl_gym"]
        assert record["rewards"] == rewards_of(trajectory)
        assert record["anchors"] == [turn.anchor for turn in trajectory.turns]
        assert record["format_valid"] == [turn.format_valid for turn in trajectory.turns]
        assert record["action_valid"] == [turn.action_valid for turn in trajectory.turns]
        assert record["stop"] == trajectory.stop
        assert trace.rewards == {"return": sum(rewards_of(trajectory))}
        assert trace.metrics["success"] == trajectory.success
        assert trace.metrics["score"] == trajectory.score


def test_a_taskset_has_the_first_tasks_of_its_split_with_what_an_episode_needs(adapter):
    tasks = load(adapter, env_id=ALFWORLD, split="val", n=2, env_kwargs={"max_steps": 3})
    assert [task.data.id for task in tasks] == ["val-000000", "val-000001"]
    assert [task.key for task in tasks] == [f"{ALFWORLD}/val-000000", f"{ALFWORLD}/val-000001"]
    assert tasks[0].data.env_kwargs == {"max_steps": 3, "split": "val"}
    assert "Your task" in tasks[0].data.prompt[0].content
    one, two = (run(adapter, tasks[0], lambda messages: "up") for _ in range(2))
    assert one.requests == two.requests
    assert one.info["arl_gym"]["task_id"] == "val-000000"
    assert len(one.requests) == 3


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"env_id": ""}, "unknown environment '': known: ARL/ALFWorld-v0"),
        ({"env_id": "ARL/Sokobann-v0"}, "ARL/Sokoban-v0"),
        ({"split": "trainn"}, "train"),
        ({"n": 0}, "n must be"),
    ],
)
def test_a_taskset_of_wrong_settings_says_so(adapter, settings, message):
    with pytest.raises(ConfigError, match=message):
        load(adapter, **{"env_id": SOKOBAN, "n": 1, **settings})


def test_with_a_window_every_turn_is_a_conversation_of_its_own(adapter):
    trajectories = play(SOKOBAN, 1, window=1)
    (task,) = load(adapter, env_id=SOKOBAN, n=1, env_kwargs={"window": 1})
    trace = run(adapter, task, replay(trajectories))
    assert trace.requests == [to_openai(turn.messages) for turn in trajectories[0].turns]
    assert trace.info["arl_gym"]["rewards"] == rewards_of(trajectories[0])


def test_a_window_needs_the_harness_that_knows_it(adapter):
    class Plain(Harness[HarnessConfig]):
        launch = adapter.ChatHarness.launch

    (task,) = load(adapter, env_id=SOKOBAN, n=1, env_kwargs={"window": 1})
    with pytest.raises(ConfigError, match=r"leave player\.harness out"):
        run(adapter, task, lambda messages: "up", Plain(HarnessConfig()))


def test_the_system_prompt_stays_in_front(adapter):
    (task,) = load(adapter, env_id=ALFWORLD, n=1, env_kwargs={"max_steps": 2})
    task.data.system_prompt = "Win."
    trace = run(adapter, task, lambda messages: "up")
    assert [[m["role"] for m in messages] for messages in trace.requests] == [
        ["system", "user"],
        ["system", "user", "assistant", "user"],
    ]


def test_an_image_travels_as_a_part(adapter):
    trajectories = play(SOKOBAN, 1, obs_mode="image")
    (task,) = load(adapter, env_id=SOKOBAN, n=1, env_kwargs={"obs_mode": "image"})
    trace = run(adapter, task, replay(trajectories))
    assert trace.metrics["success"]
    assert "image_url" in [part["type"] for part in trace.requests[-1][-1]["content"]]


def test_garbage_costs_its_penalty(adapter):
    (task,) = load(adapter, env_id=ALFWORLD, n=1, env_kwargs={"max_steps": 2})
    trace = run(adapter, task, lambda messages: "\x00 <action>")
    assert trace.rewards["return"] == pytest.approx(-0.2)


def test_a_model_that_cannot_be_reached_leaves_a_record_and_no_reward(adapter):
    (task,) = load(adapter, env_id=SOKOBAN, n=1)
    trace = run(adapter, task, lambda messages: None if len(messages) > 1 else "up")
    assert trace.rewards == {}
    assert trace.metrics == {}
    assert len(trace.info["arl_gym"]["rewards"]) == 1


def test_an_unknown_task_is_an_error(adapter):
    (task,) = load(adapter, env_id=SOKOBAN, n=1)
    task.data.id = "train-1"
    with pytest.raises(UnknownNameError, match="unknown task_id 'train-1'"):
        run(adapter, task, lambda messages: "up")


def test_the_package_that_verifiers_looks_for_has_one_class_of_each_kind(adapter):
    package = import_module("arl_gym_verifiers")
    try:
        found = [getattr(package, name) for name in package.__all__]
        assert found == [adapter.ChatEnv, adapter.ChatHarness, adapter.ChatTaskset]
    finally:
        del sys.modules["arl_gym_verifiers"]


def test_without_verifiers_one_line_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "verifiers", ModuleType("verifiers"))
    with pytest.raises(DependencyMissing, match=r"verifiers needs: pip install 'arl-gym\[verifiers\]'"):
        import_module(NAME)


def test_the_adapter_imports_no_torch():
    code = (
        "import sys; from tests.adapters.peer_verifiers import peer_modules;"
        f"sys.modules.update(peer_modules()); import {NAME}; sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, timeout=60).returncode == 0
