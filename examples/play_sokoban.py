"""Play the same twenty Sokoban rooms with random moves and with the expert.

python examples/play_sokoban.py
"""

import gymnasium as gym

import arl_gym
from arl_gym.rng import Rng

gym.register_envs(arl_gym)  # importing arl_gym is enough; this tells linters so


def solves(env: gym.Env[str, str], seed: int, *, expert: bool) -> bool:
    """Play one episode and return whether the room was solved."""
    _, info = env.reset(seed=seed)
    rng, over = Rng("example", seed), False
    while not over:
        if expert:
            action = env.get_wrapper_attr("expert_action")()
        else:
            action = rng.choice(["up", "down", "left", "right"])
        _, _, terminated, truncated, info = env.step(action)
        over = terminated or truncated
    return bool(info["success"])


env = gym.make("ARL/Sokoban-v0")
for player in ("random", "expert"):
    n_solved = sum(solves(env, seed, expert=player == "expert") for seed in range(20))
    print(f"{player}: {n_solved} of 20 rooms solved")
env.close()
