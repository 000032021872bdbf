"""A pen that draws flat shapes on a square of 100 by 100 units, with soft edges.

Shapes are polygons with rounded corners, given as a text of coordinates: "20 30  80 30  50 90". It knows
nothing of products.

    >>> pen = Pen(64, cloth=(200, 60, 60), accent=None, pattern="solid")
    >>> pen.shape("20 20  80 20  50 80")
    >>> pen.image().size
    (64, 64)
"""

from functools import cached_property, lru_cache
from math import cos, pi, sin, sqrt

from PIL import Image, ImageDraw

from arl_gym.envs.webshop.site.pictures.colours import WHITE, Colour, contour, lighter, mix
from arl_gym.envs.webshop.site.pictures.patterns import cloth_image

Points = tuple[tuple[float, float], ...]

DISC: Colour = (232, 238, 243)
"""What is seen through a product."""
_PAPER, _GROUND = (248, 248, 246), (196, 203, 211)
_EDGE = 0.9
_CORNER_STEPS, _OVAL_STEPS = 7, 48


@lru_cache(maxsize=1024)
def _outline(text: str, r: float, mirrored: bool, closed: bool) -> Points:
    """Return the corners of a text, each rounded by `r` units or by what its sides have room for."""
    numbers = [float(word) for word in text.split()]
    corners = list(zip(numbers[::2], numbers[1::2], strict=True))
    if mirrored:
        corners += [(100 - x, y) for x, y in reversed(corners)]
    n = len(corners)
    points: list[tuple[float, float]] = []
    for i, corner in enumerate(corners):
        if closed or 0 < i < n - 1:
            points += _corner(corners[i - 1], corner, corners[(i + 1) % n], r)
        else:
            points.append(corner)
    return tuple(points)


def _corner(
    before: tuple[float, float], at: tuple[float, float], after: tuple[float, float], r: float
) -> list[tuple[float, float]]:
    start, end = _toward(at, before, r), _toward(at, after, r)
    if r == 0:
        return [at]
    curve = []
    for k in range(_CORNER_STEPS + 1):
        t = k / _CORNER_STEPS
        a, b, c = (1 - t) * (1 - t), 2 * t * (1 - t), t * t
        curve.append((a * start[0] + b * at[0] + c * end[0], a * start[1] + b * at[1] + c * end[1]))
    return curve


def _toward(at: tuple[float, float], other: tuple[float, float], r: float) -> tuple[float, float]:
    dx, dy = other[0] - at[0], other[1] - at[1]
    length = sqrt(dx * dx + dy * dy)
    share = min(r / length, 0.5) if length else 0.0
    return at[0] + dx * share, at[1] + dy * share


@lru_cache(maxsize=1024)
def _oval(cx: float, cy: float, rx: float, ry: float) -> Points:
    angles = [2 * pi * k / _OVAL_STEPS for k in range(_OVAL_STEPS)]
    return tuple((cx + rx * cos(angle), cy + ry * sin(angle)) for angle in angles)


class Pen:
    """Draws one picture; a shape without a fill is of the product's cloth: its colour and its pattern."""

    def __init__(self, size: int, *, cloth: Colour, accent: Colour | None, pattern: str):
        self.cloth = cloth
        self.detail = contour(cloth)
        self.light = lighter(cloth)
        self._accent = accent
        self._pattern = pattern
        self._size = size
        self._fine = 4 if size <= 256 else 2
        self._side = size * self._fine
        self._unit = self._side / 100
        self._image = Image.new("RGB", (self._side, self._side), _PAPER)
        self._draw = ImageDraw.Draw(self._image)
        self._ellipse(50, 50, 46, 46, DISC)
        for k in range(6):
            self._ellipse(50, 91, 36 - 3 * k, 4.2 - 0.5 * k, mix(DISC, _GROUND, (k + 1) / 6))

    def image(self) -> Image.Image:
        """Return the picture at its size."""
        return self._image.reduce(self._fine)

    @property
    def has_second(self) -> bool:
        """Whether the product has a second colour."""
        return self._accent is not None

    def second(self, otherwise: Colour) -> Colour:
        """Return the product's second colour, `otherwise` if it has none."""
        return self._accent or otherwise

    def shape(
        self,
        text: str,
        fill: Colour | None = None,
        *,
        r: float = 3,
        mirrored: bool = False,
        edge: bool = True,
    ) -> None:
        """Fill a polygon.

        Args:
            text: Its corners.
            fill: Its colour; None for the cloth.
            r: How far from a corner its rounding begins; large for a curve that has no corner left.
            mirrored: Whether the corners are the left half, from top to bottom, of a symmetric shape.
            edge: Whether it has a contour, which tells it from a ground of its own colour.
        """
        self._fill(_outline(text, r, mirrored, True), fill, edge)

    def box(
        self,
        left: float,
        top: float,
        right: float,
        bottom: float,
        fill: Colour | None = None,
        *,
        r: float = 3,
        edge: bool = True,
    ) -> None:
        """Fill a rectangle with rounded corners."""
        text = f"{left} {top} {right} {top} {right} {bottom} {left} {bottom}"
        self._fill(_outline(text, r, False, True), fill, edge)

    def oval(
        self, cx: float, cy: float, rx: float, ry: float = 0, fill: Colour | None = None, *, edge: bool = True
    ) -> None:
        """Fill an ellipse with its centre and radii; without `ry` a circle."""
        self._fill(_oval(cx, cy, rx, ry or rx), fill, edge)

    def line(self, text: str, fill: Colour, width: float = 1.2, *, r: float = 0) -> None:
        """Draw a line through points, with round ends."""
        points = _outline(text, r, False, False)
        self._stroke(points, fill, width)
        for x, y in (points[0], points[-1]):
            self._ellipse(x, y, width / 2, width / 2, fill)

    def gleam(self, text: str, width: float = 1.6) -> None:
        """Draw a line of light on what is of the cloth's colour."""
        self.line(text, mix(self.cloth, WHITE, 0.55), width, r=20)

    def _fill(self, points: Points, fill: Colour | None, edge: bool) -> None:
        scaled = [(x * self._unit, y * self._unit) for x, y in points]
        if fill is None and self._pattern != "solid":
            self._fill_with_cloth(scaled)
        else:
            self._draw.polygon(scaled, fill=fill or self.cloth)
        if edge:
            self._stroke((*points, points[0], points[1]), contour(fill or self.cloth), _EDGE)

    def _fill_with_cloth(self, scaled: list[tuple[float, float]]) -> None:
        left, top = (max(0, int(min(p[axis] for p in scaled))) for axis in (0, 1))
        right, bottom = (min(self._side, int(max(p[axis] for p in scaled)) + 2) for axis in (0, 1))
        mask = Image.new("1", (right - left, bottom - top))
        ImageDraw.Draw(mask).polygon([(x - left, y - top) for x, y in scaled], fill=1)
        self._image.paste(self._cloth_image.crop((left, top, right, bottom)), (left, top), mask)

    def _stroke(self, points: Points, fill: Colour, width: float) -> None:
        scaled = [(x * self._unit, y * self._unit) for x, y in points]
        pixels = max(1, round(width * self._unit))
        # Without joints, which are slow, only the outer side of a bent thick line has gaps.
        self._draw.line(scaled, fill=fill, width=pixels, joint="curve" if width > 2 else None)

    def _ellipse(self, cx: float, cy: float, rx: float, ry: float, fill: Colour) -> None:
        u = self._unit
        self._draw.ellipse([(cx - rx) * u, (cy - ry) * u, (cx + rx) * u, (cy + ry) * u], fill=fill)

    @cached_property
    def _cloth_image(self) -> Image.Image:
        return cloth_image(self._pattern, self._side, self.cloth, self._accent)
