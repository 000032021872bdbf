"""How furniture and lamps look."""

from collections.abc import Callable

from arl_gym.envs.webshop.site.pictures.colours import (
    CREAM,
    DARK,
    GOLD,
    METAL,
    WHITE,
    WOOD,
    darker,
    lighter,
    mix,
)
from arl_gym.envs.webshop.site.pictures.pen import DISC, Pen

_LIGHT = (255, 232, 160)


def _coffee_table(pen: Pen) -> None:
    leg = pen.second(darker(WOOD, 0.35))
    for text in ("20 52  28 52  24 90  19 90", "80 52  72 52  76 90  81 90"):
        pen.shape(text, leg, r=1)
    pen.box(22, 72, 78, 76, leg, r=1)
    pen.shape("20 40  80 40  94 52  6 52", r=3)
    pen.box(6, 51, 94, 58, r=2)
    pen.line("8 54.5  92 54.5", pen.detail, 0.8)


def _table(pen: Pen) -> None:
    leg = pen.second(darker(pen.cloth, 0.25))
    for x in (12, 82):
        pen.box(x, 38, x + 6, 90, leg, r=1)
    for x in (27, 68):
        pen.box(x, 38, x + 5, 80, darker(leg, 0.2), r=1)
    pen.box(12, 38, 88, 48, darker(pen.cloth, 0.15), r=1)
    pen.shape("18 24  82 24  95 35  5 35", r=2)
    pen.box(5, 34, 95, 40, r=2)


def _desk(pen: Pen) -> None:
    pen.box(14, 44, 19, 90, DARK, r=1)
    pen.box(62, 44, 88, 88, darker(pen.cloth, 0.1), r=2)
    for y in (49, 62, 75):
        pen.box(65, y, 85, y + 10, r=1)
        pen.line(f"72 {y + 5}  78 {y + 5}", pen.second(GOLD), 1.8)
    pen.box(8, 38, 92, 45, r=2)
    pen.box(30, 14, 58, 33, DARK, r=2)
    pen.box(32, 16, 56, 31, (126, 170, 206), r=1)
    pen.line("44 33  44 38", METAL, 3)


def _bed(pen: Pen) -> None:
    pen.box(10, 26, 16, 88, pen.second(WOOD), r=2)
    pen.box(10, 26, 90, 62, pen.second(WOOD), r=7)
    pen.box(84, 26, 90, 88, pen.second(WOOD), r=2)
    pen.box(18, 42, 48, 60, lighter(pen.cloth, 0.5), r=6)
    pen.box(52, 42, 82, 60, lighter(pen.cloth, 0.5), r=6)
    pen.shape("13 60  87 60  92 84  8 84", r=5)
    pen.shape("13 58  87 58  88 67  12 67", lighter(pen.cloth, 0.5), r=3)


def _mattress(pen: Pen) -> None:
    pen.shape("24 36  76 36  94 62  6 62", WHITE, r=6)
    pen.box(6, 60, 94, 82, r=5)
    for k in range(5):
        pen.line(f"{29 + 11 * k} 40  {18 + 16 * k} 58", (206, 212, 218), 1)
    pen.line("8 66  92 66", WHITE, 1.6)
    pen.line("8 77  92 77", WHITE, 1.6)


def _floor_lamp(pen: Pen) -> None:
    metal = pen.second(pen.cloth)
    pen.shape("26 44  74 44  92 91  8 91", mix(DISC, _LIGHT, 0.55), r=4, edge=False)
    pen.line("50 40  50 88", metal, 2.6)
    pen.oval(50, 89, 15, 3.4, fill=metal)
    pen.shape("36 10  64 10  74 44  26 44", r=3)
    pen.line("62 44  62 54", METAL, 1)
    pen.oval(62, 55, 1.4, fill=METAL)


def _lamp(pen: Pen) -> None:
    pen.oval(50, 88, 17, 3.6, fill=darker(pen.second(pen.cloth), 0.2))
    pen.shape("50 50  44 52  34 68  40 84  50 87", pen.second(lighter(pen.cloth, 0.45)), r=10, mirrored=True)
    pen.box(47, 44, 53, 54, GOLD, r=1)
    pen.shape("36 10  64 10  80 48  20 48", r=3)
    pen.line("22 45  78 45", pen.second(pen.light), 2)


def _chandelier(pen: Pen) -> None:
    pen.line("50 6  50 34", DARK, 2)
    pen.box(42, 6, 58, 10, DARK, r=2)
    pen.shape("50 30  30 34  20 64  50 66", r=20, mirrored=True)
    pen.oval(50, 66, 30, 6, fill=darker(pen.cloth, 0.3))
    pen.oval(50, 68, 9, 9, fill=_LIGHT)


def _office_chair(pen: Pen) -> None:
    pen.line("50 66  50 82", METAL, 5)
    for x in (22, 36, 64, 78):
        pen.line(f"50 80  {x} 86", DARK, 3)
        pen.oval(x, 88, 3, fill=DARK)
    pen.line("30 38  20 46  22 60  34 62", pen.second(DARK), 3.6, r=8)
    pen.line("70 38  80 46  78 60  66 62", pen.second(DARK), 3.6, r=8)
    pen.shape("35 8  65 8  70 46  62 56  38 56  30 46", r=8)
    pen.shape("28 58  72 58  75 68  25 68", r=5)
    pen.line("40 16  60 16", pen.detail, 1.2)
    pen.line("37 34  63 34", pen.detail, 1.2)


def _chair(pen: Pen) -> None:
    leg = pen.second(darker(pen.cloth, 0.3))
    pen.shape("28 62  34 62  30 91  25 91", leg, r=1)
    pen.shape("72 62  66 62  70 91  75 91", leg, r=1)
    pen.box(38, 62, 42, 82, darker(leg, 0.2), r=1)
    pen.box(58, 62, 62, 82, darker(leg, 0.2), r=1)
    pen.shape("30 8  70 8  68 54  32 54", r=6)
    pen.shape("38 15  62 15  61 34  39 34", DISC, r=4)
    pen.shape("32 50  68 50  76 62  24 62", r=4)
    pen.box(24, 60, 76, 66, darker(pen.cloth, 0.15), r=2)


def _sofa(pen: Pen) -> None:
    for x in (18, 76):
        pen.box(x, 80, x + 6, 90, pen.second(WOOD), r=1)
    pen.box(14, 30, 86, 70, r=10)
    pen.box(16, 58, 50, 74, lighter(pen.cloth, 0.12), r=4)
    pen.box(50, 58, 84, 74, lighter(pen.cloth, 0.12), r=4)
    pen.box(14, 70, 86, 83, r=3)
    pen.box(6, 46, 20, 83, r=6)
    pen.box(80, 46, 94, 83, r=6)
    pen.line("50 34  50 56", pen.detail, 1.1)


def _stool(pen: Pen) -> None:
    for text in ("28 50  35 50  26 91  20 91", "72 50  65 50  74 91  80 91"):
        pen.shape(text, pen.second(WOOD), r=1)
    pen.line("28 74  72 74", pen.second(WOOD), 2.6)
    pen.box(18, 32, 82, 54, r=9)
    pen.line("20 44  80 44", pen.detail, 1.2)


def _bookshelf(pen: Pen) -> None:
    pen.box(18, 8, 82, 91, r=2)
    inside = darker(pen.cloth, 0.45)
    books = ((206, 92, 84), (94, 148, 186), (232, 186, 92), (116, 164, 118), (150, 118, 176))
    for shelf in range(4):
        top = 12 + 20 * shelf
        pen.box(22, top, 78, top + 16, inside, r=0, edge=False)
        left = 24.0 + 14 * (shelf % 2)
        for k in range(5):
            height = (12, 10, 13, 11, 9)[(k + shelf) % 5]
            pen.box(
                left, top + 16 - height, left + 5.5, top + 16, books[(k + 2 * shelf) % 5], r=0.5, edge=False
            )
            left += 6
    pen.oval(69, 83, 5, fill=pen.second(CREAM))


def _cabinet(pen: Pen) -> None:
    for x in (18, 76):
        pen.box(x, 80, x + 6, 91, darker(pen.cloth, 0.4), r=1)
    pen.box(12, 22, 88, 84, r=3)
    for y in (28, 46, 64):
        pen.box(17, y, 83, y + 15, lighter(pen.cloth, 0.14), r=1)
        for x in (38, 56):
            pen.line(f"{x} {y + 7.5}  {x + 6} {y + 7.5}", pen.second(GOLD), 2)
    pen.box(8, 18, 92, 24, r=2)


SHAPES: dict[str, Callable[[Pen], None]] = {
    "coffee table": _coffee_table,
    "table": _table,
    "desk": _desk,
    "bed": _bed,
    "mattress": _mattress,
    "floor lamp": _floor_lamp,
    "lamp": _lamp,
    "chandelier": _chandelier,
    "office chair": _office_chair,
    "chair": _chair,
    "sofa": _sofa,
    "stool": _stool,
    "bookshelf": _bookshelf,
    "cabinet": _cabinet,
}
