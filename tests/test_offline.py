"""The network guard of pyproject.toml: loopback works, everything else is refused."""

import multiprocessing
import os
import socket

import pytest
from pytest_socket import SocketConnectBlockedError

from tests.conftest import require


def _double(pipe):
    pipe.send(2 * pipe.recv())


@pytest.mark.filterwarnings("ignore:A test tried to use")
def test_an_address_outside_this_machine_is_refused():
    with pytest.raises(SocketConnectBlockedError), socket.socket() as s:
        s.connect(("203.0.113.1", 80))  # a documentation address: nobody is there


def test_loopback_is_allowed():
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname()) as client,
    ):
        client.sendall(b"x")
        assert server.accept()[0].recv(1) == b"x"


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_worker_processes_start_behind_the_guard(method):
    context = multiprocessing.get_context(method)
    ours, theirs = context.Pipe()
    worker = context.Process(target=_double, args=(theirs,))
    worker.start()
    ours.send(21)
    assert ours.recv() == 42
    worker.join()


def test_a_missing_component_skips_here_and_fails_in_ci(monkeypatch):
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception, match="no engine"):
        require(False, "no engine")
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="no engine"):
        require(False, "no engine")


def test_tests_do_not_touch_the_users_cache(tmp_path_factory):
    assert os.environ["ARL_GYM_CACHE"].startswith(str(tmp_path_factory.getbasetemp()))
