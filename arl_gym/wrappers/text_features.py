"""Text as vectors of fixed size, for policies that read numbers: hashed bags of words. NumPy only.

>>> env = TextFeatures(DiscreteActions(gym.make("ARL/ALFWorld-v0")))  # doctest: +SKIP
"""

import re
from functools import lru_cache
from itertools import pairwise
from typing import Any

import gymnasium as gym
import numpy as np
import numpy.typing as npt

from arl_gym.core import check_count
from arl_gym.errors import ConfigError
from arl_gym.rng import derive

Vector = npt.NDArray[np.float32]

SIZE = 128
"""Length of a text's vector by default."""

_WORD = re.compile(r"\w+|[^\w\s]")


class TextFeatures(gym.Wrapper[Any, Any, Any, Any], gym.utils.RecordConstructorArgs):
    """Shows a text env as numbers: observation, task and every admissible action as a vector.

    | key | shape | |
    |---|---|---|
    | `observation` | (size,) float32 | `text_vector` of the observation |
    | `task` | (size,) float32 | that of `info["task"]`; all 0 where there is none |
    | `actions` | (max_actions, size) float32 | row k is the action of number k; all 0 beyond them |
    | `action_mask` | (max_actions,) int8 | `info["action_mask"]` |

    There is no history in it: what an earlier observation said is lost to a policy without a memory. WebShop
    shows the options chosen so far with `mark_clicked=True` only. Boards drawn as text say nothing as bags
    of words: take Sokoban's "planes".

    Args:
        env: A `DiscreteActions`, or wrappers around one, whose observations are strings.
        size: Length of a vector.

    Raises:
        ConfigError: If the observations are no strings, the actions have no numbers, or `size` is below 1.
    """

    def __init__(self, env: gym.Env[Any, Any], size: int = SIZE):
        gym.utils.RecordConstructorArgs.__init__(self, size=size)
        gym.Wrapper.__init__(self, env)
        check_count("size", size)
        if env.observation_space.dtype != np.dtype(str):
            raise ConfigError(
                f"TextFeatures needs text observations; {env.unwrapped} gives {env.observation_space}"
            )
        if not env.has_wrapper_attr("action_masks"):
            raise ConfigError(
                f"TextFeatures needs numbered actions: put DiscreteActions around {env.unwrapped} first"
            )
        self.size = size
        n = env.get_wrapper_attr("max_actions")
        one = gym.spaces.Box(-1, 1, (size,), np.float32)
        self.observation_space = gym.spaces.Dict(
            observation=one,
            task=one,
            actions=gym.spaces.Box(-1, 1, (n, size), np.float32),
            action_mask=gym.spaces.MultiBinary(n),
        )

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, npt.NDArray[Any]], dict[str, Any]]:
        """Start an episode; see the wrapped env."""
        obs, info = self.env.reset(seed=seed, options=options)
        return self._features(obs, info), info

    def step(self, action: Any) -> tuple[dict[str, npt.NDArray[Any]], Any, bool, bool, dict[str, Any]]:
        """Carry out the action of this number; see the wrapped env."""
        obs, reward, terminated, truncated, info = self.env.step(action)
        return self._features(obs, info), reward, terminated, truncated, info

    def _features(self, text: str, info: dict[str, Any]) -> dict[str, npt.NDArray[Any]]:
        mask = info["action_mask"]
        actions = np.zeros((len(mask), self.size), np.float32)
        for k in range(int(mask.sum())):
            actions[k] = _known_vector(info["admissible_actions"][k], self.size)
        return {
            "observation": text_vector(text, self.size),
            "task": _known_vector(info.get("task", ""), self.size).copy(),
            "actions": actions,
            "action_mask": mask.copy(),
        }


def text_vector(text: str, size: int) -> Vector:
    """Return the hashed bag of words of a text, equal in every process.

    Words, punctuation marks and pairs of neighbours each count one, in lower case, at a place and with a sign
    that their hash gives; the sum is scaled to length 1.

    Returns:
        float32 of shape (size,): of length 1, or all 0 if the text has no words or they cancel out.

    References:
        Weinberger et al., "Feature hashing for large scale multitask learning", ICML 2009, arXiv:0902.2206.
    """
    words = _WORD.findall(text.lower())
    hashes = np.array([*map(_hash, words), *(_hash(f"{a} {b}") for a, b in pairwise(words))], np.uint64)
    signs = np.where(hashes & 1, 1, -1)
    vector = np.bincount((hashes >> 1) % size, signs, size).astype(np.float32)
    norm = np.linalg.norm(vector)
    return vector / norm if norm else vector


# Words, actions and tasks come again and again.
@lru_cache(maxsize=1 << 16)
def _hash(token: str) -> int:
    return derive(token)


@lru_cache(maxsize=1 << 12)
def _known_vector(text: str, size: int) -> Vector:
    return text_vector(text, size)
