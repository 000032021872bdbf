"""The texts of a generated product: title, bullets, description, reviews.

Each attribute of a product is said in one place at most: in the title, a bullet or the description; some
are in its list of attributes only.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from arl_gym.envs.webshop.product import Review
from arl_gym.envs.webshop.words import Kind, Leaf, Trait, sentences
from arl_gym.rng import Rng

PLACES = ("title", "bullets", "description", "list")
"""Where an attribute is said."""

_SHARES = (36, 75, 90, 100)
"""Percent of the attributes in each place, summed up."""
_MOST_IN_TITLE, _MOST_BULLETS = 4, 7
_EMPTY_BULLET, _EMPTY_DESCRIPTION, _LONG_DESCRIPTION = 0.02, 0.01, 0.01
_EXTRAS = (
    "new",
    "upgraded",
    "premium",
    "classic",
    "gift idea",
    "multiple choices",
    "best seller",
    "editor's pick",
    '"limited" edition',
    "crème de la crème",
)
_JOINTS = (" ", " ", " ", ", ", ", ", " - ", " | ", " – ")


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What the texts of a product are about."""

    leaf: Leaf
    kind: Kind
    brand: str
    also: str
    """The other name of the kind that all titles of a family have."""
    places: tuple[tuple[Trait, str], ...]
    """Its attributes, and where each is said."""

    def said(self, place: str) -> list[Trait]:
        """Return the attributes that are said in a place."""
        return [trait for trait, there in self.places if there == place]

    def fill(self, sentence: str, rng: Rng, said: str = "") -> str:
        """Return a sentence with its slots filled."""
        return sentence.format(
            kind=self.kind.name,
            brand=self.brand,
            also=rng.choice(self.leaf.also),
            use=rng.choice(self.leaf.uses),
            a=said,
            A=said.capitalize(),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """The texts of a product."""

    title: str
    nouns: tuple[str, ...]
    """The nouns of the title in lower case, repeats kept."""
    bullets: tuple[str, ...]
    description: str
    reviews: tuple[Review, ...]


def places(traits: Iterable[Trait], rng: Rng) -> tuple[tuple[Trait, str], ...]:
    """Return each attribute with the place where it is said."""
    drawn: list[tuple[Trait, str]] = []
    left = _MOST_IN_TITLE
    for trait in traits:
        share = rng.below(100)
        place = next(there for there, below in zip(PLACES, _SHARES, strict=True) if share < below)
        if place == "title":
            left -= 1
        drawn.append((trait, "bullets" if left < 0 and place == "title" else place))
    return tuple(drawn)


def write(facts: Facts, rng: Rng) -> Listing:
    """Return the texts of a product."""
    title, nouns = _title(facts, rng)
    return Listing(
        title=title,
        nouns=nouns,
        bullets=_bullets(facts, rng),
        description=_description(facts, rng),
        reviews=tuple(_review(facts, rng) for _ in range(rng.below(5))),
    )


def _title(facts: Facts, rng: Rng) -> tuple[str, tuple[str, ...]]:
    """Return the title and its nouns: brand, kind, attributes, then other names and uses up to a length."""
    length = 8 + rng.below(5) if rng.below(8) == 0 else 15 + rng.below(9)
    traits = [_as_segment(trait) for trait in facts.said("title")]
    heads, tails = traits[::2], traits[1::2]
    parts = [facts.brand, *heads, facts.kind.name, facts.also, *tails]
    nouns = [facts.brand.lower(), *facts.kind.nouns, facts.also.split()[-1]]
    words = sum(len(part.split()) for part in parts)
    spare = [f"for {use}" for use in facts.leaf.uses] + [
        *(name for name in facts.leaf.also if name != facts.also),
        *_EXTRAS,
    ]
    while words < length:
        part = spare.pop(rng.below(len(spare)))
        parts.append(part)
        words += len(part.split())
        if part.startswith("for "):
            nouns.append(part.split()[-1])
    text = _capitalised(parts[0]) + " "
    for part in parts[1:]:
        text += _capitalised(part) + rng.choice(_JOINTS)
    return text.rstrip(" ,-|–"), tuple(nouns)


def _as_segment(trait: Trait) -> str:
    return {"is": "{}", "has": "with {}", "for": "for {}", "of": "{}"}[trait.form].format(trait.phrase)


def _capitalised(text: str) -> str:
    return " ".join(word if word in ("for", "with") else word[:1].upper() + word[1:] for word in text.split())


def _bullets(facts: Facts, rng: Rng) -> tuple[str, ...]:
    patterns = sentences().bullets
    said = facts.said("bullets")[:_MOST_BULLETS]
    bullets = [facts.fill(rng.choice(patterns[t.form]), rng, t.phrase) for t in said]
    spare = max(0, 3 + rng.below(5) - len(bullets))
    bullets += [facts.fill(text, rng) for text in _some(patterns["plain"], spare, rng)]
    rng.shuffle(bullets)
    if rng.uniform() < _EMPTY_BULLET and len(bullets) < _MOST_BULLETS:
        bullets.append("")
    return tuple(bullets)


def _description(facts: Facts, rng: Rng) -> str:
    said = facts.said("description")
    if not said and rng.uniform() < _EMPTY_DESCRIPTION:
        return ""
    texts = sentences()
    length = 30 + rng.below(100)
    if rng.uniform() < _LONG_DESCRIPTION:
        length = 250 + rng.below(150)
    parts = [facts.fill(rng.choice(texts.evidence[trait.form]), rng, trait.phrase) for trait in said]
    words = sum(len(part.split()) for part in parts)
    for text in _some(texts.plain[facts.leaf.category], length, rng):
        if words >= length:
            break
        parts.append(facts.fill(text, rng))
        words += len(parts[-1].split())
    rng.shuffle(parts)
    return " ".join([facts.fill(rng.choice(texts.openings), rng), *parts])


def _some(texts: Sequence[str], n: int, rng: Rng) -> Iterable[str]:
    """Give up to n different texts in random order."""
    left = list(texts)
    for _ in range(min(n, len(left))):
        yield left.pop(rng.below(len(left)))


def _review(facts: Facts, rng: Rng) -> Review:
    texts = sentences()
    return Review(
        title=rng.choice(texts.review_titles),
        score=f"{rng.choice((1, 2, 3, 3, 4, 4, 4, 5, 5, 5))}.0",
        body=facts.fill(rng.choice(texts.review_bodies), rng),
    )
