import os
import signal
import subprocess
import sys
from contextlib import contextmanager

import pytest

from arl_gym.errors import ConfigError
from arl_gym.train import launch as module
from arl_gym.train.launch import environments, launch

ROOT = os.getcwd()


def test_each_rank_is_told_who_it_is(monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(7)))
    first, second = environments(2)
    names = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "OMP_NUM_THREADS")
    assert [first[n] for n in names] == ["0", "0", "2", "3"]
    assert [second[n] for n in names] == ["1", "1", "2", "3"]
    assert (first["MASTER_ADDR"], first["MASTER_PORT"]) == (second["MASTER_ADDR"], second["MASTER_PORT"])
    monkeypatch.setenv("OMP_NUM_THREADS", "5")
    assert environments(2)[0]["OMP_NUM_THREADS"] == "5"


def test_a_number_of_ranks_below_one_is_refused():
    with pytest.raises(ConfigError, match="--gpus"):
        launch(["list"], 0)


def test_more_ranks_than_gpus_are_refused(monkeypatch):
    monkeypatch.setattr("torch.cuda.device_count", lambda: 1)
    with pytest.raises(ConfigError, match="at most 1"):
        launch(["list"], 2)


def test_the_exit_code_of_a_command_comes_back(capfd):
    assert launch(["list"], 2) == 0
    assert capfd.readouterr().out.count("ARL/Sokoban-v0") == 2
    assert launch(["no-such-command"], 2) == 2
    assert "no GPU found: 2 processes on the CPU" in capfd.readouterr().err


RANK = """
import os, signal, subprocess, sys, time
rank = int(os.environ["RANK"])
say = lambda text: os.write(1, (text + "\\n").encode())  # in one piece; print may split a line
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
signal.signal({number}, lambda *_: (say(f"rank {{rank}} got it"), sys.exit(7)))
say(f"started {{os.getpid()}} {{child.pid}}")
if {dies} and rank == 1:
    os.kill(os.getpid(), 9)
time.sleep(600)
"""
LAUNCH = """
import sys
from types import SimpleNamespace
sys.path.insert(0, {root!r})
# Only asked for the number of GPUs; importing the real one takes seconds.
sys.modules["torch"] = SimpleNamespace(cuda=SimpleNamespace(device_count=lambda: 0))
from arl_gym.train import launch as module
module._GRACE_S = 0.1
module.sys.executable = {fake!r}
code = module.launch([], 2)
print("code", code, flush=True)
"""


@contextmanager
def launched(tmp_path, *, number=signal.SIGTERM, dies=False):
    """Start a launcher of two ranks; give it when both run, and check at the end that nothing is left.

    A rank has a child, and exits with 7 on a signal `number`; the second may die at once.
    """
    script = tmp_path / "rank.py"
    script.write_text(RANK.format(number=int(number), dies=dies))
    fake = tmp_path / "python"  # stands for the interpreter that would run arl_gym.cli
    fake.write_text(f"#!/bin/sh\nexec {sys.executable} {script}\n")
    fake.chmod(0o755)
    launcher = subprocess.Popen(
        [sys.executable, "-c", LAUNCH.format(root=ROOT, fake=str(fake))], stdout=subprocess.PIPE, text=True
    )
    assert launcher.stdout is not None
    lines = [launcher.stdout.readline().split() for _ in range(2)]
    pids = [int(n) for _, *numbers in lines for n in numbers]
    try:
        yield launcher
        assert launcher.poll() is not None
        assert not [pid for pid in pids if is_running(pid)]
    finally:
        launcher.kill()
        for pid in filter(is_running, pids):
            os.kill(pid, signal.SIGKILL)


def is_running(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR1])
@pytest.mark.slow
def test_signals_reach_every_rank(tmp_path, number):
    with launched(tmp_path, number=number) as launcher:
        launcher.send_signal(number)
        out, _ = launcher.communicate(timeout=60)
    assert "rank 0 got it" in out
    assert "rank 1 got it" in out
    assert out.endswith("code 7\n")


@pytest.mark.slow
def test_a_rank_that_dies_takes_the_others_along(tmp_path):
    with launched(tmp_path, dies=True) as launcher:
        out, _ = launcher.communicate(timeout=60)
    assert out == "code 137\n"  # 128 + SIGKILL


def test_the_grace_is_long_enough_to_write_a_checkpoint():
    assert module._GRACE_S >= 10
