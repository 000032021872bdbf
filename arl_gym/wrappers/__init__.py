"""The agent layer around any environment of the contract: one wrapper a file."""

from arl_gym.wrappers.anchor_observation import AnchorObservation
from arl_gym.wrappers.expert_info import ExpertInfo
from arl_gym.wrappers.format_penalty import FormatPenalty, Parsed, format_instructions, parse_response
from arl_gym.wrappers.memory_window import MemoryWindow, generic_prompt
from arl_gym.wrappers.record_episode import RecordEpisode, load_episodes

__all__ = [
    "AnchorObservation",
    "ExpertInfo",
    "FormatPenalty",
    "MemoryWindow",
    "Parsed",
    "RecordEpisode",
    "format_instructions",
    "generic_prompt",
    "load_episodes",
    "parse_response",
]
