"""What the shop sells, and how the original's product files say it.

>>> read_product({"asin": "B000000001", "name": "Red Mug", "category": "garden", "query": "mugs",
...     "product_category": "Home › Mugs", "full_description": "", "small_description": "Holds tea.",
...     "pricing": "$4.50 - $6", "images": [""], "customization_options": None}).price_tag
'$4.5 to $6.0'
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from arl_gym.errors import DataError
from arl_gym.rng import Rng

NO_ATTRIBUTES = ("DUMMY_ATTR",)
"""What the original gives a product whose attributes are unknown; it matches no goal."""

_NO_PRICE = 100.0
_MAX_ASIN = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Review:
    """One review, as its page shows it."""

    title: str
    score: str
    body: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """What the results page shows of a product."""

    asin: str
    title: str
    price_tag: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Product:
    """One product."""

    asin: str
    title: str
    category: str
    query: str
    """The phrase that names its kind, in lower case: "men's loafers"."""
    product_category: str
    """Path of categories, "A › B › C"."""
    description: str
    bullets: tuple[str, ...]
    prices: tuple[float, ...]
    """One price in dollars, or the lowest and the highest of a range."""
    options: tuple[tuple[str, tuple[str, ...]], ...]
    """Groups in order, each its name and its values, in lower case."""
    attributes: tuple[str, ...]
    nouns: tuple[str, ...]
    """The nouns of the title in lower case, repeats kept."""
    image: str
    reviews: tuple[Review, ...] = ()
    family: str = ""
    """Generated products: what the near-miss siblings share, which decides the split."""

    @property
    def price_tag(self) -> str:
        """The price as the pages show it."""
        return " to ".join(f"${price}" for price in self.prices)

    @property
    def price(self) -> float:
        """The one price that the reward compares; of a range it is drawn by the product's id."""
        low, high = self.prices[0], self.prices[-1]
        if low == high:
            return low
        # The original draws it from a global stream at every start; here it belongs to the product.
        return low + (high - low) * Rng("webshop price", self.asin).uniform()

    @property
    def card(self) -> Card:
        """What the results page shows."""
        return Card(asin=self.asin, title=self.title, price_tag=self.price_tag)

    @property
    def search_text(self) -> str:
        """The text that the search engine indexes: title, description, first bullet, options."""
        options = ", and ".join(f"{name}: {', '.join(values)}" for name, values in self.options)
        first = self.bullets[0] if self.bullets else ""
        return " ".join((self.title, self.description, first, options)).lower()

    def to_row(self) -> list[Any]:
        """Return the fields as JSON-able values; see `of_row`."""
        reviews = [(r.title, r.score, r.body) for r in self.reviews]
        return [
            self.asin,
            self.title,
            self.category,
            self.query,
            self.product_category,
            self.description,
            self.bullets,
            self.prices,
            self.options,
            self.attributes,
            self.nouns,
            self.image,
            reviews,
            self.family,
        ]

    @classmethod
    def of_row(cls, row: Sequence[Any]) -> "Product":
        """Return the product of a row that has been through JSON."""
        return cls(
            asin=row[0],
            title=row[1],
            category=row[2],
            query=row[3],
            product_category=row[4],
            description=row[5],
            bullets=tuple(row[6]),
            prices=tuple(row[7]),
            options=tuple((name, tuple(values)) for name, values in row[8]),
            attributes=tuple(row[9]),
            nouns=tuple(row[10]),
            image=row[11],
            reviews=tuple(Review(title=t, score=s, body=b) for t, s, b in row[12]),
            family=row[13],
        )


def read_product(
    record: Mapping[str, Any],
    *,
    attributes: Sequence[str] = NO_ATTRIBUTES,
    nouns: Sequence[str] = (),
) -> Product:
    """Read one record of the original's product file.

    Args:
        record: The ten fields that the original uses; others are ignored.
        attributes: What the attribute file says of the product.
        nouns: The nouns of the title.

    Raises:
        DataError: If a field is missing or has another form.
    """
    asin = record.get("asin")
    if not isinstance(asin, str) or asin == "nan" or not 0 < len(asin) <= _MAX_ASIN:
        raise DataError(f"asin must be a text of 1 to {_MAX_ASIN} characters, got {asin!r}")
    try:
        bullets = record["small_description"]
        return Product(
            asin=asin,
            title=_text(record, "name"),
            category=_text(record, "category"),
            query=_text(record, "query").lower().strip(),
            product_category=_text(record, "product_category"),
            description=_text(record, "full_description"),
            bullets=tuple(map(_bullet, bullets if isinstance(bullets, list) else [bullets])),
            prices=read_prices(record.get("pricing")),
            options=_options(record["customization_options"]),
            attributes=tuple(attributes),
            nouns=tuple(nouns),
            image=record["images"][0] or "",
        )
    except (KeyError, TypeError, AttributeError, IndexError) as err:
        raise DataError(f"product {asin}: a field is missing or of another form ({err!r})") from err
    except DataError as err:
        raise DataError(f"product {asin}: {err}") from err


def _text(record: Mapping[str, Any], key: str) -> str:
    value = record[key]
    if not isinstance(value, str):
        raise DataError(f"{key} must be a text, got {value!r}")
    return value


def _bullet(value: object) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        raise DataError(f"small_description must be a text or a list of texts, got {value!r}")
    return value


def read_prices(pricing: object) -> tuple[float, ...]:
    """Read a price such as "$3.99" or "$3.99 - $7"; without one a product costs $100.

    Raises:
        DataError: If there is text, but no amount after a dollar sign.
    """
    if not pricing:
        return (_NO_PRICE,)
    amounts = [re.sub(r"[^\d.]", "", part) for part in str(pricing).split("$")[1:]]
    try:
        prices = tuple(float(amount) for amount in amounts[:2])
    except ValueError:
        prices = ()
    if not prices:
        raise DataError(f'pricing must look like "$3.99" or "$3.99 - $7.50", got {pricing!r}')
    return prices


def _options(groups: Mapping[str, Any] | str | None) -> tuple[tuple[str, tuple[str, ...]], ...]:
    options: dict[str, tuple[str, ...]] = {}
    for name, entries in groups.items() if isinstance(groups, Mapping) else ():
        if entries is not None:
            values = (entry["value"].strip().replace("/", " | ").lower() for entry in entries)
            options[name.lower()] = tuple(values)
    return tuple(options.items())
