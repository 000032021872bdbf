"""Shops of generated products, made once for each size.

>>> len(generated_store("mini", 200))  # doctest: +SKIP
200
"""

import importlib
import itertools
from collections.abc import Iterator, Mapping
from functools import partial
from itertools import count, islice
from pathlib import Path

from arl_gym.envs.webshop.family import Family, Generator
from arl_gym.envs.webshop.goal import Goal
from arl_gym.envs.webshop.product import Product
from arl_gym.envs.webshop.reward import option_target, same_words, score
from arl_gym.envs.webshop.store import Store, Task, write_store
from arl_gym.envs.webshop.store_cache import cached_store
from arl_gym.errors import ConfigError, DataError, UnknownNameError

CATALOGUES = {
    "full": ("arl_gym.envs.webshop.generator", "full_family"),
    "mini": ("arl_gym.envs.webshop.mini", "mini_family"),
}
"""Module and name of the generators; the `VERSION` of the module is raised when what it gives changes."""

_MAX_WAYS = 4096


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
        dataset=f"webshop-{arguments['catalogue']}-{num_products}",
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
        chosen = choose_options(product, goal)
        if not score(product, chosen.values(), goal).perfect:
            raise DataError(
                f"the goal {goal.instruction!r} is not fulfilled by its product {goal.asin} with {chosen}"
            )
        yield Task(family.split, goal)


def choose_options(product: Product, goal: Goal) -> dict[str, str]:
    """Return what to select of a product by group, so that as many wanted options as possible are met.

    Of each group it is the first value that is wanted. A value of one group may be what is wanted of another:
    a "navy blue" case is no "blue" switch if the case is to be black.
    """
    best, n_best = dict[str, str](), -1
    for ways in islice(itertools.product(*(_candidates(product, t) for t in goal.targets)), _MAX_WAYS):
        chosen = dict(way for way in ways if way is not None)
        n_met = sum(any(_meets(value, t) for value in chosen.values()) for t in goal.targets)
        if n_met > n_best:
            best, n_best = chosen, n_met
        if n_met == len(goal.targets):
            break
    return best


def _candidates(product: Product, target: str) -> list[tuple[str, str] | None]:
    """Return the first value of each group that is wanted, and that none is selected for it."""
    first = ((name, next((v for v in values if _meets(v, target)), None)) for name, values in product.options)
    return [*((name, value) for name, value in first if value is not None), None]


def _meets(value: str, target: str) -> bool:
    return same_words(option_target(value), target)
