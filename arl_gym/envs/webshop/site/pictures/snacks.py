"""How sweets, snacks and what comes in bags like them look."""

from collections.abc import Callable

from arl_gym.envs.webshop.site.pictures.colours import (
    CREAM,
    GLASS,
    GOLD,
    GREY,
    LEAF,
    METAL,
    WHITE,
    Colour,
    darker,
    lighter,
)
from arl_gym.envs.webshop.site.pictures.pen import Pen

_BEAN: Colour = (96, 60, 40)
_COCOA: Colour = (92, 54, 38)
_CRUST: Colour = (214, 158, 92)
_CHILI: Colour = (206, 52, 40)


def _pouch(pen: Pen) -> None:
    """Draw a stand-up bag with a torn-off rim."""
    pen.shape("20 12  80 12  82 28  86 90  14 90  18 28", r=3)
    pen.box(19, 9, 81, 19, darker(pen.cloth, 0.18), r=1)
    pen.line("22 22  78 22", pen.detail, 1)


def _bar(pen: Pen) -> None:
    pen.shape("40 22  92 22  92 44  40 44", (202, 150, 86), r=4)
    for k in range(14):
        x, y = 56 + 5.2 * (k % 7), 28 + 9 * (k // 7) + 2 * (k % 2)
        pen.oval(x, y, 2.2, 1.7, fill=(240, 212, 156) if k % 3 else (112, 68, 44), edge=False)
    pen.shape("8 20  52 20  47 27  52 33  47 39  52 46  8 46", r=1)
    teeth = "  ".join(f"{8 + 4 * (k % 2)} {56 + 4 * k}" for k in range(9))
    pen.shape(f"{teeth}  50 88", r=1, mirrored=True)
    pen.box(24, 63, 76, 81, pen.second(CREAM), r=4)
    pen.line("32 70  68 70", darker(pen.cloth, 0.2), 3)
    pen.line("38 76  62 76", GREY, 1.4)


def _nut(pen: Pen, x: float, y: float, fill: Colour) -> None:
    pen.shape(f"{x} {y - 8}  {x + 6} {y}  {x} {y + 7}  {x - 6} {y}", fill, r=5)


def _trail_mix(pen: Pen) -> None:
    _pouch(pen)
    pen.oval(50, 58, 26, 22, fill=pen.second(CREAM))
    for k, (x, y) in enumerate(((38, 50), (52, 46), (64, 54), (46, 64), (60, 68))):
        _nut(pen, x, y, ((186, 128, 76), (210, 160, 100), (150, 94, 54))[k % 3])
    for x, y, fill in (
        (34, 62, (150, 44, 60)),
        (54, 57, (92, 58, 110)),
        (70, 62, (150, 44, 60)),
        (42, 73, LEAF),
    ):
        pen.oval(x, y, 3.2, fill=fill)


def _dried_fruit(pen: Pen) -> None:
    _pouch(pen)
    pen.box(24, 36, 76, 80, GLASS, r=10)
    for x, y, fill in (
        (38, 50, (240, 166, 66)),
        (60, 48, (216, 84, 76)),
        (48, 66, (240, 196, 92)),
        (65, 67, (240, 166, 66)),
    ):
        pen.oval(x, y, 10, 8, fill=fill)
        pen.oval(x, y, 5, 3.6, fill=lighter(fill, 0.35), edge=False)
    pen.shape("46 40  52 32  62 36  56 42", LEAF, r=5)


def _chips(pen: Pen) -> None:
    pen.shape("18 10  82 10  78 50  84 90  16 90  22 50", r=8)
    for y in (9, 83):
        pen.box(17, y, 83, y + 8, darker(pen.cloth, 0.18), r=1)
        for k in range(11):
            pen.line(f"{21 + 5.8 * k} {y + 1.5}  {21 + 5.8 * k} {y + 6.5}", pen.cloth, 0.8)
    pen.oval(50, 38, 22, 11, fill=pen.second(CREAM))
    pen.line("36 38  64 38", _CHILI, 4)
    for x, y in ((38, 64), (60, 62), (50, 72)):
        pen.shape(
            f"{x - 13} {y}  {x - 4} {y - 8}  {x + 10} {y - 5}  {x + 12} {y + 3}  {x} {y + 7}",
            (246, 204, 96),
            r=8,
        )
        pen.line(f"{x - 7} {y}  {x + 5} {y - 3}", (220, 166, 66), 1.2)


def _chocolate(pen: Pen) -> None:
    pen.shape("20 8  80 8  80 58  20 58", _COCOA, r=2)
    for k in range(8):
        x, y = 23 + 14 * (k % 4), 12 + 20 * (k // 4)
        pen.box(x, y, x + 12, y + 17, lighter(_COCOA, 0.12), r=2)
        pen.box(x + 3, y + 4, x + 9, y + 13, lighter(_COCOA, 0.2), r=1, edge=False)
    pen.shape("17 46  24 42  31 47  38 42  45 47  52 42  59 47  66 42  73 47  83 43  83 91  17 91", r=1)
    pen.box(17, 60, 83, 82, pen.second(GOLD), r=1)
    pen.line("32 71  68 71", darker(pen.second(GOLD), 0.55), 3.4)


def _popcorn(pen: Pen) -> None:
    for x, y in (
        (26, 34),
        (38, 24),
        (52, 18),
        (64, 25),
        (75, 34),
        (45, 33),
        (58, 34),
        (34, 38),
        (68, 40),
        (50, 40),
    ):
        pen.oval(x, y, 8.4, fill=(253, 244, 214))
        pen.oval(x + 2, y + 2, 2.8, fill=(244, 208, 118), edge=False)
    pen.shape("16 40  84 40  74 91  26 91", WHITE, r=2)
    for k in range(4):
        x0, x1 = 16 + 19.4 * k, 26 + 13.7 * k
        pen.shape(f"{x0} 40  {x0 + 9.7} 40  {x1 + 6.9} 91  {x1} 91", r=0)
    pen.oval(50, 65, 16, 10, fill=pen.second(CREAM))
    pen.line("40 65  60 65", darker(pen.second(CREAM), 0.5), 2.6)


def _cookies(pen: Pen) -> None:
    for x, y in ((36, 68), (66, 62), (48, 36)):
        pen.oval(x, y, 23, 21, fill=_CRUST)
        for k, (dx, dy) in enumerate(((-10, -6), (2, -11), (11, -2), (5, 9), (-8, 8), (-1, 0))):
            pen.oval(x + dx, y + dy, 3.2, 2.7, fill=pen.cloth if k % 2 else _COCOA)


def _candy(pen: Pen) -> None:
    pen.line("42 50  42 90", CREAM, 4)
    pen.line("43.5 50  43.5 90", GREY, 0.9)
    pen.oval(42, 34, 26)
    pen.line("42 34  46 30  50 36  42 44  32 38  34 24  50 20  60 34  52 52", WHITE, 3.4, r=20)
    sweet = pen.second(lighter(pen.cloth, 0.35))
    for text in ("64 76  54 68  53 84", "84 76  94 68  95 84"):
        pen.shape(text, sweet, r=2)
    pen.oval(74, 76, 12, fill=sweet)
    for x in (69, 75, 81):
        pen.line(f"{x} 68  {x - 3} 76  {x} 84", WHITE, 1.8, r=8)


def _cake(pen: Pen) -> None:
    pen.line("50 26  50 12", (240, 150, 90), 3)
    pen.shape("50 4  46 10  50 13  54 10", (250, 186, 70), r=3)
    pen.oval(50, 86, 42, 6, fill=WHITE)
    pen.box(16, 52, 84, 86, r=5)
    pen.box(28, 26, 72, 54, pen.second(lighter(pen.cloth, 0.4)), r=5)
    for left, right, y in ((16, 84, 54), (28, 72, 30)):
        steps = round((right - left) / 11)
        for k in range(steps):
            x = left + (k + 0.5) * (right - left) / steps
            pen.oval(x, y, 5.6, 5, fill=WHITE, edge=False)
    for x in (32, 50, 68):
        pen.oval(x, 72, 3.4, fill=(220, 70, 80))


def _meat(pen: Pen) -> None:
    _pouch(pen)
    pen.oval(50, 58, 26, 22, fill=pen.second(CREAM))
    pen.shape("30 58  38 42  62 42  70 56  62 70  48 66  38 74", (168, 62, 52), r=10)
    pen.line("36 56  46 50  60 50", (240, 190, 178), 2, r=5)
    pen.oval(58, 57, 4, fill=CREAM)


def _bean(pen: Pen, x: float, y: float, fill: Colour = _BEAN) -> None:
    pen.oval(x, y, 6, 8, fill=fill)
    pen.line(f"{x} {y - 7}  {x - 1.6} {y}  {x} {y + 7}", lighter(fill, 0.35), 1.2, r=5)


def _coffee(pen: Pen) -> None:
    _pouch(pen)
    pen.oval(50, 56, 22, fill=pen.second(CREAM))
    _bean(pen, 42, 57)
    _bean(pen, 57, 55)
    pen.oval(50, 28, 2.6, fill=METAL)
    for x, y in ((10, 86), (90, 87), (82, 91)):
        pen.oval(x, y, 5, 3.4, fill=_BEAN)


SHAPES: dict[str, Callable[[Pen], None]] = {
    "granola bar": _bar,
    "coffee": _coffee,
    "trail mix": _trail_mix,
    "dried fruit": _dried_fruit,
    "chips": _chips,
    "chocolate": _chocolate,
    "popcorn": _popcorn,
    "cookies": _cookies,
    "candy": _candy,
    "cake": _cake,
    "meat": _meat,
}
