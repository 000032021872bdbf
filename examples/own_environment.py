"""Water jugs: an environment of one's own, from tasks to evaluation.

python examples/own_environment.py
"""

from collections import deque
from math import gcd

import gymnasium as gym

from arl_gym import check_text_env, evaluate
from arl_gym.core import SPLITS, Outcome, TextEnv, Unicode
from arl_gym.errors import UnknownNameError
from arl_gym.rng import digest

Litres = tuple[int, int]  # of the small jug and the large one


def moves(sizes: Litres, water: Litres) -> dict[str, Litres]:
    """Return what each command makes of the water in the two jugs; only those that change something."""
    (small, large), (a, b) = sizes, water
    over, back = min(a, large - b), min(b, small - a)
    after = {
        "fill small": (small, b),
        "fill large": (a, large),
        "empty small": (0, b),
        "empty large": (a, 0),
        "pour small into large": (a - over, b + over),
        "pour large into small": (a + back, b - back),
    }
    return {command: state for command, state in after.items() if state != water}


def solve(sizes: Litres, water: Litres, goal: int) -> list[str]:
    """Return the fewest commands after which one jug holds the goal."""
    queue, paths = deque([water]), {water: list[str]()}
    while queue:
        state = queue.popleft()
        if goal in state:
            return paths[state]
        for command, after in moves(sizes, state).items():
            if after not in paths:
                paths[after] = [*paths[state], command]
                queue.append(after)
    raise ValueError(f"jugs of {sizes} litres cannot measure {goal}")


def split_of(task_id: str) -> str:
    """Return the split of a task: by its content, so that no content can be in two splits."""
    if int(task_id.split("-")[1]) > 12:
        return "test_ood"  # larger jugs than in training
    return ("test", "val", *["train"] * 6)[int(digest(task_id), 16) % 8]


def draw_up_tasks() -> dict[str, list[str]]:
    """Return the ids of each split: "3-5-4" is to measure 4 litres with jugs of 3 and 5."""
    tasks = {split: list[str]() for split in SPLITS}
    for small in range(2, 14):
        for large in range(small + 1, 16):
            for goal in range(2, large):
                task_id = f"{small}-{large}-{goal}"
                if goal % gcd(small, large) == 0 and len(solve((small, large), (0, 0), goal)) > 1:
                    tasks[split_of(task_id)].append(task_id)
    return tasks


TASKS = draw_up_tasks()


class WaterJugs(TextEnv):
    """Measure out water with two jugs that have no marks.

    The reward is 1 when one of them holds the goal, which ends the episode.
    """

    def __init__(self, *, split: str = "train", max_steps: int = 20, render_mode: str | None = None):
        super().__init__(dataset="generated", split=split, max_steps=max_steps, render_mode=render_mode)
        self.observation_space, self.action_space = Unicode(), Unicode()
        self.task_ids()  # an unknown split should say so now

    def task_ids(self, split: str | None = None) -> list[str]:
        """Return the ids of a split."""
        if (split or self.split) not in TASKS:
            raise UnknownNameError("split", split or self.split, TASKS, "WaterJugs")
        return TASKS[split or self.split]

    def _begin(self, task_id: str) -> None:
        small, large, self.goal = map(int, task_id.split("-"))
        self.sizes, self.water = (small, large), (0, 0)

    def _apply(self, action: str) -> Outcome:
        after = moves(self.sizes, self.water).get(action.strip().lower())
        self.water = after or self.water
        done = self._success()
        return Outcome(reward=float(done), terminated=done, valid=after is not None)

    def _observation(self) -> str:
        (small, large), (a, b) = self.sizes, self.water
        return f"The small jug holds {a} of {small} litres, the large jug {b} of {large}."

    def _task(self) -> str:
        return f"Measure out {self.goal} litres in one of the two jugs."

    def _success(self) -> bool:
        return self.goal in self.water

    def _score(self) -> float:
        return max(0.0, *(1 - abs(self.goal - held) / self.goal for held in self.water))

    def _state_key(self) -> str:
        return digest(f"{self.sizes} {self.goal} {self.water}")

    def _content_hash(self) -> str:
        return digest(f"{self.sizes} {self.goal}")

    def _admissible(self) -> list[str]:
        return list(moves(self.sizes, self.water))

    def expert_action(self) -> str:
        """Return the first command of a shortest way."""
        return solve(self.sizes, self.water, self.goal)[0]

    def expert_thought(self) -> str:
        """Return how far it still is."""
        return f"In {len(solve(self.sizes, self.water, self.goal))} moves I can have {self.goal} litres."


gym.register("Own/WaterJugs-v0", WaterJugs)  # type: ignore[arg-type]

if __name__ == "__main__":
    print({split: len(ids) for split, ids in TASKS.items()})
    check_text_env(WaterJugs)
    for policy in ("random", "expert"):
        result = evaluate(policy, "Own/WaterJugs-v0", split="test", episodes=32)
        print(f"{policy}: success {result.success_rate:.2f}, {result.return_mean:.2f} return")
