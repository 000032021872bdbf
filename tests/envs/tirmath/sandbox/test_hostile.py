"""Hostile programs get nowhere."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import require
from tests.envs.tirmath.sandbox.conftest import sandbox_of
from tests.envs.tirmath.sandbox.containment import a_host, try_all
from tests.envs.tirmath.sandbox.hostile import PRELUDE, PROGRAMS, refused

ROOT = Path(__file__).resolve().parents[4]


def test_the_suite_is_large_and_names_are_unique():
    assert len({each.name for each in PROGRAMS}) == len(PROGRAMS) >= 60


def test_everything_forbidden_is_refused_in_one_program(sandbox):
    attempts = [each for each in PROGRAMS if each.contained is refused]
    code = "\n".join(f"print({each.name!r}, end=': ')\n{each.program}" for each in attempts)
    with a_host() as host:
        execution = sandbox.run(host.fill_in(code), prelude=PRELUDE)
        harm = host.harm()
    # The fork bomb says its name once and tries 300 times.
    said = [line for line in execution.stdout.splitlines() if not line.startswith("refused ")]
    assert [line for line in said if ": refused " not in line] == []
    assert len(said) == len(attempts)
    assert (execution.status, execution.stderr, harm) == ("ok", "", "")


def test_quick_hostile_programs_are_contained(auto):
    quick = [each for each in PROGRAMS if each.contained is not refused and not each.slow]
    results = try_all(auto.tier, quick)
    assert {name: what for name, what in results.items() if what} == {}


ESCAPES = ["read host file", "write host folder", "subprocess", "fork", "TCP to the host", "UDP to the host"]


@pytest.mark.parametrize("name", ESCAPES)
def test_without_isolation_the_same_programs_get_through(unsafe, name):
    (hostile,) = [each for each in PROGRAMS if each.name == name]
    with a_host() as host:
        execution = unsafe.run(host.fill_in(hostile.program), prelude=PRELUDE)
        assert "BREACH" in execution.stdout
        assert not hostile.contained(execution)
        assert bool(host.harm()) == (name in ("write host folder", "TCP to the host", "UDP to the host"))


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("tier", ["namespace", "landlock"])
@pytest.mark.parametrize("uid", [None, 65534])
def test_all_hostile_programs_are_contained(tier, uid):
    sandbox_of(tier).close()
    require(uid is None or os.getuid() == 0, "only root can run tests as another user")
    command = [sys.executable, "-m", "tests.envs.tirmath.sandbox.containment", "--tier", tier]
    command += [] if uid is None else ["--uid", str(uid)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    report = json.loads(done.stdout)
    assert report["uid"] == (os.getuid() if uid is None else uid)
    assert {name: what for name, what in report["results"].items() if what} == {}
