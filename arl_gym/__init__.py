"""Gymnasium environments for language agents, with an integrated trainer.

>>> import gymnasium, arl_gym
>>> env = gymnasium.make("ARL/Sokoban-v0")
"""

from typing import TYPE_CHECKING, Any

from arl_gym.envs import register_all

if TYPE_CHECKING:
    from arl_gym.agents.evaluate import evaluate
    from arl_gym.checker import check_text_env
    from arl_gym.make import make_chat_env, make_chat_vec

__version__ = "0.1.0"
__all__ = ["__version__", "check_text_env", "evaluate", "make_chat_env", "make_chat_vec"]

_LAZY = {
    "check_text_env": "arl_gym.checker",
    "evaluate": "arl_gym.agents.evaluate",
    "make_chat_env": "arl_gym.make",
    "make_chat_vec": "arl_gym.make",
}


def __getattr__(name: str) -> Any:
    """Load the exported functions on first use: `import arl_gym` only registers the ids."""
    if name not in _LAZY:
        raise AttributeError(f"module 'arl_gym' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(_LAZY[name]), name)


register_all()
