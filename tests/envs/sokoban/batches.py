"""Backends, boards, environments and actions for the tests of Sokoban."""

import os

import numpy as np
import pytest

from arl_gym.envs.sokoban.batch import SokobanVectorEnv
from arl_gym.envs.sokoban.compiled import numba_installed
from arl_gym.envs.sokoban.env import SokobanEnv
from arl_gym.envs.sokoban.rules import SYMBOLS
from arl_gym.rng import Rng

CI = os.environ.get("CI") == "true"
# In CI numba must be there: the tests then run, and fail without it.
needs_numba = pytest.mark.skipif(not (numba_installed() or CI), reason="needs the extra `fast`")
BACKENDS = ["numpy", pytest.param("numba", marks=needs_numba)]
UP, DOWN, LEFT, RIGHT = range(4)

SHORT = "#####\n#@$.#\n#####"
TALL = "####\n#@ #\n#$ #\n#  #\n#. #\n####"
BEGUN = "######\n#@ * #\n# $  #\n#   .#\n######"
"""One of two boxes is on its target at the start."""
FOUR_WAYS = "#######\n#     #\n#  *  #\n#.$@  #\n#  ## #\n#######"
"""Up pushes a box off its target, down meets a wall, left solves it, right walks."""
LEVELS = [SHORT, TALL, BEGUN, FOUR_WAYS]


def make(n=1, **kwargs):
    """Make a batch of the levels given, or of a few generated rooms with two boxes."""
    if "levels" not in kwargs:
        hi = kwargs.get("max_steps", 20)
        kwargs = {"num_tasks": 12, "num_boxes": 2, "optimal": (3, hi), **kwargs}
    return SokobanVectorEnv(n, **{"obs_mode": "grid", "action_mode": "discrete", "max_steps": 20, **kwargs})


def make_single(**kwargs):
    return SokobanEnv(**{"obs_mode": "grid", "action_mode": "discrete", "max_steps": 20, **kwargs})


def draw(board):
    """Return the text of a board of codes."""
    return "\n".join("".join(SYMBOLS[code] for code in row) for row in board)


def random_actions(n_steps, n, seed=0):
    rng = Rng("test actions", seed)
    return np.array([[rng.below(4) for _ in range(n)] for _ in range(n_steps)])


def assert_same(a, b):
    """Compare nested results of `reset` or `step`: types, keys and every number."""
    if isinstance(a, dict):
        assert a.keys() == b.keys()
        for key in a:
            assert_same(a[key], b[key])
    elif isinstance(a, tuple):
        for left, right in zip(a, b, strict=True):
            assert_same(left, right)
    else:
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a, b)
