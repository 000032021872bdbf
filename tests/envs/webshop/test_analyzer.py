"""The expected terms are those of Lucene 9.5 (pyserini 0.22.1's default analyser) for these texts."""

import json

import pytest
from hypothesis import given, settings
from hypothesis.strategies import text

from arl_gym.envs.webshop.analyzer import tokens, words

TEXTS = [
    ("The women's shoes 1,000.5 3.5mm x-small", ["women", "shoe", "1,000.5", "3.5mm", "x", "small"]),
    ("running skies dies us as is s ss sss", ["run", "ski", "di", "us", "s", "ss", "sss"]),
    ("x's X'S x’s x＇s s's 's as's a' don't", ["x", "x", "x", "x", "s", "s", "don't"]),
    ("a:b 1:2 U.S.A. rock'n'roll 6\" 1/4", ["a:b", "1", "2", "u.s.a", "rock'n'rol", "6", "1", "4"]),
    (
        "1.2.3,4 1;2 1'2 a1.b2 a1.2 1b.2 1,b c,1",
        ["1.2.3,4", "1;2", "1'2", "a1", "b2", "a1.2", "1b", "2", "1", "b", "c", "1"],
    ),
    ("_ __ __b _1 1_ b_c b_.c _._ b._c", ["__b", "_1", "1_", "b_c", "b_", "c", "b", "_c"]),
    ("technology assembly incredibly nobly", ["technolog", "assembl", "incred", "nobli"]),
    ("trekking hopping falling plated", ["trek", "hop", "fall", "plate"]),
    ("Levi’s® jeans™ ©2020 10™", ["levi", "®", "jean", "™", "©", "2020", "10", "™"]),
    ("12½ inch, 10² ft", ["12", "inch", "10", "ft"]),
    ("naïve cafe\u0301 ＡＢＣ ﬁne soft\u00adener", ["naïv", "cafe\u0301", "ａｂｃ", "ﬁne", "soft\u00aden"]),
    ("İstanbul ΟΔΟΣ Ω", ["istanbul", "οδοσ", "ω"]),
    (
        "日本語 カタカナ ひらがな 한국어 ประเทศไทย",
        ["日", "本", "語", "カタカナ", "ひ", "ら", "が", "な", "한국어", "ประเทศไทย"],
    ),
    ("a❤️b 👍🏽👩‍👩‍👧 😀😀", ["❤️", "b", "👍🏽", "👩‍👩‍👧", "😀", "😀"]),
    ("🇺🇸🇬🇧🇫", ["🇺🇸", "🇬🇧"]),
    ("red\u00a0mug\tblue\u200bhat", ["red", "mug", "blue", "hat"]),
]


@pytest.mark.parametrize(("sentence", "terms"), TEXTS)
def test_the_terms_are_those_of_lucene(sentence, terms):
    assert tokens(sentence) == terms


@pytest.mark.parametrize(
    ("sentence", "lengths"),
    [
        ("b" * 300, [255, 45]),
        ("b." * 300, [255, 255, 87]),
        ("ab" * 126 + ".." + "c" * 20, [252, 20]),
        ("b" * 254 + ".bcd", [254, 3]),
        ("b" * 253 + ".bcd", [255, 2]),
        ("é" * 600 + "’s", [255, 255, 90]),
    ],
)
def test_words_longer_than_255_characters_are_cut_into_words(sentence, lengths):
    assert [len(term) for term in tokens(sentence)] == lengths


def test_a_letter_beyond_ascii_elsewhere_does_not_change_the_words(shared_data):
    goals = json.loads((shared_data / "webshop" / "human_goals.json").read_text())[:2000]
    assert [words(goal + " é")[:-1] for goal in goals if goal.isascii()] == [
        words(goal) for goal in goals if goal.isascii()
    ]


def test_real_instructions_have_the_number_of_terms_that_lucene_finds(shared_data):
    goals = json.loads((shared_data / "webshop" / "human_goals.json").read_text())
    assert sum(len(tokens(goal)) for goal in goals) == 133_814


@settings(max_examples=50)
@given(text())
def test_terms_are_short_lower_case_and_never_empty(sentence):
    assert all(0 < len(term) <= 255 for term in tokens(sentence))


@pytest.mark.parametrize("unit", ["_", "a", "a.", "é", "é’", "日", "👍🏽", "\u0301", "1,", "©_"])
def test_hundred_kilobytes_of_anything_take_no_time(unit):
    assert len(tokens(unit * (100_000 // len(unit)))) <= 100_000
