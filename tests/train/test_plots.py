import math
import re
import sys
import xml.etree.ElementTree as ET

import pytest

from arl_gym.errors import ConfigError, DependencyMissing
from arl_gym.train.plots import CURVES, curves, describe

SVG = "{http://www.w3.org/2000/svg}"


def rows(key, values):
    return [{"step": i, key: v} for i, v in enumerate(values, start=1)]


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
    assert describe(runs, "loss/kl") == (
        "KL to the reference model, nats per token. a: 0.1 at step 1, 0.25 at step 3."
    )


def test_the_default_curves_cover_what_every_run_writes():
    assert {"rollout/played_success_rate", "loss/approx_kl", "loss/kl", "optim/grad_norm"} <= set(CURVES)
