"""The supervisor: choice of the tier, faults of the machinery, forks, and what is left behind."""

import gc
import os
import select
import signal
import subprocess
import sys
import textwrap
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from arl_gym.envs.tirmath.sandbox import Sandbox, SandboxUnavailable, open_sandbox, shared_sandbox
from arl_gym.envs.tirmath.sandbox.canary import breaches
from arl_gym.envs.tirmath.sandbox.execution import Limits
from arl_gym.envs.tirmath.sandbox.fresh import FreshInterpreters
from arl_gym.errors import ConfigError, UnknownNameError
from tests.envs.tirmath.sandbox.conftest import sandbox_of
from tests.envs.tirmath.sandbox.containment import descendants

LIMITS = Limits(timeout_s=20.0, memory_mb=256, output_bytes=10000, max_concurrency=2)


def script(text: str, *args: str) -> list[str]:
    return [sys.executable, "-c", textwrap.dedent(text), *args]


def wait_for_end(pid: int) -> bool:
    try:
        pidfd = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([pidfd], [], [], 30)[0])
    finally:
        os.close(pidfd)


def test_auto_takes_an_isolated_tier(auto):
    assert auto.tier in ("namespace", "landlock")


def test_an_unknown_tier_and_limits_out_of_range_are_refused():
    with pytest.raises(UnknownNameError, match="landlok"):
        Sandbox("landlok")
    with pytest.raises(ConfigError, match="timeout_s"):
        Sandbox(timeout_s=0)
    with pytest.raises(ConfigError, match="max_concurrency"):
        Sandbox(max_concurrency=0)
    with pytest.raises(ConfigError, match="server"):
        open_sandbox("http://127.0.0.1:1", timeout_s=3.0)


def test_unsafe_warns_and_is_taken_by_name_only():
    pytest.importorskip("sympy")
    with pytest.warns(UserWarning, match="unisolated"), open_sandbox("unsafe") as sandbox:
        assert sandbox.tier == "unsafe"


def test_canaries_find_a_tier_that_contains_nothing():
    pytest.importorskip("sympy")
    found = breaches(FreshInterpreters(LIMITS).run)
    assert {
        "reads a file of the host",
        "reads /etc/passwd",
        "writes a file of the host",
        "connects to the host",
        "starts a process",
        "a connection arrived",
        "a file appeared",
    } <= set(found)


@pytest.mark.parametrize("tier", ["namespace", "landlock"])
def test_this_package_is_hidden_where_it_lies_among_others(tier, monkeypatch):
    hidden = Path(pytest.__file__).parent
    monkeypatch.setattr("arl_gym.envs.tirmath.sandbox.fork_server.hidden_path", lambda: str(hidden))
    with sandbox_of(tier, timeout_s=20.0) as sandbox:
        beside = sandbox.run(f"print(len(open({str(hidden.parent / 'sympy' / '__init__.py')!r}).read()) > 9)")
        within = sandbox.run(f"open({pytest.__file__!r})")
    assert beside.stdout == "True\n"
    assert within.stderr.splitlines()[-1].startswith(("FileNotFoundError", "PermissionError"))


def test_where_no_tier_holds_the_error_says_what_was_tried_and_what_to_do():
    pytest.importorskip("sympy")
    # A filter that refuses unshare and landlock_create_ruleset, as old kernels and containers do.
    code = """
        import ctypes, platform, struct
        from arl_gym.envs.tirmath.sandbox import Sandbox, SandboxUnavailable
        from arl_gym.envs.tirmath.sandbox.jail import kernel
        unshare = {"x86_64": 272, "aarch64": 97}[platform.machine()]
        rows = [(0x20, 0, 0, 0), (0x15, 1, 0, unshare), (0x15, 0, 1, 444)]
        rows += [(6, 0, 0, 0x50001), (6, 0, 0, 0x7FFF0000)]
        rows = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *row) for row in rows))
        head = ctypes.create_string_buffer(struct.pack("HP", 5, ctypes.addressof(rows)))
        kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
        kernel.prctl(22, 2, ctypes.addressof(head))
        for tier in ("auto", "namespace", "landlock"):
            try:
                Sandbox(tier)
            except SandboxUnavailable as error:
                print(error)
    """
    done = subprocess.run(script(code), capture_output=True, text=True, check=True)
    auto, namespace, landlock = done.stdout.splitlines()
    assert "unshare: Operation not permitted" in auto
    assert "landlock_create_ruleset: Operation not permitted" in auto
    assert 'sandbox="unsafe"' in auto
    assert 'sandbox="http://' in auto
    assert "landlock_create" not in namespace
    assert "unshare" not in landlock


def test_a_template_that_dies_is_a_fault_of_the_sandbox_and_the_next_run_works():
    before = descendants(os.getpid())
    with sandbox_of("landlock", timeout_s=60.0, max_concurrency=1) as sandbox, ThreadPoolExecutor(1) as pool:
        (template,) = [pid for pid in descendants(os.getpid()) - before if descendants(pid)]
        running = pool.submit(sandbox.run, "print('partial', flush=True)\nwhile True: pass")
        poll_until(lambda: any(cpu_ticks(pid) > 10 for pid in descendants(template)))
        children = descendants(template)
        os.kill(template, signal.SIGKILL)
        execution = running.result()
        assert (execution.status, execution.stdout, execution.returncode) == ("sandbox_error", "", None)
        assert "template ended" in execution.stderr
        assert all(wait_for_end(pid) for pid in children)
        assert sandbox.run("print(2)").stdout == "2\n"


def cpu_ticks(pid: int) -> int:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return int(fields[11])


def poll_until(holds) -> None:
    end = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < end, "it never came true"
        os.sched_yield()


def test_everything_dies_with_a_supervisor_that_is_killed(auto):
    pytest.importorskip("sympy")
    code = """
        import threading, time
        from arl_gym.envs.tirmath.sandbox import Sandbox
        sandbox = Sandbox(timeout_s=60.0)
        sandbox.run("print(1)")
        for _ in range(3):
            threading.Thread(target=sandbox.run, args=("while True: pass",)).start()
        print("ready", flush=True)
        time.sleep(60)
    """
    process = subprocess.Popen(script(code), stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    family = descendants(process.pid)
    process.kill()
    process.wait()
    process.stdout.close()
    assert len(family) >= 3
    assert all(wait_for_end(pid) for pid in family)


def test_close_ends_all_processes_and_gives_descriptors_back(auto):
    before, fds = descendants(os.getpid()), len(os.listdir("/proc/self/fd"))
    sandbox = sandbox_of("auto")
    sandbox.run("print(1)")
    family = descendants(os.getpid()) - before
    sandbox.close()
    sandbox.close()
    assert family
    assert all(wait_for_end(pid) for pid in family)
    assert len(os.listdir("/proc/self/fd")) == fds
    with pytest.raises(SandboxUnavailable, match="closed"):
        sandbox.run("print(1)")
    assert auto.run("print(1)").stdout == "1\n"


def test_a_forgotten_sandbox_is_closed(auto):
    before = descendants(os.getpid())
    sandbox = sandbox_of("auto")
    family = descendants(os.getpid()) - before
    del sandbox
    gc.collect()
    assert family
    assert all(wait_for_end(pid) for pid in family)


def test_nothing_is_left_after_many_executions(sandbox):
    programs = ["print(1)", "1 / 0", "print('x' * 10**6)", "import os; os._exit(3)", "[0] * 10**11"] * 20
    with ThreadPoolExecutor(6) as pool:
        list(pool.map(sandbox.run, programs[:20]))
        family, fds = len(descendants(os.getpid())), len(os.listdir("/proc/self/fd"))
        list(pool.map(sandbox.run, programs))
    poll_until(lambda: len(descendants(os.getpid())) <= family)
    assert len(os.listdir("/proc/self/fd")) <= fds


def test_shared_sandboxes_are_one_per_settings(auto):
    assert shared_sandbox(timeout_s=4.0) is shared_sandbox(timeout_s=4.0)
    assert shared_sandbox(timeout_s=4.0) is not auto


def test_a_fork_uses_a_sandbox_of_its_own_and_leaves_the_other_alone(auto):
    code = """
        import os
        from arl_gym.envs.tirmath.sandbox import SandboxUnavailable, shared_sandbox
        sandbox = shared_sandbox()
        print(sandbox.run("print('before')").stdout, end="", flush=True)
        pid = os.fork()
        if not pid:
            try:
                sandbox.run("print(1)")
            except SandboxUnavailable as error:
                print("made in" in str(error).replace("that made", "made in"), flush=True)
            sandbox.close()
            print(shared_sandbox().run("print('in the fork')").stdout, end="", flush=True)
            raise SystemExit
        os.waitpid(pid, 0)
        print(sandbox.run("print('after')").stdout, end="")
    """
    done = subprocess.run(script(code), capture_output=True, text=True, check=True)
    assert done.stdout == "before\nTrue\nin the fork\nafter\n"


def test_programs_see_nothing_of_one_another_or_of_the_supervisor(sandbox, monkeypatch):
    monkeypatch.setenv("ARL_GYM_TEST_SECRET", "needle-in-environment")
    for _ in range(4):
        sandbox.run("x = 'needle-in-code'; print('needle-in-output')", stdin="needle-in-stdin")
    search = """
        import ctypes, gc, os, sys
        kept = ["needle" + "{planted}" + str(i) for i in range(100)]
        modules = list(sys.modules.values())
        objects = [*gc.get_objects(), *kept, *(each for module in modules for each in vars(module).values())]
        near = {{(id(each) >> 20) + step for each in objects for step in (-1, 0, 1)}}
        found = 0
        for megabyte in sorted(near):
            for page in range(256):
                reading, writing = os.pipe()
                try:
                    os.write(writing, (ctypes.c_char * 4096).from_address((megabyte << 20) + (page << 12)))
                except OSError:
                    continue  # nothing is mapped there
                finally:
                    os.close(writing)
                    content = os.read(reading, 4096)
                    os.close(reading)
                at = content.find(b"needle")
                while at >= 0:
                    found += content[at + 6 : at + 7] == b"-" and content[at + 7 : at + 9] == b"in"
                    at = content.find(b"needle", at + 1)
        print(found)
    """
    nothing, planted = (
        sandbox.run(textwrap.dedent(search).format(planted=suffix)) for suffix in ("", "-in-memory-")
    )
    assert (nothing.stdout, nothing.stderr) == ("0\n", "")
    assert int(planted.stdout) >= 100
