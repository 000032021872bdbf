"""Steps a second of many environments in this process, over two processes and over two Ray actors.

    OMP_NUM_THREADS=1 python benchmarks/ray_backend.py --rounds 5      # needs: pip install 'arl-gym[ray]'

Every side plays the same episodes through `make_chat_vec`, in lockstep: experts in even slots, whatever is
admissible at random in odd ones. The trajectories must be equal. Starts are not timed; rounds alternate
between the sides. Prints a table: median steps/s of the rounds, and the ratio of Ray to processes in each.
"""

import argparse
import os
import statistics
from time import perf_counter
from typing import Any

import ray

from arl_gym.agents.policies import FALLBACK_ACTIONS, respond_in
from arl_gym.make import make_chat_vec
from arl_gym.rng import Rng, digest
from arl_gym.vector import Result, TextVectorEnv

IDS = ("ARL/ALFWorld-v0", "ARL/WebShop-v0")
SIDES: dict[str, int | str] = {"in-process": 0, "2 processes": 2, "Ray, 2 actors": "ray:2"}


def play(vec: TextVectorEnv, env_id: str, steps: int) -> tuple[float, str]:
    """Play `steps` actions in each slot, starting anew where an episode ends.

    Returns:
        Actions a second, resets included, and a digest of all that came.
    """
    respond, rng = respond_in("default", env_id), Rng("ray_backend")
    n = vec.num_envs
    told: list[dict[str, Any]] = [{} for _ in range(n)]
    over = [True] * n
    heard: list[str] = []
    began = perf_counter()
    sent = 0
    while sent < steps * n:
        for i in range(n):
            if over[i]:
                vec.send_reset(i, seed=rng.below(1 << 31))
            else:
                admissible = told[i]["admissible_actions"] or FALLBACK_ACTIONS
                action = told[i]["expert_action"] if i % 2 == 0 else rng.choice(admissible)
                vec.send(i, respond("so", action))
                sent += 1
        results: list[Result] = []
        while len(results) < n:
            results += vec.recv()
        for r in sorted(results, key=lambda r: r.index):
            told[r.index], over[r.index] = r.info, r.terminated or r.truncated
            heard.append(f"{r.index} {r.observation} {r.reward} {over[r.index]} {r.info['state_key']}")
    return sent / (perf_counter() - began), digest("\n".join(heard))


def measure(env_id: str, options: argparse.Namespace) -> None:
    """Print the table of one environment."""
    vecs = {
        side: make_chat_vec(env_id, options.num_envs, workers=workers, expert=True)
        for side, workers in SIDES.items()
    }
    speeds: dict[str, list[float]] = {side: [] for side in SIDES}
    try:
        for vec in vecs.values():
            play(vec, env_id, 2)  # caches
        for _ in range(options.rounds):
            heard = set()
            for side, vec in vecs.items():
                speed, words = play(vec, env_id, options.steps)
                speeds[side].append(speed)
                heard.add(words)
            assert len(heard) == 1, f"{env_id}: the sides played different episodes"
    finally:
        for vec in vecs.values():
            vec.close()
    print(f"\n{env_id}, {options.num_envs} envs, {options.steps} steps each, trajectories equal\n")
    print("| side | steps/s, median | of each round |\n|---|---|---|")
    for side, each in speeds.items():
        print(f"| {side} | {statistics.median(each):.0f} | {', '.join(f'{s:.0f}' for s in each)} |")
    ratios = [r / p for r, p in zip(speeds["Ray, 2 actors"], speeds["2 processes"], strict=True)]
    print(f"\nRay / processes: {statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})")


def main() -> None:
    """Measure all environments."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--num-envs", type=int, default=64)
    parser.add_argument("--steps", type=int, default=20, help="actions in each slot a round")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False)
    for env_id in IDS:
        measure(env_id, options)


if __name__ == "__main__":
    main()
