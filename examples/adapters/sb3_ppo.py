"""PPO of Stable-Baselines3 learns 6x6 Sokoban with one box from the planes view, 128 boards at once.

    pip install 'arl-gym[sb3,fast]'
    python examples/adapters/sb3_ppo.py --steps 1000000

Prints the share of unseen rooms that greedy play solves, before and after.
"""

import argparse

import gymnasium as gym
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from stable_baselines3.common.vec_env import VecNormalize
from torch import nn

from arl_gym.adapters.sb3 import make_sb3_vec


class Boards(BaseFeaturesExtractor):
    """Two convolutions that keep the size of the board; its own CNN is made for larger pictures."""

    def __init__(self, space: gym.spaces.Box):
        planes, height, width = space.shape
        super().__init__(space, features_dim=32 * height * width)
        self.body = nn.Sequential(
            nn.Conv2d(planes, 32, 3, padding=1), nn.ReLU(),
            nn.Conv2d(32, 32, 3, padding=1), nn.ReLU(), nn.Flatten(),
        )  # fmt: skip

    def forward(self, boards: torch.Tensor) -> torch.Tensor:
        """Return the features of boards (B, 7, H, W)."""
        features: torch.Tensor = self.body(boards)
        return features


def solved(model: PPO, n: int = 256) -> float:
    """Return the share of n unseen rooms that greedy play solves; only solved rooms have a return above 0."""
    rooms = make_sb3_vec("ARL/Sokoban-v0", 64, obs_mode="planes", split="test")
    rooms.seed(0)
    returns, _ = evaluate_policy(model, rooms, n_eval_episodes=n, return_episode_rewards=True)
    return sum(float(r) > 0 for r in returns) / n


def main() -> None:
    """Train and test."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--steps", type=int, default=1_000_000, help="environment steps")
    args = parser.parse_args()
    boards = make_sb3_vec("ARL/Sokoban-v0", 128, obs_mode="planes")
    model = PPO(
        "CnnPolicy",
        VecNormalize(boards, norm_obs=False, gamma=0.97),  # rewards near 1 learn at the policy's pace
        n_steps=32, batch_size=1024, n_epochs=3, gamma=0.97, ent_coef=0.01, seed=0, device="cpu",
        learning_rate=lambda left: 1e-3 * left,
        policy_kwargs={"features_extractor_class": Boards, "net_arch": [256]},
    )  # fmt: skip
    print(f"before: {solved(model):.1%} of unseen rooms solved")
    model.learn(args.steps)
    print(f"after {model.num_timesteps:,} steps: {solved(model):.1%}")


if __name__ == "__main__":
    main()
