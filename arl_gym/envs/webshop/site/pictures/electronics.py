"""How electronics look."""

from collections.abc import Callable

from arl_gym.envs.webshop.site.pictures.colours import (
    BLACK,
    CREAM,
    DARK,
    GLASS,
    GOLD,
    GREY,
    METAL,
    WHITE,
    darker,
    lighter,
)
from arl_gym.envs.webshop.site.pictures.pen import DISC, Pen

_SCREEN = (62, 104, 158)
_GREEN = (102, 200, 122)


def _headphones(pen: Pen) -> None:
    pen.line("20 64  18 12  82 12  80 64", darker(pen.cloth, 0.2), 6, r=34)
    pen.line("33 21  40 14  60 14  67 21", pen.second(pen.light), 4, r=20)
    for x, inner in ((20, 30), (80, 70)):
        pen.box(min(x, inner) - 8, 50, max(x, inner) + 8, 86, r=10)
        pen.box(inner - 5, 53, inner + 5, 83, pen.second((70, 74, 82)), r=5)


def _earbuds(pen: Pen) -> None:
    for text, cx in (("24 34  36 34  36 66  28 66", 28), ("76 34  64 34  64 66  72 66", 72)):
        pen.shape(text, r=4)
        pen.oval(cx, 26, 15, 13)
        pen.oval(cx + (9 if cx < 50 else -9), 24, 6, 8, fill=pen.second(DARK))
    pen.shape("20 62  80 62  80 84  72 91  28 91  20 84", lighter(pen.cloth, 0.15), r=10)
    pen.line("22 70  78 70", pen.detail, 1.1)
    pen.oval(50, 78, 2, fill=_GREEN)


def _phone_case(pen: Pen) -> None:
    pen.box(28, 7, 72, 91, r=9)
    pen.box(33, 12, 52, 34, darker(pen.cloth, 0.3), r=6)
    for x, y in ((38, 18), (38, 28), (47, 23)):
        pen.oval(x, y, 3.6, fill=BLACK)
        pen.oval(x, y, 1.5, fill=(92, 120, 160), edge=False)
    if pen.has_second:
        pen.oval(50, 60, 11, fill=pen.second(METAL))
        pen.oval(50, 60, 7)
    pen.box(71, 28, 74, 42, pen.detail, r=1)


def _phone(pen: Pen) -> None:
    pen.box(28, 7, 72, 91, r=8)
    pen.box(31, 12, 69, 86, _SCREEN, r=5)
    for k in range(12):
        shade = ((240, 176, 88), (110, 190, 140), (232, 110, 116), (236, 236, 240))[(k + k // 3) % 4]
        pen.box(
            35 + 11 * (k % 3),
            34 + 11 * (k // 3),
            42 + 11 * (k % 3),
            41 + 11 * (k // 3),
            shade,
            r=2,
            edge=False,
        )
    pen.line("38 24  56 24", WHITE, 3)
    pen.line("45 9.5  55 9.5", pen.detail, 1.4)


def _screen_protector(pen: Pen) -> None:
    pen.box(14, 18, 54, 90, DARK, r=7)
    pen.box(17, 23, 51, 85, _SCREEN, r=3)
    pen.shape("38 10  84 14  80 82  34 78", GLASS, r=6)
    pen.line("46 46  62 20", WHITE, 4)
    pen.line("52 58  74 24", WHITE, 2.4)
    pen.shape("68 82  80 82  81 68", pen.cloth, r=2)


def _cable(pen: Pen) -> None:
    pen.line("26 26  26 88  74 88  74 52  42 52  42 72  86 72", darker(pen.cloth, 0.1), 5.4, r=16)
    pen.line("26 26  26 88  74 88  74 52  42 52  42 72  86 72", pen.second(pen.light), 1.4, r=16)
    pen.shape("16 20  36 20  36 38  30 46  22 46  16 38", r=3)
    pen.shape("18 8  34 8  34 16  31 20  21 20  18 16", pen.second(METAL), r=1)
    pen.box(72, 63, 86, 81, r=3)
    pen.box(86, 66, 95, 78, METAL, r=1)


def _power_bank(pen: Pen) -> None:
    pen.line("40 14  40 6  74 6  76 20", METAL, 2.4, r=8)
    pen.box(24, 14, 66, 90, r=7)
    for k in range(4):
        pen.oval(35 + 6.6 * k, 80, 1.9, fill=_GREEN if k < 3 else GREY)
    pen.shape("48 30  35 54  44 54  41 70  55 46  46 46", pen.second(CREAM), r=1)
    pen.box(71, 20, 81, 34, WHITE, r=2)
    pen.box(73, 34, 79, 41, METAL, r=1)


def _watch_band(pen: Pen) -> None:
    pen.shape("16 20  32 20  34 84  30 91  18 91  14 84", r=6)
    for k in range(6):
        pen.oval(24, 44 + 7 * k, 1.8, fill=pen.detail)
    pen.box(14, 12, 34, 22, METAL, r=2)
    pen.shape("68 20  84 20  86 80  66 80", r=4)
    pen.box(66, 12, 86, 22, METAL, r=2)
    pen.box(64, 78, 88, 91, METAL, r=3)
    pen.box(69, 81, 83, 88, DISC, r=1)
    pen.line("76 77  76 87", GREY, 2)
    if pen.has_second:
        for x in (20, 72):
            pen.box(x + 1, 24, x + 7, 76, pen.second(WHITE), r=2, edge=False)


def _keyboard(pen: Pen) -> None:
    pen.shape("8 34  92 34  96 82  4 82", r=5)
    key = pen.second(lighter(pen.cloth, 0.3))
    for row in range(4):
        y, left, wide = 39 + 8.4 * row, 11 - 0.6 * row, (78 + 1.2 * row) / 12
        for k in range(12):
            pen.box(left + k * wide + 0.4, y, left + (k + 1) * wide - 0.8, y + 6.6, key, r=1, edge=False)
    pen.box(28, 73, 70, 79, key, r=1, edge=False)
    pen.oval(88, 37, 0.9, fill=_GREEN, edge=False)


def _mouse(pen: Pen) -> None:
    pen.line("50 20  50 8  74 6", darker(pen.cloth, 0.3), 2.2, r=8)
    pen.shape("50 18  30 18  25 44  24 70  32 89  50 91", r=16, mirrored=True)
    pen.line("26 48  50 52  74 48", pen.detail, 1.2, r=10)
    pen.line("50 19  50 51", pen.detail, 1.2)
    pen.box(46, 28, 54, 43, pen.second(METAL), r=4)


def _tripod(pen: Pen) -> None:
    leg = darker(pen.cloth, 0.1)
    for text in ("49 38  22 90", "51 38  78 90", "50 38  50 86"):
        pen.line(text, leg, 4)
    for text in ("36 63  28 79", "64 63  72 79"):
        pen.line(text, pen.second(METAL), 2.4)
    pen.line("38 62  62 62", METAL, 1.6)
    pen.box(44, 30, 56, 42, r=2)
    pen.line("56 36  72 42", pen.cloth, 3)
    pen.box(30, 10, 70, 31, DARK, r=3)
    pen.box(42, 6, 56, 12, DARK, r=2)
    pen.oval(50, 21, 7.6, fill=(44, 48, 56))
    pen.oval(50, 21, 4, fill=(96, 136, 186))


def _speaker(pen: Pen) -> None:
    pen.box(8, 32, 92, 84, r=18)
    mesh = pen.second(darker(pen.cloth, 0.35))
    for x in (30, 70):
        pen.oval(x, 58, 17, fill=mesh)
        pen.oval(x, 58, 9, fill=lighter(mesh, 0.2))
        pen.oval(x, 58, 3.4, fill=mesh)
    for k in range(3):
        pen.line(f"{44 + 6 * k} 38  {45 + 6 * k} 38", pen.light, 2)
    for k, x in enumerate((40, 50, 60)):
        pen.line(f"{x} {24 - 2 * (k % 2)}  {x} {10 - 2 * (k % 2)}  {x + 5} {13 - 2 * (k % 2)}", GREY, 1.6)
        pen.oval(x - 2, 24 - 2 * (k % 2), 2.6, 2, fill=GREY)


def _home_theater(pen: Pen) -> None:
    pen.box(18, 18, 82, 60, BLACK, r=3)
    pen.box(21, 21, 79, 57, _SCREEN, r=1)
    pen.shape("44 30  44 48  60 39", WHITE, r=2)
    for x in (4, 84):
        pen.box(x, 32, x + 12, 90, r=2)
        pen.oval(x + 6, 44, 3.6, fill=DARK)
        pen.oval(x + 6, 62, 4.6, fill=DARK)
        pen.oval(x + 6, 78, 4.6, fill=DARK)
    pen.box(24, 72, 76, 86, pen.second(pen.cloth), r=2)
    pen.oval(66, 79, 3.6, fill=METAL)
    pen.line("30 79  50 79", _GREEN, 1.6)


def _webcam(pen: Pen) -> None:
    pen.line("50 56  50 72", METAL, 6)
    pen.shape("28 72  72 72  82 90  18 90", r=5)
    pen.box(12, 14, 88, 60, r=20)
    pen.oval(50, 37, 18, fill=BLACK)
    pen.oval(50, 37, 11, fill=(60, 84, 124))
    pen.oval(46, 33, 3.4, fill=(200, 222, 244))
    pen.oval(77, 37, 2.4, fill=_GREEN)
    pen.oval(23, 37, 2.4, fill=pen.second(GREY))


def _memory_card(pen: Pen) -> None:
    pen.shape("16 12  50 12  60 24  60 84  16 84", r=3)
    for k in range(5):
        pen.box(21 + 6 * k, 17, 24.6 + 6 * k, 28, GOLD, r=0.5)
    pen.box(22, 44, 54, 74, pen.second(WHITE), r=2)
    pen.line("28 53  48 53", DARK, 3)
    pen.line("28 62  42 62", GREY, 2)
    pen.shape("62 56  80 56  80 62  84 66  84 90  62 90", darker(pen.cloth, 0.3), r=2)
    pen.line("67 80  79 80", WHITE, 2)


def _camera(pen: Pen) -> None:
    pen.shape("36 22  42 12  60 12  66 22", darker(pen.cloth, 0.2), r=3)
    pen.box(8, 24, 92, 84, r=7)
    pen.box(8, 38, 92, 66, pen.second(darker(pen.cloth, 0.35)), r=1)
    pen.oval(52, 54, 25, fill=METAL)
    pen.oval(52, 54, 20, fill=BLACK)
    pen.oval(52, 54, 12, fill=(66, 96, 146))
    pen.oval(47, 48, 3.6, fill=(206, 224, 244))
    pen.box(14, 18, 26, 25, (206, 76, 70), r=2)
    pen.box(76, 29, 87, 35, CREAM, r=1)


def _television(pen: Pen) -> None:
    pen.box(42, 72, 58, 86, pen.second(METAL), r=1)
    pen.box(28, 84, 72, 90, pen.second(METAL), r=2)
    pen.box(6, 16, 94, 74, r=4)
    pen.box(10, 20, 90, 69, _SCREEN, r=1)
    pen.shape("10 69  10 56  34 38  54 58  68 46  90 64  90 69", (82, 158, 122), r=3, edge=False)
    pen.oval(74, 33, 6, fill=(250, 214, 120), edge=False)


def _laptop(pen: Pen) -> None:
    pen.box(18, 20, 82, 70, r=4)
    pen.box(22, 24, 78, 66, _SCREEN, r=1)
    pen.line("30 34  54 34", WHITE, 2.4)
    pen.line("30 42  66 42", (150, 190, 230), 2.4)
    pen.line("30 50  48 50", (150, 190, 230), 2.4)
    pen.shape("18 70  82 70  95 86  5 86", r=3)
    pen.shape("22 73  78 73  82 79  18 79", pen.second(darker(pen.cloth, 0.4)), r=1)


def _tablet(pen: Pen) -> None:
    pen.box(18, 10, 82, 90, r=7)
    pen.box(23, 17, 77, 83, _SCREEN, r=2)
    pen.line("34 70  56 36", WHITE, 3)
    pen.line("80 26  66 62", pen.second(WHITE), 4)
    pen.oval(50, 86.5, 1.6, fill=pen.detail)


def _charger(pen: Pen) -> None:
    pen.box(36, 8, 42, 26, METAL, r=1)
    pen.box(58, 8, 64, 26, METAL, r=1)
    pen.box(24, 24, 76, 66, r=9)
    pen.box(42, 56, 58, 62, pen.second(DARK), r=1)
    pen.shape("52 30  43 44  49 44  47 54  57 40  51 40", GOLD, r=1)
    pen.line("50 66  50 90  84 90  84 72", darker(pen.cloth, 0.15), 3.4, r=12)


def _projector(pen: Pen) -> None:
    pen.shape("30 40  4 14  4 70", (255, 244, 200), r=2, edge=False)
    pen.box(26, 34, 94, 80, r=7)
    for x in (34, 80):
        pen.box(x, 80, x + 8, 88, DARK, r=1)
    pen.oval(42, 57, 15, fill=METAL)
    pen.oval(42, 57, 10, fill=(60, 84, 124))
    pen.oval(39, 53, 3, fill=WHITE)
    for y in (48, 55, 62, 69):
        pen.line(f"66 {y}  86 {y}", pen.second(pen.detail), 1.8)


def _router(pen: Pen) -> None:
    for text in ("24 60  18 16", "50 60  50 12", "76 60  82 16"):
        pen.line(text, darker(pen.cloth, 0.25), 4.4)
    pen.box(8, 56, 92, 84, r=7)
    for k in range(5):
        pen.oval(24 + 8 * k, 70, 2, fill=_GREEN if k % 2 else pen.second(CREAM))
    for k in range(3):
        pen.line(f"{66 + 6 * k} 64  {66 + 6 * k} 76", pen.detail, 1.6)


def _remote(pen: Pen) -> None:
    pen.box(32, 8, 68, 91, r=9)
    pen.oval(42, 18, 3.4, fill=(214, 76, 70))
    pen.oval(50, 38, 12, fill=pen.second(lighter(pen.cloth, 0.3)))
    pen.oval(50, 38, 5)
    for k in range(9):
        pen.box(38 + 9 * (k % 3), 57 + 9 * (k // 3), 43 + 9 * (k % 3), 62 + 9 * (k // 3), METAL, r=2)


def _battery(pen: Pen) -> None:
    for left in (20, 54):
        pen.box(left + 8, 12, left + 18, 20, METAL, r=1)
        pen.box(left, 18, left + 26, 90, r=4)
        pen.box(left, 18, left + 26, 38, pen.second(GOLD), r=4)
        pen.line(f"{left + 8} 58  {left + 18} 58", WHITE, 2.4)
        pen.line(f"{left + 13} 53  {left + 13} 63", WHITE, 2.4)


def _binoculars(pen: Pen) -> None:
    pen.box(40, 34, 60, 56, darker(pen.cloth, 0.3), r=3)
    for text, cx in (("30 18  44 18  46 80  12 80", 29), ("70 18  56 18  54 80  88 80", 71)):
        pen.shape(text, r=6)
        pen.oval(cx, 82, 17, 6, fill=(96, 140, 190))
    for x in (29, 57):
        pen.box(x, 10, x + 14, 22, pen.second(DARK), r=3)


def _gamepad(pen: Pen) -> None:
    pen.shape("50 30  26 26  14 38  6 76  16 84  34 68  50 68", r=12, mirrored=True)
    pen.line("27 40  27 54", pen.second(DARK), 4)
    pen.line("20 47  34 47", pen.second(DARK), 4)
    for x, y, fill in ((72, 40, GOLD), (72, 54, _GREEN), (65, 47, (96, 150, 214)), (79, 47, (220, 92, 88))):
        pen.oval(x, y, 3.2, fill=fill)
    for x in (41, 59):
        pen.oval(x, 60, 5.4, fill=DARK)


def _light(pen: Pen) -> None:
    pen.oval(50, 40, 29, fill=(255, 226, 128))
    pen.shape("38 62  62 62  60 76  40 76", (255, 226, 128), r=3)
    pen.line("42 62  44 44  50 50  56 44  58 62", (222, 150, 60), 1.6, r=3)
    pen.box(38, 74, 62, 88, r=4)
    for y in (78, 83):
        pen.line(f"39 {y}  61 {y}", pen.second(pen.detail), 1.3)


def _device(pen: Pen) -> None:
    pen.box(14, 24, 86, 80, r=8)
    pen.box(22, 32, 60, 62, _SCREEN, r=3)
    pen.line("26 54  34 44  42 50  54 38", _GREEN, 2)
    pen.oval(73, 40, 7, fill=pen.second(METAL))
    pen.oval(73, 58, 4, fill=(214, 84, 78))
    for k in range(4):
        pen.line(f"{24 + 9 * k} 71  {28 + 9 * k} 71", pen.detail, 2)
    for x in (24, 70):
        pen.box(x, 80, x + 8, 88, DARK, r=1)


SHAPES: dict[str, Callable[[Pen], None]] = {
    "headphones": _headphones,
    "earbuds": _earbuds,
    "phone case": _phone_case,
    "phone": _phone,
    "screen protector": _screen_protector,
    "cable": _cable,
    "power bank": _power_bank,
    "watch band": _watch_band,
    "keyboard": _keyboard,
    "mouse": _mouse,
    "tripod": _tripod,
    "speaker": _speaker,
    "home theater": _home_theater,
    "webcam": _webcam,
    "memory card": _memory_card,
    "camera": _camera,
    "television": _television,
    "laptop": _laptop,
    "tablet": _tablet,
    "charger": _charger,
    "projector": _projector,
    "router": _router,
    "remote": _remote,
    "battery": _battery,
    "binoculars": _binoculars,
    "gamepad": _gamepad,
    "light": _light,
    "device": _device,
}
