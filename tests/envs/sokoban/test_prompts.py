from dataclasses import replace

import pytest

from arl_gym.core import Chat, PromptView
from arl_gym.envs.sokoban.prompts import PROMPTS

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
    messages = PROMPTS[name](view)
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
