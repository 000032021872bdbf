import sys

import pytest

from arl_gym.envs.webshop.tagger import load_tagger
from arl_gym.errors import DependencyMissing, UnknownNameError


def test_the_heuristic_keeps_words_that_are_not_known_to_be_something_else():
    tagger = load_tagger("heuristic")
    titles = ["Red Mug for Tea, 12 oz Mug (Café-Style)", "Men's X-Large T-Shirt", "100% the best", ""]
    assert tagger.nouns(titles) == [
        ("mug", "tea", "mug", "café-style"),
        ("men's", "x-large", "t-shirt"),
        (),
        (),
    ]
    assert tagger.name == "heuristic"


def test_without_spacy_the_error_is_the_install_line(monkeypatch):
    monkeypatch.setitem(sys.modules, "spacy", None)
    with pytest.raises(DependencyMissing, match=r"heuristic.*pip install 'arl-gym\[nouns\]'"):
        load_tagger("spacy")


def test_an_unknown_tagger_is_an_error():
    with pytest.raises(UnknownNameError, match="did you mean 'spacy'"):
        load_tagger("spaCy")  # type: ignore[arg-type]
