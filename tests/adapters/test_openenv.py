"""The adapter of OpenEnv against a peer that has OpenEnv's names and no network."""

import base64
import io
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from importlib import import_module
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from PIL import Image

import arl_gym.adapters
from arl_gym.adapters.episode import TextEpisode
from arl_gym.agents.types import Trajectory
from arl_gym.cli import main
from arl_gym.core import pictures_of, to_openai
from arl_gym.errors import ConfigError, DependencyMissing, EpisodeOverError, UnknownNameError
from arl_gym.make import make_chat_env
from tests.adapters.peer_openenv import SERVERS, peer_modules
from tests.adapters.scripted import native_episodes, rewards_of
from tests.conftest import ROOT

SOKOBAN, URL = "ARL/Sokoban-v0", "http://127.0.0.1:8000"
NAME = "arl_gym.adapters.openenv"


@pytest.fixture
def adapter(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    for name, module in peer_modules().items():
        monkeypatch.setitem(sys.modules, name, module)
    yield import_module(NAME)
    del sys.modules[NAME]
    delattr(arl_gym.adapters, "openenv")
    SERVERS.clear()


@pytest.fixture
def client(adapter) -> Iterator[Any]:
    serve(SOKOBAN)
    with closing(adapter.ChatClient(base_url=URL)) as client:
        yield client


def serve(*arguments: str) -> None:
    """Give the application to the stand-in of uvicorn, as the command does."""
    assert main(["serve-openenv", *arguments]) == 0


def play(env_id: str, n: int, **kwargs: Any) -> list[Trajectory]:
    """Play the first n training tasks in the native loop."""
    return native_episodes(env_id, [f"train-{i:06d}" for i in range(n)], **kwargs)


def say(action: str) -> str:
    return f"<think></think><action>{action}</action>"


@pytest.mark.parametrize("env_id", [SOKOBAN, "ARL/ALFWorld-v0"])
def test_an_episode_is_the_same_as_in_the_native_loop(adapter, env_id):
    serve(env_id)
    for trajectory in play(env_id, 4):
        with closing(adapter.ChatClient(base_url=URL)) as client:
            result = client.reset(task_id=trajectory.task_id)
            assert (result.reward, result.done) == (None, False)
            for turn, reward in zip(trajectory.turns, rewards_of(trajectory), strict=True):
                assert result.observation.messages == to_openai(turn.messages)
                assert result.observation.anchor == turn.anchor
                assert result.observation.append == turn.append
                assert result.observation.record is None
                result = client.step(adapter.ChatAction(response=turn.response))
                assert (result.reward, result.observation.reward) == (reward, reward)
                assert result.observation.format_valid == turn.format_valid
                assert result.observation.action_valid == turn.action_valid
            assert result.done == result.observation.done
            assert result.observation.terminated == (trajectory.stop == "terminated")
            assert result.observation.truncated == (trajectory.stop == "truncated")
            assert result.observation.success == trajectory.success
            assert result.observation.record["rewards"] == rewards_of(trajectory)
            assert result.observation.record["anchors"] == [turn.anchor for turn in trajectory.turns]


def test_sessions_with_one_task_begin_alike_and_do_not_touch_one_another(adapter, client):
    with closing(adapter.ChatClient(base_url=URL)) as other:
        one, two = client.reset(task_id="train-000003"), other.reset(task_id="train-000003")
        assert vars(one.observation) == vars(two.observation)
        client.step(adapter.ChatAction(response=say("right")))
        assert (client.state().step_count, other.state().step_count) == (1, 0)


def test_a_seed_picks_the_task_and_the_task_id_comes_with_it(client):
    task_id = client.reset(seed=7).observation.task_id
    assert client.reset(seed=7).observation.task_id == task_id
    assert client.reset(seed=8).observation.task_id != task_id


def test_an_episode_has_the_name_it_was_given_or_one_of_its_own(client):
    client.reset(seed=1, episode_id="mine")
    assert client.state().episode_id == "mine"
    client.reset(seed=1)
    first = client.state().episode_id
    client.reset(seed=1)
    assert first
    assert client.state().episode_id not in ("mine", first)


def test_what_cannot_be_is_refused_with_its_reason(adapter, client):
    with pytest.raises(EpisodeOverError, match="reset first"):
        client.step(adapter.ChatAction(response="up"))
    with pytest.raises(UnknownNameError, match="unknown task_id 'train-1'"):
        client.reset(task_id="train-1")
    with pytest.raises(UnknownNameError, match=r"unknown reset argument 'sed'.*'seed'"):
        client.reset(sed=1)
    client.reset(task_id="train-000003")
    while not client.step(adapter.ChatAction(response=say("up"))).done:
        pass
    with pytest.raises(EpisodeOverError):
        client.step(adapter.ChatAction(response=say("up")))


def test_garbage_costs_a_step_and_can_be_quoted(adapter, client):
    client.reset(task_id="train-000003")
    for response in ("", "\x00", "<action>\ud800</action>", "好" * 999):
        result = client.step(adapter.ChatAction(response=response))
        assert result.reward == pytest.approx(-0.2)
    while not result.done:
        result = client.step(adapter.ChatAction(response=say("\udfff")))
    assert result.observation.record["actions"][-1] == "?"


def test_a_session_has_one_episode_open_and_none_after_its_end(adapter, client, monkeypatch):
    n_open = []

    class Counted(TextEpisode):
        def __init__(self, *args, **kwargs):
            super().__init__(*args, **kwargs)
            n_open.append(1)

        def close(self):
            super().close()
            n_open.append(-1)

    monkeypatch.setattr(adapter, "TextEpisode", Counted)
    client.reset(seed=0)
    client.reset(seed=1)
    assert sum(n_open) == 1
    client.close()
    client.close()
    assert sum(n_open) == 0


def test_an_image_becomes_a_png(adapter):
    serve(SOKOBAN, "--env", "obs_mode=image")
    with closing(make_chat_env(SOKOBAN, window=None, obs_mode="image")) as env:
        messages, _ = env.reset(seed=5)
    with closing(adapter.ChatClient(base_url=URL)) as client:
        parts = client.reset(seed=5).observation.messages[0]["content"]
    (part,) = (part for part in parts if part["type"] == "image_url")
    png = base64.b64decode(part["image_url"]["url"].removeprefix("data:image/png;base64,"))
    assert np.array_equal(np.asarray(Image.open(io.BytesIO(png))), np.asarray(pictures_of(messages)[0]))


def test_with_a_window_the_messages_are_the_whole_prompt(adapter):
    serve(SOKOBAN, "--window", "1")
    (trajectory,) = play(SOKOBAN, 1, window=1)
    with closing(adapter.ChatClient(base_url=URL)) as client:
        result = client.reset(task_id=trajectory.task_id)
        for turn in trajectory.turns:
            assert result.observation.messages == to_openai(turn.messages)
            assert not result.observation.append
            result = client.step(adapter.ChatAction(response=turn.response))


def test_the_command_serves_on_loopback_unless_told_otherwise(adapter):
    serve(SOKOBAN)
    serve(SOKOBAN, "--host", "0.0.0.0", "--port", "9", "--max-concurrent-envs", "3")
    assert {url: server["n"] for url, server in SERVERS.items()} == {URL: 64, "http://0.0.0.0:9": 3}


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["ARL/Sokobann-v0"], 2, "did you mean 'ARL/Sokoban-v0'"),
        ([SOKOBAN, "--env", "max_step=3"], 1, "did you mean 'max_steps'"),
        ([SOKOBAN, "--split", "tset"], 1, "did you mean 'test'"),
        ([SOKOBAN, "--window", "two"], 2, "expected a number of turns, 'dialogue' or 'default', got 'two'"),
        ([SOKOBAN, "--env", "max_steps"], 2, "expected KEY=VALUE, got 'max_steps'"),
        ([SOKOBAN, "--max-concurrent-envs", "0"], 2, "must be at least 1, got 0"),
    ],
)
def test_a_wrong_setting_ends_the_command_with_one_line(adapter, capsys, arguments, code, message):
    assert main(["serve-openenv", *arguments]) == code
    assert message in capsys.readouterr().err.splitlines()[-1]
    assert not SERVERS


def test_an_application_cannot_be_made_of_wrong_settings(adapter):
    with pytest.raises(ConfigError, match="penalise"):
        adapter.app(SOKOBAN, {"penalise": "nothing"})
    with pytest.raises(ConfigError, match="max_concurrent_envs must be a whole number of at least 1"):
        adapter.app(SOKOBAN, max_concurrent_envs=0)


def test_without_openenv_one_line_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "openenv", ModuleType("openenv"))
    with pytest.raises(DependencyMissing, match=r"OpenEnv needs: pip install 'arl-gym\[openenv\]'"):
        import_module(NAME)


def test_the_adapter_imports_no_torch():
    code = (
        "import sys; from tests.adapters.peer_openenv import peer_modules;"
        f"sys.modules.update(peer_modules()); import {NAME}; sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, timeout=60).returncode == 0
