import sys

import gymnasium as gym
import pytest

from arl_gym.cli import main

MODULE = """
import gymnasium as gym
from arl_gym.core import Unicode
from tests.agents.counting import Counting

class Good(Counting):
    def _content_hash(self):
        return self._task_id

class Wild(Good):
    def _score(self):
        return 2.0

gym.register("Own/Good-v0", "own_env:Good")
"""


@pytest.fixture(autouse=True)
def _folder_of_the_author(tmp_path, monkeypatch):
    (tmp_path / "own_env.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.delitem(sys.modules, "own_env", raising=False)
    monkeypatch.delitem(gym.registry, "Own/Good-v0", raising=False)


@pytest.mark.parametrize("env", ["own_env:Good", "own_env:Own/Good-v0"])
def test_a_class_or_an_id_that_keeps_the_contract_ends_with_0(capsys, env):
    assert main(["check", env, "--episodes", "1", "--env", "max_steps=3"]) == 0
    assert " 0 broken" in capsys.readouterr().out.partition("\n")[0]


def test_a_broken_rule_ends_with_1_and_is_shown(capsys):
    assert main(["check", "own_env:Wild", "--episodes", "1"]) == 1
    assert "info['score'] in [0, 1], got 2.0" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("args", "what"),
    [
        (["own_env:Goood"], "did you mean 'Good'"),
        (["no_such_module:Good"], "No module named 'no_such_module'"),
        (["ARL/Sokobann-v0"], "did you mean 'ARL/Sokoban-v0'"),
        ([], "required: ENV"),
    ],
)
def test_a_wrong_name_is_bad_usage(capsys, args, what):
    assert main(["check", *args]) == 2
    assert what in capsys.readouterr().err


def test_an_unknown_keyword_argument_is_named(capsys):
    assert main(["check", "own_env:Good", "--env", "max_step=3"]) == 1
    assert "did you mean 'max_steps'" in capsys.readouterr().err
