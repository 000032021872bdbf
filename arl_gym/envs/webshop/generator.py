"""Draws the default catalogue: families of products of one kind, and goals that ask for one of a family.

Family k is a pure function of k. Its products are near misses of one another: for each goal every sibling
lacks an attribute, has no option as wanted, or costs too much, and most fail in one point only. Every goal is
proven with `reward.score` on its own product when it is drawn.

    >>> full_family(0).goals[0].asin in {product.asin for product in full_family(0).products}
    True
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from itertools import combinations
from typing import TypeVar

from arl_gym.envs.webshop import listing, phrases
from arl_gym.envs.webshop.family import Family
from arl_gym.envs.webshop.goal import Goal, with_bound
from arl_gym.envs.webshop.product import Product
from arl_gym.envs.webshop.reward import option_target, same_words, score
from arl_gym.envs.webshop.words import Group, Kind, Leaf, Trait, brand_parts, leaves
from arl_gym.rng import Rng

T = TypeVar("T")

VERSION = 1
"""Part of every key: a change that alters the catalogue raises it."""

_MEMBERS = (11, 20)
_MAX_MEMBERS = 32
_SPLIT_BLOCK = ("train",) * 8 + ("val", "test")
"""Of ten families in a row, in random order."""

_BASE36 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_HALF_BITS = 20
_ROUND_KEYS = (0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D, 0x27D4EB2F)

_POOL, _BRANDS, _MATERIALS = 7, 4, 2
"""Attributes, brands and materials that a family draws from."""
_TRAIT_KEPT, _GROUP_KEPT = 0.8, 0.85
_NO_OPTIONS, _CLONES = 0.1, 0.06
"""Shares of families without options, and of those where two products have the same texts."""
_RANGE, _NO_PRICE = 0.12, 0.09
_ENDINGS = (99, 99, 99, 99, 49, 95, 0, 89, 50)

_TARGETED = 0.78
"""Share of the products that a goal is sought for."""
_TRIES = 6
_OPTIONS = (0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 3)
_TRAITS = {0: (3, 3, 3, 4, 4), 1: (2, 3, 3, 3, 4), 2: (2, 2, 3), 3: (2, 2, 3)}
"""How many options a goal names, and how many attributes by that; each equally likely."""
_NAMED = 0.05
_PARTIAL = 0.3
"""How often a goal says "blue" for "navy blue"."""


def full_family(k: int) -> Family:
    """Return family k of the default catalogue: the same in every process."""
    rng = Rng("webshop family", VERSION, k)
    leaf = _leaf(k)
    plan = _plan(leaf, rng)
    members = _members(plan, k, rng)
    siblings = _Siblings(plan, members)
    goals = [_goal(siblings, i, rng) for i in range(len(members)) if rng.uniform() < _TARGETED]
    return Family(
        split="test_ood" if leaf.held_out else _split(k),
        products=tuple(member.product for member in members),
        goals=tuple(goal for goal in goals if goal),
    )


def _leaf(k: int) -> Leaf:
    """Return the leaf of a family: each once in as many families as there are leaves."""
    block, place = divmod(k, len(leaves()))
    return leaves()[_order("webshop leaf", block, len(leaves()))[place]]


def _split(k: int) -> str:
    block, place = divmod(k, len(_SPLIT_BLOCK))
    return _SPLIT_BLOCK[_order("webshop split", block, len(_SPLIT_BLOCK))[place]]


@lru_cache(maxsize=16)
def _order(what: str, block: int, n: int) -> list[int]:
    order = list(range(n))
    Rng(what, VERSION, block).shuffle(order)
    return order


def asin(family: int, member: int) -> str:
    """Return a product's id: different for all, and in no order.

    A Feistel network permutes the number of the product in 40 bits, which are written in base 36.
    """
    number = family * _MAX_MEMBERS + member
    mask = (1 << _HALF_BITS) - 1
    left, right = number >> _HALF_BITS, number & mask
    for key in _ROUND_KEYS:
        mixed = (right + key) * key
        left, right = right, left ^ ((mixed ^ mixed >> 15) * 0x2C1B3C6D >> 12 & mask)
    number, digits = left << _HALF_BITS | right, ""
    for _ in range(8):
        number, digit = divmod(number, 36)
        digits = _BASE36[digit] + digits
    return "B0" + digits


# ---- products


@dataclass(frozen=True, slots=True, kw_only=True)
class _Member:
    """A product and the attributes that it was drawn with."""

    product: Product
    traits: tuple[Trait, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Plan:
    """What the products of a family have in common."""

    leaf: Leaf
    kind: Kind
    also: str
    brands: tuple[str, ...]
    traits: tuple[Trait, ...]
    materials: tuple[Trait, ...]
    groups: tuple[Group, ...]
    price: float


def _members(plan: _Plan, k: int, rng: Rng) -> list[_Member]:
    least, most = _MEMBERS
    members = [_member(plan, k, i, rng) for i in range(least + rng.below(most - least + 1))]
    if rng.uniform() < _CLONES:
        members[1] = _clone(members[0], members[1])
    return members


def _plan(leaf: Leaf, rng: Rng) -> _Plan:
    bare = rng.uniform() < _NO_OPTIONS
    groups = [] if bare else [group for group in leaf.groups if rng.uniform() < _GROUP_KEPT]
    return _Plan(
        leaf=leaf,
        kind=rng.choice(leaf.kinds),
        also=rng.choice(leaf.also),
        brands=tuple(_brand(rng) for _ in range(_BRANDS)),
        traits=_sample(leaf.traits, _POOL, rng),
        materials=_sample(leaf.materials, _MATERIALS, rng),
        groups=tuple(groups),
        price=leaf.price * _exp(leaf.spread * _normal(rng)),
    )


def _member(plan: _Plan, k: int, i: int, rng: Rng) -> _Member:
    traits = [trait for trait in plan.traits if rng.uniform() < _TRAIT_KEPT]
    traits += [trait for trait in _sample(plan.leaf.traits, 2, rng) if trait not in plan.traits]
    traits.append(rng.choice(plan.materials))
    rng.shuffle(traits)
    facts = listing.Facts(
        leaf=plan.leaf,
        kind=plan.kind,
        brand=rng.choice(plan.brands),
        also=plan.also,
        places=listing.places(traits, rng),
    )
    texts = listing.write(facts, rng)
    number = asin(k, i)
    product = Product(
        asin=number,
        title=texts.title,
        category=plan.leaf.category,
        query=plan.leaf.query,
        product_category=plan.leaf.path,
        description=texts.description,
        bullets=texts.bullets,
        prices=_prices(plan.price, rng),
        options=tuple((group.name, _values(group, rng)) for group in plan.groups),
        attributes=tuple(trait.phrase for trait in traits),
        nouns=texts.nouns,
        image=f"/img/{number}.png",
        reviews=texts.reviews,
        family=f"full-{k}",
    )
    return _Member(product=product, traits=tuple(traits))


def _clone(member: _Member, other: _Member) -> _Member:
    """Return `other` with the texts and attributes of `member`: its id, options and prices stay."""
    product = replace(
        member.product,
        asin=other.product.asin,
        prices=other.product.prices,
        options=other.product.options,
        image=other.product.image,
        reviews=other.product.reviews,
    )
    return _Member(product=product, traits=member.traits)


def _brand(rng: Rng) -> str:
    start, middle, end = brand_parts()
    return rng.choice(start) + rng.choice(middle) + rng.choice(end)


def _sample(items: Sequence[T], n: int, rng: Rng) -> tuple[T, ...]:
    left = list(items)
    return tuple(left.pop(rng.below(len(left))) for _ in range(min(n, len(left))))


def _normal(rng: Rng) -> float:
    """Return a number of mean 0 and standard deviation 1, near enough to normal: a sum of twelve."""
    return sum(rng.uniform() for _ in range(12)) - 6.0


def _exp(x: float) -> float:
    """Return e to the power of a small number, to a thousandth, in steps that no machine rounds otherwise."""
    power = 1 + x / 1024
    for _ in range(10):
        power *= power
    return power


def _prices(family_price: float, rng: Rng) -> tuple[float, ...]:
    draw = rng.uniform()
    if draw < _NO_PRICE:
        return (100.0,)
    low = _shelf_price(family_price * (0.65 + 0.8 * rng.uniform()), rng)
    if draw < _NO_PRICE + _RANGE:
        return low, _shelf_price(low * (1.2 + rng.uniform()) + 1, rng)
    return (low,)


def _shelf_price(price: float, rng: Rng) -> float:
    return max(2, int(price)) + rng.choice(_ENDINGS) / 100


def _values(group: Group, rng: Rng) -> tuple[str, ...]:
    """Return the values of one product, in the order of the group."""
    least, most = group.few
    total = len(group.values)
    n = min(least + rng.below(most - least + 1), total)
    if group.stretch:
        start = rng.below(total - n + 1)
        return group.values[start : start + n]
    return tuple(group.values[i] for i in sorted(_sample(range(total), n, rng)))


# ---- goals


@cache
def _alike(leaf_query: str, target: str) -> tuple[str, ...]:
    """Return the option values of a leaf that the reward takes for a wanted one."""
    return tuple(
        value
        for other, values in _values_by_target(leaf_query).items()
        if same_words(other, target)
        for value in values
    )


@cache
def _values_by_target(leaf_query: str) -> dict[str, list[str]]:
    leaf = next(leaf for leaf in leaves() if leaf.query == leaf_query)
    values: dict[str, list[str]] = {}
    for value in dict.fromkeys(value for group in leaf.groups for value in group.values):
        values.setdefault(option_target(value), []).append(value)
    return values


class _Siblings:
    """Which members of a family fail a wish, as bits by their numbers."""

    def __init__(self, plan: _Plan, members: Sequence[_Member]):
        self.plan = plan
        self.members = members
        self.everyone = (1 << len(members)) - 1
        self._prices = [member.product.price for member in members]
        self._having: defaultdict[str, int] = defaultdict(int)
        self._offering: defaultdict[str, int] = defaultdict(int)
        for i, member in enumerate(members):
            for phrase in member.product.attributes:
                self._having[phrase] |= 1 << i
            for value in {value for _, values in member.product.options for value in values}:
                self._offering[value] |= 1 << i

    def lacking(self, trait: Trait) -> int:
        return self.everyone ^ self._having[trait.phrase]

    def without(self, value: str) -> int:
        """Return who has no option value that the reward takes for this one."""
        offering = 0
        for alike in _alike(self.plan.leaf.query, option_target(value)):
            offering |= self._offering[alike]
        return self.everyone ^ offering

    def dearer(self, bound: float) -> int:
        return sum(1 << i for i, price in enumerate(self._prices) if price > bound)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Draft:
    """A wish for one member."""

    traits: tuple[Trait, ...]
    options: tuple[tuple[str, str], ...]
    """Names of groups and values of the product."""


def _goal(siblings: _Siblings, i: int, rng: Rng) -> Goal | None:
    """Return a goal that member i fulfils and no sibling does, None if none turned up."""
    member = siblings.members[i]
    bound_text, bound = with_bound("", member.product.price, rng)
    draft = _draft(siblings, i, siblings.dearer(bound), rng)
    if draft is None:
        return None
    product = member.product
    wanted = tuple((name, _said(value, rng)) for name, value in draft.options)
    kind = siblings.plan.kind
    wish = phrases.Wish(kind=kind, traits=draft.traits, options=wanted)
    goal = Goal(
        instruction=phrases.instruct(wish, rng) + bound_text,
        asin=product.asin,
        category=product.category,
        query=product.query,
        title=product.title,
        product_category=product.product_category,
        attributes=tuple(trait.phrase for trait in draft.traits),
        options=tuple(value for _, value in wanted),
        targets=tuple(option_target(value) for _, value in wanted),
        price_upper=bound,
        nouns=product.nouns,
        search=_reference_query(wish, product, rng),
    )
    return goal if score(product, [value for _, value in draft.options], goal).perfect else None


def _reference_query(wish: phrases.Wish, product: Product, rng: Rng) -> str:
    """Return the kind with some of those wished attributes and options that the shop's search knows."""
    text = product.search_text
    words = [trait.phrase for trait in wish.traits] + [value for _, value in wish.options]
    known = [phrase for phrase in words if phrase in text]
    return " ".join([wish.kind.name, *known[:1], *(word for word in known[1:] if rng.uniform() < _NAMED)])


def _draft(siblings: _Siblings, i: int, dearer: int, rng: Rng) -> _Draft | None:
    """Return a wish that member i fulfils and all siblings fail."""
    member = siblings.members[i]
    text = member.product.search_text
    lacking = [(siblings.lacking(trait), trait.phrase in text, trait) for trait in member.traits]
    # The most common first, so that the reference query, too, leaves something to look through.
    lacking.sort(key=lambda entry: entry[0].bit_count())
    for _ in range(_TRIES):
        options = _wanted_options(member, rng)
        fails = [dearer, *(siblings.without(value) for _, value in options)]
        known = (1, 1) if options else (2, 4)
        traits = _nearest(
            lacking, rng.choice(_TRAITS[len(options)]), fails, siblings.everyone ^ 1 << i, known
        )
        if traits:
            return _Draft(traits=traits, options=options)
    return None


def _nearest(
    lacking: Sequence[tuple[int, bool, Trait]],
    n: int,
    fails: Sequence[int],
    others: int,
    known: tuple[int, int],
) -> tuple[Trait, ...]:
    """Return the n attributes with which most siblings fail one point only, and all one at least.

    Args:
        lacking: Of each attribute the siblings that lack it, as bits, and whether a search can find it.
        n: How many to choose.
        fails: The siblings that fail each other point.
        others: All siblings.
        known: How many of the chosen a search can find, at least and at most.

    Returns:
        The attributes, none if there are no such.
    """
    best: tuple[Trait, ...] = ()
    most = -1
    for chosen in combinations(lacking, n):
        once = more = 0
        for failing in fails:
            more |= once & failing
            once |= failing
        for failing, _, _ in chosen:
            more |= once & failing
            once |= failing
        near = (others & ~more).bit_count() if once & others == others else -1
        if near > most and known[0] <= sum(found for _, found, _ in chosen) <= known[1]:
            best, most = tuple(trait for _, _, trait in chosen), near
    return best


def _wanted_options(member: _Member, rng: Rng) -> tuple[tuple[str, str], ...]:
    groups = list(member.product.options)
    n = min(rng.choice(_OPTIONS), len(groups))
    chosen = [groups.pop(rng.below(len(groups))) for _ in range(n)]
    return tuple((name, rng.choice(values)) for name, values in chosen)


def _said(value: str, rng: Rng) -> str:
    """Return an option value as a shopper says it: sometimes only the colour in it."""
    target = option_target(value)
    plain = target in value.split() and option_target(target) == target
    return target if plain and rng.uniform() < _PARTIAL else value
