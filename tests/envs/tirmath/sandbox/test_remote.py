"""The sandbox over HTTP."""

import http.client
import json
import threading
from collections.abc import Iterator

import pytest

from arl_gym.envs.tirmath.sandbox import RemoteSandbox, SandboxUnavailable, open_sandbox
from arl_gym.envs.tirmath.sandbox.server import SandboxServer
from arl_gym.errors import ConfigError
from tests.envs.tirmath.sandbox.conftest import sandbox_of


@pytest.fixture(scope="module")
def server() -> Iterator[SandboxServer]:
    made = SandboxServer(sandbox_of("auto", timeout_s=20.0, output_bytes=1000), "127.0.0.1", 0)
    thread = threading.Thread(target=made.serve_forever)
    thread.start()
    yield made
    made.shutdown()
    thread.join()
    made.server_close()


def post(server: SandboxServer, body: bytes, kind: str = "application/json") -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port)
    try:
        connection.request("POST", "/run", body, {"Content-Type": kind})
        response = connection.getresponse()
        return response.status, json.loads(response.read())["error"]
    finally:
        connection.close()


def test_a_remote_run_is_a_run(server):
    with open_sandbox(server.url) as remote:
        assert isinstance(remote, RemoteSandbox)
        assert (remote.tier, remote.limits) == (server.sandbox.tier, server.sandbox.limits)
        execution = remote.run("say(input())\n1 / 0", stdin="é\n", prelude="say = print", seed=3)
    assert (execution.status, execution.stdout, execution.returncode) == ("error", "é\n", 1)
    assert execution.stderr.startswith('Traceback (most recent call last):\n  File "main.py", line 2')
    assert execution.run_ms > 0


def test_requests_that_are_none_are_refused_with_a_reason(server):
    assert post(server, b"[]") == (400, "expected a JSON object with the key 'code'")
    assert post(server, b'{"code": "1"}', "text/plain")[0] == 400
    status, reason = post(server, b'{"code": "1", "tier": "unsafe"}')
    assert (status, "tier='unsafe'" in reason) == (400, True)
    assert post(server, b'{"code": "1", "seed": "x"}')[0] == 400


def test_a_server_that_has_gone_is_a_fault_of_the_sandbox():
    made = SandboxServer(sandbox_of("auto"), "127.0.0.1", 0)
    thread = threading.Thread(target=made.serve_forever)
    thread.start()
    remote = RemoteSandbox(made.url)
    made.shutdown()
    thread.join()
    made.server_close()
    execution = remote.run("print(1)")
    assert (execution.status, execution.stdout, execution.returncode) == ("sandbox_error", "", None)
    assert "attempt 2: ConnectionRefusedError" in execution.stderr


def test_addresses_that_are_none_and_servers_that_are_not_there_are_errors():
    for url in ("https://127.0.0.1:1", "http://", "http://127.0.0.1:1/run", "ftp://x"):
        with pytest.raises(ConfigError, match="http://HOST:PORT"):
            RemoteSandbox(url)
    with pytest.raises(SandboxUnavailable, match="serve-sandbox"):
        RemoteSandbox("http://127.0.0.1:1")
