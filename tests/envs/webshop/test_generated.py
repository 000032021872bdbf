from itertools import islice

import pytest

from arl_gym.envs.webshop import generated
from arl_gym.envs.webshop.family import Family
from arl_gym.envs.webshop.generated import generated_content, generated_store
from arl_gym.envs.webshop.store import Task
from arl_gym.errors import ConfigError, DataError, UnknownNameError
from tests.envs.webshop import shops
from tests.envs.webshop.shops import mug_goal, three_mugs


@pytest.fixture(autouse=True)
def _mugs(tmp_path, monkeypatch):
    monkeypatch.setenv("ARL_GYM_CACHE", str(tmp_path / "cache"))
    monkeypatch.setitem(generated.CATALOGUES, "mugs", (shops.__name__, "three_mugs"))


def test_the_last_family_is_cut_with_its_goals():
    shop = generated_store("mugs", 5)
    assert len(shop) == 5
    assert [goal.asin for goal in shop.goals] == ["B000000000", "B000000002", "B000000003"]
    assert {name: list(numbers) for name, numbers in shop.splits.items()} == {"train": [0, 1], "val": [2]}
    assert shop.dataset == "generated"


def test_a_larger_shop_begins_like_a_smaller_one():
    small, large = (list(generated_content(three_mugs, n)) for n in (6, 12))
    assert large[: len(small)] == small


def test_a_shop_is_kept_until_the_generator_changes(monkeypatch):
    shop = generated_store("mugs", 3)
    assert generated_store("mugs", 3) is shop
    monkeypatch.setattr(shops, "VERSION", 2)
    assert generated_store("mugs", 3) is not shop


def test_a_goal_its_product_does_not_fulfil_is_an_error():
    def dear(k: int) -> Family:
        family = three_mugs(k)
        bad = mug_goal(family.products[2].asin, price_upper=4.0)
        return family if k < 2 else Family(split="val", products=family.products, goals=(bad,))

    content = generated_content(dear, 100)
    assert sum(isinstance(item, Task) for item in islice(content, 10)) == 4
    with pytest.raises(DataError, match=r"'find mug B000000008' is not fulfilled by its product B000000008"):
        list(content)


def test_the_same_asin_in_two_families_is_an_error(monkeypatch):
    monkeypatch.setattr(shops, "three_mugs", lambda k: three_mugs(0))
    with pytest.raises(DataError, match="two products have the ASIN B000000000"):
        generated_store("mugs", 6)


def test_unknown_catalogues_and_empty_shops_are_errors():
    with pytest.raises(UnknownNameError, match="did you mean 'mugs'"):
        generated_store("mug", 5)
    with pytest.raises(ConfigError, match="at least 1"):
        generated_store("mugs", 0)
