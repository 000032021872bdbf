import re

import pytest

from arl_gym.agents.records import read_trajectories
from arl_gym.cli import main
from tests.agents.counting import ID, say
from tests.agents.stub_server import StubServer, completion

TINY = ["--config", "sokoban-tiny"]


@pytest.fixture
def two_envs(tmp_path):
    file = tmp_path / "two.toml"
    file.write_text(f'[[envs]]\nid = "{ID}"\nweight = 2.0\n[[envs]]\nid = "ARL/Sokoban-v0"\nwindow = 0\n')
    return ["--config", str(file)]


def test_what_is_not_kept_is_told_by_reason(tmp_path, capsys):
    out = tmp_path / "e.jsonl.gz"
    args = ["--env.id", ID, "--policy", "random", "--episodes", "12", "--samples", "4", "--out", str(out)]
    assert main(["collect", *args]) == 0
    shown = capsys.readouterr().out
    numbers = {k: int(n) for k, n in re.findall(r"^ *(played|kept|dropped: \w+) +(\d+) *$", shown, re.M)}
    kept = read_trajectories(out)
    assert numbers["played"] == 48 == sum(numbers.values()) - 48
    assert numbers["kept"] == len(kept)
    assert numbers["dropped: success"] > 0
    # Goal 1 is reached at once by half of its episodes: some of a task are the same.
    assert numbers["dropped: duplicate"] > 0
    assert all(t.success for t in kept)
    assert f"{len(kept)} episodes: {out}" in shown


def test_cloning_on_several_ranks_starts_them(monkeypatch, tmp_path):
    args = [*TINY, "--gpus", "2", "--run-dir", str(tmp_path / "run")]
    started: list[tuple[list[str], int]] = []

    def launch(args, gpus):
        started.append((args, gpus))
        return 7

    monkeypatch.setattr("arl_gym.train.launch.launch", launch)
    assert main(["bc", *args]) == 7
    assert started == [(["bc", *args], 2)]


def test_a_dry_collection_plays_nothing(tmp_path, capsys):
    out = tmp_path / "kept.jsonl.gz"
    assert main(["collect", "--config", "sokoban-tiny", "--out", str(out), "--dry-run"]) == 0
    assert "# == a training step" in capsys.readouterr().out
    assert not out.exists()


def test_collecting_has_one_rank(tmp_path, capsys):
    assert main(["collect", *TINY, "--gpus", "2", "--out", str(tmp_path / "e.jsonl.gz")]) == 1
    assert "arl-gym collect has one rank: --gpus 2 is for arl-gym train and bc" in capsys.readouterr().err


def test_rules_can_be_loosened(tmp_path):
    out = tmp_path / "e.jsonl.gz"
    loose = ["--min-score", "0", "--any-format", "--keep-duplicates"]
    args = ["--env.id", ID, "--policy", "random", "--episodes", "6", "--samples", "2", *loose]
    assert main(["collect", *args, "--out", str(out)]) == 0
    assert len(read_trajectories(out)) == 12


def test_problems_are_counted_and_dropped_where_asked(tmp_path, capsys):
    # Expert answers without thoughts have an empty one.
    args = [*TINY, "--episodes", "2", "--clone.no-thoughts", "--out", str(tmp_path / "e.jsonl.gz")]
    assert main(["collect", *args]) == 0
    shown = capsys.readouterr().out
    assert re.search(r"kept +2 ", shown)
    assert re.search(r"responses without a thought +[1-9]", shown)
    assert main(["collect", *args, "--drop-problem", "empty_think"]) == 0
    assert re.search(r"dropped: lint +2 ", capsys.readouterr().out)


def test_several_environments_share_the_episodes_by_weight(two_envs, tmp_path):
    out, kept = tmp_path / "e.jsonl.gz", tmp_path / "all.jsonl"
    assert main(["collect", *two_envs, "--episodes", "6", "--out", str(out), "--resume", str(kept)]) == 0
    assert [t.env_id for t in read_trajectories(out)] == [ID] * 4 + ["ARL/Sokoban-v0"] * 2
    assert len(read_trajectories(tmp_path / "all-0.jsonl")) == 4
    assert len(read_trajectories(tmp_path / "all-1.jsonl")) == 2


def test_a_server_is_collected_from_with_the_sampling_of_the_configuration(tmp_path):
    out = tmp_path / "e.jsonl.gz"
    with StubServer(lambda _: completion(say("up"))) as server:
        who = ["--base-url", server.url, "--model", "m", "--top-p", "0.9"]
        args = ["--env.id", ID, "--rollout.temperature", "0.7", "--episodes", "2", "--out", str(out)]
        assert main(["collect", *args, *who]) == 0
        assert main(["collect", *args, *who, "--temperature", "0.2", "--max-tokens", "9"]) == 0
    bodies = server.bodies
    assert {(b["temperature"], b["top_p"], b["max_tokens"]) for b in bodies} == {
        (0.7, 0.9, 512),
        (0.2, 0.9, 9),
    }
    assert all(t.success for t in read_trajectories(out))


def test_collected_episodes_are_cloned(tmp_path, capsys):
    out, run = tmp_path / "e.jsonl.gz", tmp_path / "run"
    assert main(["collect", *TINY, "--episodes", "6", "--out", str(out)]) == 0
    dials = ["--clone.data", str(out), "--clone.steps", "1", "--run-dir", str(run)]
    assert main(["bc", *TINY, *dials]) == 0
    assert (run / "model" / "model.safetensors").exists()
    assert "1 steps, best validation loss" in capsys.readouterr().out


def test_test_tasks_are_not_cloned(tmp_path, capsys):
    out = tmp_path / "e.jsonl.gz"
    assert main(["collect", *TINY, "--episodes", "2", "--split", "test", "--out", str(out)]) == 0
    assert main(["bc", *TINY, "--clone.data", str(out), "--run-dir", str(tmp_path / "run")]) == 1
    assert "of split test: expected train and val only" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["--out", "x", "--policy", "hf"], "--model goes with"),
        (["--out", "x", "--policy", "openai", "--model", "m"], "needs --base-url"),
        (["--policy", "random"], "--out"),
        (["--out", "x", "--episodes", "0"], "at least 1"),
    ],
)
def test_bad_usage(monkeypatch, capsys, args, says):
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    assert main(["collect", *args]) == 2
    assert says in capsys.readouterr().err
