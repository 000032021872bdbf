"""How food and drink look, and the parcel that everything comes in."""

from collections.abc import Callable

from arl_gym.envs.webshop.site.pictures.colours import (
    CREAM,
    DARK,
    GLASS,
    GOLD,
    GREY,
    LEAF,
    METAL,
    WHITE,
    WOOD,
    Colour,
    darker,
    lighter,
)
from arl_gym.envs.webshop.site.pictures.pen import Pen

_BEAN: Colour = (96, 60, 40)
_COCOA: Colour = (92, 54, 38)
_CRUST: Colour = (214, 158, 92)
_CHILI: Colour = (206, 52, 40)
_TOMATO: Colour = (212, 66, 48)


def _pouch(pen: Pen) -> None:
    """Draw a stand-up bag with a torn-off rim."""
    pen.shape("20 12  80 12  82 28  86 90  14 90  18 28", r=3)
    pen.box(19, 9, 81, 19, darker(pen.cloth, 0.18), r=1)
    pen.line("22 22  78 22", pen.detail, 1)


def _bean(pen: Pen, x: float, y: float, fill: Colour = _BEAN) -> None:
    pen.oval(x, y, 6, 8, fill=fill)
    pen.line(f"{x} {y - 7}  {x - 1.6} {y}  {x} {y + 7}", lighter(fill, 0.35), 1.2, r=5)


def _tea(pen: Pen) -> None:
    pen.box(14, 34, 62, 90, r=3)
    pen.shape("14 34  26 22  74 22  62 34", lighter(pen.cloth, 0.25), r=1)
    pen.shape("62 34  74 22  74 78  62 90", darker(pen.cloth, 0.2), r=1)
    pen.oval(38, 60, 18, fill=pen.second(CREAM))
    pen.shape("38 46  28 58  32 74  38 75  48 66  46 54", LEAF, r=9)
    pen.line("38 50  36 73", darker(LEAF, 0.35), 1.2)
    pen.line("66 30  84 34  86 56", WHITE, 1.2, r=8)
    pen.shape("79 56  93 56  94 74  78 74", CREAM, r=2)
    pen.shape("82 62  90 62  90 72  82 72", LEAF, r=2, edge=False)


def _coffee(pen: Pen) -> None:
    _pouch(pen)
    pen.oval(50, 56, 22, fill=pen.second(CREAM))
    _bean(pen, 42, 57)
    _bean(pen, 57, 55)
    pen.oval(50, 28, 2.6, fill=METAL)
    for x, y in ((10, 86), (90, 87), (82, 91)):
        pen.oval(x, y, 5, 3.4, fill=_BEAN)


def _bar(pen: Pen) -> None:
    pen.shape("40 22  92 22  92 44  40 44", (202, 150, 86), r=4)
    for k in range(14):
        x, y = 56 + 5.2 * (k % 7), 28 + 9 * (k // 7) + 2 * (k % 2)
        pen.oval(x, y, 2.2, 1.7, fill=(240, 212, 156) if k % 3 else (112, 68, 44), edge=False)
    pen.shape("8 20  52 20  47 27  52 33  47 39  52 46  8 46", r=1)
    pen.shape("8 56  12 60  8 64  12 68  8 72  12 76  8 80  12 84  8 88  92 88  88 84  92 80  88 76  92 72  88 68"
              "  92 64  88 60  92 56", r=1)  # fmt: skip
    pen.box(24, 63, 76, 81, pen.second(CREAM), r=4)
    pen.line("32 70  68 70", darker(pen.cloth, 0.2), 3)
    pen.line("38 76  62 76", GREY, 1.4)


def _nut(pen: Pen, x: float, y: float, fill: Colour) -> None:
    pen.shape(f"{x} {y - 8}  {x + 6} {y}  {x} {y + 7}  {x - 6} {y}", fill, r=5)


def _trail_mix(pen: Pen) -> None:
    _pouch(pen)
    pen.oval(50, 58, 26, 22, fill=pen.second(CREAM))
    for x, y, fill in ((38, 50, (186, 128, 76)), (52, 46, (210, 160, 100)), (64, 54, (150, 94, 54)), (46, 64, (210, 160, 100)),
                       (60, 68, (186, 128, 76))):  # fmt: skip
        _nut(pen, x, y, fill)
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


def _jar(pen: Pen, fill: Colour | None) -> None:
    """Draw a jar with a lid and what it holds."""
    pen.shape("50 22  32 24  22 34  22 82  30 90  50 90", fill, r=9, mirrored=True)
    pen.box(27, 10, 73, 25, pen.second(METAL), r=3)
    pen.line("29 18  71 18", darker(pen.second(METAL), 0.25), 1.2)


def _sauce_jar(pen: Pen) -> None:
    _jar(pen, None)
    pen.box(22, 42, 78, 76, CREAM, r=1)
    pen.oval(50, 60, 12, 10.5, fill=_TOMATO)
    pen.shape("50 52  40 48  47 46  50 42  53 46  60 48", LEAF, r=1)
    pen.gleam("27 34  27 39")


def _honey(pen: Pen) -> None:
    _jar(pen, (226, 158, 44))
    pen.box(30, 48, 70, 76, pen.cloth, r=4)
    pen.shape("50 52  42 57  42 67  50 72  58 67  58 57", pen.second(GOLD), r=1)
    pen.line("28 36  28 48", (250, 214, 130), 2.4)


def _hot_sauce(pen: Pen) -> None:
    pen.box(42, 6, 58, 20, pen.second(LEAF), r=3)
    pen.shape("50 19  44 20  43 34  31 46  31 86  36 91  50 91", r=6, mirrored=True)
    pen.box(31, 52, 69, 82, CREAM, r=1)
    pen.shape("40 58  50 56  62 64  64 76  54 72  46 68", _CHILI, r=8)
    pen.line("41 60  37 55", LEAF, 2.6)
    pen.gleam("46 24  46 36")


def _oil(pen: Pen) -> None:
    pen.box(43, 5, 57, 14, GOLD, r=1)
    pen.shape("50 13  44 14  44 32  32 44  31 88  50 91", r=8, mirrored=True)
    pen.box(34, 52, 66, 80, pen.second(CREAM), r=2)
    pen.line("40 74  60 58", (116, 92, 60), 1.4)
    pen.shape("44 66  42 60  50 60  50 66", LEAF, r=4)
    pen.oval(53, 71, 5.4, 4.4, fill=(126, 134, 56))
    pen.gleam("36 46  36 50")


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
        pen.shape(f"{x0} 40  {x0 + 9.7} 40  {x1 + 6.9} 91  {x1} 91", r=0, edge=False)
    pen.oval(50, 65, 16, 10, fill=pen.second(CREAM))
    pen.line("40 65  60 65", darker(pen.second(CREAM), 0.5), 2.6)


def _spice(pen: Pen) -> None:
    pen.shape("50 26  30 28  28 36  28 86  34 91  50 91", GLASS, r=6, mirrored=True)
    pen.shape("31 44  69 44  69 88  31 88", r=5, edge=False)
    pen.box(28, 54, 72, 78, pen.second(CREAM), r=1)
    pen.line("36 62  64 62", darker(pen.second(CREAM), 0.5), 3)
    pen.line("42 70  58 70", GREY, 1.6)
    pen.box(27, 8, 73, 29, DARK, r=4)
    for k in range(6):
        pen.oval(38 + 12 * (k % 3), 14 + 7 * (k // 3), 1.6, fill=WHITE, edge=False)


def _can(pen: Pen) -> None:
    pen.oval(50, 84, 26, 7, fill=METAL)
    pen.box(24, 20, 76, 84, r=0)
    pen.box(24, 40, 76, 66, pen.second(CREAM), r=0)
    pen.oval(50, 53, 10, fill=pen.cloth)
    pen.oval(50, 20, 26, 8, fill=METAL)
    pen.oval(50, 20, 20, 5.4, fill=lighter(METAL, 0.4))
    pen.oval(50, 17, 5, 2, fill=GREY)


def _bottle(pen: Pen) -> None:
    pen.box(42, 6, 58, 15, pen.second(DARK), r=2)
    pen.shape("50 14  43 15  43 28  32 42  32 86  37 91  50 91", r=9, mirrored=True)
    pen.box(32, 50, 68, 74, pen.second(CREAM), r=1)
    pen.shape("50 53  44 62  50 69  56 62", (112, 176, 220), r=5, edge=False)
    pen.gleam("37 44  37 48")


def _cookies(pen: Pen) -> None:
    for x, y in ((36, 68), (66, 62), (48, 36)):
        pen.oval(x, y, 23, 21, fill=_CRUST)
        for k, (dx, dy) in enumerate(((-10, -6), (2, -11), (11, -2), (5, 9), (-8, 8), (-1, 0))):
            pen.oval(x + dx, y + dy, 3.2, 2.7, fill=pen.cloth if k % 2 else _COCOA)


def _candy(pen: Pen) -> None:
    for y, fill in ((30, pen.cloth), (68, pen.second(lighter(pen.cloth, 0.3)))):
        pen.shape(f"34 {y}  10 {y - 15}  14 {y}  10 {y + 15}", lighter(fill, 0.2), r=2)
        pen.shape(f"66 {y}  90 {y - 15}  86 {y}  90 {y + 15}", lighter(fill, 0.2), r=2)
        pen.oval(50, y, 22, 17, fill=None if y == 30 else fill)
        for x in (40, 50, 60):
            pen.line(f"{x} {y - 12}  {x - 5} {y}  {x} {y + 12}", WHITE, 2.4, r=12)


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


def _cereal(pen: Pen) -> None:
    pen.box(20, 8, 74, 90, r=2)
    pen.shape("74 8  84 14  84 84  74 90", darker(pen.cloth, 0.25), r=1)
    pen.oval(47, 26, 20, 10, fill=pen.second(CREAM))
    pen.line("36 26  58 26", darker(pen.second(CREAM), 0.5), 4)
    pen.shape("26 60  68 60  60 80  34 80", WHITE, r=8)
    for k in range(7):
        pen.oval(31 + 5.4 * k, 57 - 3 * (k % 2), 4.2, fill=(228, 172, 84))
        pen.oval(31 + 5.4 * k, 57 - 3 * (k % 2), 1.5, fill=(150, 96, 44), edge=False)


def _cheese(pen: Pen) -> None:
    pen.shape("8 56  66 22  92 56", (250, 214, 106), r=3)
    pen.box(8, 54, 92, 86, (244, 194, 74), r=3)
    for x, y, r in ((28, 70, 6), (54, 64, 4), (66, 76, 6), (44, 79, 3.4), (80, 66, 3.4), (60, 42, 5)):
        pen.oval(x, y, r, r * 0.8, fill=(222, 162, 52))
    pen.box(8, 86, 92, 90, pen.cloth, r=1)


def _meat(pen: Pen) -> None:
    _pouch(pen)
    pen.oval(50, 58, 26, 22, fill=pen.second(CREAM))
    pen.shape("30 58  38 42  62 42  70 56  62 70  48 66  38 74", (168, 62, 52), r=10)
    pen.line("36 56  46 50  60 50", (240, 190, 178), 2, r=5)
    pen.oval(58, 57, 4, fill=CREAM)


def _carton(pen: Pen) -> None:
    pen.shape("28 34  38 14  70 14  78 34", lighter(pen.cloth, 0.3), r=1)
    pen.box(36, 7, 71, 15, WHITE, r=1)
    pen.box(26, 33, 80, 91, r=2)
    pen.shape("26 62  44 54  62 66  80 56  80 91  26 91", pen.second(WHITE), r=12)
    pen.oval(44, 46, 6, fill=WHITE)
    pen.line("36 80  62 80", pen.cloth, 3)


def _noodles(pen: Pen) -> None:
    pen.line("60 40  88 8", WOOD, 2.6)
    pen.line("68 40  94 14", WOOD, 2.6)
    for k in range(6):
        pen.line(
            f"{20 + 9 * k} 52  {24 + 9 * k} 34  {32 + 9 * k} 36  {34 + 9 * k} 52", (246, 212, 120), 4, r=8
        )
    pen.shape("10 50  90 50  80 78  64 88  36 88  20 78", r=12)
    pen.line("16 60  84 60", pen.second(WHITE), 2.4)


def _sack(pen: Pen) -> None:
    pen.shape("50 18  30 22  22 44  18 84  26 91  50 91", r=9, mirrored=True)
    pen.shape("34 8  50 14  66 8  64 20  36 20", lighter(pen.cloth, 0.15), r=3)
    pen.line("35 21  65 21", pen.second(WOOD), 3)
    pen.oval(50, 60, 20, 16, fill=pen.second(CREAM))
    for text in ("50 72  50 48", "50 60  42 52", "50 60  58 52", "50 68  42 60", "50 68  58 60"):
        pen.line(text, (206, 160, 72), 2.4)


def _bread(pen: Pen) -> None:
    pen.shape(
        "10 48  14 30  36 26  50 30  64 26  86 30  90 48  84 54  84 84  16 84  16 54", (196, 132, 70), r=9
    )
    pen.shape(
        "18 46  22 36  38 33  50 36  62 33  78 36  82 46  76 52  76 76  24 76  24 52", (244, 214, 160), r=8
    )
    pen.box(10, 80, 90, 90, pen.cloth, r=3)


def _apple(pen: Pen) -> None:
    pen.shape("50 30  36 22  16 34  16 60  30 86  42 90  50 86", r=14, mirrored=True)
    pen.line("50 30  52 12", (112, 78, 50), 3)
    pen.shape("53 20  64 8  80 12  70 24", LEAF, r=9)
    pen.gleam("25 44  24 58", 3)


def _gift(pen: Pen) -> None:
    ribbon = pen.second(CREAM)
    pen.shape("50 28  34 10  24 18  30 28", ribbon, r=8)
    pen.shape("50 28  66 10  76 18  70 28", ribbon, r=8)
    pen.box(16, 42, 84, 90, r=2)
    pen.box(11, 28, 89, 44, lighter(pen.cloth, 0.15), r=2)
    pen.box(44, 28, 56, 90, ribbon, r=0)


def _groceries(pen: Pen) -> None:
    pen.shape("26 44  30 14  40 10  44 44", (232, 190, 110), r=6)
    for y in (20, 28, 36):
        pen.line(f"32 {y}  40 {y - 3}", (190, 138, 66), 1.6)
    pen.oval(58, 36, 11, fill=_TOMATO)
    pen.shape("64 44  66 18  76 8  82 20  76 44", LEAF, r=8)
    pen.shape("18 40  82 40  78 91  22 91", r=2)
    pen.shape(
        "18 40  26 45  34 40  42 45  50 40  58 45  66 40  74 45  82 40  81 50  19 50",
        lighter(pen.cloth, 0.2),
        r=1,
    )
    pen.oval(50, 70, 11, fill=pen.second(CREAM))
    pen.shape("50 62  43 70  50 78  57 70", LEAF, r=5)


def _parcel(pen: Pen) -> None:
    pen.box(12, 36, 88, 90, WOOD, r=2)
    pen.shape("12 36  22 18  78 18  88 36", lighter(WOOD, 0.25), r=1)
    pen.shape("44 18  56 18  58 36  42 36", pen.cloth, r=0)
    pen.box(42, 36, 58, 54, pen.cloth, r=0)
    pen.box(62, 68, 82, 84, WHITE, r=1)
    pen.line("66 74  78 74", GREY, 1.6)
    pen.line("66 79  74 79", GREY, 1.6)


SHAPES: dict[str, Callable[[Pen], None]] = {
    "tea": _tea,
    "coffee": _coffee,
    "granola bar": _bar,
    "trail mix": _trail_mix,
    "dried fruit": _dried_fruit,
    "chips": _chips,
    "sauce jar": _sauce_jar,
    "honey": _honey,
    "hot sauce": _hot_sauce,
    "oil": _oil,
    "chocolate": _chocolate,
    "popcorn": _popcorn,
    "spice": _spice,
    "can": _can,
    "bottle": _bottle,
    "cookies": _cookies,
    "candy": _candy,
    "cake": _cake,
    "cereal": _cereal,
    "cheese": _cheese,
    "meat": _meat,
    "carton": _carton,
    "noodles": _noodles,
    "sack": _sack,
    "bread": _bread,
    "apple": _apple,
    "gift": _gift,
    "groceries": _groceries,
    "parcel": _parcel,
}
