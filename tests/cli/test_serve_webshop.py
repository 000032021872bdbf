import json
import re
import signal
import socket
import subprocess
import sys
from functools import partial
from typing import Any
from urllib.request import ProxyHandler, build_opener

import pytest

from arl_gym import make_chat_env
from arl_gym.cli import main
from tests.conftest import require

try:
    from arl_gym.envs.webshop.site import server
except ModuleNotFoundError:
    require(False, "needs Flask (extra browser)")

MINI = ("--env", "catalogue=mini", "--env", "num_products=200")
ask = build_opener(ProxyHandler({})).open


def serve(monkeypatch, visit, *args: str) -> int:
    """Serve the mini catalogue while `visit` looks at its address."""
    monkeypatch.setattr(server.SiteServer, "wait", lambda self: visit(self.url))
    return main(["serve-webshop", "--port", "0", *MINI, *args])


def body(url: str) -> str:
    with ask(url, timeout=20) as answer:
        return str(answer.read().decode())


def test_it_serves_until_it_is_interrupted():
    command = [sys.executable, "-m", "arl_gym.cli", "serve-webshop", "--port", "0", *MINI]
    with subprocess.Popen(
        command,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        # Tests that run in the background of a script inherit that it is ignored.
        preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        try:
            line = process.stdout.readline()
            found = re.fullmatch(r"WebShop is at (http://127\.0\.0\.1:\d+) \(Ctrl-C ends it\)\n", line)
            assert found, line + process.stderr.read()
            assert "the 200 of this shop" in body(found[1])
            process.send_signal(signal.SIGINT)
            assert process.wait(20) == 0
            assert (process.stdout.read(), process.stderr.read()) == ("", "\n")
        finally:
            process.kill()


def test_the_site_has_every_option_that_environments_ask_for(monkeypatch):
    seen: list[Any] = []
    visit = lambda url: seen.append(json.loads(body(url + "/about")))  # noqa: E731
    assert serve(monkeypatch, visit, "--env", "results_per_page=5", "--env", "mark_clicked=true") == 0
    assert seen[0]["options"] == {
        "results_per_page": 5, "show_attributes": False, "hide_empty_next": False, "mark_clicked": True,
        "number_results": False, "compat": False,
    }  # fmt: skip


def test_it_shows_the_episodes_of_all_files(monkeypatch, tmp_path):
    for name in "ab":
        env = make_chat_env("ARL/WebShop-v0", catalogue="mini", num_products=200, record=tmp_path / name)
        env.reset(seed=0)
        env.step("hello")
        env.close()
    files = [str(tmp_path / name / "episodes.jsonl") for name in "ab"]
    seen: list[str] = []
    visit = lambda url: seen.append(body(url + "/episodes"))  # noqa: E731
    assert serve(monkeypatch, visit, "--episodes", files[0], "--episodes", files[1]) == 0
    assert all(f"{file} #0" in seen[0] for file in files)


def test_a_port_in_use_is_one_line(monkeypatch, capfd):
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        assert main(["serve-webshop", "--port", str(port), *MINI]) == 1
    out, err = capfd.readouterr()
    assert out == ""
    assert re.fullmatch(rf"arl-gym: cannot listen on 127\.0\.0\.1:{port}: .*already in use.*\n", err)


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["--port", "70000"], "cannot listen on 127.0.0.1:70000"),
        (["--env", "obs_mode=html"], "--env obs_mode: a site has no use for it, it takes dataset, catalogue"),
        (["--env", "split=val"], "--env split: a site has no use for it"),
        (
            ["--env", "catalog=full"],
            "unknown --env key 'catalog' in serve-webshop: did you mean 'catalogue'?",
        ),
        (["--env", "goals=human"], "goals goes with dataset='original', got goals='human'"),
        (["--env", "dataset=real"], "unknown dataset 'real'"),
        (["--env", "results_per_page=0"], "results_per_page must be a whole number of at least 1, got 0"),
        (["--episodes", "no.jsonl"], "no.jsonl"),
    ],
)
def test_a_wrong_argument_is_one_line(capfd, args, says):
    assert main(["serve-webshop", *MINI, *args]) == 1
    err = capfd.readouterr().err
    assert says in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("host", "warned"), [("127.0.0.2", 0), ("localhost", 0), ("0.0.0.0", 1), ("shop", 1)]
)
def test_others_being_able_to_reach_it_is_warned_of(monkeypatch, capsys, host, warned):
    class Listening:
        url = "somewhere"

        def __init__(self, app, *, host: str, port: int):
            pass

        def __enter__(self):
            return self

        def __exit__(self, *error):
            pass

        def wait(self):
            pass

    monkeypatch.setattr(server, "SiteServer", Listening)
    assert main(["serve-webshop", *MINI, "--host", host]) == 0
    assert capsys.readouterr().err.count(f"others can reach {host}") == warned


def test_without_flask_it_explains_itself_and_names_the_extra(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "flask", None)
    for name in [*sys.modules]:
        if name == "arl_gym.cli.serve_webshop" or name.startswith("arl_gym.envs.webshop.site"):
            monkeypatch.delitem(sys.modules, name)
    assert main(["serve-webshop", "--help"]) == 0
    assert "num_products" in capsys.readouterr().out
    assert main(["serve-webshop", *MINI]) == 1
    says = "arl-gym: arl-gym serve-webshop needs: pip install 'arl-gym[browser]'\n"
    assert capsys.readouterr().err == says
