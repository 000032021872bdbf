import math
import re
import xml.etree.ElementTree as ET

import pytest

from arl_gym.errors import DataError
from arl_gym.train.canvas import render
from arl_gym.train.figures import class_stream, sequence_scatter
from arl_gym.train.recordings import RecordedStep
from tests.train.scores import turn

SVG = "{http://www.w3.org/2000/svg}"
TURNS = (turn(-1.0, [0.9], ref=0.5), turn(1.0, [0.9], ref=0.5), turn(0.5, [1.1], entropy=0.6, ref=0.5))


def step(number, turns=TURNS):
    return RecordedStep(step=number, episodes=(), turns=turns)


def texts(drawing):
    return {node.text for node in ET.fromstring(render(drawing, "svg")).iter(SVG + "text")}


def test_the_scatter_says_how_many_turns_a_mask_drops():
    drawing = sequence_scatter(step(8), unit="turn", delta=0.1, in_use=True)
    assert "Step 8: masked 1 of 3 turns (δ = 0.1)" in texts(drawing)
    assert "Step 8: a mask would drop 1 of 3 turns (δ = 0.1)" in texts(
        sequence_scatter(step(8), unit="turn", delta=0.1, in_use=False)
    )
    # -ln 0.9 = 0.105, entropy 0.2.
    assert drawing.data[0] == (8, pytest.approx(0.10536, abs=1e-5), -1.0, pytest.approx(0.2), 1)
    assert [row[-1] for row in drawing.data] == [1, 0, 0]


def test_a_sequence_may_be_a_whole_trajectory():
    drawing = sequence_scatter(step(8), unit="trajectory", delta=0.1, in_use=True)
    assert "Step 8: masked 0 of 1 trajectories (δ = 0.1)" in texts(drawing)


def test_every_turn_is_a_point_and_very_many_are_one_picture():
    few = render(sequence_scatter(step(1), unit="turn", delta=0.1, in_use=True), "svg").decode()
    many = render(sequence_scatter(step(1, TURNS * 700), unit="turn", delta=0.1, in_use=True), "svg").decode()
    assert len(re.findall('<use xlink:href="#C', few)) == 3
    assert len(many) < 200_000
    assert "data:image/png;base64" in many


def test_a_step_without_scores_has_no_scatter():
    with pytest.raises(DataError, match="step 4 was recorded without scores"):
        sequence_scatter(step(4, ()), unit="turn", delta=0.1, in_use=True)


def test_the_stream_shows_the_classes_that_occur():
    drawing = class_stream([step(1), step(2)])
    shown = texts(drawing)
    assert {"Share of turns", "Softmax of the divergence to the reference"} <= shown
    assert {"A ≤ 0, low entropy, less likely", "A > 0, high entropy, more likely"} <= shown
    assert "A > 0, low entropy, more likely" not in shown
    assert len(drawing.data) == 2 * 8
    assert math.fsum(float(row[2] or 0) for row in drawing.data[:8]) == pytest.approx(1.0)


def test_without_a_reference_the_stream_has_one_panel():
    drawing = class_stream([step(n, (turn(1.0, [1.1]),)) for n in (1, 2)])
    assert "Softmax of the divergence to the reference" not in texts(drawing)
    assert drawing.data[0][3] is None


def test_a_stream_needs_two_steps():
    with pytest.raises(DataError, match=r"at least two steps .* got 1"):
        class_stream([step(1), step(2, ())])
