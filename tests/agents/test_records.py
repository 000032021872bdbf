import gzip
import json
from contextlib import closing

import gymnasium as gym
import numpy as np
import pytest
from PIL import Image

from arl_gym.agents.records import read_trajectories, write_trajectories
from arl_gym.agents.types import Trajectory, Turn
from arl_gym.core import Part
from arl_gym.errors import DataError
from arl_gym.make import make_chat_env
from arl_gym.wrappers import RecordEpisode
from tests.agents.counting import ID, say


def episode(response: str = "hi \ud800 é", **kwargs) -> Trajectory:
    turn = Turn(
        messages=[{"role": "user", "content": "look"}],
        response=response,
        action="up",
        env_reward=1.0,
        format_penalty=0.25,
        anchor="a",
        format_valid=False,
        action_valid=True,
        finish="length",
        n_kept=2,
        **kwargs,
    )
    return Trajectory(
        env_id=ID,
        task_id="t",
        dataset="generated",
        split="test",
        content_hash="c",
        group=3,
        copy=1,
        turns=(turn,),
        stop="env_error",
        success=False,
        score=0.5,
        error="broke",
    )


IDS = {"prompt_ids": [1], "completion_ids": [2, 3], "logprobs": [-0.5, -1.0]}


@pytest.mark.parametrize("ids", [{}, IDS, {"n_chars": 2}])
def test_what_is_written_is_read_back(tmp_path, ids):
    path = tmp_path / "new" / "e.jsonl.gz"
    write_trajectories(path, [episode(**ids), episode("")])
    assert read_trajectories(path) == [episode(**ids), episode("")]


def test_a_turn_shows_the_reward_after_the_penalty_and_ids_only_where_there_are_some(tmp_path):
    write_trajectories(tmp_path / "e.jsonl.gz", [episode()])
    (turn,) = json.loads(gzip.decompress((tmp_path / "e.jsonl.gz").read_bytes()))["turns"]
    assert turn["reward"] == 0.75
    assert "prompt_ids" not in turn


def test_extras_are_recorded_beside_the_turn_and_ignored_on_reading(tmp_path):
    path = tmp_path / "e.jsonl.gz"
    write_trajectories(path, [episode(), episode("")], [[{"advantage": 0.5}], [{"entropies": [1.0, None]}]])
    (one,), (two,) = (json.loads(line)["turns"] for line in gzip.decompress(path.read_bytes()).splitlines())
    assert (one["advantage"], two["entropies"], one["env_reward"]) == (0.5, [1.0, None], 1.0)
    assert read_trajectories(path) == [episode(), episode("")]
    with pytest.raises(ValueError, match="argument 2 is shorter"):
        write_trajectories(path, [episode()], [[]])


def test_equal_episodes_give_equal_bytes(tmp_path):
    for name in "ab":
        write_trajectories(tmp_path / f"{name}.jsonl.gz", [episode()])
    assert (tmp_path / "a.jsonl.gz").read_bytes() == (tmp_path / "b.jsonl.gz").read_bytes()


def with_image() -> Trajectory:
    parts: list[Part] = [
        {"type": "text", "text": "see"},
        {"type": "image", "image": Image.new("RGB", (2, 1), "red")},
    ]
    t = episode()
    t.turns[0].messages[0]["content"] = parts
    return t


def parts_of(t: Trajectory) -> list[Part]:
    content = t.turns[0].messages[0]["content"]
    assert not isinstance(content, str)
    return content


def test_images_are_kept_beside_the_file(tmp_path):
    write_trajectories(tmp_path / "e.jsonl.gz", [with_image(), with_image()])
    assert len(list((tmp_path / "images").iterdir())) == 1
    text, image = parts_of(read_trajectories(tmp_path / "e.jsonl.gz")[1])
    assert text == {"type": "text", "text": "see"}
    assert image["image"].getpixel((1, 0)) == (255, 0, 0)


def test_a_lost_image_becomes_a_text(tmp_path):
    write_trajectories(tmp_path / "e.jsonl.gz", [with_image()])
    for path in (tmp_path / "images").iterdir():
        path.unlink()
    part = parts_of(read_trajectories(tmp_path / "e.jsonl.gz")[0])[1]
    assert part["text"].startswith("[image ")


def test_recordings_of_the_wrapper_are_read_too(tmp_path):
    with closing(make_chat_env(ID, record=tmp_path)) as env:
        env.reset(options={"task_id": "train/0"})
        env.step(say("up"))
    (t,) = read_trajectories(tmp_path / "episodes.jsonl")
    assert (t.task_id, t.stop, t.success, t.env_return) == ("train/0", "terminated", True, 1.0)
    assert t.turns[0].response == say("up")


@pytest.mark.parametrize(("obs_mode", "types"), [("image", ["image"]), ("both", ["text", "image"])])
def test_pictures_that_a_plain_env_showed_are_read_back(tmp_path, obs_mode, types):
    with (
        closing(gym.make("ARL/Sokoban-v0", obs_mode=obs_mode)) as inner,
        closing(RecordEpisode(inner, tmp_path)) as env,
    ):
        seen, _ = env.reset(seed=0)
        env.step("up")
    (read,) = read_trajectories(tmp_path / "episodes.jsonl")
    content = read.turns[0].messages[0]["content"]
    assert isinstance(content, list)
    assert [part["type"] for part in content] == types
    picture = seen if obs_mode == "image" else seen["image"]
    (shown,) = (part["image"] for part in content if part["type"] == "image")
    assert (np.asarray(shown) == picture).all()


def test_an_interrupted_write_leaves_the_old_file(tmp_path):
    path = tmp_path / "e.jsonl.gz"
    write_trajectories(path, [episode()])

    def broken():
        yield episode("new")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_trajectories(path, broken())
    assert read_trajectories(path) == [episode()]
    assert list(tmp_path.iterdir()) == [path]


def line(**changes) -> str:
    turn = {
        "messages": [{"role": "user", "content": ""}],
        "response": "",
        "action": "",
        "env_reward": 0.0,
        "format_penalty": 0.0,
        "anchor": "",
        "format_valid": True,
        "action_valid": True,
    }
    keys = ("env_id", "task_id", "dataset", "split", "content_hash", "stop")
    return json.dumps({**dict.fromkeys(keys, "x"), "success": True, "score": 1.0, "turns": [turn], **changes})


@pytest.mark.parametrize(
    ("bad", "says"),
    [
        ("{", "line 2"),
        ("[]", "line 2"),
        ('{"env_id": "x"}', "line 2"),
        (line(turns=5), "episode 1"),
        (line(turns=[{}]), "episode 1: a turn lacks"),
        (line(turns=["x"]), "episode 1"),
    ],
)
def test_a_corrupt_line_is_named(tmp_path, bad, says):
    path = tmp_path / "e.jsonl"
    path.write_text(line() + "\n" + bad + "\n")
    with pytest.raises(DataError, match=rf"e\.jsonl, {says}"):
        read_trajectories(path)


def test_a_file_cut_off_or_missing_is_an_error_that_names_it(tmp_path):
    path = tmp_path / "e.jsonl.gz"
    write_trajectories(path, [episode()])
    path.write_bytes(path.read_bytes()[:-12])
    with pytest.raises(DataError, match=r"e\.jsonl\.gz"):
        read_trajectories(path)
    with pytest.raises(DataError, match="none"):
        read_trajectories(tmp_path / "none.jsonl")
