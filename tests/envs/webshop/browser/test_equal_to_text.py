"""The browser shows what the text environment says, step by step, on the catalogue that people see."""

from typing import Any

import pytest

from arl_gym.envs.webshop.browser_session import BrowserSession, Window
from arl_gym.envs.webshop.env import WebShopEnv
from arl_gym.envs.webshop.session import Session
from arl_gym.rng import Rng
from tests.envs.webshop.shelf import GOAL, Shelf
from tests.envs.webshop.site.fronts import HOSTILE, FrontTasks
from tests.envs.webshop.test_session import MUGS

SAME = ("admissible_actions", "page", "selected_options", "action_valid", "reward_details", "state_key")
GARBAGE = ("", "buy", "click[]", "click[nope]", "click[search]", "search[]", "scroll[down]", HOSTILE)
WORDS = (
    "red shoes",
    "LAMP",
    "tea",
    "zzz",
    "",
    " ",
    "<b>&",
    '"',
    "é🙂",
    "\ud800x",
    "a\nb",
    "a\tb",
    "x" * 3000,
)


def same_step(text: WebShopEnv, browser: WebShopEnv, action: str) -> bool:
    """Take one action in both; return whether the episode goes on."""
    said, seen = text.step(action), browser.step(action)
    assert seen[:4] == said[:4], action
    assert [seen[4][key] for key in SAME] == [said[4][key] for key in SAME], action
    return not (said[2] or said[3])


def random_action(rng: Rng, admissible: list[str]) -> str:
    kind = rng.below(10)
    if kind == 0:
        return rng.choice(GARBAGE)
    if kind <= 2 or not admissible:
        return f"search[{rng.choice(WORDS)}]"
    return rng.choice(admissible)


@pytest.mark.parametrize("obs_mode", ["text", "text_rich"])
@pytest.mark.timeout(600)
def test_random_episodes_are_the_same(new_env, obs_mode):
    options: dict[str, Any] = {"catalogue": "full", "num_products": 2000, "obs_mode": obs_mode}
    text, browser = new_env(**options, frontend="text"), new_env(**options)
    bought = 0
    for episode in range(30):
        rng = Rng("random episode", obs_mode, episode)
        assert browser.reset(seed=episode)[0] == text.reset(seed=episode)[0]
        admissible = text._info()["admissible_actions"]
        while same_step(text, browser, random_action(rng, admissible)):
            admissible = text._info()["admissible_actions"]
        bought += text._info()["page"] == "done"
    assert 0 < bought < 30


@pytest.mark.timeout(600)
def test_the_expert_shops_the_same_way(new_env):
    options: dict[str, Any] = {"catalogue": "full", "num_products": 2000, "split": "test"}
    text, browser = new_env(**options, frontend="text"), new_env(**options)
    for task_id in text.task_ids()[:40]:
        assert browser.reset(options={"task_id": task_id})[0] == text.reset(options={"task_id": task_id})[0]
        going = True
        while going:
            assert browser.expert_action() == text.expert_action()
            going = same_step(text, browser, text.expert_action())
        assert browser._info()["success"]


@pytest.mark.parametrize(
    "options",
    [
        {"number_results": True, "mark_clicked": True},
        {"results_per_page": 3, "hide_empty_next": True, "show_attributes": True},
        {"compat": True},
    ],
)
def test_the_options_of_a_session_hold_in_the_browser(new_env, options):
    text, browser = new_env(**options, frontend="text"), new_env(**options)
    for task_id in text.task_ids()[:3]:
        browser.reset(options={"task_id": task_id})
        text.reset(options={"task_id": task_id})
        rng = Rng("options", task_id)
        while same_step(text, browser, random_action(rng, text._info()["admissible_actions"])):
            pass


def test_hostile_products_and_instructions_are_shown_as_they_are():
    """Options in colliding groups, with line breaks and quotes, empty ones; a text that is mark-up."""
    tasks: Any = FrontTasks(
        MUGS, [GOAL, type(GOAL)(**{f: getattr(GOAL, f) for f in GOAL.__slots__} | {"instruction": HOSTILE})]
    )
    window = Window(size=(800, 600), pictures=False, marks=False)
    text, browser = Session(Shelf(MUGS)), BrowserSession(tasks, window=window)
    try:
        for number, task_id in enumerate(tasks.ids("test", None)):
            text.begin(tasks.goals[number], task_id)
            browser.begin(tasks.goals[number], task_id)
            for action in (
                "search[mug]",
                *["click[next >]"] * 4,
                "click[b000000047]",
                "click[strap: black]",
                'click[a "b" [c]\nd]',
                "click[color: features]",
                "click[features]",
                "click[< prev]",
                "click[black]",
                "click[groß]",
                "click[< prev]",
                "click[b000000049]",
                "click[description]",
                "click[< prev]",
                "click[buy now]",
            ):
                assert browser.act(action) == text.act(action)
                assert browser.text_rich() == text.text_rich(), action
                assert browser.clickables() == text.clickables(), action
            assert browser.reward == text.reward
    finally:
        browser.close()
