import re

import pytest

from arl_gym.cli import main
from tests.train.fake_run import make_run, recorded_episode, write_episodes, write_rows

MONITORED = f'\n[monitor]\nmin_format_valid = 0.9\n[rollout]\ngroups = 4\n[model]\nwords = "{"a" * 200}"\n'


@pytest.fixture
def run(tmp_path):
    """A run with recordings of steps 2 and 120: four episodes of two groups in the latter."""
    folder = make_run(tmp_path / "run")
    episodes = [
        recorded_episode(
            group=g, copy=c, success=c == 0, rewards=(-0.1, 10.9 if c == 0 else -0.1), penalties=p
        )
        for g, c, p in ((0, 0, (0, 0)), (0, 1, (0.5, 0)), (1, 0, (0, 0)), (1, 1, (0, 0.5)))
    ]
    for number, turn in enumerate(turn for episode in episodes for turn in episode["turns"]):
        turn["advantage"] = number - 3.5
    write_episodes(folder / "trajectories" / "step-000120.jsonl.gz", episodes)
    write_episodes(folder / "trajectories" / "step-000002.jsonl.gz", [recorded_episode(group=9)])
    return folder


def show(capsys, *args) -> str:
    assert main(["show", *map(str, args)]) == 0, capsys.readouterr().err
    return str(capsys.readouterr().out)


def rows_of_table(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines() if re.match(r" +\d+ +\d+ ", line)]


def test_a_run_is_shown_by_what_is_unusual_and_how_its_metrics_went(run, capsys):
    (run / "config.toml").write_text((run / "config.toml").read_text() + MONITORED)
    write_rows(
        run / "metrics.jsonl",
        [
            {
                "step": s,
                "rollout/format_valid_frac": v,
                "loss/kl": None if s == 12 else 0.1,
                "time/step_s": 2.0,
            }
            for s, v in enumerate([0.5, *[1.0] * 10, 0.75], start=1)
        ],
    )
    shown = show(capsys, run)
    lines = [" ".join(line.split()) for line in shown.splitlines()]
    assert f"{run}: SAMPO on ARL/Sokoban-v0, seed 3" in lines
    assert "rollout.groups 4 (16)" in lines
    assert f"model.words '{'a' * 39}… ('')" in lines
    assert not any(line.startswith(("loss.clip_low", "seed", "run_dir")) for line in lines)
    assert "training, step 12" in lines
    # The last ten: nine of 1.0 and 0.75.
    assert "rollout/format_valid_frac 0.5 0.975 0.75" in lines
    assert "loss/kl 0.1 0.1 not finite" in lines
    assert "3 alarms" in lines
    assert [line.split(":")[0] for line in lines if re.match(r"step \d+: ", line)] == [
        "step 1",
        "step 12",
        "step 12",
    ]
    assert "steps with recorded episodes: 2 (2, 120)" in lines


def test_each_of_several_environments_is_shown_by_what_is_unusual(tmp_path, capsys):
    (tmp_path / "config.toml").write_text('[[envs]]\nid = "ARL/Sokoban-v0"\nweight = 2.0\npenalty = 0.1\n')
    lines = [" ".join(line.split()) for line in show(capsys, tmp_path).splitlines()]
    assert lines[2:] == ["unlike SAMPO's defaults", "envs.0.weight 2.0 (1.0)"]


def test_a_run_that_has_not_begun_is_shown_too(tmp_path, capsys):
    (tmp_path / "config.toml").write_text("")
    assert show(capsys, tmp_path) == f"{tmp_path}: SAMPO on ?, seed 0\n"


def test_cloning_has_its_own_table(tmp_path, capsys):
    shown = show(capsys, make_run(tmp_path / "run", whole=True))
    assert "cloning, step 60" in shown
    assert shown.index("clone/val_loss") < shown.index("training, step 12")


def test_the_episodes_of_the_last_recorded_step_are_a_table(run, capsys):
    shown = show(capsys, run, "--step")
    assert shown.startswith("step 120\n")
    assert rows_of_table(shown) == [
        ["0", "0", "train/000007", "10.80", "yes", "2", "terminated", "1.00", "-3.00"],
        ["0", "1", "train/000007", "-0.20", "no", "2", "terminated", "0.50", "-1.00"],
        ["1", "0", "train/000007", "10.80", "yes", "2", "terminated", "1.00", "+1.00"],
        ["1", "1", "train/000007", "-0.20", "no", "2", "terminated", "0.50", "+3.00"],
    ]
    assert shown.endswith("4 episodes, 2 solved\n")


def test_step_group_and_limit_choose(run, capsys):
    assert [row[:2] for row in rows_of_table(show(capsys, run, "--step", 2))] == [["9", "0"]]
    assert [row[:2] for row in rows_of_table(show(capsys, run, "--group", 1))] == [["1", "0"], ["1", "1"]]
    assert [row[:2] for row in rows_of_table(show(capsys, run, "--limit", 1))] == [["0", "0"]]


def test_turns_that_match_are_shown_with_what_they_answered_and_brought(run, capsys):
    shown = show(capsys, run, "--where", "not format_valid and group == 0")
    assert [row[:2] for row in rows_of_table(shown)] == [["0", "1"]]
    assert "── group 0, copy 1, turn 1 of 2 ─" in shown
    assert "[prompt]\nStep 1.\n[image abc]\n[response]\n<action>right</action>\n" in shown
    assert "action 'right', reward -0.1, penalty 0.5, advantage -1.500, format broken\n" in shown
    assert shown.endswith("\n1 turn of 1 episode matches\n")


def test_where_nothing_matches_there_is_no_table(run, capsys):
    shown = show(capsys, run, "--where", "'ALFWorld' in env")
    assert shown.endswith("0 turns of 0 episodes match\n")
    assert "group" not in shown


def test_a_limit_says_what_it_leaves_out(run, capsys):
    shown = show(capsys, run, "--where", "success", "--limit", 3)
    assert shown.count("[response]") == 3
    assert shown.endswith("\n4 turns of 2 episodes match, of which 3 are shown (--limit)\n")


def test_long_prompts_are_shown_from_their_end_and_nothing_steers_the_terminal(run, capsys):
    episode = recorded_episode()
    episode["turns"][0] |= {
        "messages": [{"role": "user", "content": "\n".join(f"line {i}" for i in range(40))}],
        "response": "red \x1b[31m \ud800",
    }
    write_episodes(run / "trajectories" / "step-000130.jsonl.gz", [episode])
    shown = show(capsys, run, "--where", "turn == 1")
    assert "[prompt]\n… line 28\n" in shown
    assert "line 39\n[response]\nred \\x1b[31m \\ud800\n" in shown


def test_the_page_lies_in_the_run_folder_or_where_it_is_asked_for(run, capsys, tmp_path):
    assert show(capsys, run, "--html") == f"4 episodes of step 120: {run / 'step-120.html'}\n"
    assert "<title>Step 120 of run: SAMPO</title>" in (run / "step-120.html").read_text()
    out = tmp_path / "mine.html"
    assert (
        show(capsys, run, "--html", out, "--where", "success", "--limit", 1)
        == f"1 episode of step 120: {out}\n"
    )


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--step", "3"], "recorded no episodes of step 3; it did of 2, 120"),
        (["--group", "7"], "there is no group 7 in this step; there are 0, 1"),
        (["--where", "rewards > 5"], "unknown field 'rewards'"),
        (["--where", "ratio > 1"], "unknown field 'ratio'"),
    ],
)
def test_what_is_not_there_is_one_clear_error(run, capsys, args, message):
    assert main(["show", str(run), *args]) == 1
    assert message in capsys.readouterr().err


def test_a_run_without_recordings_says_so(tmp_path, capsys):
    (tmp_path / "config.toml").write_text("")
    assert main(["show", str(tmp_path), "--html"]) == 1
    assert "has no recorded episodes" in capsys.readouterr().err
