import itertools
import json
from collections import Counter

import pytest

from arl_gym.envs.webshop.generator import asin, full_family
from arl_gym.envs.webshop.phrases import FRAMES
from arl_gym.envs.webshop.reward import score
from arl_gym.envs.webshop.words import leaves
from arl_gym.rng import digest


@pytest.fixture(scope="module")
def families():
    return [full_family(k) for k in range(331)]


@pytest.fixture(scope="module")
def products(families):
    return [product for family in families for product in family.products]


@pytest.fixture(scope="module")
def goals(families):
    return [goal for family in families for goal in family.goals]


def selections(product, goal):
    """Every way to select at most one value of each group, of those that could be wanted."""
    groups = [
        [None, *(v for v in values if any(w in v for w in goal.options))] for _, values in product.options
    ]
    return ([value for value in chosen if value] for chosen in itertools.product(*groups))


def test_a_family_is_the_same_every_time(families):
    assert [full_family(k) for k in (7, 3)] == [families[7], families[3]]


def test_the_first_families_are_pinned(families):
    # Another digest means another catalogue: raise VERSION with it.
    rows = [[row.to_row() for row in (*f.products, *f.goals)] for f in families[:60]]
    assert digest(json.dumps(rows)) == "1d6a5024a6c150d1"


def test_ids_are_unique_and_well_formed():
    ids = {asin(k, i) for k in range(0, 1_250_000, 500) for i in range(20)}
    assert len(ids) == 2_500 * 20
    assert all(len(name) == 10 and name.startswith("B0") and name.isalnum() for name in ids)
    assert all(name == name.upper() for name in ids)


def test_ids_do_not_follow_the_families():
    order = sorted(range(500), key=lambda k: asin(k, 0))
    steps_up = sum(a < b for a, b in itertools.pairwise(order))
    assert 200 < steps_up < 300


def test_every_goal_is_fulfilled_by_a_selection_of_its_own_product(families):
    for family in families:
        by_id = {product.asin: product for product in family.products}
        for goal in family.goals:
            product = by_id[goal.asin]
            assert any(score(product, chosen, goal).total == 1.0 for chosen in selections(product, goal))


def test_no_sibling_fulfils_a_goal_whatever_is_selected(families):
    for family in families:
        for goal, product in itertools.product(family.goals, family.products):
            values = [value for _, values in product.options for value in values]
            reward = score(product, values, goal)
            assert reward.r_type == 1
            assert reward.perfect == (product.asin == goal.asin)


def test_most_siblings_miss_a_goal_in_one_point_only(families):
    misses: Counter[int] = Counter()
    for family in families[:60]:
        for goal, product in itertools.product(family.goals, family.products):
            r = score(product, [value for _, values in product.options for value in values], goal)
            misses[r.attributes + r.options + 1 - r.n_attributes - r.n_options - r.r_price] += 1
    del misses[0]
    assert misses[1] > misses.total() / 2


def test_texts_say_no_attribute_that_the_product_lacks(products):
    by_query = {leaf.query: leaf for leaf in leaves()}
    for product in products:
        leaf = by_query[product.query]
        texts = "\n".join((product.title, *product.bullets, product.description)).lower()
        said = {trait.phrase for trait in leaf.traits + leaf.materials if trait.phrase in texts}
        assert said <= set(product.attributes)


def test_an_attribute_is_said_where_its_share_puts_it(products):
    places: Counter[int] = Counter()
    for product in products:
        for phrase in product.attributes:
            texts = (product.title, "\n".join(product.bullets), product.description, phrase)
            places[next(i for i, text in enumerate(texts) if phrase in text.lower())] += 1
    shares = [places[i] / places.total() for i in range(4)]
    assert shares == pytest.approx([0.35, 0.40, 0.15, 0.10], abs=0.02)


def test_five_thousand_products_have_enough_goals_in_every_split(families):
    assert sum(len(family.products) for family in families) >= 5000
    counts = Counter(split for family in families for split in [family.split] * len(family.goals))
    assert min(counts[split] for split in ("val", "test", "test_ood")) >= 256
    assert counts["train"] > 2500


def test_held_out_leaves_are_in_their_split_alone(families):
    held_out = {leaf.query for leaf in leaves() if leaf.held_out}
    assert len(held_out) == 6
    for family in families:
        assert len({(p.query, p.family) for p in family.products}) == 1
        assert (family.split == "test_ood") == (family.products[0].query in held_out)
    assert len({family.products[0].family for family in families}) == len(families)


def test_instructions_are_in_lower_case_and_end_without_a_full_stop(goals):
    assert len(set(FRAMES)) >= 40
    for goal in goals:
        assert goal.instruction == goal.instruction.lower()
        assert not goal.instruction.endswith(".")
        assert " [sep] " not in goal.instruction
        assert 2 <= len(goal.attributes) <= 4
        assert len(goal.options) == len(goal.targets) <= 3


def test_the_reference_query_names_only_what_the_goal_asks_for(goals):
    kinds = {leaf.query: [kind.name for kind in leaf.kinds] for leaf in leaves()}
    for goal in goals:
        kind = max((name for name in kinds[goal.query] if goal.search.startswith(name)), key=len)
        rest = goal.search.removeprefix(kind)
        for phrase in sorted((*goal.attributes, *goal.options), key=len, reverse=True):
            rest = rest.replace(f" {phrase}", "", 1)
        assert rest == ""


def test_what_makes_shops_hard_to_read_occurs(products):
    titles = Counter(product.title for product in products)
    groups = [(name, values) for product in products for name, values in product.options]
    values = {value for _, values in groups for value in values}
    shared = [
        p
        for p in products
        if len({v for _, vs in p.options for v in vs}) < sum(len(vs) for _, vs in p.options)
    ]
    assert shared
    assert max(titles.values()) > 1
    assert any("'" in title for title in titles)
    assert any('"' in title for title in titles)
    assert any(not title.isascii() for title in titles)
    assert any(" | " in value for value in values)
    assert any(not value.isascii() for value in values)
    assert {"features", "description"} <= values
    assert any(len(values) == 1 for _, values in groups)
    assert any(len(values) > 40 for _, values in groups)
    assert any(not product.options for product in products)
    assert any("" in product.bullets for product in products)
    assert any(not product.description for product in products)
    assert any(len(product.description.split()) > 250 for product in products)
    assert any(product.prices == (100.0,) for product in products)
    assert any(len(product.prices) == 2 for product in products)
