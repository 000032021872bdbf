import os
import subprocess
import sys

import pytest

from arl_gym.cli import COMMANDS, Command, main
from arl_gym.errors import ConfigError

OWN = ["list", "play", "eval", "check", "bench", "replay", "doctor"]


def use(monkeypatch, run) -> None:
    monkeypatch.setitem(COMMANDS, "list", Command("", "tests.cli.test_main", "fake"))
    monkeypatch.setattr(sys.modules[__name__], "fake", run, raising=False)


def raising(err: BaseException):
    def run(args: list[str]) -> int:
        raise err

    return run


@pytest.mark.parametrize("name", OWN)
def test_every_command_explains_itself(name, capsys):
    assert main([name, "--help"]) == 0
    assert f"arl-gym {name}" in capsys.readouterr().out


def test_help_names_every_command(capsys):
    assert main(["--help"]) == 0
    shown = capsys.readouterr().out
    assert all(f"\n  {name} " in shown for name in COMMANDS)


def test_no_command_is_bad_usage_and_shows_the_help(capsys):
    assert main([]) == 2
    assert "commands:" in capsys.readouterr().out


def test_an_unknown_command_is_bad_usage_and_names_the_nearest(capsys):
    assert main(["evl"]) == 2
    assert "did you mean 'eval'" in capsys.readouterr().err


def test_an_unknown_option_is_bad_usage():
    assert main(["list", "--nope"]) == 2


def test_a_command_gets_its_arguments_and_gives_its_exit_code(monkeypatch):
    seen: list[list[str]] = []

    def run(args: list[str]) -> int:
        seen.append(args)
        return 5

    use(monkeypatch, run)
    assert main(["list", "--x", "y"]) == 5
    assert seen == [["--x", "y"]]


@pytest.mark.parametrize(
    ("err", "says"),
    [
        (ConfigError("a\nb"), "arl-gym: a b\n"),
        (FileNotFoundError(2, "No such file", "x.json"), "arl-gym: [Errno 2] No such file: 'x.json'\n"),
        (KeyboardInterrupt(), "arl-gym: interrupted\n"),
    ],
)
def test_a_failure_is_one_line_and_exit_1(monkeypatch, capsys, err, says):
    use(monkeypatch, raising(err))
    assert main(["list"]) == 1
    assert capsys.readouterr().err == says


def test_a_defect_keeps_its_traceback(monkeypatch):
    use(monkeypatch, raising(ZeroDivisionError()))
    with pytest.raises(ZeroDivisionError):
        main(["list"])


@pytest.mark.parametrize(("module", "extra"), [("torch.cuda", "hf"), ("deepspeed", "train")])
def test_a_missing_extra_gives_its_install_line(monkeypatch, capsys, module, extra):
    use(monkeypatch, raising(ModuleNotFoundError("gone", name=module)))
    assert main(["list"]) == 1
    assert capsys.readouterr().err == f"arl-gym: arl-gym list needs: pip install 'arl-gym[{extra}]'\n"


def run_process(code: str, stdout: int) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-c", code]
    return subprocess.run(command, text=True, stdout=stdout, stderr=subprocess.PIPE, timeout=60)


def test_listing_loads_nothing_heavy():
    heavy = "{'torch', 'transformers', 'rich', 'arl_gym.train'}"
    code = f"import sys; from arl_gym.cli import main; main(['list']); print({heavy} & set(sys.modules))"
    done = run_process(code, stdout=subprocess.PIPE)
    assert done.stdout.splitlines()[-1] == "set()", done.stderr
    assert "ARL/Sokoban-v0" in done.stdout


def test_a_closed_pipe_is_quiet():
    reader, writer = os.pipe()
    os.close(reader)
    done = run_process("from arl_gym.cli import main; raise SystemExit(main(['list']))", stdout=writer)
    os.close(writer)
    assert (done.returncode, done.stderr) == (1, "")
