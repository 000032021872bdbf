"""What the tests of `distributed` run on each of two ranks (see `tests.train.ranks`)."""

import os
import pickle
from pathlib import Path

import numpy as np

from arl_gym import make_chat_vec
from arl_gym.agents.policies import ScriptedPolicy
from arl_gym.agents.types import Episode
from arl_gym.errors import ConfigError, Interrupted
from arl_gym.train.distributed import (
    any_rank,
    barrier,
    broadcast,
    check_together,
    gather,
    is_main,
    on_main,
    rank,
    share,
    shared_rollout,
    start,
    sum_arrays,
    world_size,
)
from tests.train.ranks import Arrays


def exchange(folder: Path) -> Arrays:
    """Everything that `distributed` does with two ranks; its tests read the names of the results."""
    mine = rank()
    assert (mine, world_size(), is_main()) == (int(os.environ["SLURM_PROCID"]), 2, mine == 0)
    start()
    start()  # twice is fine
    assert gather(("rank", mine)) == [("rank", 0), ("rank", 1)]
    assert broadcast(f"from {mine}") == "from 0"
    assert [any_rank(mine == 1), any_rank(False)] == [True, False]
    assert stopped() == "only rank 1 was told"
    array = np.arange(3, dtype=np.float32) + mine
    assert sum_arrays(array).tolist() == [1.0, 3.0, 5.0]
    assert array.tolist() == [mine, 1 + mine, 2 + mine]  # its own array is left as it was
    assert share("aabbca") == ([0, 1, 4, 5] if mine == 0 else [2, 3])
    barrier()
    counts: list[tuple[int, int]] = []
    return {
        "played": pickled(play(progress=lambda done, total: counts.append((done, total)))),
        "counts": np.array(counts),
        "error": pickled(failing(ConfigError("x: expected 1, got 2"))),
        "strange": pickled(failing(Unpicklable("far"))),
        "main": pickled(failing_main()),
    }


class Unpicklable(Exception):
    def __reduce__(self):
        raise TypeError("stays here")


def pickled(obj) -> np.ndarray:
    return np.frombuffer(pickle.dumps(obj), dtype=np.uint8)


def respond(request) -> str:
    return f"<think></think><action>{('up', 'down', 'left', 'right')[request.stream % 4]}</action>"


def play(policy=None, progress=None):
    """Three groups of two Sokoban episodes; without a policy the moves follow the sampling streams."""
    vec = make_chat_vec("ARL/Sokoban-v0", 2)
    try:
        episodes = [Episode(task_id=f"train-{g:06d}", group=g, copy=c) for g in (7, 3, 5) for c in (0, 1)]
        policy = ScriptedPolicy(respond) if policy is None else policy
        return shared_rollout(vec, policy, episodes, env_id="ARL/Sokoban-v0", seed=0, progress=progress)
    finally:
        vec.close()


class Failing(ScriptedPolicy):
    """Cannot answer on the second rank."""

    def __init__(self, error):
        super().__init__(respond)
        self.error = error

    def submit(self, requests):
        if rank() == 1:
            raise self.error
        super().submit(requests)


def failing(error) -> tuple[str, str]:
    try:
        play(Failing(error))
    except Exception as err:
        return type(err).__name__, str(err)
    return "", ""


def stopped() -> str:
    def check() -> None:
        if rank() == 1:
            raise Interrupted("only rank 1 was told")

    try:
        check_together(check)
    except Interrupted as err:
        return str(err)
    return ""


def failing_main() -> str:
    def act() -> None:
        raise ConfigError(f"rank {rank()} acted")

    try:
        on_main(act)
    except ConfigError as err:
        return str(err)
    return ""
