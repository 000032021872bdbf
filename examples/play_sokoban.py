"""Play the same twenty Sokoban rooms with random moves and with the expert: python examples/play_sokoban.py."""

import gymnasium as gym

import arl_gym  # registers the ids
from arl_gym.rng import Rng

gym.register_envs(arl_gym)


def play(env: gym.Env[str, str], seed: int, *, expert: bool) -> bool:
    """Play one episode and return whether the room was solved."""
    _, info = env.reset(seed=seed)
    rng, over = Rng("example", seed), False
    while not over:
        moves = info["admissible_actions"] or ["up"]
        action = env.unwrapped.expert_action() if expert else rng.choice(moves)
        _, _, terminated, truncated, info = env.step(action)
        over = terminated or truncated
    return bool(info["success"])


env = gym.make("ARL/Sokoban-v0")
for player in ("random", "expert"):
    solved = sum(play(env, seed, expert=player == "expert") for seed in range(20))
    print(f"{player}: {solved} of 20 rooms solved")
env.close()
