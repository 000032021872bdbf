"""The pure parts of `benchmarks/methods.py` and `benchmarks/findings.py`."""

import pytest

from arl_gym.train.methods import METHODS
from arl_gym.train.sweep import check_runs, configure
from benchmarks import findings, methods


def rows(successes, **metrics):
    head = {
        "rollout/format_valid_frac": 1.0,
        "loss/kl": 0.1,
        "optim/grad_norm": 1.0,
        "eval/success_rate": 0.5,
    }
    return [
        {"step": i, "rollout/played_success_rate": s, **head, **metrics}
        for i, s in enumerate(successes, start=1)
    ]


def outcome(successes, content="same"):
    one = {"content_hash": content, "successes": successes, "valid": 1.0}
    return {"greedy": one, "sampled": one}


def test_only_the_bounds_on_sequences_are_widened():
    shared = methods.base(32)
    gspo, grpo = methods.arm(shared, "GSPO").loss, methods.arm(shared, "GRPO").loss
    assert (gspo.clip_low, gspo.clip_high) == pytest.approx((0.03, 0.04))
    assert (grpo.clip_low, grpo.clip_high) == (0.2, 0.2)
    masked = methods.widened(configure(shared, {"method": "GRPO", "loss.mask_delta": 0.003})).loss
    assert masked.mask_delta == pytest.approx(0.03)
    assert masked.clip_low == 0.2


def test_every_run_of_both_scripts_can_be_run_and_shares_the_clone_of_its_seed(tmp_path):
    shared = methods.base(32)
    arms = {method: methods.arm(shared, method) for method in METHODS} | findings.changed(shared)
    runs = methods.runs_of(arms, seeds=[1, 2], out=tmp_path)
    check_runs(runs)
    assert {run.cfg.model.path for run in runs if run.cfg.seed == 2} == {str(tmp_path / "BC/seed-2/model")}
    (random, _) = methods.runs_of({"x": shared}, seeds=[1, 2], out=tmp_path, cloned=False)
    assert random.cfg.model.path == "tiny"


def test_every_arm_plays_the_same_episodes_and_takes_the_same_optimiser_steps():
    shared = methods.base(32)
    arms = {method: methods.arm(shared, method) for method in METHODS} | findings.changed(shared)
    # 32 steps x 8 groups and 32 steps x 4 minibatches.
    assert {cfg.steps * cfg.rollout.groups for cfg in arms.values()} == {256}
    assert {cfg.steps * cfg.optim.minibatches for cfg in arms.values()} == {128}
    assert {cfg.steps // cfg.eval.every for cfg in arms.values()} == {8}


def test_the_updates_per_batch_are_those_of_the_names():
    arms = findings.changed(methods.base(32))
    assert arms["GRPO-updates-1"].optim.minibatches == 1
    assert arms["GRPO-updates-16"].optim.minibatches == 16


def test_every_arm_of_a_change_exists_once_the_methods_do():
    known = METHODS.keys() | findings.changed(methods.base(32)).keys() | {"GRPO-random", "SAMPO-random"}
    named = {name for c in findings.CHANGES for name in (c.before, c.after)}
    # The rest wait for methods that the table does not have.
    assert all(name.split("-")[0] not in METHODS for name in named - known)


@pytest.mark.parametrize(
    ("course", "reason"),
    [
        (rows([0.5] * 10), ""),
        (rows([0.5] * 8 + [0.0, 0.6]), ""),  # last fifth 0.3, the best stretch of two 0.5
        (rows([0.8] * 8 + [0.4, 0.3]), "success"),  # 0.35 against 0.8
        (rows([0.5] * 8) + rows([0.5] * 2, **{"rollout/format_valid_frac": 0.4}), "format"),
        (rows([0.5] * 9) + rows([0.5], **{"loss/kl": None}), "not finite"),
        (rows([0.5] * 10, **{"optim/skipped_steps": 1.0}), "not finite"),
    ],
)
def test_a_collapse_has_a_reason(course, reason):
    assert methods.collapse(course) == reason


def test_a_course_has_the_maxima_and_the_episodes_of_all_tries():
    course = rows([0.5], **{"rollout/groups_played": 8, "time/step_s": 30.0})
    course += rows(
        [0.5], **{"rollout/groups_played": 16, "time/step_s": 60.0, "eval/success_rate": 0.2, "loss/kl": 0.3}
    )
    got = methods.curve(course, methods.base(32))
    assert (got["panel_last"], got["panel_best"], got["kl_max"]) == (0.2, 0.5, 0.3)
    assert got["episodes"] == 192  # (8 + 16) groups of 8
    assert got["minutes"] == pytest.approx(1.5)


def test_a_difference_is_paired_by_task_and_a_task_counts_once():
    after = [outcome([1, 1, 0, 1]), outcome([1, 0, 0, 1])]  # per task: 1, 0.5, 0, 1
    before = [outcome([0, 1, 0, 1]), outcome([0, 0, 0, 1])]  # per task: 0, 0.5, 0, 1
    mean, low, high = methods.difference(after, before, "greedy")
    # Differences 1, 0, 0, 0: mean 0.25, standard deviation 0.5, half interval 1.96 x 0.5 / 2 = 0.49.
    assert (mean, low, high) == pytest.approx((0.25, -0.24, 0.74), abs=0.001)


def test_models_tested_on_different_tasks_are_not_compared():
    with pytest.raises(AssertionError, match="different tasks"):
        methods.difference([outcome([1, 0])], [outcome([1, 0], content="other")], "greedy")


def test_the_table_of_methods_has_a_cell_for_every_head():
    course = methods.curve(
        rows([0.5] * 10, **{"rollout/groups_played": 8, "time/step_s": 6}), methods.base(32)
    )
    text = methods.table({"BC": [outcome([0, 1])], "GRPO": [outcome([1, 1])]}, {"GRPO": [course]})
    head, rule, bc, grpo = text.split("\n")
    assert head.count("|") == rule.count("|") == bc.count("|") == grpo.count("|")
    assert "| 1.00 [1.00, 1.00] | 1.00 [1.00, 1.00] | +0.50 [-0.48, +1.48] |" in grpo
    assert "| 0/1 | 0.000 | 0.100 | 1.0 | 0.000 | 640 | 1.0 |" in grpo


def test_the_table_of_findings_shows_the_change_of_every_seed():
    points = {
        "GRPO-kl-0": [outcome([0, 0]), outcome([0, 1])],
        "GRPO": [outcome([1, 0]), outcome([1, 1])],
    }
    change = findings.Change(question="KL 0.01", before="GRPO-kl-0", after="GRPO")
    line = findings.table([change], points).split("\n")[-1]
    # Per task 1 and 0.5 against 0 and 0.5: +1 and +0, mean 0.5; each seed gains one of its two tasks.
    assert line.startswith("| KL 0.01 | GRPO-kl-0 | GRPO | +0.50 [-0.48, +1.48] | +0.50, +0.50 |")
