"""How other food and drink look, and the parcel that everything comes in."""

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

_CHILI: Colour = (206, 52, 40)
_TOMATO: Colour = (212, 66, 48)


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


def _jar(pen: Pen, fill: Colour) -> None:
    """Draw a jar of this colour with a lid of the cloth."""
    pen.shape("50 22  32 24  22 34  22 82  30 90  50 90", fill, r=9, mirrored=True)
    pen.line("28 34  28 41", lighter(fill, 0.5), 2.4)
    pen.box(27, 10, 73, 25)
    pen.line("29 18  71 18", pen.detail, 1.2)


def _sauce_jar(pen: Pen) -> None:
    _jar(pen, (190, 62, 44))
    pen.box(22, 46, 78, 78, pen.second(CREAM), r=1)
    pen.oval(50, 63, 12, 10.5, fill=_TOMATO)
    pen.shape("50 55  40 51  47 49  50 45  53 49  60 51", LEAF, r=1)


def _honey(pen: Pen) -> None:
    _jar(pen, (226, 158, 44))
    pen.box(30, 48, 70, 76, pen.second(CREAM), r=4)
    pen.shape("50 52  42 57  42 67  50 72  58 67  58 57", GOLD, r=1)


def _hot_sauce(pen: Pen) -> None:
    pen.box(42, 6, 58, 20, pen.second(LEAF), r=3)
    pen.shape("50 19  44 20  43 34  31 46  31 86  36 91  50 91", r=6, mirrored=True)
    pen.box(31, 52, 69, 82, CREAM, r=1)
    pen.shape("40 58  50 56  62 64  64 76  54 72  46 68", _CHILI, r=8)
    pen.line("41 60  37 55", LEAF, 2.6)
    pen.gleam("46 24  46 36")


def _oil(pen: Pen) -> None:
    pen.shape("50 13  44 14  44 32  32 44  31 88  50 91", (112, 128, 62), r=8, mirrored=True)
    pen.line("37 46  36 50", (186, 196, 130), 1.8)
    pen.box(42, 5, 58, 20, r=2)
    pen.box(31, 52, 69, 82, r=1)
    pen.oval(50, 67, 14, 12, fill=pen.second(CREAM))
    pen.line("42 73  58 60", (116, 92, 60), 1.4)
    pen.shape("46 68  43 62  51 62  51 67", LEAF, r=4)
    pen.oval(53, 70, 4.6, 3.8, fill=(126, 134, 56))


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
    "sauce jar": _sauce_jar,
    "honey": _honey,
    "hot sauce": _hot_sauce,
    "oil": _oil,
    "spice": _spice,
    "can": _can,
    "bottle": _bottle,
    "cereal": _cereal,
    "cheese": _cheese,
    "carton": _carton,
    "noodles": _noodles,
    "sack": _sack,
    "bread": _bread,
    "apple": _apple,
    "gift": _gift,
    "groceries": _groceries,
    "parcel": _parcel,
}
