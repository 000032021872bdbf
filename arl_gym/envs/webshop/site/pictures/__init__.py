"""Pictures of the shop's products, drawn on demand: a silhouette of the kind in its colour and pattern.

Nothing is read from files or the network, and equal arguments give equal bytes. They are drawings, no
photographs: two products of one kind, colour and pattern look the same.

    >>> from arl_gym.envs.webshop.mini import mini_family
    >>> picture(mini_family(0).products[0], {"color": "blue"}, size=64).size
    (64, 64)
"""

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from PIL import Image

from arl_gym.envs.webshop.product import Product
from arl_gym.envs.webshop.site.pictures.colours import PLEASANT, Colour, swatch, tones, words_of
from arl_gym.envs.webshop.site.pictures.kinds import CLOTHES, FURNITURE, SHAPES, TEXTILES, kind_of
from arl_gym.envs.webshop.site.pictures.patterns import HARD, WOVEN, pattern_of
from arl_gym.envs.webshop.site.pictures.pen import Pen
from arl_gym.errors import ConfigError
from arl_gym.rng import Rng, derive

__all__ = ["picture", "picture_png", "swatch"]

_SIZES = (32, 1024)
_CACHED = 2048
_MOST_VALUES = 64
_BY_CHANCE = ("striped", "checked", "diamonds", "floral", "dotted", "zigzag")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Look:
    """All that decides a picture."""

    kind: str
    cloth: Colour
    accent: Colour | None
    pattern: str
    size: int


def picture(product: Product, selected: Mapping[str, str] | None = None, *, size: int = 256) -> Image.Image:
    """Draw a product.

    Of a group of options the selected value counts, else the first one that names a colour or a pattern.
    Groups with "color" in their name decide, the first the colour and the next, as of the legs of a table,
    the second colour; without such groups another one does, those of sizes last. Without any, the title
    names the colour, or it belongs to the product's id.

    Args:
        product: The product.
        selected: Names of groups of options and the chosen values; they need not be the product's.
        size: Width and height in pixels, 32 to 1024.

    Returns:
        A new image in mode RGB.

    Raises:
        ConfigError: If the size is out of range.
    """
    return _draw(_look(product, selected or {}, size))


def picture_png(product: Product, selected: Mapping[str, str] | None = None, *, size: int = 256) -> bytes:
    """Return `picture` as a PNG file of at most 256 colours; the last ones are kept.

    Raises:
        ConfigError: If the size is out of range.
    """
    return _png(_look(product, selected or {}, size))


@lru_cache(maxsize=_CACHED)
def _png(look: _Look) -> bytes:
    file = io.BytesIO()
    few = _draw(look).quantize(256, method=Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE)
    few.save(file, "PNG")
    return file.getvalue()


def _draw(look: _Look) -> Image.Image:
    pen = Pen(look.size, cloth=look.cloth, accent=look.accent, pattern=look.pattern)
    SHAPES[look.kind](pen)
    return pen.image()


def _look(product: Product, selected: Mapping[str, str], size: int) -> _Look:
    if not _SIZES[0] <= size <= _SIZES[1]:
        raise ConfigError(f"size of a picture must be {_SIZES[0]} to {_SIZES[1]} pixels, got {size}")
    kind = kind_of(product)
    values = _values(product, selected)
    named = [colour for value in values for colour in tones(value)]
    named = named or list(tones(product.title, weak=False)[:1])
    cloth = named[0] if named else PLEASANT[derive("webshop picture", product.asin) % len(PLEASANT)]
    accent = named[1] if len(named) > 1 else None
    pattern = _pattern(product, kind, values[0] if values else "", accent)
    return _Look(kind=kind, cloth=cloth, accent=accent, pattern=pattern, size=size)


def _values(product: Product, selected: Mapping[str, str]) -> list[str]:
    """Return the option values that decide the colours: of the groups of colours two, else of another one."""
    groups = dict(product.options)
    chosen = {name: (value, *groups.get(name, ())) for name, value in selected.items()}
    found = {name: value for name, values in (groups | chosen).items() if (value := _telling(values))}
    colours = [value for name, value in found.items() if _is_colour(name)]
    others = sorted((name for name in found if not _is_colour(name)), key=lambda name: "size" in name.lower())
    return colours[:2] or [found[name] for name in others[:1]]


def _is_colour(name: str) -> bool:
    return "color" in name.lower() or "colour" in name.lower()


def _telling(values: Sequence[str]) -> str | None:
    """Return the first value that names a colour or a pattern."""
    return next((value for value in values[:_MOST_VALUES] if tones(value) or pattern_of(value)), None)


def _pattern(product: Product, kind: str, value: str, accent: Colour | None) -> str:
    """Return the pattern that the value, title or an attribute names; some textiles have one by chance."""
    if named := pattern_of(value):
        return named
    among = WOVEN if kind in CLOTHES | TEXTILES else HARD if kind in FURNITURE else frozenset()
    texts = (product.title, *product.attributes[:_MOST_VALUES])
    if named := next(filter(None, (pattern_of(text, among) for text in texts)), None):
        return named
    plain = any({"plain", "solid"} & set(words_of(text)) for text in texts)
    draw = Rng("webshop pattern", product.asin)
    if kind in TEXTILES and not plain and (accent or draw.below(2)):
        return draw.choice(_BY_CHANCE)
    return "solid"
