"""How cosmetics and what belongs to the bathroom look."""

from collections.abc import Callable

from arl_gym.envs.webshop.site.pictures.colours import (
    CREAM,
    DARK,
    GLASS,
    GOLD,
    LEAF,
    METAL,
    WHITE,
    WOOD,
    darker,
    lighter,
    mix,
)
from arl_gym.envs.webshop.site.pictures.pen import Pen

_SKIN = (240, 204, 176)


def _label(pen: Pen, left: float, top: float, right: float, bottom: float) -> None:
    pen.box(left, top, right, bottom, pen.second(CREAM), r=2)
    ink, middle = darker(pen.second(CREAM), 0.4), (left + right) / 2
    pen.line(f"{left + 4} {top + 6}  {right - 4} {top + 6}", ink, 1.8)
    pen.line(f"{middle - 5} {top + 11}  {middle + 5} {top + 11}", ink, 1.2)


def _jar(pen: Pen) -> None:
    pen.shape("16 50  84 50  84 80  76 89  24 89  16 80", r=8)
    _label(pen, 30, 60, 70, 80)
    pen.box(20, 32, 80, 51, pen.second(WHITE), r=4)
    for k in range(9):
        pen.line(f"{26 + 6 * k} 36  {26 + 6 * k} 47", darker(pen.second(WHITE), 0.18), 1)
    pen.shape("50 12  40 24  60 24", WHITE, r=6)
    pen.shape("34 32  38 23  62 23  66 32", WHITE, r=6)


def _pump_bottle(pen: Pen) -> None:
    pen.line("22 12  50 12  50 32", pen.second(DARK), 5, r=3)
    pen.line("22 12  22 17", pen.second(DARK), 4)
    pen.box(40, 22, 60, 32, pen.second(DARK), r=2)
    pen.shape("40 32  60 32  72 44  72 89  28 89  28 44", r=6)
    _label(pen, 34, 50, 66, 78)
    pen.oval(50, 70, 4, 5, fill=(126, 190, 224), edge=False)


def _tube(pen: Pen) -> None:
    pen.box(26, 8, 74, 15, darker(pen.cloth, 0.15), r=1)
    pen.shape("26 14  74 14  66 74  34 74", r=3)
    _label(pen, 36, 26, 64, 50)
    pen.box(36, 72, 64, 90, pen.second(WHITE), r=3)
    for k in range(4):
        pen.line(f"{42 + 5.5 * k} 76  {42 + 5.5 * k} 87", (190, 194, 200), 1)


def _lipstick(pen: Pen) -> None:
    pen.box(54, 38, 82, 90, pen.second(DARK), r=3)
    pen.gleam("60 46  60 82", 1.8)
    pen.shape("24 52  24 26  42 12  42 52", r=5)
    pen.shape("25 30  25 26  41 13  41 22", pen.light, r=3, edge=False)
    pen.box(21, 46, 45, 62, GOLD, r=1)
    pen.box(17, 60, 49, 90, pen.second(DARK), r=3)


def _brushes(pen: Pen) -> None:
    for text, tip, x0, x1 in (
        ("28 54  36 54  34 86  30 86", "24 34  26 18  32 10  38 18  40 34", 27, 37),
        ("46 54  54 54  52 88  48 88", "42 34  46 12  54 12  58 34", 45, 55),
        ("64 54  72 54  70 86  66 86", "63 34  64 22  74 14  73 34", 63, 73),
    ):
        pen.shape(tip, mix((128, 92, 72), CREAM, 0.35), r=7)
        pen.box(x0, 32, x1, 55, METAL, r=1)
        pen.shape(text, r=2)
    pen.shape("20 64  80 64  76 91  24 91", pen.second(lighter(pen.cloth, 0.2)), r=6)
    pen.line("22 71  78 71", pen.detail, 1.2)


def _nail_polish(pen: Pen) -> None:
    pen.shape("41 8  59 8  62 46  38 46", pen.second(DARK), r=3)
    pen.box(42, 44, 58, 54, GLASS, r=1)
    pen.shape("50 52  30 52  22 62  22 84  30 90  50 90", GLASS, r=9, mirrored=True)
    pen.shape("50 57  32 57  26 64  26 82  32 87  50 87", r=7, mirrored=True)
    pen.gleam("32 64  32 80", 2.6)


def _perfume(pen: Pen) -> None:
    pen.box(41, 10, 59, 26, pen.second(GOLD), r=3)
    pen.box(45, 25, 55, 36, METAL, r=1)
    pen.box(18, 34, 82, 90, lighter(pen.cloth, 0.6), r=8)
    pen.shape("22 54  78 54  78 80  72 86  28 86  22 80", r=6, edge=False)
    _label(pen, 35, 52, 65, 72)
    for x, y in ((66, 10), (72, 15), (66, 19), (74, 8), (79, 13), (76, 21)):
        pen.oval(x, y, 1.2, fill=(170, 186, 202), edge=False)


def _toothbrush(pen: Pen) -> None:
    pen.shape("44 30  46 44  54 44  56 30", WHITE, r=2)
    pen.box(44, 9, 56, 32, WHITE, r=5)
    for k in range(5):
        pen.box(35, 11 + 4 * k, 45, 14 + 4 * k, (110, 180, 220) if k % 2 else (240, 244, 248), r=0.5)
    pen.shape("44 42  56 42  61 54  60 90  40 90  39 54", r=6)
    pen.oval(50, 58, 4, fill=pen.second(WHITE))
    pen.line("50 68  50 76", pen.second(WHITE), 2)


def _hair(pen: Pen) -> None:
    for text, line in (
        ("26 18  44 18  48 40  36 60  40 78  32 91  26 74  20 56  30 40", "35 20  40 42  29 60  33 82"),
        ("74 18  56 18  66 40  56 60  64 76  60 91  76 76  82 56  72 40", "65 20  72 42  68 60  68 78"),
        ("38 18  62 18  62 38  54 58  58 74  48 92  42 74  40 56  46 38", "50 20  54 40  47 58  50 82"),
    ):
        pen.shape(text, r=12)
        pen.line(line, pen.detail, 1.1, r=20)
    pen.box(20, 9, 80, 20, pen.second(darker(pen.cloth, 0.45)), r=3)
    for x in (32, 50, 68):
        pen.line(f"{x - 4} 14.5  {x + 4} 14.5", METAL, 2.2)


def _wig(pen: Pen) -> None:
    pen.shape("50 8  28 10  16 32  18 66  12 82  34 80  50 78", r=14, mirrored=True)
    pen.shape("50 30  34 38  34 58  42 74  50 76", _SKIN, r=14, mirrored=True)
    pen.shape("28 44  40 18  72 34  70 44  56 32  40 34", r=8)
    pen.shape("43 73  57 73  60 90  40 90", _SKIN, r=4)


def _dropper(pen: Pen) -> None:
    pen.shape("44 6  56 6  58 24  42 24", (72, 68, 66), r=6)
    pen.box(38, 22, 62, 36, pen.second(DARK), r=2)
    pen.shape("40 36  60 36  74 48  74 88  26 88  26 48", r=6)
    _label(pen, 33, 54, 67, 78)
    pen.gleam("30 54  30 80")


def _mask(pen: Pen) -> None:
    pen.box(18, 12, 82, 90, r=3)
    for y in (12, 84):
        pen.box(18, y, 82, y + 6, darker(pen.cloth, 0.2), r=1)
    pen.shape("50 26  32 28  26 48  34 68  50 78", pen.second(WHITE), r=13, mirrored=True)
    for x in (40, 60):
        pen.oval(x, 46, 5.4, 3, fill=pen.cloth)
    pen.line("50 48  47 58  52 59", (190, 190, 190), 1.2, r=3)
    pen.oval(50, 66, 6.5, 2.6, fill=pen.cloth)


def _hair_dryer(pen: Pen) -> None:
    pen.line("52 86  54 92  74 92  84 84", DARK, 2.4, r=8)
    pen.shape("40 50  58 50  62 88  46 88", r=4)
    pen.shape("10 26  34 22  34 52  10 48", pen.second(DARK), r=2)
    pen.shape("30 20  66 12  86 20  90 38  84 54  66 60  30 54", r=10)
    pen.oval(76, 37, 10, 13, fill=darker(pen.cloth, 0.4))
    for y in (31, 37, 43):
        pen.line(f"69 {y}  83 {y}", pen.light, 1.1)
    pen.oval(50, 64, 3, fill=pen.second(WHITE))


def _soap(pen: Pen) -> None:
    pen.shape("10 76  90 76  82 90  18 90", pen.second(WOOD), r=4)
    pen.box(18, 44, 82, 76, r=13)
    pen.box(30, 53, 70, 68, lighter(pen.cloth, 0.25), r=7)
    for x, y, r in ((30, 34, 7), (46, 26, 5), (58, 36, 6), (70, 24, 4)):
        pen.oval(x, y, r, fill=(238, 248, 252))


def _razor(pen: Pen) -> None:
    pen.shape("45 34  55 34  58 84  50 92  42 84", r=6)
    pen.box(22, 12, 78, 34, METAL, r=5)
    for y in (18, 23, 28):
        pen.line(f"28 {y}  72 {y}", WHITE, 1.4)
    for y in (52, 60, 68):
        pen.line(f"46 {y}  54 {y}", pen.second(pen.detail), 1.8)


def _hair_brush(pen: Pen) -> None:
    pen.shape("45 56  55 56  57 90  43 90", r=5)
    pen.oval(50, 34, 25, 27)
    pen.oval(50, 34, 19, 21, fill=pen.second(lighter(pen.cloth, 0.5)))
    for k in range(20):
        x, y = 40 + 5 * (k % 5), 22 + 8 * (k // 5)
        pen.oval(x, y, 1.3, fill=DARK, edge=False)


def _mascara(pen: Pen) -> None:
    pen.shape("30 48  46 48  46 90  30 90", r=4)
    pen.line("33 60  43 60", pen.second(GOLD), 2)
    pen.box(56, 48, 72, 90, r=4)
    pen.line("64 48  64 34", METAL, 2)
    pen.shape("64 6  58 12  59 34  69 34  70 12", DARK, r=5)
    for k in range(6):
        pen.line(f"56 {12 + 4 * k}  72 {11 + 4 * k}", DARK, 1.1)


def _palette(pen: Pen) -> None:
    pen.shape("14 12  86 12  88 46  12 46", GLASS, r=4)
    pen.line("28 38  42 20", WHITE, 3)
    pen.box(10, 46, 90, 88, pen.second(DARK), r=5)
    shades = (
        lighter(pen.cloth, 0.6),
        pen.cloth,
        darker(pen.cloth, 0.35),
        (206, 150, 120),
        (176, 112, 120),
        (236, 206, 180),
    )
    for k, shade in enumerate(shades):
        pen.oval(25 + 25 * (k % 3), 58 + 18 * (k // 3), 9.5, 7, fill=shade)


def _deodorant(pen: Pen) -> None:
    pen.shape("32 36  34 18  50 12  66 18  68 36", WHITE, r=10)
    pen.box(28, 34, 72, 82, r=5)
    _label(pen, 34, 44, 66, 68)
    pen.box(32, 81, 68, 90, pen.second(DARK), r=2)


def _spray(pen: Pen) -> None:
    pen.box(40, 12, 60, 24, pen.second(WHITE), r=4)
    pen.shape("50 22  38 24  30 38  30 88  50 90", r=7, mirrored=True)
    _label(pen, 34, 48, 66, 76)
    for k in range(3):
        pen.line(f"{34 - 4 * k} {14 - 2 * k}  {34 - 4 * k} {20 + 2 * k}", (166, 182, 198), 1.4)


def _bottles(pen: Pen) -> None:
    pen.box(22, 18, 36, 30, pen.second(WHITE), r=2)
    pen.box(15, 29, 43, 90, r=6)
    _label(pen, 19, 44, 39, 72)
    pen.box(56, 40, 84, 52, lighter(pen.cloth, 0.5), r=3)
    pen.box(52, 51, 88, 90, darker(pen.cloth, 0.12), r=6)
    _label(pen, 58, 60, 82, 80)
    pen.shape("46 20  58 8  70 14  60 26", LEAF, r=9)


def _tooth(pen: Pen) -> None:
    pen.box(20, 70, 84, 88, r=5)
    pen.box(8, 74, 21, 84, pen.second(WHITE), r=2)
    pen.box(80, 68, 90, 90, darker(pen.cloth, 0.2), r=1)
    pen.shape("50 18  36 12  24 20  26 40  34 62  42 62  46 48  50 46", WHITE, r=9, mirrored=True)
    pen.line("34 20  31 30", (196, 226, 240), 2.4)


SHAPES: dict[str, Callable[[Pen], None]] = {
    "cream jar": _jar,
    "pump bottle": _pump_bottle,
    "tube": _tube,
    "lipstick": _lipstick,
    "makeup brushes": _brushes,
    "nail polish": _nail_polish,
    "perfume": _perfume,
    "toothbrush": _toothbrush,
    "toothpaste": _tooth,
    "hair": _hair,
    "wig": _wig,
    "dropper": _dropper,
    "sheet mask": _mask,
    "hair dryer": _hair_dryer,
    "soap": _soap,
    "razor": _razor,
    "hair brush": _hair_brush,
    "mascara": _mascara,
    "palette": _palette,
    "deodorant": _deodorant,
    "spray": _spray,
    "bottles": _bottles,
}
