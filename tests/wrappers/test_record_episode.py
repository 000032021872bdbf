import gzip
import json

import numpy as np
import pytest
from PIL import Image

from arl_gym.errors import ArlGymError, DataError
from arl_gym.wrappers import AnchorObservation, FormatPenalty, MemoryWindow, RecordEpisode, load_episodes
from arl_gym.wrappers.record_episode import append_line, image_hash
from tests.wrappers.fakes import Corridor, FullCorridor, terse


def test_a_chat_episode_is_recorded_whole(tmp_path):
    formatted = FormatPenalty(AnchorObservation(FullCorridor(length=2)), penalty=0.5)
    env = RecordEpisode(MemoryWindow(formatted, window=1, prompt=terse), tmp_path)
    env.reset(options={"task_id": "b"})
    env.step("<action>right</action>")
    env.step("<think>a</think><action>RIGHT</action>")
    assert list(load_episodes(tmp_path / "episodes.jsonl")) == [
        {
            "env_id": "FullCorridor",
            "task_id": "b",
            "dataset": "generated",
            "split": "train",
            "content_hash": "c0ffee",
            "success": True,
            "score": 1.0,
            "stop": "terminated",
            "turns": [
                {
                    "messages": [{"role": "user", "content": "[0]  | cell 0"}],
                    "response": "<action>right</action>",
                    "action": "right",
                    "reward": -1.0,
                    "env_reward": -0.5,
                    "format_penalty": 0.5,
                    "format_valid": False,
                    "action_valid": True,
                    "anchor": "cell 0",
                },
                {
                    "messages": [{"role": "user", "content": "[1] 1:cell 0>right | cell 1"}],
                    "response": "<think>a</think><action>RIGHT</action>",
                    "action": "right",
                    "reward": 10.0,
                    "env_reward": 10.0,
                    "format_penalty": 0.0,
                    "format_valid": True,
                    "action_valid": True,
                    "anchor": "cell 1",
                },
            ],
        }
    ]


def test_a_third_party_env_is_recorded_with_defaults(tmp_path):
    env = RecordEpisode(Corridor(), tmp_path / "new" / "folder", name="walks")
    env.reset(seed=0)
    for _ in range(3):
        env.step("right")
    (episode,) = load_episodes(tmp_path / "new" / "folder" / "walks.jsonl")
    assert {k: episode[k] for k in ("env_id", "task_id", "dataset", "success", "score", "stop")} == {
        "env_id": "Corridor",
        "task_id": "corridor",
        "dataset": "",
        "success": True,
        "score": 1.0,
        "stop": "terminated",
    }
    assert [turn["observation"] for turn in episode["turns"]] == ["cell 0", "cell 1", "cell 2"]
    assert episode["turns"][2] == {
        "observation": "cell 2",
        "response": "right",
        "action": "right",
        "reward": 1.0,
        "env_reward": 1.0,
        "format_penalty": 0.0,
        "format_valid": True,
        "action_valid": True,
        "anchor": "",
    }


def test_a_recorded_episode_replays_to_the_same_rewards(tmp_path):
    env = RecordEpisode(MemoryWindow(FormatPenalty(FullCorridor()), window=2), tmp_path)
    env.reset(seed=5)
    rewards = [
        env.step(f"<think>\ud800</think><action>{a}</action>")[1] for a in ("right", "x", "right", "right")
    ]
    (episode,) = load_episodes(env.path)
    plain = FullCorridor()
    plain.reset(options={"task_id": episode["task_id"]})
    again = [plain.step(turn["action"])[1] for turn in episode["turns"]]
    assert again == rewards == [turn["env_reward"] for turn in episode["turns"]]
    assert episode["turns"][0]["response"] == "<think>\ud800</think><action>right</action>"


def test_why_an_episode_stopped_is_recorded(tmp_path):
    env = RecordEpisode(MemoryWindow(FullCorridor(max_steps=2), window=None, max_chars=1000), tmp_path)
    env.reset(seed=0)
    env.step("left")
    env.step("left")
    env.reset(seed=0)
    env.step("left")
    env.reset(seed=0)  # cuts the second episode short
    env.step("l" * 1000)
    env.reset(seed=0)  # a played-out episode is not written twice
    env.reset(seed=0)  # an episode without turns is none
    env.step("left")
    env.close()
    env.close()
    stops = [(e["stop"], len(e["turns"])) for e in load_episodes(env.path)]
    assert stops == [("truncated", 2), ("unfinished", 1), ("context_full", 1), ("unfinished", 1)]


@pytest.mark.parametrize("chat", [False, True])
def test_a_picture_is_saved_once_and_named_by_its_hash(tmp_path, chat):
    plain = FullCorridor(obs_mode="both", length=2)
    env = RecordEpisode(MemoryWindow(plain, window=1) if chat else plain, tmp_path)
    env.reset(seed=0)
    for action in ("stay", "right", "right"):
        env.step(action)
    (episode,) = load_episodes(env.path)
    pictures = [np.full((2, 2, 3), 50 * cell, dtype=np.uint8) for cell in range(3)]
    names = [image_hash(p) for p in pictures]
    assert sorted(f.name for f in (tmp_path / "images").iterdir()) == sorted(f"{n}.png" for n in names)
    for name, picture in zip(names, pictures, strict=True):
        assert np.array_equal(np.asarray(Image.open(tmp_path / "images" / f"{name}.png")), picture)
    first = {"type": "image", "hash": names[0]}
    if chat:
        assert first in episode["turns"][0]["messages"][0]["content"]
    else:
        assert episode["turns"][0]["observation"] == {"text": "cell 0", "image": first}


def test_a_picture_and_its_array_have_one_hash():
    array = np.arange(12, dtype=np.uint8).reshape(2, 2, 3)
    assert image_hash(array) == image_hash(Image.fromarray(array))


def test_two_envs_may_share_a_file(tmp_path):
    envs = [RecordEpisode(FullCorridor(length=1), tmp_path) for _ in range(2)]
    for i in (0, 1, 0):
        envs[i].reset(options={"task_id": "ab"[i]})
        envs[i].step("right")
    assert [e["task_id"] for e in load_episodes(envs[0].path)] == ["a", "b", "a"]


def test_a_folder_that_cannot_be_made_is_one_clear_error(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ArlGymError, match=r"cannot record episodes to .*file"):
        RecordEpisode(Corridor(), tmp_path / "file" / "folder")


GOOD = json.dumps(
    {
        "env_id": "X",
        "task_id": "t",
        "dataset": "",
        "split": "",
        "content_hash": "",
        "success": False,
        "score": 0.0,
        "stop": "truncated",
        "turns": [],
    }
)


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (GOOD[:-20], "line 2: expected one JSON object"),
        ("\udcff", "line 2: expected one JSON object"),
        ("[1]", "line 2: expected a JSON object, got list"),
        ('{"env_id": "X"}', "line 2: the episode lacks task_id, dataset"),
    ],
)
def test_a_corrupt_line_is_named_after_the_good_ones_were_given(tmp_path, bad, message):
    path = tmp_path / "e.jsonl"
    path.write_bytes(f"{GOOD}\n{bad}\n{GOOD}\n".encode(errors="surrogateescape"))
    episodes = load_episodes(path)
    assert next(episodes)["env_id"] == "X"
    with pytest.raises(DataError, match=f"e.jsonl, {message}"):
        next(episodes)


def test_a_line_cut_off_by_a_crash_never_swallows_the_next_episode(tmp_path):
    path = tmp_path / "e.jsonl"
    path.write_text(GOOD[:30])
    append_line(path, GOOD)
    cut, whole = path.read_text().splitlines()
    assert (cut, whole) == (GOOD[:30], GOOD)
    with pytest.raises(DataError, match="line 1"):
        next(load_episodes(path))


def test_a_missing_file_is_a_data_error(tmp_path):
    with pytest.raises(DataError, match="nowhere"):
        next(load_episodes(tmp_path / "nowhere.jsonl"))


def test_compressed_files_are_read_and_cut_ones_refused(tmp_path):
    path = tmp_path / "e.jsonl.gz"
    packed = gzip.compress(f"{GOOD}\n{GOOD}\n".encode())
    path.write_bytes(packed)
    assert len(list(load_episodes(path))) == 2
    for broken in (packed[:-12], b"no gzip at all", packed[:20] + b"\xff" * 30):
        path.write_bytes(broken)
        with pytest.raises(DataError, match=r"e\.jsonl\.gz"):
            list(load_episodes(path))
