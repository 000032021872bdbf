"""One episode of Sokoban in verl's agent loop, sampled by a stand-in for verl's server.

pip install 'arl-gym[verl]'
python examples/adapters/verl_agent_loop.py

For a real run write the rows to a Parquet file, and this to a file that `actor_rollout_ref.rollout.agent.
agent_loop_config_path` names; verl does the rest:

    - name: arl_gym
      _target_: arl_gym.adapters.verl.ArlGymAgentLoop
"""

import asyncio
from types import SimpleNamespace
from typing import Any

from verl.experimental.agent_loop.agent_loop import DictConfigWrap
from verl.workers.rollout.replica import TokenOutput

from arl_gym.adapters import task_dataset
from arl_gym.adapters.verl import ArlGymAgentLoop
from arl_gym.train.model import tiny_tokenizer

tokenizer = tiny_tokenizer()


class Server:
    """Always goes up, as a server with a model of one idea would."""

    async def generate(self, *, prompt_ids: list[int], **_: Any) -> TokenOutput:
        """Return the tokens of a response."""
        ids = tokenizer("<think>Up.</think><action>up</action>")["input_ids"]
        return TokenOutput(token_ids=[*ids, tokenizer.eos_token_id], log_probs=[-0.1] * (len(ids) + 1))


async def main() -> None:
    """Play the first task of the training split."""
    (row,) = task_dataset("ARL/Sokoban-v0", "train", n=1, library="verl", max_episode_steps=4)
    rollout = SimpleNamespace(prompt_length=4096, response_length=8192)
    config = SimpleNamespace(actor_rollout_ref=SimpleNamespace(rollout=rollout))
    wrapped = {"trainer_config": DictConfigWrap(config), "data_config": DictConfigWrap({})}
    loop = ArlGymAgentLoop(
        server_manager=Server(), tokenizer=tokenizer, processor=None, dataset_cls=None, **wrapped
    )
    output = await loop.run({"temperature": 1.0}, **row)
    episode = output.extra_fields["episode"]
    print(f"{len(episode['rewards'])} turns, rewards {episode['rewards']}, score {output.reward_score:.1f}")
    print(f"{sum(output.response_mask)} of {len(output.response_ids)} tokens of the response were sampled")


asyncio.run(main())
