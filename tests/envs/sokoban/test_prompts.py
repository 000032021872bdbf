from dataclasses import replace
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from PIL import Image

from arl_gym.core import Chat, PromptView
from arl_gym.envs.sokoban.env import SokobanEnv
from arl_gym.envs.sokoban.prompts import PROMPTS
from arl_gym.envs.sokoban.rules import codes
from arl_gym.envs.sokoban.tiles import draw_image
from arl_gym.wrappers import MemoryWindow

VIEW = PromptView(
    task="Push every box onto a target.",
    observation="<board 5>",
    step=4,
    history=((3, "<board 3>", "up"), (4, "<board 4>", "left")),
    admissible=("up", "down", "left", "right"),
    instructions="<how to answer>",
    append=False,
)


def text(name, view):
    return content_of(PROMPTS[name](view))


def content_of(messages) -> Any:
    assert messages in Chat()
    (message,) = messages
    assert message["role"] == "user"
    return message["content"]


def test_default_shows_task_window_step_board_actions_and_instructions_in_order():
    content = text("default", VIEW)
    parts = [
        "√ box on a target",
        VIEW.task,
        "You have taken 4 steps",
        "Step 3, board:\n<board 3>\nStep 3, action: up",
        "Step 4, board:\n<board 4>\nStep 4, action: left",
        "step 5",
        "<board 5>",
        "up, down, left, right.",
        "<how to answer>",
    ]
    places = [content.index(part) for part in parts]
    assert places == sorted(places)


def test_default_without_history_mentions_no_earlier_step():
    content = text("default", replace(VIEW, step=0, history=()))
    assert "have taken" not in content
    assert "step 1" in content


def test_compact_is_the_board_with_the_window_above():
    assert text("compact", VIEW) == "<board 3>\nup\n<board 4>\nleft\n<board 5>"
    assert text("compact", replace(VIEW, history=())) == "<board 5>"


@pytest.mark.parametrize("name", sorted(PROMPTS))
def test_an_append_only_dialogue_adds_only_the_new_board(name):
    first = replace(VIEW, append=True, step=0, history=())
    assert text(name, first) == text(name, replace(first, append=False))
    later = text(name, replace(VIEW, append=True))
    assert later.endswith("<board 5>")
    assert "<board 4>" not in later
    assert "Push every box" not in later


def test_the_default_text_is_the_one_that_models_were_trained_on():
    view = replace(VIEW, history=VIEW.history[1:])
    assert text("default", view) == (
        "You play Sokoban on a board of cells. Each symbol is one cell:\n"
        "# wall, _ floor, O target, X box, √ box on a target, P you, S you on a target.\n"
        "Cells beyond the edge of the board are walls.\n\n"
        "Goal: Push every box onto a target.\n"
        "Rules:\n"
        "- Each step you go one cell up, down, left or right.\n"
        "- If a box is in that cell, you push it one cell further in the same direction.\n"
        "- A push fails if a wall or another box is behind the box. You cannot pull.\n"
        "- A box in a corner that is no target is lost, so think before you push.\n\n"
        "You have taken 4 steps. The last 1:\n\n"
        "Step 4, board:\n<board 4>\nStep 4, action: left\n\n"
        "This is step 5. Board now:\n<board 5>\n\n"
        "Possible actions: up, down, left, right.\n\n"
        "<how to answer>"
    )


# ---- pictures

START = "#######\n#P_X_O#\n#######"
ONE_RIGHT = "#######\n#_PX_O#\n#######"
TWO_RIGHT = "#######\n#__PXO#\n#######"
TILE_KINDS = ("wall:", "floor:", "target:", "box:", "box on a target:", "you:", "you on a target:")


def picture(board):
    return draw_image(codes(board), 16)


class Pictures(gym.ObservationWrapper):
    """Shows the board as a picture, after its text if `both`."""

    def __init__(self, *, both=False):
        super().__init__(SokobanEnv(levels="#######\n#@ $ .#\n#######", text_format="compact"))
        self.both = both

    def observation(self, observation):
        image = picture(observation)
        return {"text": observation, "image": image} if self.both else image


def parts_after_two_steps(name, window, *, both=False):
    """Each text, and each picture as the board it shows, of the third turn; walk right twice before it."""
    env = MemoryWindow(Pictures(both=both), window=window, prompt=PROMPTS[name])
    env.reset(seed=0)
    env.step("right")
    parts = content_of(env.step("right")[0])
    return [part["text"] if part["type"] == "text" else board_of(part["image"]) for part in parts]


def board_of(image):
    assert isinstance(image, Image.Image)
    return next(b for b in (START, ONE_RIGHT, TWO_RIGHT) if np.array_equal(np.asarray(image), picture(b)))


def test_without_a_window_the_picture_of_now_stands_after_the_rules():
    rules, now, after = parts_after_two_steps("default", 0)
    assert now == TWO_RIGHT
    assert rules.endswith("\n\nThis is step 3. Board now:\n")
    assert after == "\n\nPossible actions: up, down, left, right."
    assert all(f"\n- {kind} " in rules for kind in TILE_KINDS)
    assert "# wall" not in rules


def test_a_window_shows_the_pictures_of_earlier_steps_before_their_actions():
    rules, first, then, second, later, now, _ = parts_after_two_steps("default", 2)
    assert (first, second, now) == (START, ONE_RIGHT, TWO_RIGHT)
    assert rules.endswith("\n\nYou have taken 2 steps. The last 2:\n\nStep 1, board:\n")
    assert then == "\nStep 1, action: right\n\nStep 2, board:\n"
    assert later == "\nStep 2, action: right\n\nThis is step 3. Board now:\n"


def test_an_append_only_dialogue_adds_only_the_new_picture():
    assert parts_after_two_steps("default", None) == ["Board after step 2:\n", TWO_RIGHT]
    assert parts_after_two_steps("compact", None) == [TWO_RIGHT]


def test_the_first_turn_of_a_dialogue_of_pictures_has_the_rules():
    env = MemoryWindow(Pictures(), window=None, prompt=PROMPTS["default"])
    rules, now, _ = content_of(env.reset(seed=0)[0])
    assert rules["text"].startswith("You play Sokoban on a board of cells. Each square of the picture")
    assert board_of(now["image"]) == START


def test_compact_pictures_are_parted_by_the_actions_alone():
    expected = [START, "\nright\n", ONE_RIGHT, "\nright\n", TWO_RIGHT]
    assert parts_after_two_steps("compact", 2) == expected
    assert parts_after_two_steps("compact", 0) == [TWO_RIGHT]


@pytest.mark.parametrize("window", [0, 2])
def test_text_and_picture_together_explain_symbols_and_tiles_and_show_both(window):
    parts = parts_after_two_steps("default", window, both=True)
    assert "# wall, _ floor" in parts[0]
    assert all(f"\n- {kind} " in parts[0] for kind in TILE_KINDS)
    assert parts[1::2] == [START, ONE_RIGHT, TWO_RIGHT][-1 - window :]
    assert parts[-3].endswith("This is step 3. Board now:\n" + TWO_RIGHT)


def test_a_marker_of_images_in_a_text_is_only_text():
    assert text("compact", replace(VIEW, observation="<image>", history=())) == "<image>"
    view = replace(VIEW, observation=picture(START), history=((4, "<image>", "up"),))
    assert [part["type"] for part in text("default", view)] == ["text", "image", "text"]
