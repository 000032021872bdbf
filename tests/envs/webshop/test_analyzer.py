from arl_gym.envs.webshop.analyzer import tokens


def test_words_are_lower_cased_stemmed_and_lose_their_possessive():
    assert tokens("The Women's shoes") == ["women", "shoe"]
