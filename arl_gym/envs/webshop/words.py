"""The words of the generated catalogue: what there is to sell, and what is said of it.

They are read from `assets/webshop`: one file of leaf categories per category, words that leaves share, and
the sentences of the shop's texts.

>>> next(leaf.kinds[0].name for leaf in leaves() if leaf.query == "men's loafers")
'penny loafers'
"""

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from arl_gym.assets import asset

CATEGORIES = ("beauty", "electronics", "fashion", "garden", "grocery")

FORMS = ("is", "has", "for", "of")
"""How a sentence takes an attribute: it is machine washable, has arch support, is for dry skin, of cotton."""

_ARTICLES = (
    *(f"a {measure} of " for measure in ("pair", "set", "box", "bag", "jar", "can")),
    "some ",
    "an ",
    "a ",
)


@dataclass(frozen=True, slots=True)
class Trait:
    """An attribute, and how sentences take it (one of `FORMS`)."""

    form: str
    phrase: str


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of product: "a pair of ", "penny loafers" and the nouns in that."""

    article: str
    name: str
    nouns: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """An option group and every value that it can have."""

    name: str
    values: tuple[str, ...]
    few: tuple[int, int]
    """How many values a product has, at least and at most."""
    stretch: bool
    """Whether they are neighbours, as sizes are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaf:
    """A leaf category: products that one query finds."""

    category: str
    query: str
    path: str
    held_out: bool
    """Whether it is kept for the split test_ood."""
    kinds: tuple[Kind, ...]
    also: tuple[str, ...]
    """Other names of the product."""
    uses: tuple[str, ...]
    traits: tuple[Trait, ...]
    """Attributes but for the materials."""
    materials: tuple[Trait, ...]
    groups: tuple[Group, ...]
    price: float
    """The median, in dollars."""
    spread: float
    """Standard deviation of the logarithm of the price."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sentences:
    """Sentences with slots such as {kind}, for the texts of a shop."""

    openings: Sequence[str]
    plain: Mapping[str, Sequence[str]]
    """By category."""
    evidence: Mapping[str, Sequence[str]]
    """By the form of the attribute that they give."""
    bullets: Mapping[str, Sequence[str]]
    """By form too; those that give none are "plain"."""
    review_titles: Sequence[str]
    review_bodies: Sequence[str]


@cache
def leaves() -> tuple[Leaf, ...]:
    """Return the leaf categories, in a fixed order."""
    words = _read("words")
    return tuple(
        _leaf(category, table, words) for category in CATEGORIES for table in _read(category)["leaf"]
    )


@cache
def sentences() -> Sentences:
    """Return the sentences of the shop's texts."""
    texts = _read("texts")
    return Sentences(
        openings=texts["openings"],
        plain={category: texts["general"] + texts[category] for category in CATEGORIES},
        evidence=texts["evidence"],
        bullets=texts["bullets"],
        review_titles=texts["reviews"]["titles"],
        review_bodies=texts["reviews"]["bodies"],
    )


@cache
def paraphrases() -> dict[str, tuple[str, ...]]:
    """Return, for some attributes, what shoppers say instead, to follow "that" or "it"."""
    return {phrase: split(text) for phrase, text in _read("words")["paraphrases"].items()}


@cache
def brand_parts() -> tuple[tuple[str, ...], ...]:
    """Return the beginnings, middles and ends of invented brands."""
    return tuple(split(text) for text in _read("words")["brands"])


def split(text: str) -> tuple[str, ...]:
    """Return the parts of a text between its commas."""
    return tuple(part.strip() for part in text.split(","))


@cache
def _read(name: str) -> dict[str, Any]:
    return tomllib.loads(asset(f"webshop/{name}.toml").read_text(encoding="utf-8"))


def _leaf(category: str, table: Mapping[str, Any], words: Mapping[str, Any]) -> Leaf:
    adjectives = frozenset(split(words["adjectives"]))
    own = list(_traits(table))
    shared = [trait for name in split(table["shared"]) for trait in _traits(words["shared"][name])]
    median, spread = table["price"]
    return Leaf(
        category=category,
        query=table["query"],
        path=table["path"],
        held_out=table.get("ood", False),
        kinds=tuple(_kind(text, adjectives) for text in split(table["kinds"])),
        also=split(table["also"]),
        uses=split(table["uses"]),
        traits=tuple(trait for trait in dict.fromkeys(own + shared) if trait.form != "of"),
        materials=tuple(trait for trait in own if trait.form == "of"),
        groups=tuple(_group(words["options"][name]) for name in split(table["options"])),
        price=median,
        spread=spread,
    )


def _traits(table: Mapping[str, Any]) -> Iterable[Trait]:
    return (Trait(form, phrase) for form in FORMS for phrase in split(table.get(form, "")) if phrase)


def _kind(text: str, adjectives: frozenset[str]) -> Kind:
    article = next(article for article in _ARTICLES if text.startswith(article))
    name = text.removeprefix(article)
    return Kind(article, name, tuple(word for word in name.split() if word not in adjectives))


def _group(table: Mapping[str, Any]) -> Group:
    least, most = table["few"]
    return Group(
        name=table["name"],
        values=split(table["values"]),
        few=(least, most),
        stretch=table.get("stretch", False),
    )
