import xml.etree.ElementTree as ET

import pytest

from arl_gym.train.actions import Transitions
from arl_gym.train.canvas import render
from arl_gym.train.sankey import layout, sankey, spread

COUNTS = Transitions({("a", "a"): 1, ("a", "b"): 2, ("b", "a"): 1})


def edges(nodes):
    return [(n.kind, pytest.approx(n.low), pytest.approx(n.high), n.count) for n in nodes]


def test_columns_fill_the_height_in_proportion_to_the_counts():
    place = layout(COUNTS, ["a", "b"])
    # Four transitions and one gap of 0.025 are 1 high: 0.24375 each.
    assert edges(place.sources) == [("a", 0.26875, 1.0, 3), ("b", 0.0, 0.24375, 1)]
    assert edges(place.targets) == [("a", 0.5125, 1.0, 2), ("b", 0.0, 0.4875, 2)]


def test_flows_tile_the_kinds_they_join():
    place = layout(COUNTS, ["a", "b"])
    left, right = dict.fromkeys("ab", 0.0), dict.fromkeys("ab", 0.0)
    for flow in place.flows:
        left[flow.source] += flow.width
        right[flow.target] += flow.width
    for nodes, filled in ((place.sources, left), (place.targets, right)):
        assert {n.kind: pytest.approx(n.high - n.low) for n in nodes} == filled
    first = place.flows[0]
    assert (first.source, first.target) == ("a", "a")
    assert first.left == pytest.approx(0.75625)
    assert first.right == pytest.approx(0.75625)


def test_a_kind_that_never_comes_first_is_only_on_the_right():
    place = layout(Transitions({("a", "b"): 2}), ["a", "b"])
    assert edges(place.sources) == [("a", 0.0, 1.0, 2)]
    assert edges(place.targets) == [("b", 0.0, 1.0, 2)]


def test_nothing_is_laid_out_of_nothing():
    assert layout(Transitions(), []).flows == ()


def test_labels_that_lie_too_close_are_moved_apart_and_stay_above_the_ground():
    assert spread([0.9, 0.5], 0.1) == [0.9, 0.5]
    assert spread([0.9, 0.85, 0.5], 0.1) == [0.9, pytest.approx(0.8), 0.5]
    assert spread([0.5, 0.02, 0.01], 0.1) == [0.5, pytest.approx(0.1), 0.0]


def drawing():
    return sankey({True: COUNTS, False: Transitions({("b", "<b>"): 4})}, name="actions", title="Step 3")


def test_the_data_are_the_transitions_by_outcome():
    assert list(drawing().data) == [
        ("success", "b", "a", 1, 1.0),
        ("success", "a", "b", 2, pytest.approx(2 / 3)),
        ("success", "a", "a", 1, pytest.approx(1 / 3)),
        ("failure", "b", "<b>", 4, 1.0),
    ]


def test_every_flow_has_a_tooltip():
    root = ET.fromstring(render(drawing(), "svg"))
    tips = [t.text for t in root.iter("{http://www.w3.org/2000/svg}title")]
    assert len(tips) == 4
    assert "a → b: 2 times, 67% of what follows a" in tips
    assert "b → <b>: 4 times, 100% of what follows b" in tips


def test_an_outcome_without_transitions_says_so():
    svg = render(sankey({True: COUNTS}, name="actions", title="Step 3"), "svg").decode()
    assert "none recorded" in svg
    assert "0 transitions" in svg


def test_the_words_tell_the_most_frequent_transitions():
    assert drawing().text.startswith("Step 3: actions of consecutive turns. Success: a → b: 2 times, 67%")
