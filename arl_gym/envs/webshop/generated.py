"""Shops of generated products, made once for each size.

>>> len(generated_store("mini", 200))  # doctest: +SKIP
200
"""

import importlib
from collections.abc import Iterator, Mapping
from functools import partial
from itertools import count
from pathlib import Path

from arl_gym.envs.webshop.family import Family, Generator
from arl_gym.envs.webshop.oracle import wanted_options
from arl_gym.envs.webshop.product import Product
from arl_gym.envs.webshop.reward import score
from arl_gym.envs.webshop.store import Store, Task, write_store
from arl_gym.envs.webshop.store_cache import cached_store
from arl_gym.errors import ConfigError, DataError, UnknownNameError

CATALOGUES = {
    "full": ("arl_gym.envs.webshop.generator", "full_family"),
    "mini": ("arl_gym.envs.webshop.mini", "mini_family"),
}
"""Module and name of the generators; the `VERSION` of the module is raised when what it gives changes."""


def generated_store(catalogue: str, num_products: int) -> Store:
    """Return the shop of the first products of a catalogue, from the cache if it has been made before.

    The goals are those of the families, but for the ones whose product is beyond the last.

    Raises:
        UnknownNameError: If there is no such catalogue.
        ConfigError: If there is to be no product.
        DataError: If a goal of the catalogue cannot be fulfilled, or two products have the same ASIN.
    """
    if catalogue not in CATALOGUES:
        raise UnknownNameError("catalogue", catalogue, CATALOGUES)
    if num_products < 1:
        raise ConfigError(f"num_products must be at least 1, got {num_products}")
    module = importlib.import_module(CATALOGUES[catalogue][0])
    arguments = {"catalogue": catalogue, "version": module.VERSION, "num_products": num_products}
    make = partial(_make, family=getattr(module, CATALOGUES[catalogue][1]), arguments=arguments)
    return cached_store(f"{catalogue}-{num_products}", arguments, make)


def _make(folder: Path, family: Generator, arguments: Mapping[str, int | str]) -> Store:
    num_products = int(arguments["num_products"])
    return write_store(
        folder,
        generated_content(family, num_products),
        dataset="generated",
        arguments=arguments,
        tagger="generated",
        expected=num_products,
    )


def generated_content(family: Generator, num_products: int) -> Iterator[Product | Task]:
    """Give the first products of a catalogue and their goals, all of them proven.

    Raises:
        DataError: If a goal cannot be fulfilled by its product.
    """
    n = 0
    for member in map(family, count()):
        products = member.products[: num_products - n]
        n += len(products)
        yield from products
        yield from _proven(member, {product.asin: product for product in products})
        if n == num_products:
            return


def _proven(family: Family, products: Mapping[str, Product]) -> Iterator[Task]:
    for goal in family.goals:
        product = products.get(goal.asin)
        if product is None:
            continue
        chosen = wanted_options(product, goal)
        if not score(product, chosen.values(), goal).perfect:
            raise DataError(
                f"the goal {goal.instruction!r} is not fulfilled by its product {goal.asin} with {chosen}"
            )
        yield Task(family.split, goal)
