import argparse

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arl_gym.cli.options import add_workers_option, env_id, key_value, literal, parser
from tests.agents.counting import ID


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("3", 3),
        ("0.5", 0.5),
        ("true", True),
        ("null", None),
        ("[6, 6]", [6, 6]),
        ('{"a": null}', {"a": None}),
        ('"3"', "3"),
        ("grid", "grid"),
        ("a=b", "a=b"),
        ("", ""),
        ("2024-05-01", "2024-05-01"),
        ("1\nother = 2", 1),
    ],
)
def test_a_value_is_toml_or_json_or_else_text(text, value):
    assert literal(text) == value
    assert type(literal(text)) is type(value)


@given(st.text("01e.-_[]{}\\\"'=,:#\\n truefalsé", max_size=12))
def test_any_text_is_a_value(text):
    literal(text)


@pytest.mark.parametrize("text", ["novalue", "=3", "a b=3"])
def test_a_pair_needs_a_key_and_an_equals_sign(text):
    with pytest.raises(argparse.ArgumentTypeError, match="expected KEY=VALUE"):
        key_value(text)


def test_an_id_may_name_its_module():
    assert env_id(f"tests.agents.counting:{ID}") == ID


@pytest.mark.parametrize(
    ("text", "says"),
    [("ARL/Sokobn-v0", "did you mean 'ARL/Sokoban-v0'"), ("no.such:X-v0", "cannot import 'no.such'")],
)
def test_an_unknown_id_is_explained(text, says):
    with pytest.raises(argparse.ArgumentTypeError, match=says):
        env_id(text)


def test_help_shows_the_defaults_that_are_values():
    options = parser("x", "")
    options.add_argument("--steps", type=int, default=3, help="how many")
    options.add_argument("--out", help="where to")
    options.add_argument("--quiet", action="store_true", help="say nothing")
    shown = options.format_help()
    assert "how many (default: 3)" in shown
    assert "where to\n" in shown
    assert "say nothing\n" in shown


def test_workers_are_processes_or_actors():
    p = parser("x", "")
    add_workers_option(p)
    assert p.parse_args([]).workers == 0
    assert p.parse_args(["--workers", "2"]).workers == 2
    assert p.parse_args(["--workers", "ray:4"]).workers == "ray:4"


@pytest.mark.parametrize("text", ["-1", "two", "ray:0"])
def test_other_workers_are_bad_usage_that_says_what_would_do(text, capsys):
    p = parser("x", "")
    add_workers_option(p)
    with pytest.raises(SystemExit):
        p.parse_args([f"--workers={text}"])
    assert "'ray:N' (N actors), got" in capsys.readouterr().err
