"""What the reference engine says where the real packages are missing; `reference/` tests it with them."""

import subprocess
import sys

import pytest

from arl_gym.envs.alfworld import reference
from arl_gym.envs.alfworld.reference import ReferenceGame
from arl_gym.errors import ConfigError, DataError, DependencyMissing


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reference, "_FREE", [])


def test_missing_packages_are_named_with_the_install_line(monkeypatch):
    monkeypatch.setattr(sys, "version_info", (3, 12, 1))
    monkeypatch.setattr(reference, "available", lambda: False)
    with pytest.raises(DependencyMissing) as error:
        ReferenceGame("{}")
    assert str(error.value) == "ALFWorld(engine='textworld') needs: pip install 'arl-gym[alfworld]'"


def test_a_python_that_textworld_fails_on_is_named(monkeypatch):
    monkeypatch.setattr(sys, "version_info", (3, 13, 0))
    assert not reference.available()
    with pytest.raises(ConfigError, match=r"needs Python 3\.11 or 3\.12"):
        ReferenceGame("{}")


@pytest.mark.parametrize(
    ("text", "said"), [("(define", "no JSON"), ("[]", "expected a JSON object, got list")]
)
def test_a_text_that_is_no_game_file_is_refused_first(text, said):
    with pytest.raises(DataError, match=said):
        ReferenceGame(text)


def test_importing_the_module_imports_none_of_the_packages():
    code = "import sys, arl_gym.envs.alfworld.reference; print(sorted(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert not any(f"'{name}'" in loaded for name in ("alfworld", "textworld", "fast_downward"))
