"""Shops to put on a site: what a site needs to know of its tasks, for a shelf of made-up products."""

from collections.abc import Sequence

from arl_gym.core import NumberedIds, TaskIds
from arl_gym.envs.webshop.goal import Goal
from arl_gym.envs.webshop.product import Product
from arl_gym.errors import UnknownNameError
from tests.envs.webshop.shelf import GOAL, Shelf

HOSTILE = "<script>alert(1)</script> & \"q\" 'a' 🙂 \u202eabc <b>" + "x" * 10_000


class Front(Shelf):
    """A shelf with the name of its content."""

    dataset, content_hash = "generated", "f" * 16

    def __len__(self) -> int:
        return len(self.products)


class FrontTasks:
    """The goals of a shelf, all of them in the split "test"."""

    splits = ("test",)

    def __init__(self, products: Sequence[Product], goals: Sequence[Goal] = (GOAL,)):
        self.store = Front(products)
        self.goals = goals

    def split_name(self, split: str) -> str:
        return split

    def ids(self, split: str, most: int | None) -> NumberedIds:
        return TaskIds(split, len(self.goals))

    def goal(self, task_id: str) -> Goal:
        ids = self.ids("test", None)
        if task_id not in ids:
            raise UnknownNameError("task_id", task_id, ids)
        return self.goals[ids.index(task_id)]
