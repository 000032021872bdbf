from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import arl_gym
from arl_gym.core import SPLITS
from arl_gym.envs.webshop.env import WebShopEnv
from arl_gym.errors import ConfigError, EpisodeOverError, UnknownNameError
from arl_gym.rng import Rng

gym.register_envs(arl_gym)


def mini(**kwargs: Any) -> WebShopEnv:
    chosen: dict[str, Any] = {"catalogue": "mini", "num_products": 2000} | kwargs
    return WebShopEnv(**chosen)


def shop_on(env, info):
    """Let the expert finish the episode."""
    total, over = 0.0, False
    while not over:
        _, reward, terminated, truncated, info = env.step(env.expert_action())
        total, over = total + reward, terminated or truncated
    return total, info


def test_the_first_page_shows_the_instruction_and_a_search_bar():
    env = mini()
    page, info = env.reset(options={"task_id": "train-000000"})
    assert page == f"WebShop [SEP] Instruction: [SEP] {info['task']} [SEP] Search"
    assert info["page"] == "search"
    assert info["admissible_actions"] == [f"search[{info['task']}]"]


def test_a_perfect_purchase_is_worth_ten_and_ends_the_episode():
    env = mini()
    _, info = env.reset(options={"task_id": "train-000000"})
    total, info = shop_on(env, info)
    assert (total, info["success"], info["score"], info["page"]) == (10.0, True, 1.0, "done")
    assert info["admissible_actions"] == []
    assert info["reward_details"]["r_type"] == 1.0
    with pytest.raises(EpisodeOverError):
        env.step("search[a]")


def bought_without_options(env):
    env.reset(options={"task_id": "train-000000"})
    asin = env.goal("train-000000").asin
    query = env.goal("train-000000").search
    env.step(f"search[{query}]")
    while f"click[{asin}]" not in env._admissible():
        env.step("click[next >]")
    env.step(f"click[{asin}]")
    return env.step("click[buy now]")


@pytest.mark.parametrize(("mode", "graded"), [("sparse10", False), ("score", True)])
def test_a_purchase_without_the_options_gets_part_of_the_score(mode, graded):
    env = mini(reward_mode=mode, max_steps=50)
    _, reward, terminated, _, info = bought_without_options(env)
    n = len(env.goal("train-000000").options)
    score = 3 / (3 + n)  # two attributes and the price, of these and the options
    assert terminated
    assert (info["score"], info["success"]) == (score, False)
    assert reward == (score if graded else 0.0)


def test_an_episode_is_cut_off_after_max_steps():
    env = mini(max_steps=2)
    env.reset(seed=0)
    assert env.step("search[bag]")[2:4] == (False, False)
    assert env.step("click[next >]")[2:4] == (False, True)


@pytest.mark.parametrize(
    "action", ["", "buy now", "click[nope]", "search[]", "click[search]", "[SEP]", "search"]
)
def test_nonsense_costs_a_step_and_changes_nothing(action):
    env = mini()
    before, info = env.reset(seed=1)
    after, reward, terminated, _, later = env.step(action)
    assert after == before
    assert (reward, terminated, later["action_valid"]) == (0.0, False, False)
    assert later["state_key"] == info["state_key"]


def test_selected_options_are_in_the_info_and_marked_on_request():
    env = mini(mark_clicked=True, max_steps=30)
    env.reset(options={"task_id": "train-000000"})
    while env.expert_action() != "click[buy now]":
        page, *_, info = env.step(env.expert_action())
    goal = env.goal("train-000000")
    assert tuple(info["selected_options"].values()) == goal.options
    assert all(f"{value} (selected)" in page for value in goal.options)


@pytest.mark.parametrize("mode", ["text", "text_rich", "html", "url"])
def test_every_observation_mode_shows_the_same_visit(mode):
    env = mini(obs_mode=mode)
    first, info = env.reset(seed=3)
    second, *_ = env.step(f"search[{info['task']}]")
    marks = {"text": " [SEP] ", "text_rich": "[button] ", "html": "<button", "url": "/search_results/"}
    assert marks[mode] in second
    assert first != second


def test_it_is_drawn_as_rich_text():
    env = mini(render_mode="ansi")
    _, info = env.reset(seed=3)
    shown = env.render()
    assert shown == f"WebShop\nInstruction: \n{info['task']}\n[button] Search [button_]\n"


@pytest.mark.parametrize("index", [7, np.int64(7)])
def test_a_task_is_chosen_by_its_number(index):
    env = mini(split="val")
    _, info = env.reset(options={"goal_index": index})
    assert info["task_id"] == "val-000007"


def test_a_task_is_chosen_by_its_instruction():
    env = mini()
    text = env.goal("train-000011").instruction
    _, info = env.reset(options={"instruction": text})
    assert (info["task_id"], info["task"]) == ("train-000011", text)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"goal_index": 99_999}, "unknown goal_index 99999"),
        ({"goal_index": -1}, "unknown goal_index -1"),
        ({"instruction": "a yacht"}, "no task of split 'train' has the instruction 'a yacht'"),
        ({"task_id": "val-000000"}, "unknown task_id 'val-000000'"),
        ({"goal": 3}, "unknown reset option 'goal'"),
    ],
)
def test_a_wrong_reset_option_is_named(options, message):
    with pytest.raises(ConfigError, match=message):
        mini().reset(options=options)


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"dataset": "real"}, "unknown dataset 'real'"),
        ({"obs_mode": "txt"}, "did you mean 'text'"),
        ({"reward_mode": "sparse1"}, "unknown reward_mode"),
        ({"catalogue": "small"}, "unknown catalogue 'small'"),
        ({"num_products": 0}, "num_products"),
        ({"num_products": "many"}, "num_products must be a whole number"),
        ({"num_tasks": 0}, "num_tasks must be a whole number of at least 1, got 0"),
        ({"goals": "human"}, "goals goes with dataset='original'"),
        ({"results_per_page": 0}, "results_per_page"),
        ({"num_products": 5, "split": "test_ood"}, "split 'test_ood' has no task"),
    ],
)
def test_a_wrong_argument_is_named(kwargs, message):
    with pytest.raises(ConfigError, match=message):
        mini(**kwargs)


def test_num_tasks_keeps_the_first_ones():
    assert list(mini(num_tasks=2, split="test").task_ids()) == ["test-000000", "test-000001"]


@pytest.mark.parametrize("catalogue", ["mini", "full"])
@pytest.mark.parametrize("split", SPLITS)
def test_the_expert_wins(catalogue, split):
    env = WebShopEnv(catalogue=catalogue, split=split)
    for task_id in env.task_ids()[:40]:
        _, info = env.reset(options={"task_id": task_id})
        assert shop_on(env, info)[1]["success"], task_id


def test_the_expert_clicks_numbered_results():
    env = mini(number_results=True)
    env.reset(options={"task_id": "train-000000"})
    assert shop_on(env, {})[1]["success"]


def test_the_expert_finds_back_from_where_a_random_player_has_strayed():
    env = WebShopEnv(max_steps=60)
    rng = Rng("stray")
    for seed in range(60):
        _, info = env.reset(seed=seed)
        for _ in range(rng.below(12)):
            actions = [a for a in info["admissible_actions"] if a != "click[buy now]"]
            _, _, _, _, info = env.step(rng.choice(actions))
        assert shop_on(env, info)[1]["success"], info["task_id"]


@pytest.mark.parametrize("catalogue", ["mini", "full"])
def test_splits_ask_for_products_of_different_families(catalogue):
    env = WebShopEnv(catalogue=catalogue)
    families: dict[str, str] = {}
    instructions: dict[str, str] = {}
    kinds: dict[str, set[str]] = {}
    for split in SPLITS:
        assert len(env.task_ids(split)) > 200
        for task_id in env.task_ids(split):
            goal = env.goal(task_id)
            number = env.shop.number(goal.asin)
            assert number is not None
            family = env.shop.product(number).family
            assert families.setdefault(family, split) == split
            assert instructions.setdefault(goal.instruction, split) == split
            kinds.setdefault(split, set()).add(goal.query)
    assert not kinds["test_ood"] & (kinds["train"] | kinds["val"] | kinds["test"])


def test_the_same_task_is_the_same_in_another_environment():
    first, info = mini().reset(options={"task_id": "train-000004"})
    again, other = mini(obs_mode="text").reset(options={"task_id": "train-000004"})
    assert first == again
    assert info == other


def test_a_snapshot_brings_the_visit_back():
    env = mini()
    env.reset(seed=5)
    for _ in range(2):
        page, *_, info = env.step(env.expert_action())
    state = env.get_state()
    env.reset(seed=6)
    assert env.set_state(state) == (page, info)


def test_the_state_key_tells_selected_options_apart():
    env = mini(max_steps=30)
    env.reset(options={"task_id": "train-000000"})
    keys = set()
    for _ in range(3):
        keys.add(env.step(env.expert_action())[4]["state_key"])
    assert len(keys) == 3


def test_original_data_has_its_own_ids_and_splits(shared_data, tmp_path):
    env = original(shared_data, tmp_path, split="test")
    assert (len(env.task_ids()), env.task_ids()[7]) == (500, "synthetic-000007")
    _, info = env.reset(options={"goal_index": 7})
    assert info["dataset"] == "original"
    assert info["title_tagger"] == "heuristic"
    wanted = (
        "Find me eyes makeup for nail polish, nail art with color: yellow, and size: x-large, and price lower"
    )
    assert info["task"].startswith(wanted)
    assert env.task_ids("train")[0] == "synthetic-001500"
    with pytest.raises(UnknownNameError, match="unknown goal_index 500"):
        env.reset(options={"goal_index": 500})


def original(shared_data, folder, **kwargs):
    files = shared_data / "webshop"
    for source in (files / "items_ins_v2_1000.json", *(files / "parity").glob("items_*.json")):
        (folder / source.name).symlink_to(source)
    return WebShopEnv(
        dataset="original",
        data_dir=str(folder),
        num_products=1000,
        goals="synthetic",
        nouns="heuristic",
        **kwargs,
    )


def test_the_expert_shops_in_original_data(shared_data, tmp_path):
    env = original(shared_data, tmp_path, split="eval")
    assert env.split == "val"
    scores = []
    for task_id in env.task_ids()[:50]:
        _, info = env.reset(options={"task_id": task_id})
        scores.append(shop_on(env, info)[1]["score"])
    assert min(scores) == 1.0
