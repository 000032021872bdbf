"""Environments on the machines of a Ray cluster: a batch played at random, then Sokoban's expert evaluated.

Needs: pip install 'arl-gym[ray]'. Joins the cluster of RAY_ADDRESS; without one, Ray starts on this machine.
"""

import gymnasium as gym
import numpy as np

import arl_gym

vec = gym.make_vec("ARL/ALFWorld-v0", num_envs=16, workers="ray")
rng = np.random.default_rng(0)
_, infos = vec.reset(seed=0)
for _ in range(20):
    _, _, _, _, infos = vec.step([str(rng.choice(actions)) for actions in infos["admissible_actions"]])
print("\n".join(infos["task"][:3]))
vec.close()

result = arl_gym.evaluate("expert", "ARL/Sokoban-v0", episodes=64, workers="ray")
print(f"solved {result.success_rate:.0%} of 64 tasks")
