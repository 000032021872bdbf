"""The global random streams of a process, as JSON: libraries draw from them (dropout, for example).

The trainer's own draws do not: tasks and samples come from streams derived from the seed and the step.
"""

import random
from typing import Any

import numpy as np
import torch

from arl_gym.errors import DataError


def random_state() -> dict[str, Any]:
    """Return the state of the streams of torch, NumPy and Python."""
    kind, keys, *rest = np.random.get_state(legacy=True)  # noqa: NPY002 - the stream that libraries draw from
    version, words, gauss = random.getstate()
    return {
        "torch": _hex(torch.get_rng_state()),
        "cuda": _hex(torch.cuda.get_rng_state()) if torch.cuda.is_available() else None,
        "numpy": [kind, np.asarray(keys).tolist(), *rest],
        "python": [version, list(words), gauss],
    }


def set_random_state(state: dict[str, Any]) -> None:
    """Set what `random_state` returned.

    Raises:
        DataError: If it is not of that form.
    """
    try:
        torch.set_rng_state(_bytes(state["torch"]))
        if state["cuda"] is not None and torch.cuda.is_available():
            torch.cuda.set_rng_state(_bytes(state["cuda"]))
        np.random.set_state(tuple(state["numpy"]))  # noqa: NPY002
        version, words, gauss = state["python"]
        random.setstate((version, tuple(words), gauss))
    except (KeyError, TypeError, ValueError, RuntimeError) as err:
        raise DataError(f"not the state of random streams: {err}") from err


def _hex(state: torch.Tensor) -> str:
    return state.numpy().tobytes().hex()


def _bytes(text: str) -> torch.Tensor:
    return torch.tensor(list(bytes.fromhex(text)), dtype=torch.uint8)
