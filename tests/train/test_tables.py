import pytest

from arl_gym.train.runs import Run
from arl_gym.train.tables import Table, group_table, run_table, shown, to_latex
from tests.train.fake_run import write_rows


def run(folder, label, success, **more):
    (folder / label).mkdir()
    (folder / label / "config.toml").write_text("method = 'GRPO'\nseed = 4\n[env]\nid = 'ARL/Sokoban-v0'\n")
    rows = [{"step": i, "rollout/played_success_rate": v} | more for i, v in enumerate(success, start=1)]
    write_rows(folder / label / "metrics.jsonl", rows)
    return Run(label=label, folder=folder / label)


def cells(table, row=0):
    return dict(zip(table.columns, table.rows[row], strict=True))


def test_a_row_sums_up_a_run(tmp_path):
    more = {"time/step_s": 1800, "optim/tokens": 10, "loss/clip_frac_pos": 0.1, "loss/clip_frac_neg": 0.2}
    table = cells(run_table([run(tmp_path, "a", [0.0] * 5 + [1.0] * 5, **more)]))
    assert (table["run"], table["method"], table["environment"], table["seed"]) == (
        "a",
        "GRPO",
        "ARL/Sokoban-v0",
        4,
    )
    assert (table["steps"], table["success_final"], table["success_best"]) == (10, 1.0, 1.0)
    assert (table["hours"], table["tokens"]) == (5.0, 100.0)
    assert table["outside_clip_mean"] == pytest.approx(0.3)
    assert table["success_drawdown"] == 0.0
    assert table["grad_norm_max"] is None


def test_the_largest_and_the_final_values_are_told(tmp_path):
    table = run_table(
        [run(tmp_path, "a", [0.5], **{"loss/kl": 0.25, "optim/grad_norm": 3.0, "eval/success_rate": 0.5})]
    )
    found = cells(table)
    assert (found["kl_max"], found["grad_norm_max"], found["eval_success_final"]) == (0.25, 3.0, 0.5)


def test_a_group_is_the_mean_and_the_deviation_of_its_runs(tmp_path):
    runs = [run(tmp_path, "a", [0.2], **{"loss/kl": 1.0}), run(tmp_path, "b", [0.6])]
    table = cells(group_table({"GRPO": runs}))
    assert (table["group"], table["runs"]) == ("GRPO", 2)
    # Mean 0.4; deviations of 0.2 on both sides: sqrt((0.04 + 0.04) / 1) = 0.28.
    assert table["success_final"] == "0.4 ± 0.28"
    assert table["kl_max"] == "1 (1 of 2)"
    assert table["grad_norm_max"] is None
    assert "seed" not in table


def test_latex_is_escaped_and_leaves_out_empty_columns():
    table = Table(
        columns=("run", "kl_max", "none"), rows=[("a_b & 50%", 0.123456, None), ("<$#{}~^\\|", None, None)]
    )
    assert to_latex(table) == (
        "\\begin{tabular}{lr}\n\\hline\nrun & kl max \\\\\n\\hline\n"
        "a\\_b \\& 50\\% & 0.123 \\\\\n"
        "\\textless{}\\$\\#\\{\\}\\textasciitilde{}\\textasciicircum{}"
        "\\textbackslash{}\\textbar{} & -- \\\\\n"
        "\\hline\n\\end{tabular}\n"
    )
    assert "0.4 $\\pm$ 0.28" in to_latex(Table(columns=("x",), rows=[("0.4 ± 0.28",)]))


def test_a_cell_is_shown_with_three_digits():
    assert [shown(c) for c in (0.123456, 12, 1082621.4, None, "a")] == ["0.123", "12", "1082621", "–", "a"]
