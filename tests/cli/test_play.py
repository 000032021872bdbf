import io
import sys

import gymnasium as gym
import numpy as np
import pytest

from arl_gym.cli import main
from tests.agents.counting import ID, Counting


class Grid(Counting):
    """Observations are arrays and actions numbers."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.observation_space, self.action_space = gym.spaces.Box(0, 9, (1,)), gym.spaces.Discrete(2)

    def _check_action(self, action):
        assert self.action_space.contains(action)

    def _apply(self, action):
        return super()._apply(["up", "down"][action])

    def _observation(self):
        return np.zeros(1, np.float32)

    def _ansi(self):
        return f"<{self.n}>"


gym.register("Test/Grid-v0", Grid)


def play(monkeypatch, typed: str, *args: str) -> int:
    monkeypatch.setattr(sys, "stdin", io.StringIO(typed))
    return main(["play", *args])


def test_a_pipe_plays_to_the_end(monkeypatch, capsys):
    assert play(monkeypatch, "up\n\nup\nup\n", ID, "--task-id", "train/1") == 0
    shown = capsys.readouterr().out
    assert "Count up to the goal." in shown
    assert "actions: up, down" in shown
    assert shown.endswith("2 of 2\n\nsolved in 2 steps, return 0.75\n")


def test_a_lost_episode_says_so_and_illegal_actions_are_marked(monkeypatch, capsys):
    assert play(monkeypatch, "fly\ndown\n", ID, "--env", "max_steps=2") == 0
    shown = capsys.readouterr().out
    assert "step 1  reward -0.25  (not a legal action here)" in shown
    assert shown.endswith("not solved in 2 steps, return -0.5\n")


@pytest.mark.parametrize("typed", ["down\nq\nup\n", "down\n"])
def test_q_and_the_end_of_the_input_stop(monkeypatch, capsys, typed):
    assert play(monkeypatch, typed, ID) == 0
    assert capsys.readouterr().out.endswith("stopped after 1 steps, return -0.25\n")


def test_arrays_are_shown_as_the_env_draws_them_and_actions_are_numbers(monkeypatch, capsys):
    assert play(monkeypatch, "up\n7\n0\n", "Test/Grid-v0", "--task-id", "train/0") == 0
    shown = capsys.readouterr().out
    assert shown.count("type a number from 0 to 1, or q") == 2
    assert "<0>" in shown
    assert shown.endswith("<1>\n\nsolved in 1 steps, return 1\n")


def test_the_seed_picks_the_task(monkeypatch, capsys):
    tasks = set()
    for seed in "0", "1", "2", "0":
        play(monkeypatch, "", ID, "--seed", seed)
        tasks.add(capsys.readouterr().out.split()[2])
    assert 1 < len(tasks) <= 3


def test_an_unknown_task_fails(monkeypatch, capsys):
    assert play(monkeypatch, "", ID, "--task-id", "train/99") == 1
    assert "train/99" in capsys.readouterr().err


@pytest.mark.parametrize("key", ["max_step", "split"])
def test_a_wrong_env_key_fails_with_the_known_ones(monkeypatch, capsys, key):
    assert play(monkeypatch, "", ID, "--env", f"{key}=3") == 1
    error = capsys.readouterr().err
    assert f"unknown --env key '{key}'" in error
    assert "max_steps" in error
