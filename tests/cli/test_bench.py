import json

import pytest

from arl_gym.cli import main
from tests.agents.counting import ID


@pytest.mark.parametrize("workers", ["0", "1"])
def test_a_benchmark_prints_and_appends_its_figures(tmp_path, capsys, workers):
    out = tmp_path / "bench.jsonl"
    args = ["bench", ID, "--num-envs", "2", "--seconds", "0.05", "--workers", workers, "--out", str(out)]
    assert main(args) == 0
    assert "steps/s" in capsys.readouterr().out
    assert main(args) == 0
    first, second = (json.loads(line) for line in out.read_text().splitlines())
    assert first.keys() == second.keys() >= {"commit", "cpu", "versions", "time", "id", "num_envs"}
    assert first["steps_per_s"] > 0
    assert first["resets_per_s"] > 0
    assert 0 < first["step_p50_ms"] <= first["step_p99_ms"]
    assert (first["peak_worker_mb"] > 0) == (workers == "1")


def test_an_env_that_breaks_fails_the_benchmark(capsys):
    assert main(["bench", ID, "--num-envs", "1", "--seconds", "5", "--env", "max_steps=0"]) == 1
    assert "max_steps" in capsys.readouterr().err


def test_no_time_is_bad_usage():
    assert main(["bench", ID, "--seconds", "0"]) == 2
