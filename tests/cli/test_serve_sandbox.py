import signal
import subprocess
import sys
from functools import partial

import pytest

from arl_gym.cli import serve_sandbox
from arl_gym.envs.tirmath.sandbox import RemoteSandbox
from tests.envs.tirmath.sandbox.conftest import sandbox_of


def test_it_serves_until_it_is_interrupted():
    sandbox_of("auto").close()
    code = "from arl_gym.cli.serve_sandbox import run; run(['--port', '0', '--timeout-s', '20'])"
    with subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        text=True,
        # Tests that run in the background of a script inherit that it is ignored.
        preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),
    ) as process:
        assert process.stdout is not None
        try:
            url, _, tier = process.stdout.readline().split()
            assert tier in ("namespace", "landlock")
            assert RemoteSandbox(url).run("print(6 * 7)").stdout == "42\n"
            process.send_signal(signal.SIGINT)
            assert process.wait(20) == 0
        finally:
            process.kill()


def test_bad_options_end_with_2():
    with pytest.raises(SystemExit) as caught:
        serve_sandbox.run(["--max-concurrency", "0"])
    assert caught.value.code == 2
