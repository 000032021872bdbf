"""A torchrl rollout in a house of ALFWorld: text goes in and out as non-tensor data.

    pip install 'arl-gym[torchrl]'
    python examples/adapters/torchrl_rollout.py

Prints the episode.
"""

from tensordict import TensorDictBase

from arl_gym.adapters.torchrl import make_torchrl

env = make_torchrl("ARL/ALFWorld-v0")


def policy(td: TensorDictBase) -> TensorDictBase:
    """Play what the env's own expert would; a model would read the observation and the admissible actions."""
    td["action"] = env.unwrapped.expert_action()
    return td


episode = env.rollout(50, policy, auto_reset=False, tensordict=env.reset(seed=0))
print(episode["task"][0])
for said, heard in zip(episode["action"], episode["next", "observation"], strict=True):
    print(f"> {said}\n{heard}")
print(f"return {episode['next', 'reward'].sum().item()}")
env.close()
