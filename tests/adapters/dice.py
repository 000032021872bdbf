"""An environment without task ids, as other packages have them. Registered as `Test/Dice-v0` on import."""

from typing import Any

import gymnasium as gym

from arl_gym.core import Unicode


class Dice(gym.Env[str, str]):
    """Guess the die that the seed of the reset has thrown; any answer ends it."""

    def __init__(self) -> None:
        self.observation_space, self.action_space = Unicode(), Unicode()

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        super().reset(seed=seed)
        self._die = int(self.np_random.integers(1, 1 << 30))
        return f"A die shows {self._die}.", {"task_id": "a die", "success": False}

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        won = action == str(self._die)
        return "", float(won), True, False, {"task_id": "a die", "success": won}


if "Test/Dice-v0" not in gym.registry:
    gym.register("Test/Dice-v0", "tests.adapters.dice:Dice")
