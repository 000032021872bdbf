"""The expert: knows which product is meant, and shops for it through the pages.

>>> next_action(session, goal, shop)  # doctest: +SKIP
('search[waterproof leather boots]', 'I search for what the task describes.')
"""

from collections.abc import Iterator, Sequence
from operator import itemgetter
from typing import NamedTuple

from arl_gym.envs.webshop.goal import Goal
from arl_gym.envs.webshop.product import Product
from arl_gym.envs.webshop.reward import option_target, same_words
from arl_gym.envs.webshop.session import Session
from arl_gym.envs.webshop.shop import Shop


class Advice(NamedTuple):
    """What to do next, and why in a few words."""

    action: str
    thought: str


def next_action(session: Session, goal: Goal, shop: Shop) -> Advice:
    """Return the next action of a shortest visit that buys the goal's product with the goal's options.

    Args:
        session: A visit that is not over, on any page.
        goal: Its task.
        shop: Where the visit is.
    """
    product = session.product
    if product is not None and product.asin == goal.asin:
        return _buy(session, product, goal)
    number = shop.number(goal.asin)
    if number is None or number not in session.results:
        return Advice(f"search[{query(goal, shop)}]", "I search for what the task describes.")
    if product is not None:
        return Advice("click[< prev]", "This is not the product that I need: back to the results.")
    page = session.results.index(number) // session.results_per_page + 1
    if session.page_number == page:
        return Advice(
            f"click[{session.link_name(number)}]", "This product fits the description: I look at it."
        )
    if session.page_number < page:
        return Advice("click[next >]", "Nothing here fits: I look at the next page.")
    return Advice("click[< prev]", "What fits is on an earlier page.")


def query(goal: Goal, shop: Shop) -> str:
    """Return the words to search for: those of the task if they find the product, otherwise its title."""
    if goal.search and shop.number(goal.asin) in shop.search(goal.search.lower()):
        return goal.search
    return goal.title


def _buy(session: Session, product: Product, goal: Goal) -> Advice:
    if session.page != "item":
        return Advice("click[< prev]", "Back to the product.")
    for group, value in wanted_options(product, goal).items():
        if session.selected.get(group) != value:
            return Advice(f"click[{session.option_name(group, value)}]", f"The task wants {value}.")
    return Advice("click[buy now]", "Everything the task asks for is chosen: I buy it.")


def wanted_options(product: Product, goal: Goal) -> dict[str, str]:
    """Return the option values, by group, that a goal needs; what the product does not have is left out."""
    wishes = list(zip(goal.options, goal.targets, strict=True))
    return _choose(product, wishes, {})[1]


def _choose(
    product: Product, wishes: Sequence[tuple[str, str]], chosen: dict[str, str]
) -> tuple[int, dict[str, str]]:
    """Return how many of the wishes can be met beside what is chosen, and the choice that does it."""
    if not wishes:
        return 0, chosen
    (wish, target), *rest = wishes
    if any(same_words(option_target(value), target) for value in chosen.values()):
        met, choice = _choose(product, rest, chosen)
        return met + 1, choice
    best = (-1, chosen)
    for group, value in _matches(product, wish, target):
        if group not in chosen:
            met, choice = _choose(product, rest, {**chosen, group: value})
            best = max(best, (met + 1, choice), key=itemgetter(0))
            if best[0] == len(wishes):
                return best
    return max(best, _choose(product, rest, chosen), key=itemgetter(0))


def _matches(product: Product, wish: str, target: str) -> Iterator[tuple[str, str]]:
    """Give the best value of every group that has one."""
    for group, values in product.options:
        fitting = [value for value in values if same_words(option_target(value), target)]
        if fitting:
            # The reward takes "blue" for "navy blue"; a person takes the very words, where they are there.
            yield group, min(fitting, key=lambda value: (value != wish, len(value)))
