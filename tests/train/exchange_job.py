"""What the tests of `distributed` run on each of two ranks (see `tests.train.ranks`)."""

import os
import pickle
from dataclasses import replace
from pathlib import Path

import numpy as np

from arl_gym import make_chat_vec
from arl_gym.agents.policies import ScriptedPolicy
from arl_gym.agents.types import Episode
from arl_gym.errors import ConfigError, Interrupted
from arl_gym.train.distributed import (
    TeamPolicy,
    any_rank,
    barrier,
    broadcast,
    check_together,
    form_teams,
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


class Recording(ScriptedPolicy):
    """Keeps what it is asked; on one rank says other ids ("ids"), or fails in a call of the second turn."""

    def __init__(self, on=None, call="", error=None):
        super().__init__(respond)
        self.asked, self.infos, self.n_polls = [], [], 0
        self.on, self.call, self.error = on, call, error

    def submit(self, requests):
        self.fail("submit")
        self.asked.append([(r.key, r.stream, r.messages) for r in requests])
        self.infos += [r.info for r in requests]
        super().submit(requests)

    def poll(self):
        self.fail("poll")
        self.n_polls += 1
        other = self.on == rank() and self.call == "ids"
        return [replace(reply, completion_ids=[reply.key + other]) for reply in super().poll()]

    def fail(self, call):
        if self.on == rank() and self.call == call and self.n_polls > 0:
            raise self.error


def teams(folder: Path) -> Arrays:
    """What a team of both ranks does."""
    start()
    team = form_teams(2)
    policy = Recording()
    counts: list[tuple[int, int]] = []
    played = play(TeamPolicy(policy, team), progress=lambda done, total: counts.append((done, total)))
    results = {
        "played": pickled([[turn.action for turn in t.turns] for t in played]),
        "counts": np.array(counts),
        "asked": pickled(policy.asked),
        "infos": pickled(policy.infos),
        "n_polls": np.array(policy.n_polls),
    }
    policy = Recording(1, "ids")
    results |= {"ids": pickled(failed(TeamPolicy(policy, team))), "polls, ids": np.array(policy.n_polls)}
    for on in (0, 1):
        for call in ("submit", "poll"):
            error = Unpicklable("far") if call == "poll" else ConfigError(f"on {on}: expected 1, got 2")
            policy = Recording(on, call, error)
            results[f"{call} on {on}"] = pickled(failed(TeamPolicy(policy, team)))
            results[f"polls, {call} on {on}"] = np.array(policy.n_polls)
    # A failure leaves the ranks in step.
    return results | {"again": pickled(len(play(TeamPolicy(Recording(), team))))}


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
    return failed(Failing(error))


def failed(policy) -> tuple[str, str]:
    try:
        play(policy)
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
