"""The process: deadline, memory, threads, forks, ends."""

import os
import resource
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from arl_gym.envs.tirmath.grading import Grader, shared_grader
from arl_gym.errors import ConfigError

pytest.importorskip("math_verify")

BOMB = r"\sqrt{3}+((9^{9999})^{9999})^{99}"
"""Passes the caps and keeps sympy busy in C code for hours, or until its memory is used up."""


def worker_pids(grader: Grader) -> list[int]:
    return [worker.pid for worker in grader._workers]


def test_easy_pairs_need_no_worker():
    with Grader() as grader:
        assert grader.check("1,234", "1234").equal
        assert not grader.check(r"\frac{1}{2}", "0.51").equal
        assert worker_pids(grader) == []


def test_a_hanging_check_ends_at_the_deadline_and_is_not_tried_again():
    with Grader(deadline_s=1.0) as grader:
        assert grader.check("x+1", "1+x").equal
        [first] = worker_pids(grader)
        start = time.monotonic()
        verdict = grader.check(r"\sqrt{2}", BOMB)
        assert time.monotonic() - start < 3.0
        assert (verdict.equal, verdict.how) == (False, "timeout")
        [second] = worker_pids(grader)
        assert second != first
        assert grader.check(r"\sqrt{2}", BOMB) is verdict
        assert worker_pids(grader) == [second]
        assert grader.check("x+2", "2+x").equal


def test_a_worker_that_dies_is_replaced():
    with Grader(deadline_s=20.0) as grader:
        assert grader.check("x+1", "1+x").equal
        os.kill(worker_pids(grader)[0], 9)
        assert grader.check("y+1", "1+y").how == "crashed"
        assert grader.check("z+1", "1+z").equal


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells the limits of another process")
def test_the_worker_may_not_take_more_memory_than_said():
    with Grader(deadline_s=20.0, memory_mb=1024) as grader:
        assert grader.check("x+1", "1+x").equal
        assert resource.prlimit(worker_pids(grader)[0], resource.RLIMIT_AS) == (1 << 30, 1 << 30)


def test_threads_share_one_worker_until_the_grader_is_closed():
    with Grader(deadline_s=20.0) as grader, ThreadPoolExecutor(8) as pool:
        verdicts = list(pool.map(lambda i: grader.check(f"x+{i}", f"{i + i % 2}+x"), range(40)))
        assert [verdict.equal for verdict in verdicts] == [i % 2 == 0 for i in range(40)]
        [pid] = worker_pids(grader)
        grader.close()
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_a_grader_that_is_forgotten_ends_its_worker():
    grader = Grader(deadline_s=20.0)
    assert grader.check("x+1", "1+x").equal
    [pid] = worker_pids(grader)
    del grader
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_a_forked_child_gets_a_worker_of_its_own():
    grader = shared_grader()
    assert grader.check("x+1", "1+x").equal
    before = worker_pids(grader)
    readable, writable = os.pipe()
    child = os.fork()
    if child == 0:
        inherited = worker_pids(shared_grader())
        equal = shared_grader().check("y+1", "1+y").equal
        os.write(writable, repr((inherited, equal, worker_pids(shared_grader()) != before)).encode())
        shared_grader().close()
        os._exit(0)
    os.close(writable)
    with os.fdopen(readable) as pipe:
        assert pipe.read() == "([], True, True)"
    os.waitpid(child, 0)
    assert worker_pids(grader) == before
    assert grader.check("z+1", "1+z").equal
    grader.close()


@pytest.mark.parametrize("last", ["x+2", BOMB])
def test_the_worker_dies_with_its_parent(last: str):
    script = f"""if True:
        import os, threading
        from arl_gym.envs.tirmath.grading import Grader
        grader = Grader(deadline_s=1.0)
        assert grader.check("x+1", "1+x").equal
        worker = grader._workers[0]
        worker.post("x", {last!r})
        worker.reply(0.2)
        os._exit(0)
    """
    # The worker holds the same stderr: `run` returns when both are gone.
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


def test_limits_that_make_no_sense_are_refused():
    with pytest.raises(ConfigError, match="deadline_s > 0"):
        Grader(deadline_s=0)


def test_importing_the_grader_does_not_load_sympy():
    script = "import sys, arl_gym.envs.tirmath.grading; print({'sympy', 'math_verify'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
