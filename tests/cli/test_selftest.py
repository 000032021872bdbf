import pytest

from arl_gym.cli import main
from arl_gym.train import selftest as module
from arl_gym.train.selftest import Check


@pytest.mark.parametrize(("outcome", "code"), [("pass", 0), ("not run", 0), ("FAIL", 1)])
def test_the_exit_code_is_1_only_if_something_failed(monkeypatch, capsys, outcome, code):
    monkeypatch.setattr(module, "selftest", lambda *a, **k: [Check("versions", outcome, "[all] well")])
    assert main(["selftest"]) == code
    printed = capsys.readouterr().out
    assert "[all] well" in printed
    assert ("failed: versions" in printed) == (code == 1)


def test_the_options_reach_the_self_test(monkeypatch):
    seen = {}
    monkeypatch.setattr(module, "selftest", lambda folder, **k: seen.update(k) or [])
    assert main(["selftest", "--gpu", "--model", "some/folder", "--backend", "vllm"]) == 0
    seen.pop("begin")
    assert seen == {"model": "some/folder", "backend": "vllm", "gpu": True}
