"""What a session asks of a shop; products are known by number, from 0, in the order of the catalogue."""

from collections.abc import Sequence
from typing import Protocol

from arl_gym.envs.webshop.product import Card, Product


class Shop(Protocol):
    """Products and a search engine."""

    def search(self, query: str) -> Sequence[int]:
        """Return the numbers of the best products for a query, best first, at most 50."""
        ...

    def number(self, asin: str) -> int | None:
        """Return the number of a product, None if the shop has none of this id (upper case)."""
        ...

    def product(self, number: int) -> Product:
        """Return a product."""
        ...

    def card(self, number: int) -> Card:
        """Return what the results page shows of a product, without reading all of it."""
        ...

    def __hash__(self) -> int:
        """Hash by identity: sessions of one shop share what they have rendered."""
        ...
