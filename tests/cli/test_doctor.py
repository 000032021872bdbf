import tomllib
from importlib.util import find_spec
from pathlib import Path

import pytest

from arl_gym.cli import doctor, main
from arl_gym.cli.extras import EXTRAS


@pytest.fixture(autouse=True)
def without_torch(monkeypatch, tmp_path):
    monkeypatch.setattr(doctor, "find_spec", lambda name: None if name == "torch" else find_spec(name))
    monkeypatch.setenv("ARL_GYM_CACHE", str(tmp_path / "cache"))


def test_a_sound_installation_exits_0_and_names_what_missing_extras_need(capsys):
    assert main(["doctor"]) == 0
    shown = capsys.readouterr().out
    assert "missing torch: pip install 'arl-gym[hf]'" in shown
    assert "BAD" not in shown
    for what in ("python", "gymnasium", "assets", "cache", "cores", "memory"):
        assert f" {what} " in shown


def test_an_unwritable_cache_exits_1(monkeypatch, capsys, tmp_path):
    (tmp_path / "file").touch()
    monkeypatch.setenv("ARL_GYM_CACHE", str(tmp_path / "file" / "cache"))
    assert main(["doctor"]) == 1
    shown = capsys.readouterr()
    assert "is not writable" in shown.out
    assert shown.err


def test_a_missing_core_package_exits_1(monkeypatch, capsys):
    monkeypatch.setattr(doctor, "CORE", (*doctor.CORE, "no-such-package"))
    assert main(["doctor"]) == 1
    assert "missing: pip install no-such-package" in capsys.readouterr().out


def test_the_tables_are_those_of_the_project_file():
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    names = {d.partition(">")[0] for d in project["dependencies"]}
    assert set(doctor.CORE) == names
    assert set(EXTRAS) == set(project["optional-dependencies"]) - {"dev"}
    for extra, modules in EXTRAS.items():
        required = " ".join(project["optional-dependencies"][extra]).lower().replace("-", "")
        assert all(module.replace("_", "") in required for module in modules)
    low, high = (f"{a}.{b}" for a, b in doctor.PYTHONS)
    assert project["requires-python"].startswith(f">={low}")
    assert f"Programming Language :: Python :: {high}" in project["classifiers"]
