import math
import re
import sys
import xml.etree.ElementTree as ET

import pytest

from arl_gym.errors import ConfigError, DataError, DependencyMissing
from arl_gym.train import plots
from arl_gym.train.canvas import render
from arl_gym.train.plots import CURVES, parts, trailing_mean

SVG = "{http://www.w3.org/2000/svg}"


def rows(key, values):
    return [{"step": i, key: v} for i, v in enumerate(values, start=1)]


def curves(runs, *args, **kwargs):
    """The SVGs of runs, each a line of its own."""
    drawn = plots.curves({label: [run] for label, run in runs.items()}, *args, **kwargs)
    return {key: render(drawing, "svg") for key, drawing in drawn.items()}


def texts(svg):
    return [node.text for node in ET.fromstring(svg).iter(SVG + "text")]


def lines(svg, colour):
    """The (x, y) points of every path drawn in `colour`, one list a path."""
    return [
        [tuple(map(float, p)) for p in re.findall(r"[ML] (\S+) (\S+)", node.get("d", ""))]
        for node in ET.fromstring(svg).iter(SVG + "path")
        if f"stroke: {colour}" in node.get("style", "") and "fill: none" in node.get("style", "")
    ]


BLUE, VERMILION = "#0072b2", "#d55e00"


def test_a_chart_names_its_metric_and_unit_in_real_text():
    svg = curves({"a": rows("rollout/played_success_rate", [0.1, 0.2])})["rollout/played_success_rate"]
    assert {"Success in training", "share of episodes", "step"} <= set(texts(svg))


def test_the_same_rows_give_the_same_bytes():
    runs = {"a": rows("loss/kl", [0.1, 0.3, 0.2]), "b": rows("loss/kl", [0.2, 0.1, 0.2])}
    assert curves(runs) == curves(runs)


def test_a_users_matplotlib_settings_do_not_matter(monkeypatch):
    import matplotlib

    runs = {"a": rows("loss/kl", [0.1, 0.3])}
    before = curves(runs)
    with matplotlib.rc_context({"font.size": 20, "axes.facecolor": "red", "svg.fonttype": "path"}):
        assert curves(runs) == before
        assert matplotlib.rcParams["font.size"] == 20


def test_a_chart_has_no_date_and_reaches_for_nothing():
    svg = curves({"a": rows("loss/kl", [0.1, 0.3])})["loss/kl"].decode()
    assert svg.startswith("<svg")
    assert "metadata" not in svg
    assert set(re.findall(r"https?://[^\"']+", svg)) == {
        "http://www.w3.org/1999/xlink",
        "http://www.w3.org/2000/svg",
    }


def test_two_charts_in_one_page_share_no_id():
    charts = curves({"a": rows("loss/kl", [0.1, 0.3]) + rows("rollout/entropy_mean", [0.1, 0.3])})
    ids = [i for svg in charts.values() for i in re.findall(r'\bid="([^"]+)"', svg.decode())]
    assert len(charts) == 2
    assert len(ids) == len(set(ids)) > 0


def test_references_inside_a_chart_resolve():
    svg = curves({"a": rows("loss/kl", [0.1, 0.3])})["loss/kl"].decode()
    wanted = set(re.findall(r'href="#([^"]+)"', svg)) | set(re.findall(r"url\(#([^)]+)\)", svg))
    assert wanted <= set(re.findall(r'\bid="([^"]+)"', svg))


def test_missing_keys_are_skipped_and_the_order_is_kept():
    run = (
        rows("optim/grad_norm", [1, 2]) + rows("loss/kl", [1, 2]) + rows("rollout/entropy_mean", [None, None])
    )
    assert list(
        curves({"a": run}, ["optim/grad_norm", "rollout/tries", "rollout/entropy_mean", "loss/kl"])
    ) == [
        "optim/grad_norm",
        "loss/kl",
    ]
    assert curves({}) == {}


def test_an_unlisted_key_is_its_own_title():
    assert "optim/lr" in texts(curves({"a": rows("optim/lr", [1, 2])}, ["optim/lr"])["optim/lr"])


def test_only_several_runs_have_a_legend():
    one = {"first": rows("loss/kl", [0.1, 0.3])}
    assert "first" not in texts(curves(one)["loss/kl"])
    both = curves(one | {"_second": rows("loss/kl", [0.2])})["loss/kl"]
    assert {"first", "_second"} <= set(texts(both))
    assert len(lines(both, BLUE)) == 2  # the curve and its sample in the legend
    assert lines(both, VERMILION)


def test_a_metric_of_one_run_among_several_is_named_too():
    drawn = curves({"a": rows("loss/kl", [0.1]), "b": rows("optim/grad_norm", [0.2])})
    assert "a" in texts(drawn["loss/kl"])
    assert "b" in texts(drawn["optim/grad_norm"])


def test_labels_are_plain_text():
    label = "<b>&$x_1$"
    runs = {label: rows("loss/kl", [0.1, 0.3]), "b": rows("loss/kl", [0.1, 0.3])}
    assert label in texts(curves(runs)["loss/kl"])


def test_steps_are_drawn_in_order_whatever_the_order_of_rows():
    (line,) = lines(curves({"a": rows("loss/kl", [1, 2, 3])[::-1]})["loss/kl"], BLUE)
    assert [x for x, _ in line] == sorted(x for x, _ in line)


def test_a_null_leaves_a_gap():
    svg = curves({"a": rows("loss/kl", [1, 2, None, 2, 1])})["loss/kl"].decode()
    (path,) = [d for d in re.findall(r'<path d="([^"]+)"[^>]*stroke: #0072b2', svg) if "L" in d]
    assert path.count("M") == 2


def test_few_values_have_markers_and_many_have_none():
    few, many = (curves({"a": rows("loss/kl", range(n))})["loss/kl"].decode() for n in (5, 60))
    assert len(re.findall(r"<use [^>]*fill: #0072b2", few)) == 5
    assert not re.findall(r"<use [^>]*fill: #0072b2", many)


def test_smoothing_draws_the_trailing_mean_over_the_pale_values():
    values = [0, 2] * 30
    pale, bold = lines(curves({"a": rows("loss/kl", values)}, smooth=2)["loss/kl"], BLUE)
    heights = {round(y, 3) for _, y in pale}
    assert len(heights) == 2
    assert [y for _, y in bold[1:]] == pytest.approx([sum(heights) / 2] * 59, abs=1e-2)


def test_evaluations_are_never_smoothed():
    few = {"a": rows("eval/success_rate", [0.1, 0.9, 0.2])}
    assert curves(few, smooth=3) == curves(few)


def test_cloning_shows_validation_and_training_in_one_chart():
    run = [{"step": 1, "clone/train_loss": 2.0}, {"step": 2, "clone/train_loss": 1.0, "clone/val_loss": 1.5}]
    charts = curves({"a": run})
    assert list(charts) == ["clone/val_loss"]
    assert {"validation", "training"} <= set(texts(charts["clone/val_loss"]))


def test_smooth_below_one_is_refused():
    with pytest.raises(ConfigError, match="got 0"):
        curves({}, smooth=0)


def test_a_missing_matplotlib_gives_the_install_line(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(DependencyMissing, match=r"pip install 'arl-gym\[train\]'"):
        curves({"a": rows("loss/kl", [1.0])})


def test_a_description_gives_first_and_last_value_of_every_run():
    runs = {"a": rows("loss/kl", [0.1, math.nan, 0.25]), "b": []}
    drawings = plots.curves({label: [run] for label, run in runs.items()})
    assert drawings["loss/kl"].text == (
        "KL to the reference model, nats per token. a: 0.1 at step 1, 0.25 at step 3."
    )


def test_the_default_curves_cover_what_every_run_writes():
    assert {"rollout/played_success_rate", "loss/approx_kl", "loss/kl", "optim/grad_norm"} <= set(CURVES)


# ---- lines of several runs


def seeds(*values):
    return {"A": [rows("loss/kl", v) for v in values]}


def grouped(values, **kwargs):
    return plots.curves(seeds(*values), ["loss/kl"], **kwargs)["loss/kl"]


def test_a_line_of_several_runs_is_their_mean_with_a_band():
    drawing = grouped([[1.0, 2.0], [3.0, 6.0]])
    assert drawing.columns == ("line", "metric", "step", "x", "value", "low", "high", "runs")
    # Of two runs a resample is (1, 1), (1, 3), (3, 1) or (3, 3): more than 2.5% of the means lie at each end.
    assert list(drawing.data) == [
        ("A", "loss/kl", 1, 1.0, 2.0, 1.0, 3.0, 2),
        ("A", "loss/kl", 2, 2.0, 4.0, 2.0, 6.0, 2),
    ]
    assert drawing.text.endswith("A (2 runs): 2 at step 1, 4 at step 2.")


def test_steps_that_not_all_runs_have_are_dotted_and_without_a_band():
    drawing = grouped([[1.0, 1.0, 1.0], [3.0]])
    assert list(drawing.data)[1:] == [
        ("A", "loss/kl", 2, 2.0, 1.0, None, None, 1),
        ("A", "loss/kl", 3, 3.0, 1.0, None, None, 1),
    ]
    assert "stroke-dasharray" in render(drawing, "svg").decode()
    whole = render(grouped([[1.0, 1.0], [3.0, 1.0]]), "svg").decode()
    assert "stroke-dasharray" not in whole


def test_smoothing_a_group_smooths_each_run_first():
    odd, even = [0.0, 2.0] * 30, [4.0, 2.0] * 30
    last = list(grouped([odd, even], smooth=2).data)[-1]
    # The trailing means are 1 and 3 from the second step on.
    assert last[4:7] == (2.0, 1.0, 3.0)


@pytest.mark.parametrize(("x", "positions"), [("tokens", [100.0, 100.0, 150.0]), ("hours", [0.5, 1.0, 3.0])])
def test_the_axis_adds_up_tokens_or_hours(x, positions):
    run = [
        {"step": 1, "loss/kl": 1.0, "optim/tokens": 100, "time/step_s": 1800.0},
        {"step": 2, "loss/kl": 1.0, "time/step_s": 1800.0},  # skipped: it trained on nothing
        {"step": 3, "loss/kl": 1.0, "optim/tokens": 50, "time/step_s": 7200.0},
    ]
    drawing = plots.curves({"a": [run]}, ["loss/kl"], x=x)["loss/kl"]
    assert [row[3] for row in drawing.data] == positions
    assert ("tokens trained on" if x == "tokens" else "hours") in texts(render(drawing, "svg"))


def test_an_axis_without_anything_to_add_up_is_refused():
    with pytest.raises(DataError, match="tokens adds up optim/tokens, which"):
        curves({"a": rows("loss/kl", [1.0])}, x="tokens")


def test_the_mean_of_runs_stands_at_the_mean_of_their_tokens():
    runs = [[{"step": 1, "loss/kl": 1.0, "optim/tokens": n}] for n in (100, 300)]
    (row,) = plots.curves({"A": runs}, ["loss/kl"], x="tokens")["loss/kl"].data
    assert row[3] == 200.0


def test_the_share_outside_the_clip_range_is_split_by_the_sign_of_the_advantage():
    run = [
        {"step": 1, "loss/clip_frac_pos": 0.1, "loss/clip_frac_neg": 0.2},
        {"step": 2, "loss/clip_frac_pos": 0.1, "loss/clip_frac_neg": 0.4},
    ]
    svg = curves({"a": run})["loss/clip_frac_pos"]
    assert {"Outside the clip range", "A > 0", "A < 0"} <= set(texts(svg))


def test_a_trailing_mean_leaves_out_what_is_missing():
    assert trailing_mean([1.0, math.nan, 3.0, 5.0], 2) == [1.0, 1.0, 3.0, 4.0]
    assert math.isnan(trailing_mean([math.nan], 2)[0])


def test_success_has_one_line_for_each_part_of_the_tasks():
    rows = [
        {"step": 1, "rollout/success_rate": 0.9, "rollout/success_rate_heat": 0.25},
        {"step": 2, "rollout/success_rate_heat": 0.5, "rollout/success_rate_cool": 1.0},
    ]
    (chart,) = parts([rows])
    assert chart.name == "curve-rollout-success_rate-by-part"
    assert [(row[0], row[2], row[4]) for row in chart.data] == [
        *(("heat", 1, 0.25), ("heat", 2, 0.5), ("cool", 2, 1.0))
    ]
    assert parts([[{"step": 1, "rollout/success_rate": 0.9}]]) == []
