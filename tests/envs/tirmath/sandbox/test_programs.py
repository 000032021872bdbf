"""What a program sees and what comes of it: the same on every tier, and the same as `python main.py` says."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.envs.tirmath.sandbox.conftest import sandbox_of


@pytest.fixture(params=["auto", "unsafe"])
def any_sandbox(request):
    return request.getfixturevalue(request.param)


def test_a_program_prints(any_sandbox):
    execution = any_sandbox.run("print(6 * 7)")
    assert (execution.status, execution.stdout, execution.stderr) == ("ok", "42\n", "")
    assert (execution.returncode, execution.truncated) == (0, False)
    assert execution.run_ms > 0
    assert execution.queue_ms >= 0


@pytest.mark.parametrize(
    ("code", "status", "returncode"),
    [
        ("", "ok", 0),
        ("raise SystemExit", "ok", 0),
        ("import sys; sys.exit(3)", "error", 3),
        ("exit(4)", "error", 4),
        ("import sys; sys.exit('why')", "error", 1),
        ("1 / 0", "error", 1),
        ("import os; os._exit(7)", "error", 7),
        ("import os; os.kill(os.getpid(), 15)", "killed", -15),
        ("[0] * 10**11", "memory", 1),
        ("try:\n    [0] * 10**11\nexcept MemoryError:\n    pass", "ok", 0),
    ],
)
def test_the_status_is_how_it_ended(any_sandbox, code, status, returncode):
    execution = any_sandbox.run(code)
    assert (execution.status, execution.returncode) == (status, returncode)


def test_writing_of_memory_errors_does_not_make_one(any_sandbox):
    code = "import sys\nsys.stderr.write('MemoryError\\n')\nsys.exit(1)"
    assert any_sandbox.run(code).status == "error"


@pytest.mark.parametrize(
    "code",
    [
        "1 / 0",
        "x = 1\n\ndef f(n):\n    return n / (n - n)\n\nf(3)\n",
        "def f(:\n    pass",
        "print('a'\n",
        "try:\n    {}['k']\nexcept KeyError as error:\n    raise ValueError('v') from error",
        "import json\njson.loads('{')",
        "eval('1 +')",
        "raise SystemExit('bye')",
        "raise ExceptionGroup('g', [ValueError(1), TypeError(2)])",
        "import warnings\nwarnings.warn('careful')",
    ],
)
def test_stderr_is_what_python_prints(any_sandbox, code, tmp_path):
    (tmp_path / "main.py").write_text(code)
    command = [sys.executable, "-X", "utf8", "main.py"]
    plain = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    expected = plain.stderr.replace(f"{tmp_path}/main.py", "main.py")
    assert any_sandbox.run(code).stderr == expected


def test_line_numbers_are_those_of_the_program_after_a_prelude(any_sandbox):
    prelude = "def final_answer(x):\n    print('boxed', x)\n\n\n"
    execution = any_sandbox.run("final_answer(3)\n1 / 0", prelude=prelude)
    assert execution.stdout == "boxed 3\n"
    assert 'File "main.py", line 2, in <module>' in execution.stderr
    assert "prelude" not in execution.stderr


def test_a_program_runs_as_main_with_a_clean_environment(any_sandbox):
    code = (
        "import sys\nown = sys.modules['__main__'].__dict__ is globals()\n"
        "print(__name__, sys.argv, own, 'jail' in sys.modules)"
    )
    assert any_sandbox.run(code).stdout == "__main__ ['main.py'] True False\n"


def test_input_reads_stdin_and_then_fails(any_sandbox):
    execution = any_sandbox.run("print(input())\nprint(input())", stdin="é 1\n")
    assert execution.stdout == "é 1\n"
    assert execution.stderr.endswith("EOFError: EOF when reading a line\n")


def test_a_megabyte_of_stdin_arrives(any_sandbox):
    assert (
        any_sandbox.run("import sys\nprint(len(sys.stdin.read()))", stdin="x" * 10**6).stdout == "1000000\n"
    )


def test_the_seed_decides_random_numbers(any_sandbox):
    code = "import random, numpy\nprint(random.random(), numpy.random.rand())"
    first, same, other = (any_sandbox.run(code, seed=seed).stdout for seed in (5, 5, 6))
    assert first == same != other


def test_sets_of_strings_keep_their_order(any_sandbox):
    code = "print({'apple', 'pear', 'plum', 'fig'})"
    assert len({any_sandbox.run(code).stdout for _ in range(3)}) == 1


def test_threads_are_waited_for_and_exit_hooks_run(any_sandbox):
    code = (
        "import atexit, threading, time\natexit.register(print, 'hook')\n"
        "threading.Thread(target=lambda: (time.sleep(0.05), print('thread'))).start()\nprint('main')"
    )
    assert any_sandbox.run(code).stdout == "main\nthread\nhook\n"


def test_a_lone_surrogate_and_raw_bytes_can_be_printed(any_sandbox):
    code = "import os\nprint(chr(0xD800), end='', flush=True)\nos.write(1, bytes([255, 10]))"
    assert any_sandbox.run(code).stdout == "?\ufffd\n"


def test_a_program_with_a_lone_surrogate_is_an_error_of_the_program(any_sandbox):
    execution = any_sandbox.run("print('\ud800')")
    assert execution.status == "error"
    assert "UnicodeEncodeError" in execution.stderr


def test_standard_library_modules_that_nobody_has_loaded_can_be_imported(sandbox):
    code = (
        "import asyncio, csv, decimal, hashlib, secrets, sqlite3, statistics, zoneinfo, numpy.fft\n"
        "import sympy.geometry\nasync def f(): print(hashlib.sha256(b'').hexdigest()[:4])\nasyncio.run(f())"
    )
    execution = sandbox.run(code)
    assert (execution.stdout, execution.stderr) == ("e3b0\n", "")


def test_output_is_cut_at_the_limit_exactly():
    with sandbox_of("auto", output_bytes=100, timeout_s=20.0) as sandbox:
        full, over = sandbox.run("print('x' * 99)"), sandbox.run("print('x' * 100)")
        errors = sandbox.run("import sys\nsys.stderr.write('y' * 101)")
    assert (full.status, len(full.stdout), full.truncated) == ("ok", 100, False)
    assert (over.status, len(over.stdout), over.truncated) == ("output_limit", 100, True)
    assert (errors.status, errors.stderr, errors.truncated) == ("output_limit", "y" * 100, True)


def test_a_timeout_keeps_what_was_printed():
    with sandbox_of("auto", timeout_s=0.5) as sandbox:
        execution = sandbox.run("print('kept', end='')\nwhile True: pass")
    assert (execution.status, execution.stdout, execution.returncode) == ("timeout", "kept", -9)
    assert 500 <= execution.run_ms < 5000


def test_waiting_for_a_place_is_not_run_time():
    with sandbox_of("auto", timeout_s=1.0, max_concurrency=1) as sandbox, ThreadPoolExecutor(4) as pool:
        executions = list(pool.map(sandbox.run, ["import time; time.sleep(0.3)"] * 4))
    assert [each.status for each in executions] == ["ok"] * 4
    assert max(each.queue_ms for each in executions) > 850
    assert max(each.run_ms for each in executions) < 1000


def test_many_programs_at_the_same_time_keep_their_own_output(sandbox):
    with ThreadPoolExecutor(12) as pool:
        outputs = list(pool.map(lambda i: sandbox.run(f"print({i} * 2)").stdout, range(60)))
    assert outputs == [f"{2 * i}\n" for i in range(60)]


def test_the_memory_limit_counts_beyond_the_interpreter():
    code = "x = bytearray({} << 20)\nprint('fits')"
    with sandbox_of("auto", memory_mb=100, timeout_s=20.0) as sandbox:
        assert sandbox.run(code.format(80)).stdout == "fits\n"
        assert sandbox.run(code.format(120)).status == "memory"
