"""Small products, goals and a family generator for the tests of shops on disk."""

from typing import Any

from arl_gym.envs.webshop.family import Family
from arl_gym.envs.webshop.goal import Goal
from arl_gym.envs.webshop.product import Product, Review

VERSION = 1


def mug(asin: str, **changed: Any) -> Product:
    fields: dict[str, Any] = {
        "asin": asin,
        "title": f"Mug {asin}",
        "category": "garden",
        "query": "mugs",
        "product_category": "Home › Mugs",
        "description": "Holds tea.",
        "bullets": ("Safe.",),
        "prices": (4.5,),
        "options": (("color", ("navy blue", "red")), ("size", ("small",))),
        "attributes": ("dishwasher safe",),
        "nouns": ("mug",),
        "image": "",
    }
    return Product(**{**fields, **changed})


def mug_goal(asin: str, **changed: Any) -> Goal:
    fields: dict[str, Any] = {
        "instruction": f"find mug {asin}",
        "asin": asin,
        "category": "garden",
        "query": "mugs",
        "title": f"Mug {asin}",
        "product_category": "Home › Mugs",
        "attributes": ("dishwasher safe",),
        "options": ("navy blue",),
        "targets": ("blue",),
        "price_upper": 20.0,
        "nouns": ("mug",),
    }
    return Goal(**{**fields, **changed})


REVIEWED = mug(
    "B00000TEST",
    title='Tasse "à thé"\nof two lines \ud83d',
    prices=(3.0, 8.25),
    reviews=(Review(title="Good", score="5.0", body="Holds."),),
    family="mugs-0",
)


def three_mugs(k: int) -> Family:
    """Family k has three mugs, and goals for the first and the last of them."""
    asins = [f"B{3 * k + i:09d}" for i in range(3)]
    return Family(
        split="train" if k % 2 == 0 else "val",
        products=tuple(mug(asin, family=f"mugs-{k}") for asin in asins),
        goals=(mug_goal(asins[0]), mug_goal(asins[2])),
    )
