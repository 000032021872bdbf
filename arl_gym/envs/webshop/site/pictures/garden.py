"""How textiles, tableware and other things of the home and the garden look."""

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
)
from arl_gym.envs.webshop.site.pictures.pen import Pen


def _rug(pen: Pen) -> None:
    fringe = pen.second(CREAM)
    for k in range(14):
        pen.line(f"{20 + 4.6 * k} 34  {21 + 4.5 * k} 28", darker(fringe, 0.12), 1.3)
        pen.line(f"{9 + 6.3 * k} 80  {8 + 6.4 * k} 88", darker(fringe, 0.12), 1.5)
    pen.shape("19 33  81 33  94 81  6 81", r=1)
    for text in ("24 38  76 38  86 76  14 76  24 38", "31 44  69 44  75 70  25 70  31 44"):
        pen.line(text, pen.second(pen.detail), 1.6)


def _curtain(pen: Pen) -> None:
    pen.box(26, 18, 74, 76, (206, 228, 242), r=1)
    pen.line("50 18  50 76", WHITE, 2)
    pen.line("26 46  74 46", WHITE, 2)
    pen.line("8 14  92 14", pen.second((120, 92, 66)), 3)
    for x in (8, 92):
        pen.oval(x, 14, 3.2, fill=pen.second((120, 92, 66)))
    pen.shape("13 15  45 15  36 50  20 60  30 88  13 90", r=6)
    pen.shape("87 15  55 15  64 50  80 60  70 88  87 90", r=6)
    for x0, x1, x2 in ((21, 17, 17), (30, 23, 23), (79, 83, 83), (70, 77, 77)):
        pen.line(f"{x0} 18  {x1} 58  {x2} 87", pen.detail, 1, r=20)
    pen.line("14 58  24 62", GOLD, 3)
    pen.line("86 58  76 62", GOLD, 3)


def _shower_curtain(pen: Pen) -> None:
    pen.shape("28 76  92 76  86 92  34 92", WHITE, r=8)
    pen.line("8 14  92 14", METAL, 2.6)
    for k in range(6):
        pen.oval(16 + 9 * k, 16, 2.4, fill=pen.second(GOLD))
    pen.shape("12 19  65 19  67 84  10 84", r=2)
    for k in range(5):
        pen.line(f"{20 + 9 * k} 20  {19 + 9.5 * k} 83", pen.detail, 1)
    pen.line("86 60  86 26  76 24", METAL, 2.4, r=8)
    pen.shape("70 24  82 24  84 29  68 29", METAL, r=2)
    for k in range(3):
        pen.line(f"{71 + 5 * k} 34  {70 + 5 * k} 42", (136, 190, 224), 1.4)


def _pillow(pen: Pen) -> None:
    pen.shape("12 18  30 24  50 22  70 24  88 18  83 50  88 86  70 81  50 84  30 81  12 86  17 50", r=5)
    pen.line("20 76  26 60  30 56", pen.detail, 1, r=8)
    pen.line("80 76  74 60  70 56", pen.detail, 1, r=8)
    for x, y in ((12, 18), (88, 18), (12, 86), (88, 86)):
        pen.oval(x, y, 3, fill=pen.second(pen.light))


def _blanket(pen: Pen) -> None:
    for k in range(14):
        pen.line(f"{17 + 5 * k} 84  {17 + 5 * k} 90", darker(pen.second(pen.cloth), 0.1), 1.8)
    pen.box(14, 60, 86, 85, r=5)
    pen.box(12, 40, 88, 63, r=8)
    pen.box(14, 22, 86, 43, r=8)
    pen.line("20 80  82 80", pen.second(pen.light), 2.2)
    pen.line("18 57  84 57", pen.second(pen.light), 2.2)
    pen.line("20 37  82 37", pen.second(pen.light), 2.2)


def _towel(pen: Pen) -> None:
    pen.line("10 16  90 16", METAL, 4)
    pen.box(22, 13, 78, 88, r=3)
    pen.box(22, 13, 78, 20, darker(pen.cloth, 0.15), r=3)
    for y in (70, 76):
        pen.line(f"23 {y}  77 {y}", pen.second(pen.light), 2.6)
    for x in (10, 90):
        pen.oval(x, 16, 4, fill=METAL)


def _wall_art(pen: Pen) -> None:
    pen.line("34 18  50 7  66 18", (150, 154, 160), 1)
    pen.box(12, 16, 88, 86, pen.second(DARK), r=2)
    pen.box(17, 21, 83, 81, WHITE, r=1)
    pen.box(23, 27, 77, 75, lighter(pen.cloth, 0.65), r=0)
    pen.oval(62, 40, 7, fill=(244, 196, 92), edge=False)
    pen.shape("23 75  23 60  40 42  58 75", pen.cloth, r=2, edge=False)
    pen.shape("42 75  60 54  77 68  77 75", darker(pen.cloth, 0.3), r=2, edge=False)


def _candle(pen: Pen) -> None:
    pen.shape("50 10  42 22  50 30  58 22", (250, 176, 62), r=8)
    pen.shape("50 17  46 23  50 28  54 23", (255, 232, 150), r=5, edge=False)
    pen.line("50 30  50 40", DARK, 1.6)
    pen.oval(50, 42, 24, 5, fill=lighter(pen.cloth, 0.5))
    pen.shape("26 42  50 48  74 42  74 86  50 90  26 86", r=4)
    pen.box(34, 58, 66, 78, pen.second(CREAM), r=2)
    pen.line("40 66  60 66", darker(CREAM, 0.4), 1.4)
    pen.line("43 71  57 71", darker(CREAM, 0.4), 1.4)


def _plant_pot(pen: Pen) -> None:
    for text in (
        "50 58  28 46  20 24  42 34",
        "50 58  72 46  80 24  58 34",
        "50 58  38 30  50 6  62 30",
    ):
        pen.shape(text, LEAF, r=14)
    pen.line("50 58  50 22", darker(LEAF, 0.25), 1)
    pen.shape("28 62  72 62  66 90  34 90", r=4)
    pen.box(24, 54, 76, 64, pen.second(lighter(pen.cloth, 0.15)), r=3)


def _plant(pen: Pen) -> None:
    pen.line("50 70  50 40", (128, 96, 66), 4)
    for x, y, r in ((50, 26, 17), (34, 38, 13), (66, 38, 13), (50, 44, 13)):
        pen.oval(x, y, r, fill=LEAF)
    for x, y in ((40, 26), (58, 20), (62, 38), (46, 42), (32, 40)):
        pen.oval(x, y, 3, fill=pen.cloth)
    pen.shape("34 66  66 66  61 90  39 90", pen.second(CREAM), r=3)


def _mug(pen: Pen) -> None:
    pen.line("68 40  88 38  88 70  66 72", darker(pen.cloth, 0.12), 6, r=16)
    pen.shape("18 28  72 28  69 82  62 88  28 88  21 82", r=6)
    pen.oval(45, 28, 27, 6, fill=pen.second(lighter(pen.cloth, 0.3)))
    pen.oval(45, 29, 23, 4, fill=(104, 68, 48))
    pen.gleam("26 42  28 74", 2.4)
    for x in (38, 50):
        pen.line(f"{x} 19  {x + 3} 15  {x - 1} 11  {x + 2} 7", (176, 184, 192), 1.6, r=4)


def _plate(pen: Pen) -> None:
    pen.oval(50, 50, 35)
    pen.oval(50, 50, 22, fill=pen.second(lighter(pen.cloth, 0.25)))
    pen.line("9 20  9 84", METAL, 3)
    for x in (6, 9, 12):
        pen.line(f"{x} 16  {x} 34", METAL, 1.3)
    pen.line("91 50  91 84", METAL, 3)
    pen.shape("89 16  94 20  94 52  89 52", METAL, r=2)


def _cup(pen: Pen) -> None:
    pen.box(48, 54, 52, 86, GLASS, r=1)
    pen.oval(50, 87, 17, 3.4, fill=GLASS)
    pen.shape("30 12  70 12  68 44  50 58  32 44", GLASS, r=12)
    pen.shape("32 30  68 30  66 44  50 56  34 44", r=10)


def _vase(pen: Pen) -> None:
    for text, fill in (
        ("46 40  36 14", (232, 128, 140)),
        ("50 40  52 10", (240, 190, 92)),
        ("54 40  66 16", (180, 140, 206)),
    ):
        pen.line(text, LEAF, 1.8)
        x, y = (float(word) for word in text.split()[2:])
        pen.oval(x, y, 7, fill=fill)
        pen.oval(x, y, 2.4, fill=CREAM)
    pen.shape("42 34  43 44  28 64  36 88  50 90", r=10, mirrored=True)
    pen.gleam("36 62  38 76", 2.2)


def _clock(pen: Pen) -> None:
    pen.oval(50, 48, 38)
    pen.oval(50, 48, 31, fill=pen.second(WHITE))
    for x0, y0, x1, y1 in ((50, 20, 50, 25), (50, 71, 50, 76), (22, 48, 27, 48), (73, 48, 78, 48)):
        pen.line(f"{x0} {y0}  {x1} {y1}", DARK, 2.4)
    pen.line("50 29  50 48  63 56", DARK, 2.6)
    pen.oval(50, 48, 2.6, fill=(206, 80, 72))


def _mirror(pen: Pen) -> None:
    pen.oval(50, 46, 33, 38)
    pen.oval(50, 46, 27, 32, fill=(206, 226, 238))
    pen.line("36 44  52 24", WHITE, 3)
    pen.line("42 54  64 28", WHITE, 3)
    pen.shape("36 84  64 84  70 91  30 91", pen.second(pen.cloth), r=3)


def _blinds(pen: Pen) -> None:
    pen.box(14, 10, 86, 86, (206, 228, 242), r=1)
    for k in range(10):
        pen.box(13, 17 + 6 * k, 87, 21 + 6 * k, r=1)
    pen.box(11, 8, 89, 15, pen.second(darker(pen.cloth, 0.15)), r=2)
    pen.line("80 15  80 84", METAL, 1)
    pen.oval(80, 85, 2, fill=METAL)


def _basket(pen: Pen) -> None:
    pen.line("28 42  30 14  70 14  72 42", darker(pen.cloth, 0.2), 4, r=22)
    pen.shape("14 42  86 42  78 88  22 88", r=5)
    for k in range(4):
        pen.line(f"{17 + 2 * k} {52 + 9 * k}  {83 - 2 * k} {52 + 9 * k}", pen.detail, 1.2)
    for k in range(7):
        pen.line(f"{23 + 9 * k} 46  {28 + 7.3 * k} 86", pen.detail, 1.2)
    pen.box(11, 38, 89, 46, pen.second(pen.light), r=3)


def _pan(pen: Pen) -> None:
    pen.line("60 50  92 34", DARK, 6)
    pen.oval(42, 58, 34, 26, fill=darker(pen.cloth, 0.25))
    pen.oval(42, 55, 34, 25)
    pen.oval(42, 56, 27, 19, fill=pen.second((72, 76, 82)))
    pen.gleam("26 50  40 42", 2)


def _house(pen: Pen) -> None:
    pen.box(64, 18, 72, 40, darker(pen.cloth, 0.3), r=1)
    pen.box(20, 44, 80, 90, CREAM, r=2)
    pen.shape("50 12  10 46  16 51  50 23", mirrored=True, r=2)
    pen.box(43, 62, 57, 90, pen.second(WOOD), r=1)
    for x in (26, 63):
        pen.box(x, 56, x + 11, 68, (150, 198, 226), r=1)
    pen.oval(86, 82, 8, fill=LEAF)


SHAPES: dict[str, Callable[[Pen], None]] = {
    "rug": _rug,
    "curtain": _curtain,
    "shower curtain": _shower_curtain,
    "pillow": _pillow,
    "blanket": _blanket,
    "towel": _towel,
    "wall art": _wall_art,
    "candle": _candle,
    "plant pot": _plant_pot,
    "plant": _plant,
    "mug": _mug,
    "plate": _plate,
    "cup": _cup,
    "vase": _vase,
    "clock": _clock,
    "mirror": _mirror,
    "blinds": _blinds,
    "basket": _basket,
    "pan": _pan,
    "house": _house,
}
