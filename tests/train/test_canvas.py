import pytest

from arl_gym.train.canvas import INK, Drawing, render, to_csv


def draw():
    from matplotlib.figure import Figure

    axes = (figure := Figure(figsize=(1, 1))).add_axes((0.2, 0.2, 0.7, 0.7))
    axes.plot([0, 1], [0, 1], color=INK, gid="the-line")
    return figure


DRAWING = Drawing(
    name="d", text="A line.", columns=("x",), data=[(0,)], draw=draw, tooltips={"the-line": "a < b"}
)


@pytest.mark.parametrize(("format", "start"), [("svg", b"<svg"), ("png", b"\x89PNG"), ("pdf", b"%PDF")])
def test_a_drawing_is_rendered_in_each_format_to_the_same_bytes_every_time(format, start):
    first = render(DRAWING, format)
    assert first.startswith(start)
    assert render(DRAWING, format) == first


def test_pictures_are_on_white_and_svg_on_nothing():
    import io

    from PIL import Image

    with Image.open(io.BytesIO(render(DRAWING, "png"))) as picture:
        assert picture.convert("RGBA").getpixel((0, 0)) == (255, 255, 255, 255)
        assert picture.size == (200, 200)
    svg = render(DRAWING, "svg").decode()
    assert "#ffffff" not in svg
    assert "currentColor" in svg


def test_a_tooltip_is_the_title_of_its_part():
    assert '<g class="tip"><title>a &lt; b</title>' in render(DRAWING, "svg").decode()


def test_a_table_is_csv():
    assert to_csv(("a", "b"), [("x,y", None), (1, 0.25)]).decode() == 'a,b\n"x,y",\n1,0.25\n'
