"""How shoes and what is worn with clothes look."""

from collections.abc import Callable

from arl_gym.envs.webshop.site.pictures.colours import CREAM, DARK, GOLD, METAL, WHITE, darker, lighter
from arl_gym.envs.webshop.site.pictures.pen import DISC, Pen

_GUM = (186, 140, 88)
_LINING = (120, 92, 74)


def _shoe(pen: Pen) -> None:
    pen.shape("10 84  10 76  90 76  92 84", pen.second(_LINING), r=4)
    pen.shape("11 78  11 50  22 48  46 54  62 62  84 66  91 78", r=12)
    pen.shape("14 53  22 50  45 56  38 62  22 62", darker(pen.cloth, 0.55), r=8)
    pen.line("44 56  50 64  48 78", pen.detail, r=8)
    pen.shape("42 58  53 56  62 65  50 70", pen.detail, r=2)


def _sneaker(pen: Pen) -> None:
    pen.shape("9 88  9 74  92 74  92 88", pen.second(WHITE), r=6)
    pen.shape("10 79  11 42  18 38  30 46  44 44  60 60  84 64  92 79", r=9)
    pen.shape("62 62  84 64  92 79  66 79", pen.light, r=8)
    pen.shape("22 74  40 62  50 66  33 76", pen.second(WHITE), r=3)
    for k in range(4):
        pen.line(f"{41 + 5 * k} {54 + 4 * k}  {50 + 5 * k} {46 + 5 * k}", WHITE, 2)
    pen.line("10 82  91 82", (176, 180, 186), 1)


def _boot(pen: Pen) -> None:
    pen.shape("24 90  24 82  92 82  92 90", pen.second(darker(pen.cloth, 0.5)), r=3)
    pen.shape("26 84  26 10  58 10  58 52  64 58  86 64  92 84", r=9)
    pen.shape("25 18  25 9  59 9  59 18", pen.second(pen.light), r=3)
    for k in range(4):
        pen.line(f"46 {28 + 9 * k}  59 {26 + 9 * k}", pen.second(CREAM), 1.8)
    pen.line("72 61  70 72  74 83", pen.detail, r=8)
    pen.gleam("32 26  32 66")


def _sandal(pen: Pen) -> None:
    """Draw a pair from above: from the side, hardly anybody sees what the straps are."""
    sole = pen.second(_GUM)
    for x, side in ((28, -1), (72, 1)):
        outer, inner = 17 * side, -15 * side
        pen.shape(
            f"{x} 9  {x + outer} 12  {x + outer} 46  {x + 11 * side} 62  {x + 13 * side} 92"
            f"  {x + 0.7 * inner} 92  {x + 0.7 * inner} 62  {x + inner} 44  {x + inner} 10",
            sole,
            r=12,
        )
        pen.line(f"{x + outer} 48  {x - 2 * side} 26  {x + inner} 46", pen.cloth, 8, r=8)
        pen.line(f"{x - 2 * side} 16  {x - 2 * side} 28", pen.cloth, 4)
        pen.line(f"{x + 13 * side} 68  {x} 64  {x + 0.75 * inner} 68", pen.cloth, 8, r=8)
        pen.oval(x + 11 * side, 67, 2.6, fill=GOLD)


def _heel(pen: Pen) -> None:
    pen.shape("15 88  12 48  22 50  19 88", pen.second(darker(pen.cloth)), r=2)
    pen.shape("11 56  10 34  20 32  36 52  58 68  92 80  90 88  58 86  36 74", r=10)
    pen.shape("16 38  22 36  40 58  60 71  48 72  30 60", darker(pen.cloth, 0.5), r=8)


def _slipper(pen: Pen) -> None:
    pen.shape("8 84  9 74  91 74  92 84", pen.second(_GUM), r=5)
    pen.shape("42 76  46 54  66 48  88 60  91 76", r=14)
    pen.shape("12 76  16 70  44 70  44 76", pen.second(CREAM), r=4)
    pen.line("44 74  48 56  64 48", pen.second(CREAM), 5, r=8)


def _socks(pen: Pen) -> None:
    for x in (44, 26):
        right = x + 24
        pen.shape(f"{x} 10  {right} 10  {right} 56  {x + 44} 72  {x + 46} 86  {x + 26} 90  {x} 66", r=12)
        pen.box(x - 1, 9, right + 1, 20, pen.second(pen.light), r=3)
        pen.shape(f"{x + 36} 66  {x + 48} 74  {x + 44} 88  {x + 32} 89", pen.second(pen.light), r=8)


def _gloves(pen: Pen) -> None:
    pen.shape(
        "30 88  27 58  14 44  20 38  32 48  30 20  38 18  41 40  44 12  52 12  53 40  59 16  66 18  63 44"
        "  70 28  77 31  68 64  66 88",
        r=5,
    )
    pen.box(27, 74, 69, 90, pen.second(pen.light), r=3)
    for x in (36, 44, 52, 60):
        pen.line(f"{x} 76  {x} 88", pen.detail, 0.9)


def _scarf(pen: Pen) -> None:
    pen.shape("44 30  66 30  70 84  50 86", r=3)
    for x in range(51, 70, 4):
        pen.line(f"{x} 86  {x} 91", pen.second(pen.cloth), 1.6)
    pen.shape("30 34  50 32  42 74  24 70", r=3)
    for k in range(5):
        pen.line(f"{25 + 4 * k} {71 + 0.7 * k}  {24 + 4 * k} {77 + 0.7 * k}", pen.second(pen.cloth), 1.6)
    pen.shape("20 22  34 10  66 10  80 22  76 38  58 46  42 46  24 38", r=12)
    pen.shape("32 23  42 17  58 17  68 23  58 30  42 30", darker(pen.cloth, 0.5), r=8)


def _cap(pen: Pen) -> None:
    pen.shape("52 66  70 62  95 72  94 80  56 76", pen.second(darker(pen.cloth, 0.2)), r=9)
    pen.shape("10 74  12 40  36 20  62 24  76 46  76 68  46 76", r=18)
    pen.line("42 23  36 48  40 74", pen.detail, 1.1, r=20)
    pen.line("42 23  60 40  64 70", pen.detail, 1.1, r=20)
    pen.oval(42, 22, 3.4, 2.4, fill=pen.second(darker(pen.cloth, 0.2)))


def _hat(pen: Pen) -> None:
    pen.oval(50, 74, 42, 11)
    pen.shape("28 72  32 34  44 27  50 31  56 27  68 34  72 72  50 78", r=8)
    pen.shape("28 62  72 62  73 72  50 78  27 72", pen.second(darker(pen.cloth, 0.5)), r=4)


def _beanie(pen: Pen) -> None:
    pen.oval(50, 16, 9, fill=pen.second(pen.light))
    pen.shape("20 66  22 38  40 20  60 20  78 38  80 66", r=18)
    pen.box(16, 62, 84, 84, pen.second(pen.light), r=6)
    for x in range(23, 80, 7):
        pen.line(f"{x} 65  {x} 81", pen.detail, 1)


def _belt(pen: Pen) -> None:
    pen.shape("50 20  82 20  90 50  82 80  18 80  10 50  18 20", r=26)
    pen.shape("50 34  76 34  80 50  76 66  24 66  20 50  24 34", DISC, r=18)
    pen.box(34, 62, 62, 84, GOLD, r=4)
    pen.box(40, 67, 56, 79, r=2)
    pen.line("48 73  62 73", darker(GOLD), 2)
    for x in (68, 73, 78):
        pen.oval(x, 73 - (x - 68) / 3, 1.2, fill=pen.detail)


def _tie(pen: Pen) -> None:
    pen.shape("42 10  58 10  55 24  45 24", r=2)
    pen.shape("45 24  55 24  62 74  50 90  38 74", r=2)


def _sunglasses(pen: Pen) -> None:
    lens = pen.second((62, 66, 74))
    pen.line("12 40  6 34  10 30", darker(pen.cloth, 0.15), 4, r=5)
    pen.line("88 40  94 34  90 30", darker(pen.cloth, 0.15), 4, r=5)
    pen.line("42 42  50 38  58 42", pen.cloth, 4, r=8)
    for left in (9, 53):
        pen.shape(
            f"{left} 37  {left + 38} 37  {left + 36} 60  {left + 25} 70  {left + 13} 70  {left + 2} 60", r=9
        )
        pen.shape(
            f"{left + 4} 41  {left + 34} 41  {left + 32} 58  {left + 24} 66  {left + 14} 66  {left + 6} 58",
            lens,
            r=8,
        )
        pen.line(f"{left + 10} 58  {left + 20} 46", lighter(lens, 0.5), 2)


def _bag(pen: Pen) -> None:
    pen.line("32 44  34 14  66 14  68 44", darker(pen.cloth, 0.2), 4.5, r=22)
    pen.shape("20 38  12 82  20 89  50 89", r=6, mirrored=True)
    pen.shape("20 38  80 38  84 58  50 66  16 58", pen.second(pen.light), r=6)
    pen.box(44, 58, 56, 70, GOLD, r=2)
    pen.line("50 62  50 66", darker(GOLD, 0.4), 1.6)


def _backpack(pen: Pen) -> None:
    pen.line("40 16  40 7  60 7  60 16", darker(pen.cloth), 3.4, r=8)
    pen.shape("50 12  30 14  22 30  19 84  28 90  50 90", r=12, mirrored=True)
    pen.box(27, 54, 73, 84, pen.second(pen.light), r=6)
    pen.line("31 62  69 62", METAL, 1.6)
    pen.line("26 40  34 34  66 34  74 40", METAL, 1.6, r=10)
    pen.box(14, 56, 21, 84, darker(pen.cloth, 0.2))
    pen.box(79, 56, 86, 84, darker(pen.cloth, 0.2))


def _wallet(pen: Pen) -> None:
    pen.box(20, 24, 78, 40, (126, 176, 132), r=2)
    pen.box(12, 32, 88, 80, r=6)
    pen.shape("60 48  90 48  90 66  60 66", pen.second(pen.light), r=6)
    pen.oval(68, 57, 3, fill=GOLD)
    pen.line("16 76  84 76", pen.detail, 0.9)


def _watch(pen: Pen) -> None:
    pen.shape("39 8  61 8  63 36  37 36", r=3)
    pen.shape("37 64  63 64  61 92  39 92", r=3)
    pen.oval(50, 50, 23, fill=METAL)
    pen.oval(50, 50, 18, fill=pen.second(WHITE))
    pen.line("50 38  50 50  58 55", DARK, 2)
    pen.box(72, 47, 77, 53, METAL, r=1)
    for y in (72, 78, 84):
        pen.oval(50, y, 1.3, fill=pen.detail)


def _necklace(pen: Pen) -> None:
    pen.line("20 14  26 52  50 68  74 52  80 14", pen.second(GOLD), 2.2, r=26)
    pen.shape("50 62  40 72  50 90  60 72", r=2)
    pen.line("40 72  60 72", pen.light, 1.2)
    pen.line("50 63  46 72  50 88", pen.light, 1.2)


def _ring(pen: Pen) -> None:
    pen.oval(50, 62, 27, fill=pen.second(GOLD))
    pen.oval(50, 62, 20, fill=DISC)
    pen.shape("38 14  62 14  70 24  50 44  30 24", r=1)
    pen.line("30 24  70 24", pen.light, 1.2)
    pen.line("43 24  50 42  57 24", pen.light, 1.2)


def _earrings(pen: Pen) -> None:
    for x in (32, 68):
        pen.line(f"{x} 36  {x} 18  {x + 8} 14  {x + 9} 22", pen.second(GOLD), 2, r=6)
        pen.shape(f"{x} 32  {x + 15} 66  {x} 82  {x - 15} 66", r=12)
        pen.gleam(f"{x - 6} 60  {x - 3} 50")


SHAPES: dict[str, Callable[[Pen], None]] = {
    "shoe": _shoe,
    "sneaker": _sneaker,
    "boot": _boot,
    "sandal": _sandal,
    "heel": _heel,
    "slipper": _slipper,
    "socks": _socks,
    "gloves": _gloves,
    "scarf": _scarf,
    "cap": _cap,
    "hat": _hat,
    "beanie": _beanie,
    "belt": _belt,
    "tie": _tie,
    "sunglasses": _sunglasses,
    "bag": _bag,
    "backpack": _backpack,
    "wallet": _wallet,
    "watch": _watch,
    "necklace": _necklace,
    "ring": _ring,
    "earrings": _earrings,
}
