"""The original's two kinds of goals: what people wrote, and what its attribute file makes of the products.

Both come in the original's order: that of the catalogue, shuffled with one fixed seed.
"""

import json
import math
import random
from array import array
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from arl_gym.envs.webshop.goal import Goal, with_bound
from arl_gym.envs.webshop.product import Product
from arl_gym.envs.webshop.reward import option_target
from arl_gym.errors import DataError
from arl_gym.rng import Rng

_SHUFFLE_SEED = 233


class Listed(NamedTuple):
    """What the attribute file says of a product."""

    attributes: tuple[str, ...]
    instruction: str | None
    """Of its synthetic goals, without options."""
    wanted: tuple[str, ...]
    """The attributes that this asks for."""


class Written(NamedTuple):
    """What a person wrote about a product."""

    instruction: str
    attributes: tuple[str, ...]
    options: tuple[str, ...]


def read_listed(path: Path) -> dict[str, Listed]:
    """Read the attribute file, `items_ins_v2.json`: what it says of each product, by ASIN.

    Raises:
        DataError: If it is no such file.
    """
    # A few thousand phrases make up millions of attributes: each is kept once.
    phrases: dict[str, str] = {}

    def texts(found: object, asin: str) -> tuple[str, ...]:
        return tuple(
            phrases.setdefault(text, text) for text in _texts(found, f"{path}: attributes of {asin}")
        )

    listed = dict[str, Listed]()
    content = _read_object(path)
    while content:
        asin, found = content.popitem()
        if not isinstance(found, dict) or not isinstance(found.get("instruction"), str | None):
            raise DataError(f"{path}: {asin} must have an object with attributes, got {found!r:.200}")
        if "attributes" in found:
            wanted = texts(found.get("instruction_attributes") or [], asin)
            listed[asin] = Listed(texts(found["attributes"], asin), found.get("instruction"), wanted)
    return listed


def read_written(path: Path) -> dict[str, list[Written]]:
    """Read the human instructions, `items_human_ins.json`, by ASIN.

    Raises:
        DataError: If it is no such file.
    """
    return {asin: _annotations(found, f"{path}: {asin}") for asin, found in _read_object(path).items()}


def _annotations(found: object, where: str) -> list[Written]:
    if not isinstance(found, list) or not all(isinstance(record, dict) for record in found):
        raise DataError(f"{where} must have a list of objects, got {found!r:.200}")
    return [_written(record, where) for record in found]


def _written(record: Mapping[str, Any], where: str) -> Written:
    wanted = _texts(record.get("instruction_attributes"), where)
    if not wanted:  # no goal, so that nobody has ever looked at the rest
        return Written("", (), ())
    text = record.get("instruction")
    if not isinstance(text, str):
        raise DataError(f"{where} must have an instruction, got {record!r:.200}")
    return Written(text, wanted, _texts(record.get("instruction_options"), where))


def _texts(found: object, where: str) -> tuple[str, ...]:
    if not isinstance(found, list) or not all(isinstance(text, str) for text in found):
        raise DataError(f"{where} must be a list of texts, got {found!r:.200}")
    return tuple(found)


def _read_object(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except OSError as err:
        raise DataError(f"cannot read {path}: {err.strerror}") from err
    except ValueError as err:
        raise DataError(f"{path} is no JSON ({err}): is the file whole?") from err
    if not isinstance(content, dict):
        raise DataError(f"{path} must hold an object by ASIN, got a {type(content).__name__}")
    return content


# ---- goals of a product


class GoalSource(NamedTuple):
    """One of the two kinds of goals."""

    count: Callable[[Product], int]
    """How many goals a product has."""
    goal: Callable[[Product, int], Goal]
    """Goal k of a product, from 0."""
    weighted: bool
    """Whether rare attributes make a goal likely; otherwise all weigh 1."""
    n_bare: int
    """Instructions that ask for no attribute, which makes them no goals."""
    n_instructions: int
    """All others, of products in the shop or not."""


def human_goals(written: Mapping[str, Sequence[Written]]) -> GoalSource:
    """Return the goals that people wrote; those without attributes are none."""

    def usable(product: Product) -> list[Written]:
        return [record for record in written.get(product.asin, ()) if record.attributes]

    def goal(product: Product, k: int) -> Goal:
        text, wanted, options = usable(product)[k]
        targets = tuple(map(option_target, options))
        return _goal(product, text.strip("."), "", wanted, options, targets)

    records = [record for found in written.values() for record in found]
    n_bare = sum(not record.attributes for record in records)
    return GoalSource(lambda product: len(usable(product)), goal, False, n_bare, len(records) - n_bare)


def synthetic_goals(listed: Mapping[str, Listed]) -> GoalSource:
    """Return a goal for every way to choose one value of each option of a product with an instruction."""

    def count(product: Product) -> int:
        entry = listed.get(product.asin)
        if entry is None or entry.instruction is None or not entry.wanted:
            return 0
        return math.prod(len(values) for _, values in product.options)

    def goal(product: Product, k: int) -> Goal:
        _, text, wanted = listed[product.asin]
        chosen = _combination(product, k)
        said = ", and ".join(f"{name}: {value}" for name, value in chosen.items())
        targets = tuple(option_target(value, name) for name, value in chosen.items())
        suffix = f" with {said}" if said else ""
        return _goal(product, text or "", suffix, wanted, tuple(chosen.values()), targets)

    told = [entry for entry in listed.values() if entry.instruction is not None]
    n_bare = sum(not entry.wanted for entry in told)
    return GoalSource(count, goal, True, n_bare, len(told) - n_bare)


def _combination(product: Product, k: int) -> dict[str, str]:
    """Return choice k of all, by the names of the options in sorted order, the last varying fastest."""
    chosen = list[tuple[str, str]]()
    for name, values in sorted(product.options, reverse=True):
        k, place = divmod(k, len(values))
        chosen.append((name, values[place]))
    return dict(reversed(chosen))


def _goal(
    product: Product,
    text: str,
    suffix: str,
    wanted: tuple[str, ...],
    options: tuple[str, ...],
    targets: tuple[str, ...],
) -> Goal:
    # The original draws the bound anew at every start; here it belongs to the product and its instruction.
    instruction, bound = with_bound(text + suffix, product.price, Rng("webshop bound", product.asin, text))
    return Goal(
        instruction=instruction,
        asin=product.asin,
        category=product.category,
        query=product.query,
        title=product.title,
        product_category=product.product_category,
        attributes=wanted,
        options=options,
        targets=targets,
        price_upper=bound,
        nouns=product.nouns,
    )


def shuffled_goals(
    source: GoalSource, numbers: Sequence[int], product: Callable[[int], Product]
) -> Iterator[Goal]:
    """Give the goals of products in the original's order, made one by one.

    Args:
        source: Which goals.
        numbers: Of the products that have some, in the order of the catalogue.
        product: Gives the product of a number.
    """
    owners, places, seen = array("i"), array("i"), Counter[str]()
    for number in numbers:
        n = source.count(product(number))
        owners.extend([number] * n)
        places.extend(range(n))
        if n and source.weighted:
            wanted = source.goal(product(number), 0).attributes
            seen.update({attribute: n * wanted.count(attribute) for attribute in {*wanted}})
    order = list(range(len(owners)))
    random.Random(_SHUFFLE_SEED).shuffle(order)
    for spot in order:
        goal = source.goal(product(owners[spot]), places[spot])
        yield _weighted(goal, seen) if source.weighted else goal


def _weighted(goal: Goal, seen: Mapping[str, int]) -> Goal:
    weight = sum(1.0 / seen[attribute] for attribute in goal.attributes) / len(goal.attributes)
    return replace(goal, weight=weight)
