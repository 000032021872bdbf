from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from PIL import Image

from arl_gym.core import Chat, PromptView, compose, observation_parts
from arl_gym.errors import ConfigError, EpisodeOverError
from arl_gym.wrappers import FormatPenalty, MemoryWindow, generic_prompt
from tests.wrappers.fakes import Corridor, FullCorridor, terse


def content(messages) -> Any:
    (message,) = messages
    return message["content"]


def contents(env, actions):
    """Reset, play, and return the text of every turn."""
    texts = [env.reset(seed=0)[0]]
    texts += [env.step(action)[0] for action in actions]
    return [content(messages) for messages in texts]


WALK = ["right", "stay", "right"]


@pytest.mark.parametrize(
    ("window", "expected"),
    [
        (0, ["[0]  | cell 0", "[1]  | cell 1", "[2]  | cell 1", "[3]  | cell 2"]),
        (
            1,
            [
                "[0]  | cell 0",
                "[1] 1:cell 0>right | cell 1",
                "[2] 2:cell 1>stay | cell 1",
                "[3] 3:cell 1>right | cell 2",
            ],
        ),
        (
            2,
            [
                "[0]  | cell 0",
                "[1] 1:cell 0>right | cell 1",
                "[2] 1:cell 0>right 2:cell 1>stay | cell 1",
                "[3] 2:cell 1>stay 3:cell 1>right | cell 2",
            ],
        ),
        (None, ["[0]  | cell 0", "[1]  | cell 1", "[2]  | cell 1", "[3]  | cell 2"]),
    ],
)
def test_the_window_shows_the_last_turns_by_their_absolute_step(window, expected):
    assert contents(MemoryWindow(Corridor(), window=window, prompt=terse), WALK) == expected


def test_a_reset_forgets_the_last_episode():
    env = MemoryWindow(Corridor(), window=2, prompt=terse)
    contents(env, WALK)
    assert contents(env, []) == ["[0]  | cell 0"]


def test_the_history_shows_the_extracted_action():
    env = MemoryWindow(FormatPenalty(Corridor()), window=2, prompt=terse)
    turns = contents(env, ["<think>long thought</think><action>RIGHT</action>", "no tags"])
    assert turns[2] == "[2] 1:cell 0>right 2:cell 1> | cell 1"


def test_a_foreign_action_key_in_info_is_not_taken_for_the_action():
    class Talkative(Corridor):
        def _info(self):
            return {**super()._info(), "action": 7}

    env = MemoryWindow(Talkative(), window=1, prompt=terse)
    assert contents(env, ["right"])[1] == "[1] 1:cell 0>right | cell 1"


@pytest.mark.parametrize("window", [0, 2, None])
def test_append_and_context_full_are_on_every_info(window):
    env = MemoryWindow(Corridor(), window=window)
    info = env.reset(seed=0)[1]
    assert (info["append"], info["context_full"]) == (False, False)
    info = env.step("right")[4]
    assert (info["append"], info["context_full"]) == (window is None, False)


def test_a_dialogue_beyond_its_limit_is_truncated():
    # 13 characters of prompt, then 5 of response and 13 of prompt each turn: 13, 31, 49
    env = MemoryWindow(Corridor(), window=None, prompt=terse, max_chars=48)
    env.reset(seed=0)
    *_, terminated, truncated, info = env.step("right")
    assert (terminated, truncated, info["context_full"]) == (False, False, False)
    messages, reward, terminated, truncated, info = env.step("right")
    assert (reward, terminated, truncated, info["context_full"]) == (0.25, False, True, True)
    assert messages == [{"role": "user", "content": "[2]  | cell 2"}]
    with pytest.raises(EpisodeOverError, match="context is full"):
        env.step("right")
    env.reset(seed=0)
    assert not env.step("right")[3]


def test_a_dialogue_exactly_at_its_limit_goes_on():
    env = MemoryWindow(Corridor(), window=None, prompt=terse, max_chars=49)
    env.reset(seed=0)
    env.step("right")
    assert env.step("right")[2:4] == (False, False)


def test_a_task_that_ends_in_the_step_that_fills_the_context_is_terminated_only():
    env = MemoryWindow(Corridor(), window=None, prompt=terse, max_chars=66)
    env.reset(seed=0)
    env.step("right"), env.step("right")
    *_, terminated, truncated, info = env.step("right")
    assert (terminated, truncated, info["context_full"]) == (True, False, False)


def test_a_window_has_no_size_limit():
    env = MemoryWindow(Corridor(), window=1, max_chars=1)
    env.reset(seed=0)
    assert env.step("right")[3] is False


@pytest.mark.parametrize("window", [-1, 1.5, True, "2"])
def test_a_window_that_is_no_count_is_refused(window):
    with pytest.raises(ConfigError, match="window must be a whole number"):
        MemoryWindow(Corridor(), window=window)


def test_a_limit_below_one_is_refused():
    with pytest.raises(ConfigError, match="max_chars must be at least 1, got 0"):
        MemoryWindow(Corridor(), window=None, max_chars=0)


def view(**changes):
    fields = {
        "task": "find the key",
        "observation": "a door",
        "step": 2,
        "history": ((1, "a hall", "north"), (2, "a stair", "up")),
        "admissible": ("open", "wait"),
        "instructions": "Be brief.",
        "append": False,
    }
    return PromptView(**{**fields, **changes})


def test_the_generic_prompt_has_task_history_observation_actions_and_instructions():
    assert generic_prompt(view()) == [
        {
            "role": "user",
            "content": "Task: find the key\n\n"
            "Steps taken so far: 2.\n\n"
            "Step 1 observation:\na hall\nStep 1 action: north\n\n"
            "Step 2 observation:\na stair\nStep 2 action: up\n\n"
            "Observation now:\na door\n\n"
            "Admissible actions: open, wait\n\n"
            "Be brief.",
        }
    ]


def test_the_generic_prompt_leaves_out_what_is_missing():
    bare = view(task="", step=0, history=(), admissible=(), instructions="")
    assert content(generic_prompt(bare)) == "Observation now:\na door"


def test_an_appended_turn_repeats_neither_task_nor_instructions():
    later = content(generic_prompt(view(append=True, history=())))
    assert later == "Observation now:\na door\n\nAdmissible actions: open, wait"
    first = content(generic_prompt(view(append=True, history=(), step=0)))
    assert first.startswith("Task: find the key")
    assert first.endswith("Be brief.")


def test_pictures_of_now_and_of_the_history_become_image_parts():
    env = MemoryWindow(FullCorridor(obs_mode="image"), window=1)
    env.reset(seed=0)
    messages = env.step("right")[0]
    parts = content(messages)
    assert [p["type"] for p in parts] == ["text", "image", "text", "image", "text"]
    assert [p["image"].getpixel((0, 0))[0] for p in parts if p["type"] == "image"] == [0, 50]
    assert messages in Chat()


class OneBuffer(gym.ObservationWrapper):
    """Returns the same array again and again, overwritten, as some environments do."""

    buffer = np.zeros((4, 4, 3), dtype=np.uint8)

    def observation(self, observation):
        self.buffer[:] = observation[0, 0]
        return {"text": "hall", "image": self.buffer}


def test_pictures_of_the_history_stay_when_the_env_overwrites_its_array():
    env = MemoryWindow(OneBuffer(FullCorridor(obs_mode="image")), window=1)
    env.reset(seed=0)
    parts = content(env.step("right")[0])
    assert [p["image"].getpixel((0, 0))[0] for p in parts if p["type"] == "image"] == [0, 50]


def test_an_observation_of_text_and_picture_gives_both_in_this_order():
    picture = np.zeros((2, 3, 3), dtype=np.uint8)
    text, image = observation_parts({"image": picture, "text": "hall"})
    assert text == {"type": "text", "text": "hall"}
    assert image["image"].size == (3, 2)


def test_neighbouring_texts_are_joined():
    picture = Image.new("RGB", (1, 1))
    assert compose(["a", "b", 3]) == "ab3"
    assert compose(["a", "b", picture, "c", "d"]) == [
        {"type": "text", "text": "ab"},
        {"type": "image", "image": picture},
        {"type": "text", "text": "cd"},
    ]


def test_other_arrays_are_shown_as_text():
    assert observation_parts(np.array([[1, 2]])) == [{"type": "text", "text": "[[1 2]]"}]


def test_a_third_party_env_needs_no_other_info_keys():
    env = MemoryWindow(Corridor(), window=2, format="strict")
    first = content(env.reset(seed=0)[0])
    assert first.startswith("Observation now:\ncell 0\n\nThink first")
    assert isinstance(env.observation_space, Chat)
