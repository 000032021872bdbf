import pytest

from arl_gym.envs.webshop.oracle import wanted_options
from arl_gym.envs.webshop.reward import option_target
from tests.envs.webshop.test_reward import goal, product


def asked(options):
    return goal(options=options, targets=tuple(map(option_target, options)))


OPTIONS = (("color", ("navy blue", "blue", "red")), ("size", ("8 wide", "8", "9")), ("width", ("8",)))


@pytest.mark.parametrize(
    ("targets", "wanted"),
    [
        ((), {}),
        (("blue",), {"color": "blue"}),  # "navy blue" counts as blue, but a person takes the very word
        (("8", "red"), {"size": "8", "color": "red"}),
        (("navy blue",), {"color": "navy blue"}),
        (("8 wide",), {"size": "8 wide"}),  # the reward would take "8" too
        (("8 extra wide",), {"size": "8"}),
        (("9", "9"), {"size": "9"}),
        (("green", "9"), {"size": "9"}),
    ],
)
def test_options_are_chosen_as_the_reward_compares_them(targets, wanted):
    assert wanted_options(product(options=OPTIONS), asked(targets)) == wanted


def test_two_targets_of_one_group_do_not_undo_each_other():
    one_group = (("color", ("blue", "red")),)
    assert wanted_options(product(options=one_group), asked(("blue", "red"))) == {"color": "blue"}


def test_a_wish_leaves_the_group_to_another_that_has_no_other():
    groups = (("size", ("king", "full")), ("fit", ("king", "queen")))
    assert wanted_options(product(options=groups), asked(("king", "full"))) == {"size": "full", "fit": "king"}
