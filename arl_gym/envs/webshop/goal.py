"""What the agent is sent to buy."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

from arl_gym.rng import Rng

NO_BOUND = 1_000_000.0
"""Price bound of a goal that names none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """One task: an instruction, and what the reward compares a purchase with."""

    instruction: str
    """What the pages show, with the price text."""
    asin: str
    """A product that fulfils it."""
    category: str
    query: str
    title: str
    product_category: str
    attributes: tuple[str, ...]
    """At least one."""
    options: tuple[str, ...]
    """The wanted option values, as a person reads them."""
    targets: tuple[str, ...]
    """The same as the reward compares them; see `reward.option_target`."""
    price_upper: float
    nouns: tuple[str, ...]
    """The nouns of the title in lower case, repeats kept."""
    weight: float = 1.0
    """How often the original draws it when it is not told which."""
    search: str = ""
    """Words of the instruction that find the product; empty for imported goals, whose title does."""

    def to_row(self) -> list[Any]:
        """Return the fields as JSON-able values; see `of_row`."""
        return [getattr(self, name) for name in _FIELDS]

    @classmethod
    def of_row(cls, row: Sequence[Any]) -> "Goal":
        """Return the goal of a row that has been through JSON."""
        values: list[Any] = [tuple(value) if isinstance(value, list) else value for value in row]
        return cls(**dict(zip(_FIELDS, values, strict=True)))


_FIELDS = tuple(field.name for field in fields(Goal))


def with_bound(instruction: str, price: float, rng: Rng) -> tuple[str, float]:
    """Return an instruction with its price text, and the bound it names.

    The bound is the larger of two of the first four of 10, 20, … 990 dollars above the price. Where fewer
    than two are left there is no bound and no text. The original does the same with a global stream.

    Args:
        instruction: Without a final full stop.
        price: What the goal's product costs, in dollars.
        rng: Draws the bound.
    """
    above = [10.0 * i for i in range(1, 100) if 10.0 * i > price][:4]
    if len(above) < 2:
        return instruction, NO_BOUND
    rng.shuffle(above)
    upper = max(above[:2])
    return f"{instruction}, and price lower than {upper:.2f} dollars", upper
