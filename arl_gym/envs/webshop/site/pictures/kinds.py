"""Which silhouette shows a product: by the words of its query, its path of categories or its title.

>>> from arl_gym.envs.webshop.mini import mini_family
>>> product = mini_family(0).products[0]
>>> kind_of(product) in SHAPES
True
"""

import re
from collections.abc import Callable, Iterator
from functools import lru_cache

from arl_gym.envs.webshop.product import Product
from arl_gym.envs.webshop.site.pictures import (
    beauty,
    clothes,
    electronics,
    fashion,
    furniture,
    garden,
    grocery,
    snacks,
)
from arl_gym.envs.webshop.site.pictures.colours import words_of
from arl_gym.envs.webshop.site.pictures.pen import Pen
from arl_gym.envs.webshop.site.pictures.phrases import PHRASES

SHAPES: dict[str, Callable[[Pen], None]] = (
    clothes.SHAPES
    | fashion.SHAPES
    | furniture.SHAPES
    | garden.SHAPES
    | beauty.SHAPES
    | electronics.SHAPES
    | snacks.SHAPES
    | grocery.SHAPES
)
"""How each kind is drawn."""

CLOTHES = frozenset(clothes.SHAPES | fashion.SHAPES)
TEXTILES = frozenset(
    {"rug", "curtain", "shower curtain", "bed", "pillow", "blanket", "towel", "scarf", "pajamas", "socks"}
)
"""Kinds that often have a pattern that no word names."""
FURNITURE = frozenset(
    {"coffee table", "table", "desk", "stool", "chair", "bookshelf", "cabinet", "clock", "lamp", "speaker"}
)

_BY_CATEGORY = {
    "beauty": "bottles",
    "electronics": "device",
    "fashion": "tee",
    "garden": "house",
    "grocery": "groceries",
}
_ENDS = re.compile(r"\b(?:for|with|of|in|by|from|to|without)\b|[|(),;:–—/]| - ")
_LONGEST = 4


def kind_of(product: Product) -> str:
    """Return the kind whose silhouette shows a product, "parcel" if nothing tells."""
    path = re.split("[›>]", product.product_category[-400:])
    texts = (*_parts(product.query), *reversed(path), *_parts(product.title))
    found = (kind for text in texts if (kind := _kind_in(text)))
    return next(found, None) or _BY_CATEGORY.get(product.category, "parcel")


def _parts(text: str) -> list[str]:
    """Return what a text says before, between and after words such as "for"."""
    return _ENDS.split(text[:200].lower())


@lru_cache(maxsize=4096)
def _kind_in(text: str) -> str | None:
    words = [_singular(word) for word in words_of(text)]
    for end in range(len(words), 0, -1):
        for start in range(max(0, end - _LONGEST), end):
            if kind := _KINDS.get(tuple(words[start:end])):
                return kind
    return None


def _singular(word: str) -> str:
    if word.endswith(("shes", "ches", "xes", "sses")):
        return word[:-2]
    word = word[:-1] if word.endswith("s") and not word.endswith("ss") else word
    return word[:-2] + "y" if word.endswith("ie") else word


def _phrases() -> Iterator[tuple[tuple[str, ...], str]]:
    for kind, phrases in PHRASES.items():
        for phrase in phrases.split(","):
            yield tuple(map(_singular, phrase.split())), kind


_KINDS = dict(_phrases())
