import pytest

from arl_gym.train.repetition import is_repetitive


@pytest.mark.parametrize(
    "text",
    [
        "!" * 40,
        "I think that the best move now is " + "ha" * 40,
        # The second half, 20 characters, is four times "right" exactly.
        "abcdefghijklmnopqrst" + "right" * 4,
        # "go to the fridge" three times is 12 of 23 words, though never twice in a row.
        "a go to the fridge b c d e go to the fridge f g h i go to the fridge j k",
    ],
)
def test_one_thing_over_and_over_is_repetitive(text):
    assert is_repetitive(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "!" * 39,
        "  " + "!" * 39 + "\n" * 20,
        # Only the first half repeats.
        "!" * 30 + "now a sentence without any loop",
        # Second half of 21: "right" three times and "rights" is no tiling.
        "abcdefghijklmnopqrst" + "right" * 3 + "lefts",
        # "go to the fridge" three times is 12 of 24 words: not more than half.
        "a go to the fridge b c d e go to the fridge f g h i go to the fridge j k l",
        # Two occurrences in eight words are no loop.
        "opening the cupboard door, opening the cupboard door",
        "<think>The box is left of its target.</think><action>right</action>",
        "######\n#.$ O#\n#    #\n######\nThe box stands left of me.",
    ],
)
def test_other_texts_are_not(text):
    assert not is_repetitive(text)


def test_a_long_text_is_looked_through_in_no_time():
    assert is_repetitive("ab" * 50_000)
    assert not is_repetitive("a" * 75_000 + "b" + "a" * 25_000)
