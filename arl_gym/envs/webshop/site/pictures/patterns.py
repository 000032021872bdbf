"""Patterns of cloth, wood and stone: which one a text names, and how they are drawn.

>>> pattern_of("Buffalo plaid flannel")
'checked'
"""

from collections.abc import Callable

from PIL import Image, ImageDraw

from arl_gym.envs.webshop.site.pictures.colours import (
    PLEASANT,
    WHITE,
    Colour,
    brightness,
    darker,
    lighter,
    mix,
    words_of,
)
from arl_gym.rng import Rng

_WORDS = {
    "striped": "stripe stripes striped pinstripe pinstriped stripy",
    "dotted": "dot dots dotted polka",
    "checked": "plaid check checks checked checkered checkerboard gingham tartan buffalo",
    "floral": "floral flower flowers flowery blossom botanical paisley hawaiian",
    "camo": "camo camouflage",
    "leopard": "leopard cheetah snake python tortoise tortoiseshell",
    "zebra": "zebra tiger",
    "marble": "marble marbled terrazzo granite",
    "wood": "wood wooden oak walnut bamboo pine teak acacia rustic driftwood veneer plywood",
    "zigzag": "zigzag chevron herringbone aztec",
    "diamonds": "geometric argyle trellis medallion moroccan quilted boho",
    "rainbow": "multicolor multicolored multicolour multicoloured multi rainbow colorful",
    "ombre": "ombre gradient balayage highlights",
    "speckled": "glitter speckled confetti sparkle sequin sequins flake galaxy",
}
_PATTERN_OF_WORD = {word: pattern for pattern, words in _WORDS.items() for word in words.split()}

WOVEN = frozenset(
    {"striped", "dotted", "checked", "floral", "camo", "leopard", "zebra", "zigzag", "diamonds", "rainbow"}
)
"""Patterns of textiles."""
HARD = frozenset({"marble", "wood"})
"""Patterns of furniture."""
_ALL = frozenset(_WORDS)


def pattern_of(text: str, among: frozenset[str] = _ALL) -> str | None:
    """Return the pattern, one `among` these, that a text names first, None if it names none."""
    named = (_PATTERN_OF_WORD[word] for word in words_of(text) if word in _PATTERN_OF_WORD)
    return next((pattern for pattern in named if pattern in among), None)


def cloth_image(pattern: str, side: int, ground: Colour, accent: Colour | None) -> Image.Image:
    """Return a square of cloth, wood or stone, `side` pixels wide."""
    image = Image.new("RGB", (side, side), ground)
    _PAINTERS[pattern](_Brush(image, ground, accent))
    return image


class _Brush:
    """Draws on a square of 100 by 100 units."""

    def __init__(self, image: Image.Image, ground: Colour, accent: Colour | None):
        pale = brightness(ground) > 165
        self.ground = ground
        self.ink = accent or (darker(ground, 0.28) if pale else lighter(ground, 0.62))
        self.rng = Rng("webshop pattern")
        self._unit = image.width / 100
        self._draw = ImageDraw.Draw(image)

    def box(self, left: float, top: float, right: float, bottom: float, fill: Colour) -> None:
        self._draw.rectangle([v * self._unit for v in (left, top, right, bottom)], fill=fill)

    def dot(self, x: float, y: float, rx: float, fill: Colour, ry: float = 0) -> None:
        edges = (x - rx, y - (ry or rx), x + rx, y + (ry or rx))
        self._draw.ellipse([v * self._unit for v in edges], fill=fill)

    def line(self, *numbers: float, fill: Colour, width: float) -> None:
        scaled = [v * self._unit for v in numbers]
        self._draw.line(scaled, fill=fill, width=max(1, round(width * self._unit)))

    def blob(self, *numbers: float, fill: Colour) -> None:
        self._draw.polygon([v * self._unit for v in numbers], fill=fill)

    def between(self, low: float, high: float) -> float:
        return low + (high - low) * self.rng.uniform()


def _striped(brush: _Brush) -> None:
    for k in range(13):
        brush.box(0, 8 * k, 100, 8 * k + 3.4, brush.ink)


def _dotted(brush: _Brush) -> None:
    for row in range(13):
        for column in range(13):
            brush.dot(8 * column + 4 * (row % 2), 8 * row + 3, 1.9, brush.ink)


def _checked(brush: _Brush) -> None:
    half, thin = mix(brush.ground, brush.ink, 0.5), mix(brush.ground, brush.ink, 0.8)
    for k in range(9):
        brush.box(12 * k, 0, 12 * k + 5.5, 100, half)
    for k in range(9):
        brush.box(0, 12 * k, 100, 12 * k + 5.5, half)
    for i in range(81):
        x, y = 12 * (i % 9), 12 * (i // 9)
        brush.box(x, y, x + 5.5, y + 5.5, thin)


def _floral(brush: _Brush) -> None:
    for i in range(64):
        x, y = 13 * (i % 8) + 6.5 * (i // 8 % 2), 13 * (i // 8) + 5
        brush.line(x, y, x + 4, y + 5, fill=mix((70, 130, 70), brush.ink, 0.25), width=1)
        for dx, dy in ((0, -2.2), (2.1, -0.6), (1.3, 1.9), (-1.3, 1.9), (-2.1, -0.6)):
            brush.dot(x + dx, y + dy, 1.7, brush.ink)
        brush.dot(x, y, 1.3, (240, 200, 90))


def _camo(brush: _Brush) -> None:
    tones = (darker(brush.ground, 0.4), lighter(brush.ground, 0.3), mix(brush.ground, (110, 84, 56), 0.6))
    for i in range(72):
        x, y, r = brush.between(0, 100), brush.between(0, 100), brush.between(3, 6)
        for dx in (-1, 0, 1):
            brush.dot(x + dx * r, y + brush.between(-2, 2), r, tones[i % 3], ry=r * 0.55)


def _leopard(brush: _Brush) -> None:
    dark, middle = darker(brush.ground, 0.78), darker(brush.ground, 0.25)
    for i in range(156):
        x = 8.2 * (i % 13) + 4 * (i // 13 % 2) + brush.between(-1.2, 1.2)
        y = 8.4 * (i // 13) + brush.between(-1.2, 1.2)
        brush.dot(x, y, brush.between(2, 2.9), dark, ry=brush.between(1.8, 2.6))
        brush.dot(x + 0.6, y + 0.5, 1.3, middle)


def _zebra(brush: _Brush) -> None:
    dark = darker(brush.ground, 0.8)
    for k in range(14):
        y = 8 * k - 4
        for x in range(0, 100, 20):
            shift = brush.between(-1.5, 1.5)
            brush.blob(x, y + shift, x + 10, y + 4, x + 20, y + shift, x + 11, y + 7.2, fill=dark)


def _marble(brush: _Brush) -> None:
    for width, share in ((3.2, 0.12), (1.1, 0.3), (0.6, 0.45)):
        tone = mix(brush.ground, (120, 124, 132) if brightness(brush.ground) > 90 else WHITE, share)
        for _ in range(7):
            x, y = brush.between(-30, 100), brush.between(-10, 20)
            numbers = [x, y]
            while y < 100:
                x, y = x + brush.between(-4, 13), y + brush.between(6, 16)
                numbers += [x, y]
            brush.line(*numbers, fill=tone, width=width)


def _wood(brush: _Brush) -> None:
    dark = darker(brush.ground, 0.2) if brightness(brush.ground) > 70 else lighter(brush.ground, 0.14)
    for k in range(17):
        y = 6 * k + brush.between(-1, 1)
        bend = brush.between(-1.6, 1.6)
        brush.line(0, y, 30, y + bend, 65, y - bend, 100, y, fill=dark, width=brush.between(0.5, 1))
    for _ in range(7):
        brush.dot(brush.between(10, 90), brush.between(5, 95), 3.2, dark, ry=0.9)


def _zigzag(brush: _Brush) -> None:
    for k in range(-1, 12):
        numbers = [v for i in range(18) for v in (6 * i, 9 * k + 6 * (i % 2))]
        brush.line(*numbers, fill=brush.ink, width=2.8)


def _diamonds(brush: _Brush) -> None:
    for i in range(130):
        x, y = 10 * (i % 10) + 5 * (i // 10 % 2), 8 * (i // 10)
        brush.blob(x, y - 6.4, x + 4, y, x, y + 6.4, x - 4, y, fill=brush.ink)
        brush.blob(x, y - 2.6, x + 1.6, y, x, y + 2.6, x - 1.6, y, fill=brush.ground)


def _rainbow(brush: _Brush) -> None:
    for k in range(21):
        brush.box(0, 5 * k, 100, 5 * k + 5, lighter(PLEASANT[2 * k % 10], 0.1))


def _ombre(brush: _Brush) -> None:
    for k in range(50):
        brush.box(0, 2 * k, 100, 2 * k + 2, mix(brush.ground, brush.ink, k / 49))


def _speckled(brush: _Brush) -> None:
    for i in range(420):
        tone = lighter(brush.ground, 0.65) if i % 3 else darker(brush.ground, 0.3)
        brush.dot(brush.between(0, 100), brush.between(0, 100), brush.between(0.5, 1.1), tone)


_PAINTERS: dict[str, Callable[[_Brush], None]] = {
    "striped": _striped,
    "dotted": _dotted,
    "checked": _checked,
    "floral": _floral,
    "camo": _camo,
    "leopard": _leopard,
    "zebra": _zebra,
    "marble": _marble,
    "wood": _wood,
    "zigzag": _zigzag,
    "diamonds": _diamonds,
    "rainbow": _rainbow,
    "ombre": _ombre,
    "speckled": _speckled,
}
PATTERNS = ("solid", *_PAINTERS)
"""All there are."""
