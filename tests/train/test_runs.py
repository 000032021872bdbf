import json

import pytest

from arl_gym.errors import ConfigError, DataError, UnknownNameError
from arl_gym.train.gallery import Shown
from arl_gym.train.runs import differing_settings, env_ids, flatten, group_runs, load_runs
from tests.train.fake_run import episode, scored, write_episodes, write_rows

LOSS = "[loss]\nratio_level = 'token'\nclip_low = 0.15\nclip_high = 0.15\n"


def make(folder, config="method = 'GRPO'\nseed = 1\n", rows=({"step": 1},)):
    folder.mkdir(parents=True)
    (folder / "config.toml").write_text(config)
    write_rows(folder / "metrics.jsonl", rows)
    return folder


def test_runs_of_one_method_are_one_group(tmp_path):
    configs = ("method = 'GRPO'\nseed = 1\n", "method = 'SAMPO'\n", "method = 'GRPO'\nseed = 2\n")
    runs = load_runs([make(tmp_path / str(i), c) for i, c in enumerate(configs)])
    groups = group_runs(runs, "method")
    assert {label: [r.label for r in members] for label, members in groups.items()} == {
        "GRPO": ["0", "2"],
        "SAMPO": ["1"],
    }
    assert differing_settings(groups["GRPO"]) == []


def test_runs_are_grouped_by_any_setting(tmp_path):
    runs = load_runs([make(tmp_path / "a", LOSS), make(tmp_path / "b")])
    assert list(group_runs(runs, "loss.clip_low")) == ["loss.clip_low=0.15", "loss.clip_low=not set"]


def test_a_setting_that_no_run_has_is_refused(tmp_path):
    with pytest.raises(UnknownNameError, match=r"did you mean 'loss.clip_low'"):
        group_runs(load_runs([make(tmp_path / "a", LOSS)]), "loss.clip_lo")


def test_what_a_group_differs_in_beside_the_seed_is_told(tmp_path):
    runs = load_runs(
        [make(tmp_path / "a", "steps = 1\n" + LOSS), make(tmp_path / "b", "steps = 2\nseed = 3\n" + LOSS)]
    )
    assert differing_settings(runs) == ["steps"]


def test_labels_are_the_shortest_ends_of_paths_that_differ(tmp_path):
    runs = load_runs([make(tmp_path / name / "run") for name in ("a", "b")])
    assert [r.label for r in runs] == ["a/run", "b/run"]


def test_no_run_and_no_folder_are_refused(tmp_path):
    with pytest.raises(ConfigError, match="at least one run"):
        load_runs([])
    with pytest.raises(DataError, match=r"expected a run folder, got .*nothing"):
        load_runs([tmp_path / "nothing"])


def test_the_share_outside_the_clip_range_comes_from_recorded_steps_where_the_trainer_wrote_none(tmp_path):
    rows = [{"step": 1, "loss/kl": 0.1}, {"step": 2}]
    folder = make(tmp_path / "a", LOSS, rows)
    write_episodes(folder / "trajectories" / "step-000001.jsonl.gz", [scored(episode(True))])
    (run,) = load_runs([folder])
    # Of two tokens, exp(0.1) = 1.105 is inside [0.85, 1.15] and exp(-0.2) = 0.819 outside; A is 1.
    assert run.steps == [
        {"step": 1, "loss/kl": 0.1, "loss/clip_frac_pos": 0.5, "loss/clip_frac_neg": 0.0},
        {"step": 2},
    ]


def test_the_trainers_own_share_is_kept(tmp_path):
    rows = [{"step": 1, "loss/clip_frac_pos": 0.25, "loss/clip_frac_neg": 0.125}]
    folder = make(tmp_path / "a", LOSS, rows)
    write_episodes(folder / "trajectories" / "step-000001.jsonl.gz", [scored(episode(True))])
    assert load_runs([folder])[0].steps == rows


def test_cloning_adds_its_rows(tmp_path):
    folder = make(tmp_path / "a")
    (folder / "clone.jsonl").write_text(json.dumps({"step": 1, "clone/train_loss": 2.0}) + "\n")
    (run,) = load_runs([folder])
    assert run.rows == [{"step": 1}, {"step": 1, "clone/train_loss": 2.0}]
    assert run.steps == [{"step": 1}]


def test_each_of_several_environments_has_its_settings_by_number():
    config = {"seed": 1, "envs": [{"id": "A-v0"}, {"id": "B-v0", "kwargs": {"size": [6, 6]}}]}
    assert flatten(config) == {
        "seed": 1,
        "envs.0.id": "A-v0",
        "envs.1.id": "B-v0",
        "envs.1.kwargs.size": [6, 6],
    }
    assert env_ids(config) == ["A-v0", "B-v0"]


def test_a_run_has_its_alarms_by_the_limits_of_its_own(tmp_path):
    rows = [{"step": s, "loss/kl": kl} for s, kl in enumerate((0.1, 0.3, 0.4, 0.1), start=1)]
    (run,) = load_runs([make(tmp_path / "a", "[monitor]\nmax_kl = 0.2\n", rows)])
    # Once for the two steps above 0.2.
    assert [(step, alarm.metric) for step, alarm in run.alarms] == [(2, "loss/kl")]


def test_cloning_does_not_smooth_the_curves_of_training(tmp_path):
    folder = make(tmp_path / "a", rows=[{"step": s} for s in range(1, 13)])
    write_rows(folder / "clone.jsonl", [{"step": s, "clone/train_loss": 1.0} for s in range(1, 121)])
    assert Shown().width({"a": load_runs([folder])}) == 1
