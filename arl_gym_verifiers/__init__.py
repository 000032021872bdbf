"""What verifiers finds by the id `arl-gym-verifiers`: it takes the names of top-level packages alone."""

from arl_gym.adapters.verifiers import ChatEnv, ChatHarness, ChatTaskset

__all__ = ["ChatEnv", "ChatHarness", "ChatTaskset"]
