import pickle

import numpy as np
import pytest

from arl_gym.errors import ConfigError
from arl_gym.train import distributed
from arl_gym.train.distributed import (
    Place,
    _rendezvous,
    agree,
    any_rank,
    broadcast,
    first_host,
    gather,
    n_teams,
    on_main,
    place,
    share,
    sum_arrays,
)
from tests.train.exchange_job import play
from tests.train.ranks import run_ranks, srun

pytestmark = pytest.mark.timeout(300)  # two processes import torch


@pytest.fixture(scope="module")
def two(tmp_path_factory):
    """What the jobs, of which `exchange` has assertions of its own, return on each task of a SLURM step."""
    jobs = ["exchange", "teams"]
    return run_ranks("tests.train.exchange_job", jobs, tmp_path_factory.mktemp("two"), launcher=srun)


def unpickled(results, name, job="exchange"):
    return pickle.loads(results[f"{job}/{name}"].tobytes())


def test_a_process_without_a_launcher_is_alone():
    assert place({}) == Place(rank=0, world_size=1, local_rank=0)
    # What sbatch alone sets: the script is one process, of many that could be.
    assert place({"SLURM_PROCID": "0", "SLURM_NTASKS": "8"}).world_size == 1


def test_launchers_say_who_is_who():
    slurm = {"SLURM_PROCID": "5", "SLURM_STEP_NUM_TASKS": "8", "SLURM_LOCALID": "1"}
    assert place(slurm) == Place(rank=5, world_size=8, local_rank=1)
    torchrun = {"RANK": "2", "WORLD_SIZE": "4", "LOCAL_RANK": "0"}
    assert place(slurm | torchrun) == Place(rank=2, world_size=4, local_rank=0)


@pytest.mark.parametrize(
    "environ",
    [
        {"RANK": "0"},
        {"RANK": "one", "WORLD_SIZE": "2", "LOCAL_RANK": "0"},
        {"RANK": "2", "WORLD_SIZE": "2", "LOCAL_RANK": "0"},
    ],
)
def test_incomplete_variables_of_a_launcher_are_refused(environ):
    with pytest.raises(ConfigError, match="WORLD_SIZE"):
        place(environ)


@pytest.mark.parametrize(
    ("nodelist", "host"),
    [
        ("gpu7", "gpu7"),
        ("n1,n2", "n1"),
        ("n[07-09,12],m1", "n07"),
        ("rack2-n[3,5]", "rack2-n3"),
        ("n[1-2]-ib,x", "n1-ib"),
    ],
)
def test_the_first_host_of_a_slurm_list(nodelist, host):
    assert first_host(nodelist) == host


def test_tasks_of_a_slurm_job_meet_at_its_first_host():
    slurm = {"SLURM_STEP_NODELIST": "n[3-4]", "SLURM_JOB_ID": "40123"}
    assert _rendezvous(slurm) == {"MASTER_ADDR": "n3", "MASTER_PORT": "20123"}  # 20000 + 40123 % 20000
    chosen = {"MASTER_ADDR": "10.0.0.1", "MASTER_PORT": "4000"}
    assert _rendezvous(slurm | chosen) == chosen
    with pytest.raises(ConfigError, match="list of hosts"):
        _rendezvous({})


def test_one_rank_exchanges_with_itself():
    array = np.ones(2)
    assert gather("x") == ["x"]
    assert broadcast("x") == "x"
    assert (any_rank(True), any_rank(False)) == (True, False)
    assert sum_arrays(array) is array
    assert share("abca") == [0, 1, 2, 3]
    agree(None)
    with pytest.raises(KeyError):
        agree(KeyError("x"))
    done: list[int] = []
    on_main(lambda: done.append(1))
    assert done == [1]


@pytest.mark.slow
def test_two_ranks_play_what_one_plays(two):
    alone = play()
    assert [(t.group, t.copy) for t in alone] == [(g, c) for g in (7, 3, 5) for c in (0, 1)]
    assert len({tuple(turn.action for turn in t.turns) for t in alone}) == 6
    for results in two:
        assert unpickled(results, "played") == alone
    # The first rank has the first and third of three groups of two.
    assert [results["exchange/counts"][-1].tolist() for results in two] == [[4, 4], [2, 2]]


@pytest.mark.slow
def test_what_one_rank_raises_all_raise(two):
    for results in two:
        assert unpickled(results, "error") == ("ConfigError", "x: expected 1, got 2")
        assert unpickled(results, "strange") == ("ArlGymError", "rank 1: Unpicklable: far")
        assert unpickled(results, "main") == "rank 0 acted"


@pytest.mark.parametrize(("rank", "items"), [(0, [0, 1, 4, 5]), (1, [0, 1, 4, 5]), (2, [2, 3]), (3, [2, 3])])
def test_groups_are_dealt_over_teams(monkeypatch, rank, items):
    """Four ranks in two teams: the first has groups a and c, the second has b."""
    monkeypatch.setattr(distributed, "rank", lambda: rank)
    monkeypatch.setattr(distributed, "world_size", lambda: 4)
    assert n_teams(2) == 2
    assert share("aabbca", 2) == items


@pytest.mark.parametrize("size", [3, 8])
def test_ranks_that_fall_into_no_whole_teams_are_refused(monkeypatch, size):
    monkeypatch.setattr(distributed, "world_size", lambda: 4)
    with pytest.raises(ConfigError, match=rf"tensor_parallel={size}: .* the number of ranks, which is 4"):
        n_teams(size)


@pytest.mark.slow
def test_a_team_plays_what_one_rank_plays(two):
    alone = [[turn.action for turn in t.turns] for t in play()]
    for results in two:
        assert unpickled(results, "played", "teams") == alone
        assert unpickled(results, "again", "teams") == 6
    # The first rank plays all six episodes, the second none.
    assert [len(results["teams/counts"]) for results in two] == [6, 0]


@pytest.mark.slow
def test_what_the_first_of_a_team_is_asked_the_others_are_asked(two):
    first, second = (unpickled(results, "asked", "teams") for results in two)
    assert first == second
    assert sum(map(len, first)) == sum(len(t.turns) for t in play())
    assert two[0]["teams/n_polls"] == two[1]["teams/n_polls"] > 1
    infos = [unpickled(results, "infos", "teams") for results in two]
    assert all("task_id" in info for info in infos[0])
    assert all(info == {"stop": ()} for info in infos[1])


@pytest.mark.slow
@pytest.mark.parametrize("rank", [0, 1])
def test_what_one_rank_of_a_team_raises_all_raise(two, rank):
    for results in two:
        wanted = ("ConfigError", f"on {rank}: expected 1, got 2")
        assert unpickled(results, f"submit on {rank}", "teams") == wanted
        wanted = ("ArlGymError", f"rank {rank}: Unpicklable: far")
        assert unpickled(results, f"poll on {rank}", "teams") == wanted


@pytest.mark.slow
def test_nobody_polls_alone_after_a_failure(two):
    """An engine of several ranks would wait in it for ever. All cases fail after the first poll."""
    for case in ("submit on 0", "submit on 1", "poll on 1", "ids"):
        first, second = (int(results[f"teams/polls, {case}"]) for results in two)
        # A poll that fails on the second rank has begun on the first.
        assert (first, second) == ((2, 1) if case == "poll on 1" else (1, 1))


@pytest.mark.slow
def test_ranks_of_a_team_that_answer_differently_end_the_rollout(two):
    for results in two:
        kind, text = unpickled(results, "ids", "teams")
        assert kind == "PolicyError"
        # Two slots, so the first poll answers episodes 0 and 1.
        assert text.endswith("[[(0, [0]), (1, [1])], [(0, [1]), (1, [2])]]")
