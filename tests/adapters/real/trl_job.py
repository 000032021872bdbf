"""What two ranks do in a test of TRL; see `tests.train.ranks`."""

from pathlib import Path

import numpy as np
import torch.distributed as dist

from arl_gym.adapters.tasks import task_dataset
from arl_gym.adapters.trl import episode_reward, rollout_func
from tests.adapters.real.test_trl import trainer
from tests.train.ranks import Arrays


def groups_of_unequal_episodes(folder: Path) -> Arrays:
    """Train a step: a group of one rank has episodes of two turns, the other of five."""
    rows = [
        row
        for n_turns in (2, 5)
        for row in task_dataset("ARL/Sokoban-v0", n=1, library="trl", max_episode_steps=n_turns)
    ]
    seen = {}

    def reward(**columns):
        seen.update(columns)
        return episode_reward(**columns)

    played = trainer(folder, rows, n=2, rollout_func=rollout_func, reward_funcs=reward)
    tokenizer = played.processing_class
    said = [*tokenizer("<think></think><action>up</action>")["input_ids"], tokenizer.eos_token_id]
    asked = []

    def generate(contexts, *rest):
        # Where a model's weights are spread over the ranks, to sample is to meet.
        dist.barrier()
        asked.append(len(contexts))
        return [list(said) for _ in contexts], None

    played._generate_single_turn = generate
    played.train()
    return {
        "asked": np.array(asked),
        "turns": np.array([len(record["rewards"]) for record in seen["episode"]]),
        "rewards": np.array(episode_reward(**seen)),
        "step": np.array(played.state.global_step),
        "mean_reward": np.array(played.state.log_history[0]["rewards/reward/mean"]),
    }
