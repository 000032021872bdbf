from collections import Counter

import pytest

from arl_gym.envs.webshop.mini import MAX_FAMILIES, MEMBERS, OOD_KINDS, mini_family
from arl_gym.envs.webshop.reward import score
from arl_gym.errors import ConfigError
from arl_gym.rng import digest

FAMILIES = [mini_family(k) for k in range(MAX_FAMILIES)]


def test_families_stay_what_they_are():
    products = [p.to_row() for family in FAMILIES for p in family.products]
    goals = [g.to_row() for family in FAMILIES for g in family.goals]
    assert digest(repr((products, goals))) == "f6695bb80d61bea3"


def test_ids_are_ten_thousand_different_ones_that_do_not_tell_the_member():
    assert len({p.asin for family in FAMILIES for p in family.products}) == MAX_FAMILIES * MEMBERS == 10_000
    last_digits = Counter(family.products[0].asin[-1] for family in FAMILIES)
    assert min(last_digits.values()) > 150  # 200 of each on average


def test_only_the_first_product_of_a_family_is_what_its_goals_ask_for():
    for family in FAMILIES:
        assert len(family.goals) == 3
        for goal in family.goals:
            rewards = [score(product, goal.options, goal) for product in family.products]
            assert [r.perfect for r in rewards] == [True, False, False, False, False]
            assert not rewards[1].r_price
            assert [r.n_attributes for r in rewards] == [2, 2, 1, 1, 1]


def test_no_two_goals_have_the_same_instruction():
    instructions = [goal.instruction for family in FAMILIES for goal in family.goals]
    assert len(set(instructions)) == len(instructions)


def test_a_tenth_each_is_for_validation_and_tests():
    splits = Counter(family.split for family in FAMILIES)
    assert splits["test_ood"] == sum(family.products[0].query in OOD_KINDS for family in FAMILIES)
    for split in ("val", "test", "test_ood"):
        assert 150 < splits[split] < 250
    assert all(family.split == "test_ood" or family.products[0].query not in OOD_KINDS for family in FAMILIES)


def test_the_catalogue_ends():
    with pytest.raises(ConfigError, match="10000 products at most"):
        mini_family(MAX_FAMILIES)
