import os
import signal
import subprocess
import sys
import textwrap

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

from arl_gym.core import Unicode
from arl_gym.errors import (
    ActionError,
    AlreadyPendingError,
    ArlGymError,
    ConfigError,
    DependencyMissing,
    EpisodeOverError,
    UnknownNameError,
    WorkerError,
)
from arl_gym.vector import Result, TextVectorEnv, parse_workers
from tests.counting_env import CountingEnv, make_counting_env


@pytest.fixture(scope="module")
def two_workers():
    """Return four envs on two workers; a start takes long, so tests share them and may kill them."""
    vec = TextVectorEnv([make_counting_env] * 4, workers=2)
    yield vec
    vec.close()


@pytest.fixture
def workers(two_workers):
    yield two_workers
    while two_workers.recv():
        pass


@pytest.fixture(params=["in-process", "workers"])
def vec(request):
    """Return four envs, in this process or on two workers."""
    return request.getfixturevalue("workers" if request.param == "workers" else "inline")


@pytest.fixture
def inline():
    vec = TextVectorEnv([make_counting_env] * 4)
    yield vec
    vec.close()


@pytest.fixture
def make_vec():
    """Return a function that makes an in-process vector env; all are closed after the test."""
    made = []

    def make(num_envs, *, env_fn=CountingEnv, **kwargs):
        made.append(TextVectorEnv([env_fn] * num_envs, **kwargs))
        return made[-1]

    yield make
    for vec in made:
        vec.close()


def begin(vec, task_ids):
    """Start one episode per env and return the first results by index."""
    for i, task_id in enumerate(task_ids):
        vec.send_reset(i, options={"task_id": task_id})
    return receive(vec, len(task_ids))


def receive(vec, n):
    """Receive n results, by index."""
    results: dict[int, Result] = {}
    while len(results) < n:
        got = vec.recv()
        assert got, "a result was lost"
        results.update({r.index: r for r in got})
    return results


def children():
    """Return the processes that have this one as parent."""
    found = set()
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/stat") as f:
                if int(f.read().rsplit(")", 1)[1].split()[1]) == os.getpid():
                    found.add(int(pid))
        except OSError:
            continue
    return found


# ---- send and recv


def test_each_env_answers_its_own_action(vec):
    first = begin(vec, ["train/0", "train/1", "train/2"])
    assert [first[i].observation for i in range(3)] == ["0 of 1", "0 of 2", "0 of 3"]
    vec.send(0, "up")
    vec.send(2, "wait")
    got = receive(vec, 2)
    assert (got[0].observation, got[0].reward, got[0].terminated, got[0].truncated) == (
        "1 of 1",
        10.0,
        True,
        False,
    )
    assert (got[2].observation, got[2].reward, got[2].terminated) == ("0 of 3", -0.1, False)
    assert got[2].info["action_valid"] is False
    assert got[2].info["task_id"] == "train/2"


def test_recv_returns_nothing_when_nothing_was_sent(vec):
    assert vec.recv() == []
    begin(vec, ["train/0"])
    assert vec.recv() == []


def test_a_second_send_before_the_answer_is_refused(vec):
    vec.send_reset(0)
    with pytest.raises(AlreadyPendingError, match="env 0 has not answered"):
        vec.send_reset(0)
    with pytest.raises(AlreadyPendingError, match=r"envs \[0\]"):
        vec.reset()


def test_a_finished_env_takes_no_action(vec):
    begin(vec, ["train/0"])
    vec.send(0, "up")
    assert receive(vec, 1)[0].terminated
    with pytest.raises(EpisodeOverError, match="env 0 has no running episode"):
        vec.send(0, "up")


def test_an_env_that_was_never_reset_takes_no_action(inline):
    with pytest.raises(EpisodeOverError, match="env 0 has no running episode"):
        inline.send(0, "up")
    with pytest.raises(EpisodeOverError, match="env 0 has no running episode"):
        inline.step([None] * 4)


def test_an_unknown_task_raises_with_its_own_type_and_spares_the_others(vec):
    vec.send_reset(0, options={"task_id": "train/9"})
    vec.send_reset(1, options={"task_id": "train/1"})
    mistakes: list[str] = []
    results: list[Result] = []
    while len(mistakes) + len(results) < 2:
        try:
            results += vec.recv()
        except UnknownNameError as err:
            mistakes.append(str(err))
    assert [r.index for r in results] == [1]
    assert "unknown task_id 'train/9'" in mistakes[0]
    assert begin(vec, ["train/2"])[0].observation == "0 of 3"


def test_an_action_of_the_wrong_type_raises_and_the_episode_goes_on(vec):
    begin(vec, ["train/1"])
    vec.send(0, 7)
    with pytest.raises(ActionError, match="takes a string as action, got int"):
        vec.recv()
    vec.send(0, "up")
    assert vec.recv()[0].observation == "1 of 2"


def test_an_exception_in_step_ends_that_episode_only(vec):
    begin(vec, ["train/1"] * 3)
    for i, action in enumerate(["crash", "up", "up"]):
        vec.send(i, action)
    got = receive(vec, 3)
    assert got[0].info["env_error"] == "ZeroDivisionError: the count is gone"
    assert got[0].info["task_id"] == "train/1"
    assert (got[0].observation, got[0].reward) == ("0 of 2", 0.0)
    assert (got[0].terminated, got[0].truncated) == (False, True)
    assert [got[i].observation for i in (1, 2)] == ["1 of 2", "1 of 2"]
    assert begin(vec, ["train/0"])[0].observation == "0 of 1"


def test_an_exception_in_reset_that_is_no_mistake_of_the_caller_is_an_env_error(vec):
    begin(vec, ["train/0"])
    vec.call(0, "take_server_down")
    result = begin(vec, ["train/0"])[0]
    assert result.info == {"env_error": "ConnectionError: no server"}
    assert result.truncated
    vec.call(1, "take_server_down")
    with pytest.raises(WorkerError, match="env 1 could not be reset: ConnectionError: no server"):
        vec.reset()
    assert "env_error" not in vec.reset()[1]


def test_call_reaches_methods_and_attributes_through_wrappers(vec):
    begin(vec, ["train/0", "train/2"])
    assert vec.call(1, "goal") == 3
    assert vec.call(0, "expert_action") == "up"
    assert vec.call(1, "get_state") == {"task_id": "train/2", "actions": []}
    with pytest.raises(AttributeError, match="no_such_thing"):
        vec.call(0, "no_such_thing")


def test_a_call_waits_behind_the_steps_of_its_neighbours_and_loses_none(vec):
    begin(vec, ["train/1"] * 4)
    for i in (0, 1, 3):
        vec.send(i, "up")
    assert vec.call(2, "count") == 0
    assert sorted(receive(vec, 3)) == [0, 1, 3]


def test_a_closed_vector_env_says_so_and_closes_again(inline):
    inline.close()
    inline.close()
    with pytest.raises(ArlGymError, match="closed"):
        inline.send_reset(0)


def test_an_interrupt_ends_the_episode_it_hit_and_leaves_the_rest_usable(make_vec):
    class Interrupted(CountingEnv):
        def _apply(self, action):
            if action == "ctrl-c":
                raise KeyboardInterrupt
            return super()._apply(action)

    vec = make_vec(2, env_fn=Interrupted)
    begin(vec, ["train/1"] * 2)
    vec.send(0, "ctrl-c")
    vec.send(1, "up")
    with pytest.raises(KeyboardInterrupt):
        vec.recv()
    got = receive(vec, 2)
    assert got[0].info["env_error"] == "KeyboardInterrupt:"
    assert got[1].observation == "1 of 2"


def test_all_envs_are_closed_even_if_one_fails_to():
    closed = []

    class Sticky(CountingEnv):
        def close(self):
            closed.append(self)
            if len(closed) == 1:
                raise OSError("stuck")

    vec = TextVectorEnv([Sticky] * 3)
    with pytest.raises(WorkerError, match="env 0: OSError: stuck"):
        vec.close()
    assert len(closed) == 3


# ---- worker processes


def test_envs_are_dealt_to_the_workers_in_turn(workers):
    pids = [workers.call(i, "pid") for i in range(4)]
    assert pids[0] == pids[2] != pids[1] == pids[3]
    assert os.getpid() not in pids


def test_a_worker_imports_nothing_heavy(workers):
    heavy = (
        "torch",
        "transformers",
        "pytest",
        "PIL",
        "multiprocessing.spawn",
        "arl_gym.agents",
        "arl_gym.train",
    )
    assert workers.call(0, "loaded", *heavy) == []


def test_a_killed_worker_ends_its_own_running_episodes_and_no_other(workers):
    begin(workers, ["train/2"] * 4)
    for i in range(3):
        workers.send(i, "up")
    receive(workers, 3)
    workers.send(0, "die")
    workers.send(1, "up")
    got = receive(workers, 2)
    assert got[0].info["env_error"] == "worker 0 was killed by SIGKILL"
    assert got[0].info["task_id"] == "train/2"
    assert (got[0].observation, got[0].reward, got[0].truncated) == ("1 of 3", 0.0, True)
    assert got[1].observation == "2 of 3"
    # Env 2 shared the worker but was not asked anything then: it learns of it at its next step.
    workers.send(2, "up")
    workers.send(3, "up")
    got = receive(workers, 2)
    assert got[2].info["env_error"] == "worker 0 was killed by SIGKILL"
    assert got[2].observation == "1 of 3"
    assert got[3].observation == "1 of 3"
    assert "env_error" not in got[3].info
    assert begin(workers, ["train/0"] * 4)[2].observation == "0 of 1"


def test_a_worker_killed_while_idle_is_noticed_at_the_next_send(workers):
    begin(workers, ["train/1"] * 3)
    process = workers._workers[0].channel.process
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    workers.send(0, "up")
    workers.send(1, "up")
    workers.send_reset(2, options={"task_id": "train/2"})
    got = receive(workers, 3)
    assert got[0].info["env_error"] == "worker 0 was killed by SIGKILL"
    assert got[1].observation == "1 of 2"
    assert got[2].observation == "0 of 3"
    assert "env_error" not in got[2].info


def test_a_result_that_was_ready_before_the_worker_died_is_kept(workers):
    begin(workers, ["train/0"] * 3)
    workers.send(0, "up")
    workers.send(2, "die")
    got = receive(workers, 2)
    assert got[0].terminated
    assert "env_error" not in got[0].info
    assert "env_error" in got[2].info


def test_a_worker_that_exits_is_reported_with_its_exit_code(workers):
    begin(workers, ["train/1"])
    workers.send(0, "exit")
    assert receive(workers, 1)[0].info["env_error"] == "worker 0 exited with code 3"


def test_a_call_that_kills_the_worker_raises(workers):
    with pytest.raises(WorkerError, match="perish of env 1: worker 1 was killed by SIGKILL"):
        workers.call(1, "perish")
    assert begin(workers, ["train/0"] * 2)[1].observation == "0 of 1"


def test_many_long_messages_in_both_directions_do_not_block(workers):
    begin(workers, ["train/1"] * 4)
    action = "say " + "x" * 1_000_000
    for i in range(4):
        workers.send(i, action)
    assert all(r.observation == action for r in receive(workers, 4).values())


def test_what_cannot_be_pickled_is_an_env_error(workers):
    begin(workers, ["train/0"])
    workers.send(0, "lock")
    assert "cannot be pickled" in receive(workers, 1)[0].info["env_error"]


def test_a_hanging_step_is_cut_off_and_close_leaves_no_process():
    before = children()
    vec = TextVectorEnv([CountingEnv] * 3, workers=2, step_timeout_s=0.8)
    begin(vec, ["train/1"] * 3)
    vec.send(0, "hang")
    assert vec.recv(timeout_s=0.01) == []
    vec.send(1, "up")
    vec.send(2, "up")  # queued behind the hanging one
    got = receive(vec, 3)
    assert got[0].info["env_error"] == "worker 0 was killed: no answer from env 0 within 0.8 s"
    assert got[2].info["env_error"] == got[0].info["env_error"]
    assert got[1].observation == "1 of 2"
    assert begin(vec, ["train/0"])[0].observation == "0 of 1"
    assert len(children() - before) == 2
    vec.close()
    assert children() == before


def test_a_start_that_takes_too_long_leaves_no_process():
    before = children()
    with pytest.raises(WorkerError, match=r"no answer from the start within 0.01 s"):
        TextVectorEnv([CountingEnv], workers=1, start_timeout_s=0.01)
    assert children() == before


def test_a_worker_that_cannot_be_restarted_raises_and_every_send_gets_its_result(tmp_path):
    flag = tmp_path / "built once"

    def once():
        flag.touch(exist_ok=False)
        return CountingEnv()

    vec = TextVectorEnv([once], workers=1)
    begin(vec, ["train/1"])
    vec.send(0, "die")
    assert "SIGKILL" in receive(vec, 1)[0].info["env_error"]
    vec.send_reset(0)
    with pytest.raises(WorkerError, match="worker 0 could not be restarted: env_fn raised FileExistsError"):
        vec.recv()
    assert "FileExistsError" in receive(vec, 1)[0].info["env_error"]
    vec.close()


def test_an_exception_of_the_env_fn_reaches_the_caller_and_leaves_no_process():
    def broken():
        raise UnknownNameError("level", "x", ["y"])

    before = children()
    with pytest.raises(UnknownNameError, match="unknown level 'x'"):
        TextVectorEnv([CountingEnv, broken], workers=2)
    assert children() == before


SCRIPT = textwrap.dedent(
    """
    import os, signal, sys, gymnasium
    from arl_gym.core import Unicode
    from arl_gym.vector import TextVectorEnv

    class Here(gymnasium.Env):
        observation_space = action_space = Unicode()

        def reset(self, *, seed=None, options=None):
            return "hello", {"task_id": "0", "success": False}

        def step(self, action):
            print("an env that prints")
            return action + "!", 1.0, True, False, {"task_id": "0", "success": True, "me": Here}

    vec = TextVectorEnv([lambda: Here()] * 2, workers=2)
    for i in range(2):
        vec.send_reset(i)
    n = 0
    while n < 2:
        n += len(vec.recv())
    vec.send(1, "hey")
    result, = vec.recv()
    for worker in vec._workers:
        os.kill(worker.channel.process.pid, signal.SIGINT)
    vec.send_reset(0)
    vec.recv()
    vec.send(0, "still here")
    vec.recv()
    pids = " ".join(str(w.channel.process.pid) for w in vec._workers)
    sys.stdout.write(f"{result.observation} {result.info['me'] is Here} {pids}\\n")
    sys.stdout.flush()
    os.kill(os.getpid(), signal.SIGKILL)
    """
)


def test_envs_of_an_unguarded_script_work_ignore_ctrl_c_and_die_with_their_parent(tmp_path):
    path = tmp_path / "script.py"
    path.write_text(SCRIPT)
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, path], env=env, capture_output=True, text=True, timeout=60)
    assert done.returncode == -signal.SIGKILL, done.stderr
    answer, is_same_class, *pids = done.stdout.split()
    assert (answer, is_same_class) == ("hey!", "True")
    assert done.stdout.count("\n") == 1
    assert done.stderr.split("\n").count("an env that prints") == 2
    assert "Traceback" not in done.stderr
    # The workers held the script's stderr, so `run` returned only after they had ended.
    assert len(pids) == 2
    assert not any(map(is_live, pids))


def is_live(pid):
    try:
        with open(f"/proc/{pid}/stat") as f:
            return f.read().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


# ---- actors of a Ray cluster (tests/adapters/real/test_ray.py has them at work)


@pytest.mark.parametrize(
    ("workers", "parsed"),
    [(0, ("process", 0)), (3, ("process", 3)), ("ray", ("ray", 0)), ("ray:16", ("ray", 16))],
)
def test_workers_are_a_number_of_processes_or_of_actors(workers, parsed):
    assert parse_workers(workers) == parsed


@pytest.mark.parametrize("workers", [-1, "2", "ray:", "ray:0", "ray:-1", "ray:two", "Ray", "spark:2", ""])
def test_other_workers_are_refused_with_what_would_do(workers):
    with pytest.raises(ConfigError, match=rf"'ray:N' \(N actors\), got {workers!r}$"):
        TextVectorEnv([CountingEnv], workers=workers)


def test_without_ray_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    monkeypatch.delitem(sys.modules, "arl_gym.ray_worker", raising=False)
    with pytest.raises(DependencyMissing, match=r"workers='ray' needs: pip install 'arl-gym\[ray\]'"):
        TextVectorEnv([CountingEnv], workers="ray")


def test_ray_is_imported_only_for_its_actors():
    code = (
        "import sys, arl_gym, arl_gym.vector as v; from tests.counting_env import CountingEnv; "
        "v.TextVectorEnv([CountingEnv] * 2, workers=1).close(); assert 'ray' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


# ---- Gymnasium's interface


def test_the_spaces_and_metadata_are_batched_as_gymnasium_does(make_vec):
    vec = make_vec(2, autoreset_mode=AutoresetMode.SAME_STEP)
    assert vec.single_observation_space == Unicode()
    assert vec.observation_space == gym.spaces.Tuple([Unicode(), Unicode()])
    assert vec.metadata["autoreset_mode"] is AutoresetMode.SAME_STEP
    obs, _ = vec.reset(seed=0)
    assert obs in vec.observation_space


def test_an_integer_seed_counts_up_over_the_envs(vec):
    _, by_int = vec.reset(seed=5)
    _, by_list = vec.reset(seed=[5, 6, 7, 8])
    single = CountingEnv()
    alone = [single.reset(seed=s)[1]["task_id"] for s in (5, 6, 7, 8)]
    assert by_int["task_id"].tolist() == by_list["task_id"].tolist() == alone


def test_a_mask_resets_some_and_leaves_the_others_where_they_are(make_vec):
    vec = make_vec(3)
    vec.reset(options={"task_id": ["train/2", "train/2", "train/2"]})
    vec.step(["up", "up", "up"])
    options = {"reset_mask": np.array([False, True, False]), "task_id": ["train/0", "train/1", "train/0"]}
    obs, infos = vec.reset(options=options)
    assert obs == ("1 of 3", "0 of 2", "1 of 3")
    assert infos["_task_id"].tolist() == [False, True, False]
    assert "reset_mask" in options


def test_one_task_id_goes_to_all(make_vec):
    obs, _ = make_vec(3).reset(options={"task_id": "train/1"})
    assert obs == ("0 of 2",) * 3


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"seed": [1, 2]}, "seed needs one entry per env, 3"),
        ({"options": {"task_id": ["train/0"]}}, "task_id needs one entry per env, 3"),
        ({"options": {"reset_mask": [1, 0, 0]}}, "reset_mask must be a bool array"),
        ({"options": {"reset_mask": np.zeros(3, dtype=bool)}}, "with a True"),
        ({"options": {"reset_mask": np.array([True, False, True])}}, r"leaves out \[1\]"),
    ],
)
def test_a_reset_with_the_wrong_shape_says_so(make_vec, kwargs, message):
    with pytest.raises(ConfigError, match=message):
        make_vec(3).reset(**kwargs)


def test_a_mistake_in_one_slot_of_a_reset_leaves_nothing_pending(vec):
    with pytest.raises(UnknownNameError, match="train/9"):
        vec.reset(options={"task_id": ["train/0", "train/9", "train/1", "train/1"]})
    assert vec.reset(options={"task_id": "train/0"})[0] == ("0 of 1",) * 4


def test_disabled_keeps_the_end_and_skips_it(vec):
    vec.reset(options={"task_id": ["train/0", "train/1", "train/1", "train/2"]})
    obs, rewards, terminations, truncations, infos = vec.step(["up", "up", "wait", None])
    assert obs == ("1 of 1", "1 of 2", "0 of 2", "0 of 3")
    assert rewards.dtype == np.float64
    assert rewards.tolist() == [10.0, -0.1, -0.1, 0.0]
    assert terminations.tolist() == [True, False, False, False]
    assert truncations.tolist() == [False] * 4
    assert infos["success"].tolist() == [True, False, False, False]
    assert infos["admissible_actions"][1] == ["up", "wait"]
    assert infos["active"].tolist() == [True, True, True, False]
    assert infos["_active"].tolist() == [True] * 4
    assert infos["_task_id"].tolist() == [True, True, True, False]

    obs, rewards, terminations, _, infos = vec.step([None, "wait", None, None])
    assert obs == ("1 of 1", "1 of 2", "0 of 2", "0 of 3")
    assert rewards.tolist() == [0.0, -0.1, 0.0, 0.0]
    assert terminations.tolist() == [True, False, False, False]
    assert infos["active"].tolist() == [False, True, False, False]

    with pytest.raises(EpisodeOverError, match="env 0"):
        vec.step(["up"] * 4)
    assert [vec.call(i, "count") for i in range(4)] == [1, 1, 0, 0]  # the refused step moved nobody


def test_next_step_returns_the_terminal_observation_and_then_a_new_episode(make_vec):
    vec = make_vec(2, autoreset_mode=AutoresetMode.NEXT_STEP)
    vec.reset(options={"task_id": ["train/0", "train/2"]})
    obs, _, terminations, _, _ = vec.step(["up", "up"])
    assert obs == ("1 of 1", "1 of 3")
    assert terminations.tolist() == [True, False]
    obs, rewards, terminations, _, infos = vec.step(["up", "up"])
    assert obs[0].startswith("0 of")
    assert obs[1] == "2 of 3"
    assert rewards.tolist() == [0.0, -0.1]
    assert terminations.tolist() == [False, False]
    assert infos["success"].tolist() == [False, False]


def test_same_step_returns_the_new_episode_and_keeps_the_final_one(make_vec):
    vec = make_vec(2, autoreset_mode=AutoresetMode.SAME_STEP)
    vec.reset(options={"task_id": ["train/0", "train/2"]})
    obs, rewards, terminations, _, infos = vec.step(["up", "up"])
    assert obs[0].startswith("0 of")
    assert rewards.tolist() == [10.0, -0.1]
    assert terminations.tolist() == [True, False]
    assert infos["final_obs"].tolist() == ["1 of 1", None]
    assert infos["_final_obs"].tolist() == [True, False]
    assert infos["final_info"]["success"].tolist() == [True, False]
    assert infos["success"].tolist() == [False, False]
    assert infos["active"].tolist() == [True, True]
    _, _, terminations, _, infos = vec.step(["wait", "wait"])
    assert terminations.tolist() == [False, False]
    assert "final_obs" not in infos


@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP])
def test_autoreset_modes_agree_with_gymnasiums_own_vector_env(make_vec, mode):
    rng = np.random.default_rng(0)
    ours = make_vec(3, autoreset_mode=mode)
    peer = gym.vector.SyncVectorEnv([CountingEnv] * 3, autoreset_mode=mode)
    assert ours.reset(seed=1)[0] == peer.reset(seed=1)[0]
    for _ in range(20):
        actions = tuple(rng.choice(["up", "up", "wait"], 3).tolist())
        a, b = ours.step(actions), peer.step(actions)
        assert a[0] == b[0]
        assert all(np.array_equal(x, y) for x, y in zip(a[1:4], b[1:4], strict=True))
        a[4].pop("active"), a[4].pop("_active")
        assert a[4].keys() == b[4].keys()
        assert all(np.array_equal(a[4][k], b[4][k]) for k in b[4] if not isinstance(b[4][k], dict))


def test_an_env_error_in_next_step_mode_is_followed_by_a_new_episode(make_vec):
    vec = make_vec(1, autoreset_mode=AutoresetMode.NEXT_STEP)
    vec.reset(options={"task_id": "train/2"})
    obs, rewards, _, truncations, infos = vec.step(["crash"])
    assert (obs, rewards.tolist(), truncations.tolist()) == (("0 of 3",), [0.0], [True])
    assert infos["env_error"][0].startswith("ZeroDivisionError")
    _, _, _, truncations, infos = vec.step(["up"])
    assert truncations.tolist() == [False]
    assert "env_error" not in infos


def test_none_and_a_wrong_number_of_actions_are_refused(make_vec):
    vec = make_vec(2, autoreset_mode=AutoresetMode.NEXT_STEP)
    vec.reset(seed=0)
    with pytest.raises(ConfigError, match="None skips an env only with autoreset disabled"):
        vec.step(["up", None])
    with pytest.raises(ConfigError, match="actions needs one entry per env, 2"):
        vec.step(["up"])
    with pytest.raises(ConfigError, match="got 'up'"):
        vec.step("up")


class Picture(gym.Env):
    observation_space = gym.spaces.Dict(
        {"text": Unicode(), "image": gym.spaces.Box(0, 255, (2, 2, 3), np.uint8)}
    )
    action_space = gym.spaces.Discrete(4)

    def reset(self, *, seed=None, options=None):
        return {"text": "é", "image": np.zeros((2, 2, 3), np.uint8)}, {}

    def step(self, action):
        return {"text": "ü", "image": np.full((2, 2, 3), action, np.uint8)}, 0, False, False, {}


def test_texts_come_as_tuples_and_images_as_one_array(make_vec):
    vec = make_vec(2, env_fn=Picture)
    vec.reset()
    obs, *_ = vec.step(np.array([1, 3]))
    assert obs["text"] == ("ü", "ü")
    assert obs["image"].shape == (2, 2, 2, 3)
    assert obs["image"][:, 0, 0, 0].tolist() == [1, 3]
    assert obs in vec.observation_space


def test_gymnasiums_episode_statistics_work_on_top(make_vec):
    vec = gym.wrappers.vector.RecordEpisodeStatistics(make_vec(2, autoreset_mode=AutoresetMode.NEXT_STEP))
    vec.reset(options={"task_id": "train/0"})
    infos = vec.step(("up", "wait"))[4]
    assert infos["episode"]["r"][0] == 10.0


def test_render_returns_one_frame_per_env(make_vec):
    vec = make_vec(2, env_fn=lambda: CountingEnv(render_mode="ansi"))
    vec.reset(options={"task_id": "train/1"})
    assert vec.render() == ("0 of 2", "0 of 2")
    assert make_vec(1).render() is None


@pytest.mark.parametrize(
    ("env_fns", "kwargs", "message"),
    [
        ([], {}, "at least one env_fn"),
        ([CountingEnv], {"workers": -1}, "workers must be 0"),
        ([CountingEnv], {"step_timeout_s": 0}, "timeouts must be above 0 s"),
        ([CountingEnv, Picture], {}, "env 1 has Dict"),
    ],
)
def test_a_setting_that_makes_no_sense_is_refused(env_fns, kwargs, message):
    with pytest.raises(ConfigError, match=message):
        TextVectorEnv(env_fns, **kwargs)
