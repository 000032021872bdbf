"""`TextVectorEnv(workers="ray")` on a real Ray cluster of two nodes of this machine.

Ray gives the nodes the address of this machine, which is no other machine, whatever the socket guard says.
"""

import functools
import os
import select
import socket
from collections import Counter
from typing import Any

import numpy as np
import pytest
import ray
import ray._private.node
from gymnasium.vector import AutoresetMode
from ray.cluster_utils import Cluster

import arl_gym  # noqa: F401 - registers the ids
from arl_gym.agents.policies import respond_in
from arl_gym.errors import UnknownNameError, WorkerError
from arl_gym.make import make_chat_env
from arl_gym.ray_worker import cpu_slots
from arl_gym.vector import Result, TextVectorEnv
from tests.adapters.examples import run_example
from tests.counting_env import CountingEnv, make_counting_env


def own_address():
    """Return the address of this machine that Ray will find; asks the kernel, sends nothing."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("8.8.8.8", 80))
        except OSError:
            return "127.0.0.1"
        return probe.getsockname()[0]


# Nodes take seconds to start, and more on a busy machine.
pytestmark = [pytest.mark.timeout(150), pytest.mark.allow_hosts(["127.0.0.1", own_address()])]

NODE = {
    "num_cpus": 1,
    "object_store_memory": 80 << 20,
    "no_monitor": True,
    "include_log_monitor": False,
}


@pytest.fixture(scope="module")
def cluster():
    """Return a cluster of two nodes with a CPU each, joined by this process."""
    with pytest.MonkeyPatch.context() as patch:
        # Ray's dashboard, its agents and its monitors are most of what a node takes to start.
        patch.setattr(ray._private.node.Node, "start_api_server", lambda *_, **__: None)
        patch.setattr(ray._private.utils, "get_dashboard_dependency_error", lambda: ImportError("unwanted"))
        checks = {"health_check_initial_delay_ms": 500, "health_check_period_ms": 500}
        cluster = Cluster(initialize_head=True, head_node_args={**NODE, "_system_config": checks})
        try:
            cluster.add_node(**NODE)
            ray.shutdown()  # that of another module's tests
            ray.init(address=cluster.address, log_to_driver=False)
            yield cluster
        finally:
            ray.shutdown()
            cluster.shutdown()


def node_env(max_steps=5):
    """Return a counting env that knows its node."""

    class NodeEnv(CountingEnv):
        def node(self):
            return ray.get_runtime_context().get_node_id()

    return NodeEnv(max_steps=max_steps)


@pytest.fixture(scope="module")
def two_actors(cluster):
    """Return four envs on two actors; a start takes long, so tests share them and may kill them."""

    vec = TextVectorEnv([node_env] * 4, workers="ray:2", step_timeout_s=5)
    yield vec
    vec.close()


@pytest.fixture
def vec(two_actors):
    yield two_actors
    while two_actors.recv():
        pass


def begin(vec, task_ids):
    """Start one episode per env and return the first results by index."""
    for i, task_id in enumerate(task_ids):
        vec.send_reset(i, options={"task_id": task_id})
    return receive(vec, len(task_ids))


def receive(vec, n):
    """Receive n results, by index."""
    results: dict[int, Result] = {}
    while len(results) < n:
        got = vec.recv(timeout_s=60)
        assert got, "a result was lost"
        results.update({r.index: r for r in got})
    return results


IDS = ("ARL/ALFWorld-v0", "ARL/WebShop-v0", "ARL/Sokoban-v0", "ARL/TIRMath-v0")
CLOCKS = ("queue_ms", "run_ms")


def plain(value):
    """Return infos with lists instead of arrays, and without times."""
    if isinstance(value, dict):
        return {key: plain(v) for key, v in value.items() if key.removeprefix("_") not in CLOCKS}
    return value.tolist() if isinstance(value, np.ndarray) else value


def play(vec, steps):
    """Let experts play the first half of the envs, and expert and nonsense take turns in the second.

    Without autoreset every env is skipped now and then, and those that are over are reset by a mask.
    """
    obs, infos = vec.reset(seed=7)
    moments: list[tuple[Any, ...]] = [(obs, plain(infos))]
    hints, over = list(infos["expert_action"]), np.zeros(vec.num_envs, dtype=np.bool_)
    disabled = vec.autoreset_mode is AutoresetMode.DISABLED
    for t in range(steps):
        if disabled and np.any(over):
            obs, infos = vec.reset(options={"reset_mask": over})
            moments.append((obs, plain(infos)))
            hints = updated(hints, infos)
        actions: list[str | None] = []
        for i, hint in enumerate(hints):
            action = "nonsense" if i >= len(IDS) and t % 2 else hint
            skip = disabled and (i + t) % 5 == 0
            actions.append(None if skip else respond_in("default", IDS[i % 4])("", action))
        obs, rewards, terminations, truncations, infos = vec.step(actions)
        assert "env_error" not in infos, infos["env_error"]
        over = terminations | truncations
        moments.append((obs, rewards.tolist(), over.tolist(), truncations.tolist(), plain(infos)))
        hints = updated(hints, infos)
    return moments


def updated(hints, infos):
    """Return what the experts say where they said something new."""
    told = infos.get("_expert_action", [False] * len(hints))
    return [infos["expert_action"][i] if told[i] else hint for i, hint in enumerate(hints)]


@pytest.fixture(scope="module")
def pair(cluster):
    """Return all environments, twice each, in this process and on two actors."""
    env_fns = [functools.partial(make_chat_env, id, expert=True) for id in IDS] * 2
    vecs = TextVectorEnv(env_fns), TextVectorEnv(env_fns, workers="ray:2")
    yield vecs
    for vec in vecs:
        vec.close()


@pytest.mark.parametrize("mode", AutoresetMode)
def test_all_environments_play_the_same_episodes_as_in_this_process(pair, mode):
    for vec in pair:
        vec.autoreset_mode = mode
    expected, played = (play(vec, 14) for vec in pair)
    assert played == expected
    ends = [np.flatnonzero(moment[2]) for moment in expected if len(moment) == 5]
    assert {1, 2, 3} <= set(
        np.concatenate(ends).tolist()
    )  # the comparison takes in ends, and what each mode does then
    here, there = ([vec.call(i, "get_state") for i in range(8)] for vec in pair)
    assert here == there


def test_call_sets_a_state_and_reads_attributes(vec):
    begin(vec, ["train/0"] * 4)
    vec.call(2, "set_state", {"task_id": "train/2", "actions": ["up", "wait", "up"]})
    assert [vec.call(i, "count") for i in range(4)] == [0, 0, 2, 0]
    vec.send(2, "up")
    assert receive(vec, 1)[2].observation == "3 of 3"
    with pytest.raises(AttributeError, match="no_such_thing"):
        vec.call(0, "no_such_thing")


def test_environments_are_dealt_to_actors_of_different_nodes_by_their_cpus(cluster, vec):
    nodes = [vec.call(i, "node") for i in range(4)]
    assert nodes[0] == nodes[2]
    assert nodes[1] == nodes[3]
    pids = [vec.call(i, "pid") for i in range(4)]
    assert pids[0] == pids[2] != pids[1] == pids[3]
    assert Counter(cpu_slots()) == {node["NodeID"]: 1 for node in ray.nodes() if node["Alive"]}


def test_ray_alone_is_an_actor_for_each_cpu_and_never_more_than_envs(cluster):
    three, one = (TextVectorEnv([make_counting_env] * n, workers="ray") for n in (3, 1))
    assert (len(three._workers), len(one._workers)) == (2, 1)
    assert len({three.call(i, "pid") for i in range(3)}) == 2
    three.close()
    one.close()


def test_a_thousand_environments_live_in_two_actors(cluster):
    n = 1200
    vec = TextVectorEnv([CountingEnv] * n, workers="ray:2", autoreset_mode=AutoresetMode.NEXT_STEP)
    obs, _ = vec.reset(options={"task_id": "train/1"})
    assert obs == ("0 of 2",) * n
    obs, rewards, *_ = vec.step(["up", "wait"] * (n // 2))
    assert obs == ("1 of 2", "0 of 2") * (n // 2)
    assert rewards.sum() == pytest.approx(-0.1 * n)
    vec.close()


def test_an_unknown_task_raises_with_its_own_type_and_spares_the_others(vec):
    with pytest.raises(UnknownNameError, match="unknown task_id 'train/9'"):
        vec.reset(options={"task_id": ["train/0", "train/9", "train/1", "train/1"]})
    assert vec.reset(options={"task_id": "train/1"})[0] == ("0 of 2",) * 4


def test_many_long_messages_in_both_directions_arrive(vec):
    begin(vec, ["train/1"] * 4)
    action = "say " + "x" * 1_000_000
    for i in range(4):
        vec.send(i, action)
    assert all(r.observation == action for r in receive(vec, 4).values())


def test_an_answer_does_not_wait_for_a_hanging_neighbour_which_is_cut_off(vec):
    begin(vec, ["train/2"] * 4)
    for i, action in enumerate(["up", "up", "hang", "up"]):
        vec.send(i, action)
    got = receive(vec, 4)
    assert [got[i].observation for i in (0, 1, 3)] == ["1 of 3"] * 3
    assert got[2].info["env_error"] == "worker 0 was killed: no answer from env 2 within 5 s"
    assert (got[2].observation, got[2].reward, got[2].truncated) == ("0 of 3", 0.0, True)
    # Env 0 shared the actor: it learns of it at its next step.
    for i in (0, 1, 3):
        vec.send(i, "up")
    got = receive(vec, 3)
    assert got[0].info["env_error"] == "worker 0 was killed: no answer from env 2 within 5 s"
    assert [got[i].observation for i in (1, 3)] == ["2 of 3"] * 2
    assert begin(vec, ["train/0"] * 4)[2].observation == "0 of 1"


def test_a_killed_actor_ends_its_own_running_episodes_and_no_other(vec):
    begin(vec, ["train/2"] * 4)
    pid = vec.call(0, "pid")
    vec.send(0, "die")
    vec.send(1, "up")
    got = receive(vec, 2)
    assert got[0].info["env_error"].startswith(f"worker 0 (process {pid} on ")
    assert "died" in got[0].info["env_error"]
    assert got[0].info["task_id"] == "train/2"
    assert (got[0].observation, got[0].reward, got[0].truncated) == ("0 of 3", 0.0, True)
    assert (got[1].observation, got[1].info.get("env_error")) == ("1 of 3", None)
    vec.send(2, "up")
    vec.send(3, "up")
    got = receive(vec, 2)
    assert got[2].info["env_error"].startswith(f"worker 0 (process {pid} on ")
    assert got[3].observation == "1 of 3"
    assert begin(vec, ["train/0"] * 4)[2].observation == "0 of 1"


def test_an_actor_lost_while_idle_is_noticed_at_the_next_send(vec):
    begin(vec, ["train/1"] * 3)
    process = os.pidfd_open(vec.call(0, "pid"))
    ray.kill(vec._workers[0].channel._actor)
    assert select.select([process], [], [], 60)[0]
    vec.send(0, "up")
    vec.send(1, "up")
    vec.send_reset(2, options={"task_id": "train/2"})
    got = receive(vec, 3)
    assert "ray.kill" in got[0].info["env_error"]
    assert got[1].observation == "1 of 2"
    assert got[2].observation == "0 of 3"
    assert "env_error" not in got[2].info


def test_an_actor_that_exits_says_so(vec):
    begin(vec, ["train/1"])
    vec.send(0, "exit")
    assert "worker 0 (process" in receive(vec, 1)[0].info["env_error"]
    assert begin(vec, ["train/0"])[0].observation == "0 of 1"


def test_episodes_of_a_lost_node_end_and_its_actors_move_to_the_others(cluster):
    node = cluster.add_node(**{**NODE, "num_cpus": 2})
    there: set[int] = set()
    for _ in range(5):  # the other nodes hear of a new one a little later, and take its actors until then
        vec = TextVectorEnv([functools.partial(node_env, max_steps=1_000_000)] * 4, workers="ray")
        there = {i for i in range(4) if vec.call(i, "node") == node.node_id}
        if 0 < len(there) < 4:
            break
        vec.close()
    assert 0 < len(there) < 4
    begin(vec, ["train/2"] * 4)
    cluster.remove_node(node, allow_graceful=False)
    running = set(range(4))
    while running & there:  # the actors die some time after their node
        for i in running:
            vec.send(i, "wait")
        got = receive(vec, len(running))
        lost = {i for i in running if "env_error" in got[i].info}
        assert lost <= there
        running -= lost
    assert {r.observation for r in begin(vec, ["train/0"] * 4).values()} == {"0 of 1"}
    assert node.node_id not in {vec.call(i, "node") for i in range(4)}
    vec.close()


def test_an_exception_of_the_env_fn_reaches_the_caller(cluster):
    def broken():
        raise UnknownNameError("level", "x", ["y"])

    with pytest.raises(UnknownNameError, match="unknown level 'x'"):
        TextVectorEnv([CountingEnv, broken], workers="ray:2")


def test_environments_start_where_all_cpus_are_taken(cluster):
    holders = [ray.remote(num_cpus=1)(CountingEnv).remote() for _ in range(2)]
    ray.get([holder.pid.remote() for holder in holders])
    vec = TextVectorEnv([CountingEnv], workers="ray:1")
    assert begin(vec, ["train/0"])[0].observation == "0 of 1"
    vec.close()
    for holder in holders:
        ray.kill(holder)


def test_an_actor_that_does_not_start_in_time_is_an_error(cluster):
    late = r"worker 0 was killed: no answer from the start within 0.01 s: Ray has not started its actor"
    with pytest.raises(WorkerError, match=late):
        TextVectorEnv([CountingEnv], workers="ray:1", start_timeout_s=0.01)


def test_close_ends_the_actors_leaves_ray_alone_and_closes_again(cluster):
    vec = TextVectorEnv([make_counting_env] * 2, workers="ray:2")
    ends = [os.pidfd_open(vec.call(i, "pid")) for i in range(2)]
    vec.close()
    vec.close()
    assert all(select.select([end], [], [], 60)[0] for end in ends)
    assert ray.is_initialized()


def test_the_example_joins_the_cluster_of_ray_address(cluster, tmp_path):
    printed = run_example("ray_vector_env.py", tmp_path, timeout_s=200, RAY_ADDRESS=cluster.address)
    assert "solved 100% of 64 tasks" in printed
