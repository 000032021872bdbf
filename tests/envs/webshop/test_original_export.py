import json
from dataclasses import replace

import pytest

from arl_gym.envs.webshop import original
from arl_gym.envs.webshop.generated import generated_store
from arl_gym.envs.webshop.oracle import wanted_options
from arl_gym.envs.webshop.original import original_store
from arl_gym.envs.webshop.original_export import export_shop
from arl_gym.envs.webshop.reward import score
from arl_gym.envs.webshop.tagger import Tagger
from arl_gym.errors import DataError


@pytest.fixture(scope="module")
def shop():
    return generated_store("full", 300)


@pytest.fixture
def folder(shop, tmp_path):
    export_shop(shop, tmp_path / "data")
    return tmp_path / "data"


@pytest.fixture
def again(shop, folder, monkeypatch):
    """The exported shop as it is read, with the nouns it had."""
    nouns = {shop.product(k).title: shop.product(k).nouns for k in range(len(shop))}
    tagger = Tagger(name="table", nouns=lambda titles: [nouns[title] for title in titles])
    monkeypatch.setattr(original, "load_tagger", lambda kind: tagger)
    return original_store(folder)


def bare(instruction: str) -> str:
    return instruction.split(", and price lower than ")[0]


def test_the_products_are_read_as_they_were_but_for_reviews_and_families(shop, again):
    theirs = [replace(shop.product(k), reviews=(), family="") for k in range(len(shop))]
    assert [again.product(k) for k in range(len(again))] == theirs


def test_the_goals_are_read_as_they_were_but_for_their_bounds_and_order(shop, again):
    def parts(goal):
        return (bare(goal.instruction), goal.asin, goal.attributes, goal.options, goal.targets)

    assert sorted(map(parts, again.goals)) == sorted(map(parts, shop.goals))


def test_purchases_are_worth_the_same(shop, again):
    goals = {(bare(goal.instruction), goal.asin): goal for goal in again.goals}
    for goal in shop.goals:
        read = goals[bare(goal.instruction), goal.asin]
        own = shop.number(goal.asin)
        assert own is not None
        selected = wanted_options(again.product(own), read)
        assert selected == wanted_options(shop.product(own), goal)
        assert score(again.product(own), selected.values(), read).perfect
        for k in range(max(0, own - 2), min(len(shop), own + 3)):
            before, after = (
                score(s.product(k), selected.values(), g) for s, g in ((shop, goal), (again, read))
            )
            assert replace(after, r_price=before.r_price) == before


def test_an_exported_shop_is_never_called_the_original(again):
    assert again.dataset == "generated"
    assert again.info.counts["products that are generated"] == 300


def test_synthetic_goals_can_be_made_of_it(folder):
    made = original_store(folder, 20, "synthetic", "heuristic")
    assert all(goal.instruction.startswith("Find me ") for goal in made.goals)


def test_the_files_have_the_originals_fields(folder, shop):
    records = json.loads((folder / "items_shuffle.json").read_text())
    assert {*records[0]} - {"generated_by"} == {
        *("asin", "name", "category", "query", "product_category", "full_description"),
        *("small_description", "pricing", "images", "customization_options"),
    }
    assert list(json.loads((folder / "items_ins_v2.json").read_text())) == [r["asin"] for r in records]
    written = json.loads((folder / "items_human_ins.json").read_text())
    assert {*written[shop.goals[0].asin][0]} == {
        *("asin", "instruction", "attributes", "options", "instruction_attributes", "instruction_options"),
        *("assignment_id", "worker_id"),
    }


def test_files_that_are_there_are_not_written_over(shop, folder):
    with pytest.raises(DataError, match=r"items_shuffle\.json exists: choose another folder"):
        export_shop(shop, folder)
