"""`TextEpisode`: the one core of the adapters."""

import asyncio
import json
import threading
from typing import Any

import gymnasium as gym
import pytest

from arl_gym.adapters.episode import AsyncTextEpisode, TextEpisode, text_of
from arl_gym.agents.policies import ScriptedPolicy
from arl_gym.agents.rollout import rollout
from arl_gym.agents.types import Episode
from arl_gym.errors import ActionError, AlreadyPendingError, ConfigError, EpisodeOverError, UnknownNameError
from arl_gym.make import make_chat_vec
from tests.adapters import dice  # noqa: F401 - registers its id
from tests.counting_env import CountingEnv

COUNTING = "Test/Counter-v0"
UP = "<think>Higher.</think><action>up</action>"


@pytest.fixture(autouse=True)
def _registered():
    gym.register(COUNTING, "tests.counting_env:CountingEnv")
    yield
    del gym.registry[COUNTING]


def test_an_episode_begins_when_it_is_made():
    with TextEpisode(COUNTING, task_id="train/1") as episode:
        assert episode.info["task_id"] == "train/1"
        assert "0 of 2" in text_of(episode.messages)
        assert not episode.done


def test_the_record_holds_what_every_turn_brought():
    with TextEpisode(COUNTING, task_id="train/1") as episode:
        first = episode.act("up, without any format")
        assert first.reward == pytest.approx(-0.2)  # a step, and the format penalty
        assert (first.terminated, first.truncated) == (False, False)
        assert "0 of 2" in text_of(first.messages)
        episode.act(UP)
        last = episode.act(UP)
        assert (last.reward, last.terminated, episode.done) == (10.0, True, True)
        record = episode.record()
    content = record.pop("content_hash")
    assert len(content) == 16
    assert record.pop("env_return") == pytest.approx(9.8)  # -0.1 - 0.1 + 10
    assert record == {
        "env_id": COUNTING,
        "task_id": "train/1",
        "dataset": "generated",
        "split": "train",
        "success": True,
        "score": 1.0,
        "stop": "terminated",
        "rewards": [pytest.approx(-0.2), -0.1, 10.0],
        "anchors": ["0 of 2", "0 of 2", "1 of 2"],
        "env_rewards": [-0.1, -0.1, 10.0],
        "format_penalties": [0.1, 0.0, 0.0],
        "actions": ["", "up", "up"],
        "format_valid": [False, True, True],
        "action_valid": [False, True, True],
    }
    assert json.loads(json.dumps(record, default=float)) == record


def test_a_dialogue_grows_and_a_window_gives_whole_prompts():
    with TextEpisode(COUNTING, task_id="train/2") as dialogue:
        assert "Count to 3." in text_of(dialogue.messages)
        assert "Count to 3." not in text_of(dialogue.act(UP).messages)
    with TextEpisode(COUNTING, {"window": 1}, task_id="train/2") as windowed:
        assert "Count to 3." in text_of(windowed.act(UP).messages)


def test_the_step_limit_and_a_full_context_are_told_apart():
    with TextEpisode(COUNTING, {"max_steps": 1}, task_id="train/2") as short:
        assert short.act(UP).truncated
        assert short.record()["stop"] == "truncated"
    with TextEpisode(COUNTING, {"max_chars": 200}, task_id="train/2") as narrow:
        assert narrow.act("x" * 200).truncated
        assert narrow.record()["stop"] == "context_full"


def test_a_turn_after_the_end_raises():
    with TextEpisode(COUNTING, task_id="train/0") as episode:
        episode.act(UP)
        with pytest.raises(EpisodeOverError):
            episode.act(UP)
        assert episode.record()["rewards"] == [10.0]


@pytest.mark.parametrize("response", [None, 3, ["up"]])
def test_a_response_that_is_no_text_is_refused_and_costs_nothing(response):
    with TextEpisode(COUNTING, task_id="train/0") as episode:
        with pytest.raises(ActionError):
            episode.act(response)
        assert episode.act(UP).terminated


def test_a_seed_picks_the_task():
    def task(seed: int) -> str:
        with TextEpisode("ARL/Sokoban-v0", seed=seed) as episode:
            return str(episode.info["task_id"])

    assert [task(s) for s in range(4)] == [task(s) for s in range(4)]
    assert len({task(s) for s in range(4)}) == 4


def test_neither_task_nor_seed_is_refused():
    with pytest.raises(ConfigError, match="needs a task_id or a seed"):
        TextEpisode(COUNTING)


def test_an_unknown_task_is_named_and_the_environment_closed(monkeypatch):
    closed = []
    monkeypatch.setattr(CountingEnv, "close", lambda self: closed.append(True))
    monkeypatch.setattr(CountingEnv, "task_ids", lambda self, split=None: ["train/0"])
    with pytest.raises(UnknownNameError, match="train/9"):
        TextEpisode(COUNTING, task_id="train/9")
    assert closed == [True]


def test_an_environment_of_others_draws_the_same_task_for_all_members_of_a_group():
    seen = []
    for _ in range(2):
        with TextEpisode("Test/Dice-v0", task_id="train-3", tools=True) as episode:
            seen.append(text_of(episode.messages))
            episode.call("act", {"action": "go"})
            assert episode.record()["action_valid"] == [True]
    assert seen[0] == seen[1]


def test_an_episode_is_the_one_of_this_packages_own_rollout():
    env_id, split = "ARL/Sokoban-v0", "val"
    script = ["<think></think><action>up</action>", "nonsense", "<think></think><action>left</action>"] * 5
    tasks = [f"{split}-{k:06d}" for k in range(8)]
    vec = make_chat_vec(env_id, 4, split=split, window=None)
    try:
        episodes = [Episode(task_id=task, group=k) for k, task in enumerate(tasks)]
        native = rollout(vec, ScriptedPolicy(script), episodes, env_id=env_id, seed=0)
    finally:
        vec.close()
    for task, trajectory in zip(tasks, native, strict=True):
        with TextEpisode(env_id, {"split": split}, task_id=task) as episode:
            assert episode.messages == trajectory.turns[0].messages
            for response in script:
                if not episode.done:
                    episode.act(response)
            record = episode.record()
        assert record["env_rewards"] == [turn.env_reward for turn in trajectory.turns]
        assert record["format_penalties"] == [turn.format_penalty for turn in trajectory.turns]
        assert record["anchors"] == [turn.anchor for turn in trajectory.turns]
        assert (record["stop"], record["success"]) == (trajectory.stop, trajectory.success)


# ---- tools


def test_a_tool_call_is_a_turn():
    with TextEpisode("ARL/Sokoban-v0", task_id="train-000000", tools=True) as episode:
        step = episode.call("move", {"direction": "up"})
        assert text_of(step.messages).startswith("Board after step 1")
        assert episode.record()["actions"] == ["up"]


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("fly", {}, "unknown tool 'fly': known: move."),
        ("move", {"direction": "north"}, "direction of tool move must be one of"),
        ("move", {}, "tool move needs the argument 'direction'"),
    ],
)
def test_a_call_that_makes_no_sense_costs_a_step_and_is_explained(name, arguments, message):
    with TextEpisode("ARL/Sokoban-v0", task_id="train-000000", tools=True) as episode:
        step = episode.call(name, arguments)
        assert message in text_of(step.messages[:1])
        assert text_of(step.messages[1:]).startswith("Board after step 1")
        assert step.reward == -0.1
        assert episode.record()["action_valid"] == [False]


def test_an_episode_without_tools_takes_no_calls():
    with TextEpisode(COUNTING, task_id="train/0") as episode, pytest.raises(ConfigError, match="tools=True"):
        episode.call("act", {"action": "up"})


def test_messages_with_an_image_are_no_text():
    with (
        TextEpisode("ARL/Sokoban-v0", {"obs_mode": "image"}, seed=0) as episode,
        pytest.raises(ConfigError, match="got one with an image"),
    ):
        text_of(episode.messages)


# ---- asyncio


class Slow(CountingEnv):
    """Waits in "wait" until somebody sets `gate`."""

    gate: threading.Event
    entered: threading.Event

    def _apply(self, action):
        if action == "wait":
            self.entered.set()
            assert self.gate.wait(20)
        return super()._apply(action)


@pytest.fixture
def slow(monkeypatch):
    gym.register("Test/Slow-v0", lambda **kwargs: Slow(**kwargs))
    monkeypatch.setattr(Slow, "gate", threading.Event(), raising=False)
    monkeypatch.setattr(Slow, "entered", threading.Event(), raising=False)
    yield "Test/Slow-v0"
    del gym.registry["Test/Slow-v0"]


WAIT = "<think></think><action>wait</action>"


def test_no_episode_waits_for_another(slow):
    async def play() -> float:
        async with AsyncTextEpisode(slow, task_id="train/2") as late, AsyncTextEpisode(slow, seed=0) as quick:
            waiting = asyncio.create_task(late.act(WAIT))
            await asyncio.to_thread(Slow.entered.wait, 20)
            reward = (await quick.act("x")).reward  # while the other one is in the middle of its step
            assert not waiting.done()
            Slow.gate.set()
            await waiting
            return reward

    assert asyncio.run(play()) == pytest.approx(-0.2)


def test_two_turns_of_one_episode_at_once_are_refused_and_lose_nothing(slow):
    async def play() -> dict[str, Any]:
        async with AsyncTextEpisode(slow, task_id="train/2") as episode:
            waiting = asyncio.create_task(episode.act(WAIT))
            await asyncio.to_thread(Slow.entered.wait, 20)
            with pytest.raises(AlreadyPendingError, match="in the middle of a turn"):
                await episode.act(UP)
            Slow.gate.set()
            await waiting
            await episode.act(UP)
            return episode.record()

    assert asyncio.run(play())["actions"] == ["wait", "up"]


def test_closing_waits_for_a_turn_that_a_cancelled_task_left_running(slow, monkeypatch):
    order = []
    monkeypatch.setattr(Slow, "close", lambda self: order.append("close"))

    async def play() -> None:
        async with AsyncTextEpisode(slow, task_id="train/2") as episode:
            waiting = asyncio.create_task(episode.act(WAIT))
            await asyncio.to_thread(Slow.entered.wait, 20)
            waiting.cancel()
            closing = asyncio.create_task(episode.close())
            await asyncio.sleep(0)
            order.append("step ends")
            Slow.gate.set()
            await closing

    asyncio.run(play())
    assert order[0] == "step ends"


def test_an_async_episode_that_has_not_begun_says_so():
    episode = AsyncTextEpisode(COUNTING, task_id="train/0")
    with pytest.raises(Exception, match="has not begun"):
        _ = episode.messages
    asyncio.run(episode.close())


def test_a_hundred_episodes_at_once_are_each_their_own():
    async def play(k: int) -> tuple[str, float]:
        async with AsyncTextEpisode(COUNTING, task_id=f"train/{k % 3}") as episode:
            while not episode.done:
                await episode.act(UP)
            record = episode.record()
            return record["task_id"], record["env_return"]

    async def all_of_them() -> list[tuple[str, float]]:
        return await asyncio.gather(*(play(k) for k in range(100)))

    tasks, returns = zip(*asyncio.run(all_of_them()), strict=True)
    assert tasks == tuple(f"train/{k % 3}" for k in range(100))
    assert returns == pytest.approx([(10.0, 9.9, 9.8)[k % 3] for k in range(100)])
