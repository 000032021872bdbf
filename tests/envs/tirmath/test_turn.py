import pytest

from arl_gym.envs.tirmath.turn import parse_turn, shorten

FENCE = "```"


@pytest.mark.parametrize("language", ["python", "Python", "py", "", "python3", " python  ", "PYTHON\t"])
def test_a_block_of_python_is_found(language):
    text = f"Think.\n{FENCE}{language}\nx = 1\nprint(x)\n{FENCE}\nOutput: 1"
    kept, prose, code = parse_turn(text)
    assert code == "x = 1\nprint(x)\n"
    assert prose == "Think.\n"
    assert kept == f"Think.\n{FENCE}{language}\nx = 1\nprint(x)\n{FENCE}"


def test_the_first_block_counts_and_the_rest_is_dropped():
    kept, _, code = parse_turn(f"{FENCE}python\na\n{FENCE}\n{FENCE}python\nb\n{FENCE}")
    assert code == "a\n"
    assert kept == f"{FENCE}python\na\n{FENCE}"


def test_a_block_may_begin_within_a_line():
    assert parse_turn(f"Now: {FENCE}py\na\n  {FENCE} and so on").code == "a\n"


def test_line_ends_of_windows_stay_as_they_are():
    text = f"So\r\n{FENCE}python\r\nprint(1)\r\n{FENCE}\r\nmore"
    kept, prose, code = parse_turn(text)
    assert (prose, code) == ("So\r\n", "print(1)\r\n")
    assert text.startswith(kept)


def test_an_empty_block_is_a_program_of_nothing():
    assert parse_turn(f"{FENCE}python\n{FENCE}").code == ""


def test_blocks_in_other_languages_are_text():
    text = f"{FENCE}bash\nls\n{FENCE}\nso\n{FENCE}python\nprint(1)\n{FENCE}"
    _, prose, code = parse_turn(text)
    assert code == "print(1)\n"
    assert prose == f"{FENCE}bash\nls\n{FENCE}\nso\n"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "no block",
        f"{FENCE}python\nprint(1)",
        f"{FENCE}python print(1){FENCE}",
        f"{FENCE}python\nprint('{FENCE}')",
        f"{FENCE}bash\nls\n{FENCE}",
        "`print(1)`",
    ],
)
def test_what_is_no_closed_block_of_python_is_text(text):
    assert parse_turn(text) == (text, text, None)


def test_a_fence_within_a_line_of_the_program_does_not_end_it():
    assert parse_turn(f"{FENCE}python\nprint('{FENCE}')\n{FENCE}").code == f"print('{FENCE}')\n"


def test_a_long_text_loses_its_middle():
    assert shorten("abcdef", 6) == "abcdef"
    assert shorten("abcdefghij", 4) == "ab ...[6 characters left out]... ij"
    assert shorten("abcdefghij", 5) == "ab ...[6 characters left out]... ij"
