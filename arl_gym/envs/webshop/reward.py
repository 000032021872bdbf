"""The reward of a purchase, exactly as WebShop computes it.

>>> same_words("size 8 wide", "8")
True
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from rapidfuzz import fuzz, utils

from arl_gym.envs.webshop.goal import Goal
from arl_gym.envs.webshop.product import Product

_COLOURS = """
alabaster apricot aqua ash asphalt azure banana beige black blue blush bordeaux bronze brown
burgundy camel camo caramel champagne charcoal cheetah chestnut chocolate christmas coffee cognac
copper coral cranberry cream crystal dark denim eggplant elephant espresso fuchsia gold granite
grape graphite grass gray green grey heather indigo ivory ivy khaki lavender lemon leopard light
lilac lime magenta maroon mauve merlot midnight mint mocha multicolor mushroom mustard natural navy
nude olive orange peach pewter pink plum purple rainbow red rose royal rust sand sapphire seashell
silver skull slate steel stone stonewash sunflower tan taupe teal tiger turquoise violet walnut
wheat white wine yellow
"""
COLOURS = tuple(_COLOURS.split())
"""The colour words that the original knows, in its order."""

_ALIKE = 85
_NO_NOUNS = 0.2
# The original deletes these before it compares; characters beyond them stay.
_LATIN_1 = dict.fromkeys(range(128, 256))


@dataclass(frozen=True, slots=True, kw_only=True)
class Reward:
    """The score of a purchase and its parts, named as in the original."""

    r_type: float
    query_match: bool
    category_match: bool
    title_score: float
    n_attributes: int
    """Attributes of the goal that the product has."""
    n_options: int
    """Options of the goal that are selected."""
    r_price: bool
    attributes: int
    """Attributes that the goal names."""
    options: int
    """Options that it names."""

    @property
    def total(self) -> float:
        """The score, in [0, 1]."""
        return self._hits / self._parts * self.r_type

    @property
    def perfect(self) -> bool:
        """Whether it is all that was asked for: compared as whole numbers, not as floats."""
        return self.r_type == 1 and self._hits == self._parts

    @property
    def _hits(self) -> int:
        return self.n_attributes + self.n_options + self.r_price

    @property
    def _parts(self) -> int:
        return self.attributes + self.options + 1

    def details(self) -> dict[str, float]:
        """Return the parts and their weights under the original's keys, `r_option` only with options."""
        parts = self._parts
        found = {
            "r_type": self.r_type,
            "r_att": self.n_attributes / self.attributes,
            "w_att": self.attributes / parts,
            "query_match": self.query_match,
            "category_match": self.category_match,
            "title_score": self.title_score,
            "r_price": self.r_price,
            "w_price": 1 / parts,
        }
        if self.options:
            found |= {"r_option": self.n_options / self.options, "w_option": self.options / parts}
        return found


def score(product: Product, selected: Iterable[str], goal: Goal) -> Reward:
    """Return what buying a product with these option values is worth.

    Args:
        product: What is bought.
        selected: The option values that are selected, of any groups: their names do not count.
        goal: What was asked for.

    References:
        WebShop, arXiv:2207.01206, section 3.3, as its released code computes it.
    """
    query_match = product.query == goal.query
    category_match = len(_path(product.product_category) & _path(goal.product_category)) >= 2
    shared = len({*product.nouns} & {*goal.nouns})
    title_score = shared / len(goal.nouns) if goal.nouns else _NO_NOUNS
    chosen = [option_target(value) for value in selected]
    return Reward(
        r_type=_type_reward(query_match or category_match, title_score),
        query_match=query_match,
        category_match=category_match,
        title_score=title_score,
        n_attributes=sum(has_attribute(product, wanted) for wanted in goal.attributes),
        n_options=sum(any(same_words(value, wanted) for value in chosen) for wanted in goal.targets),
        r_price=product.price <= goal.price_upper,
        attributes=len(goal.attributes),
        options=len(goal.targets),
    )


@lru_cache(maxsize=1024)
def _path(product_category: str) -> frozenset[str]:
    return frozenset(part.strip() for part in product_category.split("›"))


def _type_reward(match: bool, title_score: float) -> float:
    if title_score == 0:
        return 0.0
    if title_score < 0.1:
        return 0.1  # even where query or category are the same
    return 1.0 if match or title_score > 0.2 else 0.5


def has_attribute(product: Product, wanted: str) -> bool:
    """Return whether a product has an attribute, by its list or in its texts."""
    return any(same_words(has, wanted) for has in product.attributes) or any(
        wanted in text.lower() for text in (product.title, " ".join(product.bullets), product.description)
    )


@lru_cache(maxsize=1 << 14)
def same_words(a: str, b: str) -> bool:
    """Return whether the words of one text are, but for little, among those of the other."""
    return round(fuzz.token_set_ratio(_words(a), _words(b))) > _ALIKE


def _words(text: str) -> str:
    return utils.default_process(text.translate(_LATIN_1))


@lru_cache(maxsize=1 << 12)
def option_target(value: str, name: str = "") -> str:
    """Return an option value as it is compared: the first colour word it holds, or itself.

    Args:
        value: The value.
        name: Of its group, where the goal has it, as synthetic goals do: then only a value that is a colour
            word becomes one, and the name is compared with it.
    """
    if name:
        return next((c for c in COLOURS if c in (name, value)), f"{name} {value}")
    return next((c for c in COLOURS if c in value), value)
