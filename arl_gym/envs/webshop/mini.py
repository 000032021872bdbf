"""A small catalogue in few words, for tiny models: titles of three words, pages of a line.

>>> mini_family(0).split
'train'
"""

from collections.abc import Iterator
from itertools import combinations, product

from arl_gym.envs.webshop.family import Family
from arl_gym.envs.webshop.goal import Goal, with_bound
from arl_gym.envs.webshop.product import Product
from arl_gym.envs.webshop.reward import option_target
from arl_gym.errors import ConfigError
from arl_gym.rng import Rng

VERSION = 1
"""To be raised with every change of what is drawn."""

MEMBERS = 5
"""Products of a family."""
MAX_FAMILIES = 2000
"""Their products have ids of four digits."""

WORN = ("bag", "belt", "boots", "cap", "coat", "dress", "gloves", "shirt", "shoes", "socks")
HOUSEHOLD = ("blanket", "candle", "chair", "clock", "lamp", "mug", "pillow", "plate", "table", "towel")
OOD_KINDS = ("belt", "mug")
"""Kinds that only "test_ood" asks for."""
QUALITIES = (
    *("cotton", "durable", "elastic", "flat", "foldable", "handmade", "heavy", "leather"),
    *("metal", "padded", "plain", "round", "soft", "thin", "waterproof", "wooden"),
)
"""A title has two of them."""
COLOURS = ("black", "blue", "green", "red", "white", "yellow")
SIZES = ("small", "medium", "large")

_FRAMES = (
    "find me a {a} {b} {kind} in {options}",
    "i want a {kind} that is {a} and {b} , in {options}",
    "i need a {b} and {a} {kind} in {options}",
)
_N_COLOURS, _N_GOALS = 5, 3
_KINDS = WORN + HOUSEHOLD
_PAIRS = tuple(combinations(QUALITIES, 2))
# Steps that have no factor in common with what they walk through, so that they reach all of it.
_PLACE_STEP, _ASIN_STEP = 1009, 7919


def mini_family(k: int) -> Family:
    """Return family k: its goals ask for two qualities, options and a price that its first product has.

    Of its others, one has the qualities too and is dearer, three have one of them. No other family has goals
    with these qualities of this kind.

    Raises:
        ConfigError: If there are not so many families.
    """
    if not 0 <= k < MAX_FAMILIES:
        raise ConfigError(f"the mini catalogue has {MAX_FAMILIES * MEMBERS} products at most")
    kind, pair = divmod(k * _PLACE_STEP % (len(_KINDS) * len(_PAIRS)), len(_PAIRS))
    rng = Rng("webshop mini", VERSION, k)
    price = 15 + 10 * rng.below(5)
    bound = with_bound("", price, rng)
    traits = [(_PAIRS[pair], price), (_PAIRS[pair], int(bound[1]) + 5 + 10 * rng.below(2))]
    while len(traits) < MEMBERS:
        half, other = rng.choice(_PAIRS[pair]), rng.choice(QUALITIES)
        if other not in _PAIRS[pair]:
            traits.append(((half, other), 15 + 10 * rng.below(8)))
    # Otherwise the last digit of an id would tell which member of its family a product is.
    places = list(range(MEMBERS * k, MEMBERS * (k + 1)))
    rng.shuffle(places)
    made = [
        _product(k, place, _KINDS[kind], *trait, rng) for place, trait in zip(places, traits, strict=True)
    ]
    goals = tuple(_goals(made[0], bound, rng))
    return Family(split=_split(_KINDS[kind], k), products=tuple(made), goals=goals)


def _split(kind: str, k: int) -> str:
    if kind in OOD_KINDS:
        return "test_ood"
    return {0: "val", 1: "test"}.get(Rng("webshop mini split", k).below(10), "train")


def _product(k: int, place: int, kind: str, qualities: tuple[str, ...], price: int, rng: Rng) -> Product:
    order, colours = list(qualities), list(COLOURS)
    rng.shuffle(order)
    rng.shuffle(colours)
    options = [("color", tuple(colours[:_N_COLOURS]))]
    if kind in WORN:
        options.append(("size", SIZES))
    return Product(
        asin=f"{place * _ASIN_STEP % (MAX_FAMILIES * MEMBERS):04d}",
        title=f"{order[0]} {order[1]} {kind}",
        category="fashion" if kind in WORN else "garden",
        query=kind,
        product_category=f"{'Clothing' if kind in WORN else 'Home'} › {kind}",
        description=f"a {kind}",
        bullets=(f"{order[0]} and {order[1]}",),
        prices=(float(price),),
        options=tuple(options),
        attributes=tuple(qualities),
        nouns=(kind,),
        image="",
        family=f"mini-{k}",
    )


def _goals(wanted: Product, bound: tuple[str, float], rng: Rng) -> Iterator[Goal]:
    ways = list(product(*(values for _, values in wanted.options)))
    rng.shuffle(ways)
    a, b = wanted.attributes
    for options in ways[:_N_GOALS]:
        text = rng.choice(_FRAMES).format(a=a, b=b, kind=wanted.query, options=" and ".join(options))
        yield Goal(
            instruction=text + bound[0],
            asin=wanted.asin,
            category=wanted.category,
            query=wanted.query,
            title=wanted.title,
            product_category=wanted.product_category,
            attributes=wanted.attributes,
            options=options,
            targets=tuple(map(option_target, options)),
            price_upper=bound[1],
            nouns=wanted.nouns,
            search=f"{a} {b} {wanted.query}",
        )
