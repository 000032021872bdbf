"""Names what the next action will answer, so that an advantage can compare turns that faced the same thing.

>>> env = AnchorObservation(gym.make("ARL/Sokoban-v0"))  # doctest: +SKIP
"""

from collections.abc import Mapping
from typing import Any

import gymnasium as gym
import numpy as np

from arl_gym.errors import ConfigError, UnknownNameError
from arl_gym.rng import digest

ANCHORS = ("observation", "state")


class AnchorObservation(gym.Wrapper[Any, Any, Any, Any], gym.utils.RecordConstructorArgs):
    """Adds `info["anchor"]`, a string, on every reset and step.

    It stands for the observation returned with it, without history, instructions or hints.

    Args:
        env: Any environment.
        anchor: "observation" is the raw text itself, or a digest of anything that is not text. "state" is the
            env's `info["state_key"]`.

    Raises:
        UnknownNameError: If `anchor` is none of the two.

    References:
        GiGPO, arXiv:2505.10978: the anchor states that form step-level groups.
    """

    def __init__(self, env: gym.Env[Any, Any], anchor: str = "observation"):
        gym.utils.RecordConstructorArgs.__init__(self, anchor=anchor)
        gym.Wrapper.__init__(self, env)
        if anchor not in ANCHORS:
            raise UnknownNameError("anchor", anchor, ANCHORS)
        self.anchor = anchor

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Start an episode; see the wrapped env."""
        obs, info = self.env.reset(seed=seed, options=options)
        info["anchor"] = self._anchor(obs, info)
        return obs, info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Carry out one action; see the wrapped env."""
        obs, reward, terminated, truncated, info = self.env.step(action)
        info["anchor"] = self._anchor(obs, info)
        return obs, reward, terminated, truncated, info

    def _anchor(self, obs: Any, info: Mapping[str, Any]) -> str:
        if self.anchor == "observation":
            return observation_key(obs)
        if "state_key" not in info:
            raise ConfigError(
                f"anchor='state' needs info['state_key'], which {self.unwrapped} does not give: "
                "use anchor='observation'"
            )
        return str(info["state_key"])


def observation_key(observation: Any) -> str:
    """Return a text as it is, and 16 hex digits for any other observation: equal content, equal key."""
    return observation if isinstance(observation, str) else digest(_encoded(observation))


def _encoded(x: Any) -> bytes:
    """Return bytes that differ when the content differs; lengths keep neighbours apart."""
    if isinstance(x, str):
        body = b"s" + x.encode("utf-8", "surrogatepass")
    elif hasattr(x, "__array_interface__"):  # arrays, NumPy scalars and PIL images
        array = np.asarray(x)
        body = f"a{array.dtype}{array.shape}".encode() + array.tobytes()
    elif isinstance(x, Mapping):
        items = sorted(x.items(), key=lambda item: str(item[0]))
        body = b"d" + b"".join(_encoded(str(k)) + _encoded(v) for k, v in items)
    elif isinstance(x, (list, tuple)):
        body = b"l" + b"".join(map(_encoded, x))
    else:
        body = b"r" + repr(x).encode()
    return len(body).to_bytes(8, "little") + body
