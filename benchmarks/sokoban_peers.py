"""Speeds of other Sokoban packages, one measurement a call; run by `benchmarks/sokoban.py` in their own venv.

    python benchmarks/sokoban_peers.py gym-sokoban-rooms 3      # what to measure, seconds

Prints one line `result N`: how many a second.
"""

import sys
import time
import warnings
from collections.abc import Callable

import numpy as np

warnings.simplefilter("ignore")


def rate(once: Callable[[], int], seconds: float) -> float:
    """Return how much `once` does a second; it returns how much it did."""
    once()
    n, start = 0, time.perf_counter()
    while (passed := time.perf_counter() - start) < seconds:
        n += once()
    return n / passed


def rooms(seconds: float, size: int, boxes: int) -> float:
    """gym-sokoban's rooms: what a reset generates."""
    from gym_sokoban.envs.sokoban_env import SokobanEnv

    env = SokobanEnv(dim_room=(size, size), num_boxes=boxes, reset=False)

    def reset() -> int:
        env.reset()
        return 1

    return rate(reset, seconds)


def rgb_steps(seconds: float) -> float:
    """gym-sokoban's steps with an `rgb_array` observation (6x6, 96x96 pixels), resets left out."""
    from gym_sokoban.envs.sokoban_env import SokobanEnv

    env = SokobanEnv(dim_room=(6, 6), num_boxes=1, max_steps=1 << 30, reset=False)
    env.reset()
    moves = np.random.default_rng(0).integers(1, 5, 4096)
    at = 0

    def step() -> int:
        nonlocal at
        at += 1
        env.step(moves[at % len(moves)])
        return 1

    return rate(step, seconds)


def envpool_steps(seconds: float, env_id: str, threads: int) -> float:
    """Steps of envpool's 64 boards (10x10 with 4 boxes), automatic resets included."""
    import envpool

    env = envpool.make_gymnasium(env_id, num_envs=64, num_threads=threads)
    env.reset()
    moves = np.random.default_rng(0).integers(0, 4, (1024, 64)).astype(np.int32)
    at = 0

    def step() -> int:
        nonlocal at
        at += 1
        env.step(moves[at % len(moves)])
        return 64

    return rate(step, seconds)


MEASURES: dict[str, Callable[[float], float]] = {
    "gym-sokoban-rooms": lambda s: rooms(s, 6, 1),
    "gym-sokoban-rooms-10x10": lambda s: rooms(s, 10, 4),
    "gym-sokoban-rgb": rgb_steps,
    "envpool-1": lambda s: envpool_steps(s, "Jumanji/Sokoban-v0", 1),
    "envpool-2": lambda s: envpool_steps(s, "Jumanji/Sokoban-v0", 2),
}

if __name__ == "__main__":
    print("result", MEASURES[sys.argv[1]](float(sys.argv[2])))
