import itertools

from arl_gym.envs.webshop.reward import same_words
from arl_gym.envs.webshop.words import CATEGORIES, leaves, paraphrases


def test_there_are_sixty_leaves_in_five_categories():
    assert len({leaf.query for leaf in leaves()}) == 60
    assert [sum(leaf.category == category for leaf in leaves()) for category in CATEGORIES] == [12] * 5


def test_every_leaf_has_enough_to_tell_its_products_apart():
    for leaf in leaves():
        assert len(leaf.traits) >= 25
        assert len(leaf.materials) >= 4
        assert 4 <= len(leaf.kinds) <= 8
        assert leaf.groups


def test_the_reward_takes_no_attribute_of_a_leaf_for_another():
    for leaf in leaves():
        phrases = [trait.phrase for trait in leaf.traits + leaf.materials]
        for a, b in itertools.combinations(phrases, 2):
            assert not same_words(a, b)
            assert a not in b
            assert b not in a


def test_every_paraphrase_is_of_an_attribute():
    assert set(paraphrases()) <= {trait.phrase for leaf in leaves() for trait in leaf.traits}
