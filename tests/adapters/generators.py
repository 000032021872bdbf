"""The random generators that all code of a process shares."""

import random
from typing import Any

import numpy as np


def states_of_the_process() -> tuple[Any, ...]:
    """Return the states of Python's and of NumPy's global generators."""
    numbers = np.random.get_state(legacy=False)  # noqa: NPY002 - the global one is the point
    return random.getstate(), numbers["state"]["key"].tolist(), numbers["state"]["pos"]
