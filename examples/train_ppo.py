"""PPO in plain PyTorch learns 6x6 Sokoban with one box from the batched planes view.

    python examples/train_ppo.py --steps 1500000 --plot curve.png

Plays 256 boards at once (`gym.make_vec`), trains a small convolutional network, and prints the share of
unseen rooms (test split) that greedy play solves.
"""

import argparse

import gymnasium as gym
import numpy as np
import torch
from torch import Tensor, nn

import arl_gym  # noqa: F401 - registers the ids

ENVS, HORIZON, EPOCHS, MINIBATCH = 256, 32, 3, 2048
GAMMA, LAMBDA, CLIP, ENTROPY, LR = 0.97, 0.95, 0.2, 0.01, 1e-3


class Agent(nn.Module):
    """Two convolutions and a layer; policy and value on top."""

    def __init__(self, shape: tuple[int, ...], channels: int = 32, hidden: int = 256):
        super().__init__()
        planes, height, width = shape
        self.body = nn.Sequential(
            nn.Conv2d(planes, channels, 3, padding=1), nn.ReLU(),
            nn.Conv2d(channels, channels, 3, padding=1), nn.ReLU(),
            nn.Flatten(), nn.Linear(channels * height * width, hidden), nn.ReLU(),
        )  # fmt: skip
        self.policy, self.value = nn.Linear(hidden, 4), nn.Linear(hidden, 1)

    def forward(self, obs: Tensor) -> tuple[torch.distributions.Categorical, Tensor]:
        """Return the action distribution and the value of each observation (B, 7, H, W)."""
        x = self.body(obs.float())
        return torch.distributions.Categorical(logits=self.policy(x)), self.value(x).squeeze(-1)


def make(split: str, num_envs: int) -> gym.vector.VectorEnv:
    """Return boards that reset themselves within the step that ends an episode."""
    return gym.make_vec(
        "ARL/Sokoban-v0", num_envs=num_envs, obs_mode="planes", split=split, autoreset_mode="SameStep"
    )


@torch.no_grad()
def solved(agent: Agent, n: int = 256) -> float:
    """Return the share of the first `n` rooms of the test split that greedy play solves."""
    vec = make("test", n)
    obs = vec.reset(options={"task_id": [f"test-{i:06d}" for i in range(n)]})[0]
    done, won = np.zeros(n, bool), np.zeros(n, bool)
    while not done.all():
        obs, _, terminated, truncated, _ = vec.step(agent(torch.as_tensor(obs))[0].logits.argmax(-1).numpy())
        won |= terminated & ~done
        done |= terminated | truncated
    return float(won.mean())


def train(steps: int, every: int, seed: int) -> list[tuple[int, float]]:
    """Return the curve: (environment steps, share of unseen rooms solved)."""
    torch.manual_seed(seed)
    vec = make("train", ENVS)
    obs = torch.as_tensor(vec.reset(seed=seed)[0])
    agent = Agent(tuple(obs.shape[1:]))
    optimiser = torch.optim.Adam(agent.parameters(), lr=LR)
    curve: list[tuple[int, float]] = []
    n_updates = max(1, steps // (ENVS * HORIZON))
    for update in range(n_updates):
        optimiser.param_groups[0]["lr"] = LR * (1 - update / n_updates)
        rows: list[tuple[Tensor, ...]] = []
        with torch.no_grad():
            for _ in range(HORIZON):
                policy, value = agent(obs)
                action = policy.sample()
                after, reward, terminated, truncated, _ = vec.step(action.numpy())
                # Cut at the end of an episode: the next observation is of another room.
                alive = torch.as_tensor(1.0 - (terminated | truncated))
                # Tenths of the reward: values near 1 learn at the policy's pace.
                gain = torch.as_tensor(reward).float() / 10
                rows.append((obs, action, policy.log_prob(action), value, gain, alive))
                obs = torch.as_tensor(after)
            following, advantage = agent(obs)[1], torch.zeros(ENVS)
        advantages: list[Tensor] = []
        for _, _, _, value, reward, alive in reversed(rows):
            advantage = reward + GAMMA * alive * following - value + GAMMA * LAMBDA * alive * advantage
            following = value
            advantages.insert(0, advantage)
        seen, actions, old, values = (torch.cat([row[i] for row in rows]) for i in range(4))
        gain = torch.cat(advantages).float()
        returns = gain + values
        for _ in range(EPOCHS):
            for at in torch.split(torch.randperm(len(seen)), MINIBATCH):
                policy, value = agent(seen[at])
                ratio = (policy.log_prob(actions[at]) - old[at]).exp()
                a = (gain[at] - gain[at].mean()) / (gain[at].std() + 1e-8)
                clipped = torch.min(ratio * a, ratio.clamp(1 - CLIP, 1 + CLIP) * a).mean()
                loss = 0.5 * (value - returns[at]).pow(2).mean() - clipped - ENTROPY * policy.entropy().mean()
                optimiser.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
                optimiser.step()
        if (update + 1) % every == 0 or update + 1 == n_updates:
            curve.append(((update + 1) * ENVS * HORIZON, solved(agent)))
            print(f"{curve[-1][0]:>9,d} steps  {curve[-1][1]:6.1%} of unseen rooms solved", flush=True)
    return curve


def plot(curve: list[tuple[int, float]], path: str) -> None:
    """Draw the curve."""
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(6, 3.5), layout="constrained")
    axes.plot(*zip(*curve, strict=True), marker="o", markersize=3)
    axes.set(xlabel="environment steps", ylabel="unseen rooms solved", ylim=(0, 1))
    axes.grid(alpha=0.3)
    figure.savefig(path, dpi=120)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--steps", type=int, default=1_500_000, help="environment steps")
    parser.add_argument("--every", type=int, default=10, help="updates between two tests")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--plot", metavar="FILE", help="write the curve as an image")
    args = parser.parse_args()
    points = train(args.steps, args.every, args.seed)
    if args.plot:
        plot(points, args.plot)
