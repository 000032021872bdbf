"""PPO of RLlib on Sokoban's planes: Ray workers make the rooms, its own convolutions read them.

    pip install 'arl-gym[rllib]'
    python examples/adapters/rllib_ppo.py --iterations 20 --workers 2

Prints the mean return after every iteration; a solved room has a return of about 10.
"""

import argparse
import os

os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")

import ray
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.core.rl_module.default_model_config import DefaultModelConfig

from arl_gym.adapters.rllib import register


def main() -> None:
    """Train."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--iterations", type=int, default=20)
    parser.add_argument("--workers", type=int, default=1, help="Ray workers that play")
    args = parser.parse_args()

    # One machine: drop this line to use a cluster, or Ray's own defaults.
    ray.init(
        address="local", num_cpus=args.workers + 1, _node_ip_address="127.0.0.1", include_dashboard=False
    )
    register("boards", "ARL/Sokoban-v0", obs_mode="planes")
    config = (
        PPOConfig()
        .environment("boards")
        .env_runners(num_env_runners=args.workers, num_envs_per_env_runner=16)
        .training(train_batch_size=1024, minibatch_size=256, num_epochs=4, lr=1e-3, gamma=0.97)
        .rl_module(model_config=DefaultModelConfig(conv_filters=[[32, 3, 1], [32, 3, 1]]))
    )
    algorithm = config.build_algo()
    for k in range(args.iterations):
        result = algorithm.train()["env_runners"]
        print(f"iteration {k + 1}: mean return {result['episode_return_mean']:.2f}", flush=True)
    algorithm.stop()
    ray.shutdown()


if __name__ == "__main__":
    main()
