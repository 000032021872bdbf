import itertools

import pytest

from arl_gym.envs.webshop.generator import asin, full_family
from arl_gym.envs.webshop.reward import score


@pytest.fixture(scope="module")
def families():
    return [full_family(k) for k in range(120)]


def test_a_family_is_the_same_every_time(families):
    assert [full_family(k) for k in (7, 3)] == [families[7], families[3]]


def test_ids_are_unique_and_well_formed():
    ids = [asin(k, i) for k in range(0, 1_250_000, 500) for i in range(20)]
    assert len(set(ids)) == len(ids)
    assert all(len(name) == 10 and name.startswith("B0") and name.isalnum() for name in ids)


def test_every_goal_is_fulfilled_by_its_own_product(families):
    for family in families:
        by_id = {product.asin: product for product in family.products}
        for goal in family.goals:
            values = [value for _, values in by_id[goal.asin].options for value in values]
            assert score(by_id[goal.asin], values, goal).perfect


def test_no_sibling_fulfils_a_goal_whatever_is_selected(families):
    for family in families:
        for goal, product in itertools.product(family.goals, family.products):
            values = [value for _, values in product.options for value in values]
            assert score(product, values, goal).perfect == (product.asin == goal.asin)
