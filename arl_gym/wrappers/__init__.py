"""The agent layer around any environment of the contract: one wrapper a file."""

from arl_gym.wrappers.anchor_observation import AnchorObservation
from arl_gym.wrappers.discrete_actions import DiscreteActions
from arl_gym.wrappers.expert_info import ExpertInfo
from arl_gym.wrappers.format_penalty import FormatPenalty, Parsed, format_instructions, parse_response
from arl_gym.wrappers.memory_window import MemoryWindow, generic_prompt
from arl_gym.wrappers.record_episode import RecordEpisode, load_episodes
from arl_gym.wrappers.text_features import TextFeatures, text_vector

__all__ = [
    "AnchorObservation",
    "DiscreteActions",
    "ExpertInfo",
    "FormatPenalty",
    "MemoryWindow",
    "Parsed",
    "RecordEpisode",
    "TextFeatures",
    "format_instructions",
    "generic_prompt",
    "load_episodes",
    "parse_response",
    "text_vector",
]
