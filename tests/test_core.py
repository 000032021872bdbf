import base64
import io
import json
import pickle
import subprocess
import sys
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.vector.utils import batch_space
from PIL import Image

from arl_gym.core import INFO_TYPES, Chat, Message, NumberedIds, TaskIds, Unicode, to_openai
from arl_gym.errors import (
    ActionError,
    ArlGymError,
    ConfigError,
    DependencyMissing,
    EpisodeOverError,
    UnknownNameError,
)
from tests.counting_env import CountingEnv

# ---- spaces


@pytest.mark.parametrize("text", ["", "\n", "<|im_end|>", "√é好🙂", "\x00\ud800", "x" * 100_000])
def test_unicode_holds_any_string(text):
    assert text in Unicode()


def test_unicode_looks_at_the_length_only():
    class Counting(str):
        looked = 0

        def __len__(self):
            Counting.looked += 1
            return super().__len__()

        def __iter__(self):
            raise AssertionError("walked over the characters")

    assert Counting("x" * 10) in Unicode(10)
    assert Counting("x" * 11) not in Unicode(10)
    assert Counting.looked == 2
    assert b"x" not in Unicode()
    assert None not in Unicode()


def test_unicode_refuses_a_length_that_holds_nothing():
    with pytest.raises(ConfigError, match="max_length >= 1, got 0"):
        Unicode(0)


@pytest.mark.parametrize("space", [Unicode(5), Chat()], ids=repr)
def test_samples_lie_in_their_space_and_follow_the_seed(space):
    space.seed(3)
    first = [space.sample() for _ in range(50)]
    assert all(x in space for x in first)
    space.seed(3)
    assert [space.sample() for _ in range(50)] == first
    assert len({str(x) for x in first}) > 10


@pytest.mark.parametrize("space", [Unicode(5), Chat()], ids=repr)
def test_spaces_pickle_compare_and_batch(space):
    assert pickle.loads(pickle.dumps(space)) == space
    assert batch_space(space, 2) == gym.spaces.Tuple([space, space])
    assert space != gym.spaces.Discrete(2)
    assert space.is_np_flattenable is False


def test_unicode_of_another_length_is_another_space():
    assert Unicode(5) != Unicode(6)


def test_gymnasiums_shared_memory_refuses_unicode_instead_of_corrupting_it():
    from gymnasium.error import CustomSpaceError
    from gymnasium.vector.utils import create_shared_memory

    with pytest.raises(CustomSpaceError):
        create_shared_memory(Unicode())


TEXT: Message = {"role": "user", "content": "hi"}
PARTS: Message = {
    "role": "user",
    "content": [{"type": "text", "text": "a"}, {"type": "image", "image": Image.new("RGB", (1, 1))}],
}


@pytest.mark.parametrize("chat", [[TEXT], [PARTS], [{"role": "system", "content": ""}, TEXT]])
def test_chat_holds_messages_of_text_and_parts(chat):
    assert chat in Chat()


@pytest.mark.parametrize(
    "chat",
    [
        [],
        "hi",
        (TEXT,),
        ["hi"],
        [{"role": "robot", "content": "hi"}],
        [{"role": "user"}],
        [{"role": "user", "content": None}],
        [{"role": "user", "content": ["hi"]}],
        [{"role": "user", "content": [{"type": "audio", "audio": b""}]}],
        [{"role": "user", "content": [{"type": "image", "text": "no image"}]}],
        [TEXT, {}],
    ],
)
def test_chat_refuses_what_is_no_list_of_messages(chat):
    assert chat not in Chat()


def test_to_openai_keeps_text_and_turns_images_into_png_data_urls():
    picture = Image.new("RGB", (3, 2), (255, 0, 0))
    out = to_openai(
        [
            TEXT,
            {
                "role": "user",
                "content": [{"type": "text", "text": "see"}, {"type": "image", "image": picture}],
            },
        ]
    )
    assert out[0] == TEXT
    assert out[1]["content"][0] == {"type": "text", "text": "see"}
    head, data = out[1]["content"][1]["image_url"]["url"].split(",")
    assert head == "data:image/png;base64"
    back = Image.open(io.BytesIO(base64.b64decode(data)))
    assert (back.size, back.getpixel((0, 0))) == ((3, 2), (255, 0, 0))
    json.dumps(out)


# ---- the base of the environments


def test_the_base_satisfies_gymnasiums_check(recwarn):
    check_env(CountingEnv(), skip_render_check=True)
    assert not [w for w in recwarn if "render" not in str(w.message)]


def test_a_reset_starts_the_task_that_was_asked_for():
    obs, info = CountingEnv().reset(options={"task_id": "train/2"})
    assert obs == "0 of 3"
    assert {k: type(v) for k, v in info.items()} == INFO_TYPES
    assert (info["task_id"], info["task"], info["success"], info["score"]) == (
        "train/2",
        "Count to 3.",
        False,
        0.0,
    )
    assert (info["dataset"], info["split"], info["action_valid"]) == ("generated", "train", True)


def test_the_seed_picks_the_task_in_every_instance():
    tasks = [CountingEnv().reset(seed=s)[1]["task_id"] for s in range(20)]
    assert tasks == [CountingEnv().reset(seed=s)[1]["task_id"] for s in range(20)]
    assert len(set(tasks)) == 3


def test_a_reset_without_seed_continues_the_stream():
    a, b = CountingEnv(), CountingEnv()
    a.reset(seed=4), b.reset(seed=4)
    going_on = [a.reset()[1]["task_id"] for _ in range(10)]
    assert going_on == [b.reset()[1]["task_id"] for _ in range(10)]
    assert len(set(going_on)) > 1


def test_a_chosen_task_leaves_the_stream_where_it_is():
    a, b = CountingEnv(), CountingEnv()
    a.reset(seed=4), b.reset(seed=4)
    b.reset(options={"task_id": "train/0"})
    assert [a.reset()[1]["task_id"] for _ in range(5)] == [b.reset()[1]["task_id"] for _ in range(5)]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"task": "train/0"}, "unknown reset option 'task' in CountingEnv: did you mean 'task_id'"),
        ({"task_id": "train/3"}, "unknown task_id 'train/3' in split 'train'"),
        ({"task_id": 0}, "unknown task_id 0"),
    ],
)
def test_an_unknown_option_or_task_is_named(options, message):
    with pytest.raises(UnknownNameError, match=message):
        CountingEnv().reset(options=options)


def test_rewards_validity_and_score_follow_the_action():
    env = CountingEnv()
    env.reset(options={"task_id": "train/1"})
    obs, reward, terminated, truncated, info = env.step("jump")
    assert (obs, reward, terminated, truncated) == ("0 of 2", -0.1, False, False)
    assert (info["action_valid"], info["score"]) == (False, 0.0)
    _, _, _, _, info = env.step("up")
    assert (info["action_valid"], info["score"]) == (True, 0.5)
    obs, reward, terminated, truncated, info = env.step("up")
    assert (obs, reward, terminated, truncated) == ("2 of 2", 10.0, True, False)
    assert info["success"] is True


def test_the_last_allowed_step_truncates_unless_it_ends_the_task():
    env = CountingEnv(max_steps=2)
    env.reset(options={"task_id": "train/1"})
    env.step("wait")
    assert env.step("up")[2:4] == (False, True)
    env.reset(options={"task_id": "train/1"})
    env.step("up")
    assert env.step("up")[2:4] == (True, False)


def test_a_step_before_reset_and_after_the_end_raises():
    env = CountingEnv()
    with pytest.raises(EpisodeOverError, match="step needs a running episode"):
        env.step("up")
    env.reset(options={"task_id": "train/0"})
    env.step("up")
    with pytest.raises(EpisodeOverError):
        env.step("up")


def test_an_action_that_is_no_string_raises_and_costs_nothing():
    env = CountingEnv(max_steps=1)
    env.reset(seed=0)
    with pytest.raises(ActionError, match="takes a string as action, got int: 3"):
        env.step(3)
    assert env.get_state()["actions"] == []
    env.step("wait")


def test_a_task_that_fails_to_begin_leaves_no_running_episode():
    env = CountingEnv()
    env.reset(seed=0)
    env.take_server_down()
    with pytest.raises(ConnectionError):
        env.reset(seed=1)
    with pytest.raises(EpisodeOverError):
        env.step("up")


def test_a_snapshot_returns_to_its_moment_with_the_step_count():
    env = CountingEnv(max_steps=3)
    env.reset(options={"task_id": "train/2"})
    env.step("up")
    obs, _, _, _, info = env.step("wait")
    state = json.loads(json.dumps(env.get_state()))
    assert state == {"task_id": "train/2", "actions": ["up", "wait"]}
    other = CountingEnv(max_steps=3)
    assert other.set_state(state) == (obs, info)
    assert other.step("wait")[3] is True  # the third of three steps


def test_a_snapshot_needs_an_episode_and_its_keys():
    env = CountingEnv()
    with pytest.raises(EpisodeOverError, match="get_state needs an episode"):
        env.get_state()
    with pytest.raises(ConfigError, match=r"needs the keys task_id and actions, got \['task_id'\]"):
        env.set_state({"task_id": "train/0"})


def test_an_env_without_expert_says_so():
    with pytest.raises(NotImplementedError, match="CountingEnv has no expert"):
        super(CountingEnv, CountingEnv()).expert_action()
    assert CountingEnv().expert_thought() == ""


def test_each_render_mode_shows_the_state(capsys):
    text, picture, human = (CountingEnv(render_mode=mode) for mode in ("ansi", "rgb_array", "human"))
    for env in (text, picture, human):
        env.reset(options={"task_id": "train/1"})
    assert text.render() == "0 of 2"
    pixels: Any = picture.render()
    assert (pixels.dtype, pixels.ndim, pixels.shape[2]) == (np.uint8, 3, 3)
    assert pixels.min() < 128 < pixels.max()
    human.step("up")
    assert capsys.readouterr().out == "0 of 2\n1 of 2\n"


def test_returning_to_a_snapshot_shows_nothing(capsys):
    env = CountingEnv(render_mode="human")
    env.reset(options={"task_id": "train/1"})
    capsys.readouterr()
    env.set_state({"task_id": "train/1", "actions": ["up"]})
    assert capsys.readouterr().out == ""
    assert env.render_mode == "human"


def test_rendering_needs_a_mode_and_an_episode():
    with pytest.warns(UserWarning, match="without a render_mode"):
        assert CountingEnv().render() is None
    with pytest.raises(EpisodeOverError, match="render needs an episode"):
        CountingEnv(render_mode="ansi").render()
    with pytest.raises(UnknownNameError, match=r"unknown render_mode 'rgb'.*did you mean 'rgb_array'"):
        CountingEnv(render_mode="rgb")


@pytest.mark.parametrize("max_steps", [0, -1, 1.5, "3"])
def test_a_step_limit_that_is_no_whole_positive_number_is_refused(max_steps):
    with pytest.raises(ConfigError, match="max_steps must be a whole number"):
        CountingEnv(max_steps=max_steps)


# ---- errors


@pytest.mark.parametrize(
    "err",
    [
        UnknownNameError("level", "x", ["y"]),
        DependencyMissing("vLLM", "vllm"),
        ConfigError("a"),
        ArlGymError(),
    ],
)
def test_errors_survive_pickling(err):
    back = pickle.loads(pickle.dumps(err))
    assert type(back) is type(err)
    assert str(back) == str(err)


def test_the_core_loads_no_heavy_module():
    code = (
        "import sys, arl_gym.core, arl_gym.vector, arl_gym.checker; "
        "print([m for m in ('torch', 'transformers', 'PIL', 'textworld', 'sympy') if m in sys.modules])"
    )
    env = {"PYTHONPATH": ":".join(sys.path)}
    out = subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True
    ).stdout
    assert out == "[]\n"


def test_task_ids_are_a_sequence_without_storage():
    ids = TaskIds("train", 1_000_000)
    assert (len(ids), ids[0], ids[-1]) == (1_000_000, "train-000000", "train-999999")
    assert ids[5:7] == ["train-000005", "train-000006"]
    assert ids.index("train-000123") == 123
    assert "train-000123" in ids
    for no_id in ("train-1000000", "train-123", "val-000001", "train-00012x", "train-²²²²²²", 7, ""):
        assert no_id not in ids
    with pytest.raises(IndexError):
        ids[1_000_000]
    with pytest.raises(ValueError, match="no task id"):
        ids.index("val-000001")
    assert list(TaskIds("val", 3)) == ["val-000000", "val-000001", "val-000002"]
    assert "val-000003" not in TaskIds("val", 3)
    with pytest.raises(UnknownNameError, match="did you mean 'train'"):
        TaskIds("trein", 3)


def test_numbered_ids_may_start_anywhere():
    ids = NumberedIds("human", range(1500, 1503))
    assert list(ids) == ["human-001500", "human-001501", "human-001502"]
    assert (ids[-1], ids[1:]) == ("human-001502", ["human-001501", "human-001502"])
    assert ids.index("human-001501") == 1
    assert "human-001499" not in ids
    assert ids.of(7) == "human-000007"
