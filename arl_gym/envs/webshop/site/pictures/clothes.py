"""How clothes look."""

from collections.abc import Callable

from arl_gym.envs.webshop.site.pictures.colours import GOLD, METAL, WHITE, darker, mix
from arl_gym.envs.webshop.site.pictures.pen import DISC, Pen

_TEE = "42 14  32 16  10 30  18 48  29 42  28 88"
_SLEEVED = "42 14  31 17  18 36  12 78  22 81  30 48  29 88"


def _tee(pen: Pen) -> None:
    pen.shape(_TEE, mirrored=True)
    _collar(pen)
    if pen.has_second:
        pen.shape("10 30  18 48  22 46  13 28", pen.second(WHITE), r=1)
        pen.shape("90 30  82 48  78 46  87 28", pen.second(WHITE), r=1)
    pen.line("29 42  31 34", pen.detail, 1)
    pen.line("71 42  69 34", pen.detail, 1)


def _collar(pen: Pen) -> None:
    pen.shape("40 14  60 14  57 21  50 24  43 21", darker(pen.cloth, 0.4), r=5)
    pen.line("40 14  43 22  50 25  57 22  60 14", pen.second(pen.light), 2.4, r=5)


def _blouse(pen: Pen) -> None:
    pen.shape(_SLEEVED, mirrored=True)
    pen.shape("40 12  50 24  43 31  34 17", pen.second(pen.light), r=1)
    pen.shape("60 12  50 24  57 31  66 17", pen.second(pen.light), r=1)
    pen.line("50 24  50 87", pen.detail, 1)
    for k in range(5):
        pen.oval(53, 34 + 11 * k, 1.5, fill=WHITE)
    pen.line("12 73  23 76", pen.detail, 1)
    pen.line("88 73  77 76", pen.detail, 1)


def _sweater(pen: Pen) -> None:
    pen.shape(_SLEEVED, r=5, mirrored=True)
    _collar(pen)
    for y in (84, 86):
        pen.line(f"30 {y}  70 {y}", pen.detail, 0.8)
    for x in (12, 79):
        pen.line(f"{x} 76  {x + 9} 77", pen.detail, 1)
    for k in range(3):
        y = 38 + 13 * k
        pen.line(f"40 {y}  45 {y + 5}  50 {y}  55 {y + 5}  60 {y}", pen.second(pen.light), 1.8)


def _tank(pen: Pen) -> None:
    pen.shape("36 12  37 30  29 42  28 88", r=8, mirrored=True)
    pen.shape("41 12  59 12  57 28  50 32  43 28", DISC, r=8)


def _hoodie(pen: Pen) -> None:
    pen.shape(_SLEEVED.replace("42 14", "42 22"), mirrored=True)
    pen.shape("50 6  36 8  31 20  40 30  50 34", r=9, mirrored=True)
    pen.shape("50 12  42 13  39 20  50 29", darker(pen.cloth, 0.5), r=6, mirrored=True)
    pen.shape("38 62  62 62  67 79  33 79", pen.second(pen.light), r=3)
    for x in (45, 55):
        pen.line(f"{x} 30  {x} 46", pen.second(WHITE), 1.6)
    pen.line("29 84  71 84", pen.detail, 1)


def _jacket(pen: Pen) -> None:
    pen.shape("40 14  28 18  13 38  9 76  22 80  29 54  27 86", r=6, mirrored=True)
    pen.shape("38 10  62 10  64 22  36 22", pen.second(pen.light), r=5)
    for k in range(4):
        y = 34 + 14 * k
        pen.line(f"29 {y}  50 {y + 2}  71 {y}", pen.detail, 1.1, r=6)
    for k in range(3):
        y = 36 + 13 * k
        pen.line(f"{15 - 1.5 * k} {y}  {28 - k} {y + 4}", pen.detail, 1)
        pen.line(f"{85 + 1.5 * k} {y}  {72 + k} {y + 4}", pen.detail, 1)
    pen.line("50 20  50 86", METAL, 1.8)


def _coat(pen: Pen) -> None:
    pen.shape("41 9  31 12  19 30  15 66  24 68  30 42  31 52  24 91", r=4, mirrored=True)
    pen.shape("41 8  50 36  38 33  32 14", pen.second(pen.light), r=1)
    pen.shape("59 8  50 36  62 33  68 14", pen.second(pen.light), r=1)
    pen.line("50 36  50 90", pen.detail, 1.2)
    pen.box(30, 51, 70, 56, darker(pen.cloth, 0.2), r=1)
    for y in (42, 64, 74):
        pen.oval(44, y, 1.7, fill=GOLD)
        pen.oval(56, y, 1.7, fill=GOLD)


def _dress(pen: Pen) -> None:
    pen.shape("37 8  36 24  40 34  38 46  16 88  50 91", r=5, mirrored=True)
    pen.shape("41 7  59 7  56 20  50 24  44 20", DISC, r=5, edge=False)
    pen.shape("38 44  62 44  63 50  37 50", pen.second(darker(pen.cloth)), r=1)
    for x0, x1 in ((44, 36), (50, 50), (56, 64)):
        pen.line(f"{x0} 54  {x1} 86", pen.detail, 0.9)


def _skirt(pen: Pen) -> None:
    pen.shape("34 20  32 30  12 82  50 88", r=4, mirrored=True)
    pen.shape("34 18  66 18  67 28  33 28", pen.second(darker(pen.cloth)), r=2)
    for x0, x1 in ((41, 30), (50, 50), (59, 70)):
        pen.line(f"{x0} 32  {x1} 84", pen.detail, 1)


def _jeans(pen: Pen) -> None:
    pen.shape("31 9  27 88  45 90  50 40", r=3, mirrored=True)
    pen.box(30, 8, 70, 16, r=1)
    stitch = pen.second(GOLD)
    pen.line("50 16  50 34  46 30", stitch, 1, r=4)
    pen.line("31 26  41 24  43 16", stitch, 1, r=6)
    pen.line("69 26  59 24  57 16", stitch, 1, r=6)
    pen.oval(50, 12, 1.8, fill=GOLD)
    pen.line("27 84  45 86", stitch, 1)
    pen.line("73 84  55 86", stitch, 1)
    pen.line("37 34  35 80", mix(pen.cloth, WHITE, 0.25), 3)
    pen.line("63 34  65 80", mix(pen.cloth, WHITE, 0.25), 3)


def _leggings(pen: Pen) -> None:
    pen.shape("33 9  30 30  37 62  38 90  46 90  49 62  50 38", r=9, mirrored=True)
    pen.shape("33 8  67 8  68 20  32 20", pen.second(darker(pen.cloth, 0.2)), r=3)
    pen.line("34 30  40 60  41 86", pen.second(pen.light), 1.5, r=20)
    pen.line("66 30  60 60  59 86", pen.second(pen.light), 1.5, r=20)


def _shorts(pen: Pen) -> None:
    pen.shape("27 22  16 78  45 82  50 52", r=3, mirrored=True)
    pen.box(26, 20, 74, 30, pen.second(darker(pen.cloth, 0.2)), r=2)
    pen.line("47 28  44 44", WHITE, 1.5)
    pen.line("53 28  56 44", WHITE, 1.5)


def _pajamas(pen: Pen) -> None:
    pen.shape("52 34  48 88  62 90  67 56  72 90  86 88  82 34", r=2)
    pen.box(52, 32, 82, 38, r=1)
    pen.shape("26 10  8 26  15 42  22 38  22 70  58 70  58 38  65 42  72 26  54 10", r=3)
    pen.shape("33 10  40 24  33 28  26 12", pen.second(WHITE), r=1)
    pen.shape("47 10  40 24  47 28  54 12", pen.second(WHITE), r=1)
    pen.line("40 24  40 69", pen.detail, 1)
    for k in range(3):
        pen.oval(42.5, 34 + 12 * k, 1.6, fill=WHITE)


def _robe(pen: Pen) -> None:
    pen.shape("42 9  30 13  12 60  25 64  31 46  26 91", r=5, mirrored=True)
    pen.shape("40 8  50 46  44 90  36 90  42 46  33 12", pen.second(pen.light), r=2)
    pen.shape("60 8  50 46  54 90  46 90  46 46  67 12", pen.second(pen.light), r=2)
    pen.box(29, 48, 71, 55, pen.second(darker(pen.cloth)), r=2)
    pen.line("48 54  45 74", pen.second(darker(pen.cloth)), 3)


def _bra(pen: Pen) -> None:
    pen.line("24 50  28 14", pen.cloth, 3)
    pen.line("76 50  72 14", pen.cloth, 3)
    pen.shape("20 44  34 40  50 56  50 70  34 78  8 66", r=12)
    pen.shape("80 44  66 40  50 56  50 70  66 78  92 66", r=12)
    pen.oval(50, 60, 2.4, fill=pen.second(WHITE))


def _briefs(pen: Pen) -> None:
    pen.shape("16 30  14 46  34 58  42 78  50 80", r=10, mirrored=True)
    pen.box(15, 26, 85, 36, pen.second(pen.light), r=2)


def _swimsuit(pen: Pen) -> None:
    pen.shape("36 8  35 28  31 38  36 52  28 72  44 90  50 91", r=9, mirrored=True)
    pen.shape("41 7  59 7  58 28  50 36  42 28", DISC, r=9)
    pen.line("36 53  64 53", pen.second(WHITE), 3)


SHAPES: dict[str, Callable[[Pen], None]] = {
    "tee": _tee,
    "blouse": _blouse,
    "sweater": _sweater,
    "tank": _tank,
    "hoodie": _hoodie,
    "jacket": _jacket,
    "coat": _coat,
    "dress": _dress,
    "skirt": _skirt,
    "jeans": _jeans,
    "leggings": _leggings,
    "shorts": _shorts,
    "pajamas": _pajamas,
    "robe": _robe,
    "bra": _bra,
    "briefs": _briefs,
    "swimsuit": _swimsuit,
}
