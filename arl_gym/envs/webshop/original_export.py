"""Writes a generated shop as the files of the original, for the original program to load.

>>> export_shop(generated_store("full", 5000), Path("webshop/data"))  # doctest: +SKIP
"""

import json
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from arl_gym.envs.webshop.goal import Goal
from arl_gym.envs.webshop.original import ALL_ATTRIBUTES, ALL_PRODUCTS, HUMAN
from arl_gym.envs.webshop.original_products import GENERATED
from arl_gym.envs.webshop.product import Product
from arl_gym.envs.webshop.store import Store
from arl_gym.errors import DataError


def export_shop(shop: Store, folder: Path, progress: Callable[[int, int], None] | None = None) -> list[Path]:
    """Write the products, their attributes and the goals of a shop; return the files.

    What the original has no place for is lost: reviews, nouns and splits. It draws price bounds itself.

    Args:
        shop: What to write.
        folder: Where to.
        progress: Called after every product with the products written and their number.

    Raises:
        DataError: If one of the files is there already.
    """
    paths = [folder / name for name in (ALL_PRODUCTS, ALL_ATTRIBUTES, HUMAN)]
    for path in paths:
        if path.exists():
            raise DataError(f"{path} exists: choose another folder")
    folder.mkdir(parents=True, exist_ok=True)
    numbers: dict[str, list[int]] = {}
    for number, goal in enumerate(shop.goals):
        numbers.setdefault(goal.asin, []).append(number)
    _write(paths[0], "[]", map(json.dumps, map(_record, _products(shop, progress))))
    attributes = (
        (p.asin, _listed(p, [shop.goals[n] for n in numbers.get(p.asin, [])])) for p in _products(shop)
    )
    _write(paths[1], "{}", _entries(attributes))
    written = ((asin, [_annotation(shop.goals[n]) for n in its]) for asin, its in numbers.items())
    _write(paths[2], "{}", _entries(written))
    return paths


def _products(shop: Store, progress: Callable[[int, int], None] | None = None) -> Iterator[Product]:
    for number in range(len(shop)):
        yield shop.product(number)
        if progress is not None:
            progress(number + 1, len(shop))


def _entries(items: Iterable[tuple[str, Any]]) -> Iterator[str]:
    return (f"{json.dumps(key)}: {json.dumps(value)}" for key, value in items)


def _write(path: Path, brackets: str, texts: Iterable[str]) -> None:
    """Write a list or an object of JSON texts, which is never seen half written."""
    part = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with part.open("w", encoding="utf-8") as file:
            file.write(brackets[0])
            for k, text in enumerate(texts):
                file.write(f",\n{text}" if k else text)
            file.write(brackets[1])
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def _record(product: Product) -> dict[str, Any]:
    return {
        "asin": product.asin,
        "name": product.title,
        "category": product.category,
        "query": product.query,
        "product_category": product.product_category,
        "full_description": product.description,
        "small_description": product.bullets,
        "pricing": " - ".join(f"${price}" for price in product.prices),
        "images": [product.image],
        **GENERATED,
        "customization_options": {
            name: [{"value": value, "asin": product.asin, "image": None} for value in values]
            for name, values in product.options
        },
    }


def _listed(product: Product, goals: list[Goal]) -> dict[str, Any]:
    entry: dict[str, Any] = {"attributes": product.attributes}
    if goals:
        wanted = goals[0].attributes
        entry["instruction"] = f"Find me {', '.join(wanted)} {product.query}"
        entry["instruction_attributes"] = wanted
    return entry


def _annotation(goal: Goal) -> dict[str, Any]:
    price_text = f", and price lower than {goal.price_upper:.2f} dollars"
    return {
        "asin": goal.asin,
        "instruction": goal.instruction.removesuffix(price_text),
        "attributes": [],
        "options": [],
        "instruction_attributes": goal.attributes,
        "instruction_options": goal.options,
        "assignment_id": "",
        "worker_id": "",
    }
