"""OpenEnv's own server and clients, over loopback."""

import asyncio
import base64
import io
import json
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

import numpy as np
import pytest
import uvicorn
from openenv.core import GenericEnvClient
from PIL import Image

from arl_gym.adapters import openenv
from arl_gym.adapters.episode import TextEpisode
from arl_gym.adapters.openenv import ChatAction, ChatClient, app
from arl_gym.agents.types import Trajectory
from arl_gym.core import pictures_of, to_openai
from arl_gym.make import make_chat_env
from tests.adapters.examples import run_example
from tests.adapters.likeness import assert_like_the_library
from tests.adapters.page import run_section
from tests.adapters.peer_openenv import peer_modules
from tests.adapters.scripted import FIRST_TASKS, native_episodes, rewards_of
from tests.conftest import ROOT

SOKOBAN = "ARL/Sokoban-v0"


@contextmanager
def serving(env_id: str, kwargs: dict[str, Any] | None = None, **limits: int) -> Iterator[str]:
    served = app(env_id, kwargs, **limits)
    server = uvicorn.Server(uvicorn.Config(served, port=0, log_level="warning"))
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        time.sleep(0.005)
    port = server.servers[0].sockets[0].getsockname()[1]
    yield f"http://127.0.0.1:{port}"
    server.should_exit = True
    thread.join()


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with serving(SOKOBAN) as url:
        yield url


@pytest.fixture
def client(url) -> Iterator[Any]:
    with ChatClient(base_url=url).sync() as client:
        yield client


def say(action: str) -> ChatAction:
    return ChatAction(response=f"<think></think><action>{action}</action>")


def play(env_id: str, n: int, **kwargs: Any) -> list[Trajectory]:
    """Play the first n training tasks in the native loop."""
    return native_episodes(env_id, [f"train-{i:06d}" for i in range(n)], **kwargs)


class Sessions:
    """Counts the episodes that sessions have open."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch):
        self.changed = threading.Condition()
        self.n_open = 0
        sessions = self

        class Counted(TextEpisode):
            def __init__(self, *args, **kwargs):
                super().__init__(*args, **kwargs)
                sessions.add(1)

            def close(self):
                super().close()
                sessions.add(-1)

        monkeypatch.setattr(openenv, "TextEpisode", Counted)

    def add(self, n: int) -> None:
        with self.changed:
            self.n_open += n
            self.changed.notify_all()

    def become(self, n: int) -> bool:
        with self.changed:
            return self.changed.wait_for(lambda: self.n_open == n, timeout=10)


async def replay(client: Any, trajectory: Trajectory) -> dict[str, Any]:
    """Say what was said in an episode, and check that the same is seen at every turn."""
    result = await client.reset(task_id=trajectory.task_id)
    assert (result.reward, result.done) == (None, False)
    for turn, reward in zip(trajectory.turns, rewards_of(trajectory), strict=True):
        assert not result.done
        assert result.observation.messages == to_openai(turn.messages)
        assert (result.observation.anchor, result.observation.append) == (turn.anchor, turn.append)
        result = await client.step(ChatAction(response=turn.response))
        observation = result.observation
        assert result.reward == observation.reward == reward
        assert (observation.format_valid, observation.action_valid) == (turn.format_valid, turn.action_valid)
        assert observation.task_id == trajectory.task_id
    assert result.done
    assert observation.terminated == (trajectory.stop == "terminated")
    assert observation.truncated == (trajectory.stop == "truncated")
    assert observation.success == trajectory.success
    assert observation.record is not None
    return dict(observation.record)


@pytest.mark.parametrize(("env_id", "n"), FIRST_TASKS.items())
def test_episodes_through_server_and_client_are_those_of_the_native_loop(env_id, n):
    trajectories = play(env_id, n)

    async def one(url: str, trajectory: Trajectory) -> dict[str, Any]:
        async with ChatClient(base_url=url) as client:
            return await replay(client, trajectory)

    async def every(url: str) -> list[dict[str, Any]]:
        return await asyncio.gather(*(one(url, trajectory) for trajectory in trajectories))

    with serving(env_id) as url:
        records = asyncio.run(every(url))
    assert {trajectory.success for trajectory in trajectories} == {True, False}
    for record, trajectory in zip(records, trajectories, strict=True):
        assert record["rewards"] == rewards_of(trajectory)
        assert record["anchors"] == [turn.anchor for turn in trajectory.turns]
        assert record["actions"] == [turn.action for turn in trajectory.turns]
        assert (record["stop"], record["score"]) == (trajectory.stop, trajectory.score)


def test_one_session_plays_one_episode_after_another(url):
    trajectories = play(SOKOBAN, 3)

    async def every() -> None:
        async with ChatClient(base_url=url) as client:
            for trajectory in trajectories:
                await replay(client, trajectory)

    asyncio.run(every())


def test_eight_sessions_on_one_task_begin_alike_and_go_their_own_ways(url):
    async def one(k: int) -> tuple[str, str, int]:
        async with ChatClient(base_url=url) as client:
            first = last = (await client.reset(task_id="train-000003")).observation
            for _ in range(k):
                last = (await client.step(say("right"))).observation
            return first.messages[0]["content"], last.anchor, (await client.state()).step_count

    async def every() -> list[tuple[str, str, int]]:
        return await asyncio.gather(*(one(k % 4) for k in range(8)))

    seen = asyncio.run(every())
    assert len({first for first, _, _ in seen}) == 1
    # The player starts at the left end of a corridor of four cells.
    assert [n for _, _, n in seen] == [0, 1, 2, 3, 0, 1, 2, 3]
    assert len({anchor for _, anchor, _ in seen}) == 4


def test_a_seed_picks_the_same_task_in_every_session(url):
    seen = []
    for _ in range(2):
        with ChatClient(base_url=url).sync() as client:
            seen.append(client.reset(seed=11).observation)
    assert seen[0] == seen[1]


def test_without_seed_and_task_id_a_task_is_drawn(client):
    assert len({client.reset().observation.task_id for _ in range(3)}) > 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"task_id": "train-1"}, "unknown task_id 'train-1' in split 'train'"),
        ({"task": "train-000001"}, "unknown reset argument 'task'.*did you mean 'task_id'"),
    ],
)
def test_a_wrong_reset_is_told_and_leaves_the_session_usable(client, arguments, message):
    with pytest.raises(RuntimeError, match=message):
        client.reset(**arguments)
    assert client.reset(task_id="train-000001").observation.task_id == "train-000001"


def test_a_step_before_the_reset_and_one_after_the_end_are_refused(client):
    with pytest.raises(RuntimeError, match="reset first"):
        client.step(say("up"))
    result = client.reset(task_id="train-000003")
    while not result.done:
        result = client.step(say("up"))
    with pytest.raises(RuntimeError, match=r"call reset\(\) first"):
        client.step(say("up"))
    assert not client.reset(seed=0).done


@pytest.mark.parametrize("response", ["", "\x00\n<action>", "好" * 5000, "\ud800", "<action>\ud800</action>"])
def test_garbage_costs_a_step_and_gets_an_answer(client, response):
    client.reset(task_id="train-000003")
    result = client.step(ChatAction(response=response))
    assert result.reward == pytest.approx(-0.2)
    assert not result.observation.format_valid
    assert client.state().step_count == 1


def test_messages_that_are_no_actions_leave_the_session_alive(url):
    wrong: list[Any] = ["{", '{"type": "dance"}', '{"type": "step", "data": {"response": 3}}']
    wrong.append('{"type": "step", "data": {"response": "up", "more": 1}}')

    async def send() -> None:
        async with ChatClient(base_url=url) as client:
            await client.reset(seed=1)
            for text in wrong:
                await client._ws.send(text)
                assert json.loads(await client._ws.recv())["type"] == "error"
            assert (await client.step(ChatAction(response="up"))).reward == pytest.approx(-0.2)

    asyncio.run(send())


def test_a_client_that_vanishes_leaves_no_episode_behind(monkeypatch):
    sessions = Sessions(monkeypatch)

    async def vanish(url: str) -> None:
        clients = [ChatClient(base_url=url) for _ in range(3)]
        for client in clients:
            await client.reset(seed=0)
        assert sessions.n_open == 3
        for client in clients:
            client._ws.transport.abort()
        assert await asyncio.to_thread(sessions.become, 0)
        # OpenEnv's client connects again by itself: to a new session, where nothing has begun.
        with pytest.raises(RuntimeError, match="reset first"):
            await clients[0].step(say("up"))
        await clients[0].close()

    with serving(SOKOBAN) as url:
        sessions.n_open = 0
        asyncio.run(vanish(url))


def test_a_second_reset_and_the_end_of_the_server_close_what_was_open(monkeypatch):
    sessions = Sessions(monkeypatch)
    with serving(SOKOBAN) as url:
        sessions.n_open = 0
        client = ChatClient(base_url=url).sync()
        client.reset(seed=0)
        client.reset(seed=1)
        assert sessions.n_open == 1
    assert sessions.become(0)
    client.close()


def test_more_clients_than_sessions_are_refused_until_one_leaves():
    with serving(SOKOBAN, max_concurrent_envs=1) as url:
        with ChatClient(base_url=url).sync() as first:
            first.reset(seed=0)
            with (
                closing(ChatClient(base_url=url).sync()) as second,
                pytest.raises(RuntimeError, match="CAPACITY"),
            ):
                second.reset(seed=0)
        with ChatClient(base_url=url).sync() as third:
            assert not third.reset(seed=0).done


def test_an_image_travels_as_a_png(url):
    with closing(make_chat_env(SOKOBAN, window=None, obs_mode="image")) as env:
        messages, _ = env.reset(seed=5)
    with serving(SOKOBAN, {"obs_mode": "image"}) as url, ChatClient(base_url=url).sync() as client:
        parts = client.reset(seed=5).observation.messages[0]["content"]
    (part,) = (part for part in parts if part["type"] == "image_url")
    png = base64.b64decode(part["image_url"]["url"].removeprefix("data:image/png;base64,"))
    assert np.array_equal(np.asarray(Image.open(io.BytesIO(png))), np.asarray(pictures_of(messages)[0]))


def test_with_a_memory_window_the_messages_are_the_whole_next_prompt():
    (trajectory,) = play(SOKOBAN, 1, window=2)

    async def one(url: str) -> None:
        async with ChatClient(base_url=url) as client:
            await replay(client, trajectory)

    with serving(SOKOBAN, {"window": 2}) as url:
        asyncio.run(one(url))


def test_a_client_that_knows_nothing_of_this_package_can_play(url):
    with GenericEnvClient(base_url=url).sync() as client:
        observation = client.reset(task_id="train-000003").observation
        result = client.step({"response": "<think></think><action>right</action>"})
    assert observation["task_id"] == "train-000003"
    assert (result.reward, result.done, result.observation["action_valid"]) == (
        pytest.approx(-0.1),
        False,
        True,
    )


def test_the_start_command_serves_on_loopback():
    command = [sys.executable, "-m", "arl_gym.cli", "serve-openenv", "ARL/ALFWorld-v0", "--port", "0"]
    server = subprocess.Popen([*command, "--env", "max_steps=1"], stderr=subprocess.PIPE, text=True, cwd=ROOT)
    assert server.stderr is not None
    try:
        for line in server.stderr:
            if found := re.search(r"running on (http://127\.0\.0\.1:\d+)", line):
                break
        assert found is not None
        with ChatClient(base_url=found[1]).sync() as client:
            client.reset(seed=0)
            assert client.step(say("look")).observation.truncated
    finally:
        server.send_signal(signal.SIGINT)
        server.communicate(timeout=20)


def test_the_code_on_the_page_plays(url, capsys):
    run_section("OpenEnv", {"http://127.0.0.1:8000": url}, model=lambda messages: "<action>up</action>")
    assert capsys.readouterr().out.endswith(" False\n")


def test_the_example_runs(tmp_path):
    assert "success: True" in run_example("openenv_client.py", tmp_path)


def test_the_peer_of_the_other_tests_is_like_the_library():
    assert_like_the_library(peer_modules())
