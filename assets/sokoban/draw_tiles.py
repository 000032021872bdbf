"""Draws the tiles of Sokoban: `python assets/sokoban/draw_tiles.py` rewrites `tiles-*.png` beside it.

A strip holds the seven tiles side by side: wall, floor, target, box on target, box, player, player on target.
Each size is drawn by itself, never resampled. A shape is a mask on 8 x 8 samples a pixel, whose colours are
averaged as integers; every NumPy and Pillow gives the same pixels.
"""

from pathlib import Path

import numpy as np
import numpy.typing as npt
from PIL import Image

SIZES = (16, 28, 32)
SAMPLES = 8

Colour = tuple[int, int, int]
Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

BLACK, WHITE, RED = (0, 0, 0), (255, 255, 255), (255, 60, 56)
FLOOR, SEAM = (70, 72, 80), (58, 60, 67)
BRICK, BRICK_TOP, MORTAR = (158, 86, 62), (186, 112, 84), (92, 52, 42)
CRATE, CRATE_EDGE, CROSS = (255, 214, 64), (168, 108, 16), (232, 92, 0)
CRATE_HOME, TICK = (255, 246, 214), (20, 120, 50)
SKIN, FEET, MOUTH = (96, 220, 84), (36, 140, 52), (24, 104, 40)


class Tile:
    """A square of samples to paint on. Lengths are sixteenths of its side, x to the right and y down."""

    def __init__(self, size: int):
        n = size * SAMPLES
        self.size, self.pixel = size, 16 / size
        middles: Floats = (np.arange(n) + 0.5) * 16 / n
        self.x, self.y = np.meshgrid(middles, middles)
        self.samples = np.zeros((n, n, 3), dtype=np.int64)

    def snap(self, length: float) -> float:
        """Return the nearest length that is a whole number of pixels."""
        return round(length / self.pixel) * self.pixel

    def square(self, margin: float) -> Mask:
        """Return the tile but for a margin on every side."""
        return np.maximum(abs(self.x - 8), abs(self.y - 8)) < 8 - margin

    def ellipse(self, left: float, top: float, right: float, bottom: float, boxy: bool = False) -> Mask:
        """Return the ellipse in a rectangle of whole pixels; a boxy one has flatter sides."""
        left, top, right, bottom = map(self.snap, (left, top, right, bottom))
        x2 = np.square((2 * self.x - left - right) / (right - left))
        y2 = np.square((2 * self.y - top - bottom) / (bottom - top))
        return x2 * x2 + y2 * y2 < 1 if boxy else x2 + y2 < 1

    def stroke(self, x0: float, y0: float, x1: float, y1: float, width: float) -> Mask:
        """Return a line with round ends."""
        dx, dy = x1 - x0, y1 - y0
        along = np.clip(((self.x - x0) * dx + (self.y - y0) * dy) / (dx * dx + dy * dy), 0, 1)
        off_x, off_y = self.x - x0 - along * dx, self.y - y0 - along * dy
        return 4 * (np.square(off_x) + np.square(off_y)) < width * width

    def paint(self, mask: Mask, colour: Colour) -> None:
        """Colour the samples of a mask."""
        self.samples[mask] = colour

    def pixels(self) -> npt.NDArray[np.uint8]:
        """Return the finished tile, shape (size, size, 3)."""
        blocks = self.samples.reshape(self.size, SAMPLES, self.size, SAMPLES, 3)
        sums: npt.NDArray[np.int64] = blocks.sum(axis=(1, 3))
        return ((sums + SAMPLES**2 // 2) // SAMPLES**2).astype(np.uint8)


def wall(tile: Tile) -> None:
    """Paint four courses of bricks, each shifted by half a brick."""
    along, across = (tile.x + 4 * (tile.y // 4 % 2)) % 8, tile.y % 4
    tile.paint(tile.square(0), BRICK)
    tile.paint(across < tile.pixel, BRICK_TOP)
    tile.paint((along > 8 - tile.pixel) | (across > 4 - tile.pixel), MORTAR)


def floor(tile: Tile) -> None:
    """Paint a plain flagstone with a faint seam, one pixel, at its right and lower side."""
    tile.paint(tile.square(0), SEAM)
    tile.paint(np.maximum(tile.x, tile.y) < 16 - tile.pixel, FLOOR)


def frame(tile: Tile) -> None:
    """Paint what every target has: a black cell outlined in red."""
    tile.paint(tile.square(0), RED)
    tile.paint(tile.square(tile.snap(1)), BLACK)


def target(tile: Tile) -> None:
    """Paint a framed cell with a diamond."""
    frame(tile)
    tile.paint(abs(tile.x - 8) + abs(tile.y - 8) < 3.9, RED)


def crate(tile: Tile, margin: int, colour: Colour) -> Mask:
    """Paint a crate and return its inside; the margin counts widths of the frame."""
    tile.paint(tile.square(margin * tile.snap(1)), CRATE_EDGE)
    inside = tile.square((margin + 1) * tile.snap(1))
    tile.paint(inside, colour)
    return inside


def box_on_target(tile: Tile) -> None:
    """Paint a pale crate with a tick, inside the frame of its target."""
    frame(tile)
    crate(tile, 2, CRATE_HOME)
    tile.paint(tile.stroke(5, 8.2, 7, 10.2, 1.9) | tile.stroke(7, 10.2, 11, 6.2, 1.9), TICK)


def box(tile: Tile) -> None:
    """Paint a yellow crate with a cross from corner to corner."""
    floor(tile)
    inside = crate(tile, 1, CRATE)
    tile.paint(inside & (np.minimum(abs(tile.x - tile.y), abs(tile.x + tile.y - 16)) < 1.45), CROSS)


def alien(tile: Tile) -> None:
    """Paint a small green alien; its left half is drawn and mirrored."""
    coarse = tile.size < 28  # a disc of four pixels or fewer would be a smudge

    def paint(left_half: Mask, colour: Colour) -> None:
        tile.paint(left_half | left_half[:, ::-1], colour)

    paint(tile.ellipse(3, 12, 7, 15), FEET)
    paint(tile.stroke(6, 6, 4, 2.5, 1.2) | tile.ellipse(2.5, 1, 5, 3.5), SKIN)
    paint(tile.ellipse(2, 4, 14, 14), SKIN)
    paint(tile.ellipse(3.5, 5.5, 7.5, 10, coarse), WHITE)
    paint(tile.ellipse(4.8, 7, 7, 9, coarse), BLACK)
    paint(tile.ellipse(5, 9, 11, 13) & (tile.y > tile.snap(11)), MOUTH)


def player(tile: Tile) -> None:
    """Paint the alien on the floor."""
    floor(tile)
    alien(tile)


def player_on_target(tile: Tile) -> None:
    """Paint the alien on a framed cell."""
    frame(tile)
    alien(tile)


def strip(size: int) -> npt.NDArray[np.uint8]:
    """Return the seven tiles side by side, shape (size, 7 * size, 3)."""
    tiles = []
    for draw in (wall, floor, target, box_on_target, box, player, player_on_target):
        tile = Tile(size)
        draw(tile)
        tiles.append(tile.pixels())
    return np.concatenate(tiles, axis=1)


if __name__ == "__main__":
    for size in SIZES:
        Image.fromarray(strip(size)).save(Path(__file__).with_name(f"tiles-{size}.png"), optimize=True)
