import json

import pytest

from arl_gym.envs.webshop.goal import NO_BOUND, Goal, with_bound
from arl_gym.rng import Rng


def test_a_bound_is_the_second_to_fourth_ten_above_the_price():
    bounds = {with_bound("find a mug", 19.99, Rng(i))[1] for i in range(100)}
    assert bounds == {30.0, 40.0, 50.0}


def test_a_price_that_is_a_multiple_of_ten_is_below_its_bound():
    assert {with_bound("x", 20.0, Rng(i))[1] for i in range(100)} == {40.0, 50.0, 60.0}


def test_the_text_names_the_bound():
    text, bound = with_bound("find a mug", 975.0, Rng(1))
    assert (text, bound) == ("find a mug, and price lower than 990.00 dollars", 990.0)


@pytest.mark.parametrize("price", [980.0, 985.0, 2000.0])
def test_dear_products_have_no_bound(price):
    assert with_bound("find a mug", price, Rng(1)) == ("find a mug", NO_BOUND)


def test_a_row_brings_the_goal_back():
    goal = Goal(
        instruction="find a mug",
        asin="B000000001",
        category="garden",
        query="mugs",
        title="Mug",
        product_category="Home › Mugs",
        attributes=("dishwasher safe",),
        options=("navy blue",),
        targets=("blue",),
        price_upper=40.0,
        nouns=("mug",),
        weight=0.5,
        search="mug dishwasher safe",
    )
    assert Goal.of_row(json.loads(json.dumps(goal.to_row()))) == goal
