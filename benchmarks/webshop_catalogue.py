"""What is in the generated catalogue of WebShop, and how hard are its goals?

    python benchmarks/webshop_catalogue.py --products 5000

Prints the sizes of texts, prices and options, where attributes are said, the goals of each split, on which
place a search finds a goal's product, and what two policies without any skill earn: buying the first result
for the raw instruction, and buying at random. Both buy without choosing options, as a first step.
"""

import argparse
import statistics
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import count
from pathlib import Path

from arl_gym.envs.webshop.bm25 import Index, IndexBuilder
from arl_gym.envs.webshop.family import Family
from arl_gym.envs.webshop.generator import full_family
from arl_gym.envs.webshop.goal import Goal
from arl_gym.envs.webshop.product import Product
from arl_gym.envs.webshop.reward import Reward, score
from arl_gym.rng import Rng

TOP = 50


def draw_families(num_products: int) -> Iterator[Family]:
    """Give whole families until there are enough products."""
    products = 0
    for k in count():
        if products >= num_products:
            return
        family = full_family(k)
        products += len(family.products)
        yield family


def build_index(products: Sequence[Product], folder: Path) -> Index:
    """Index the products."""
    builder = IndexBuilder(folder)
    for product in products:
        builder.add(product.search_text)
    builder.finish([product.asin for product in products])
    return Index(folder)


def buy_with_everything(product: Product, goal: Goal) -> Reward:
    """Return the score of a product with every option value selected, more than anyone can."""
    return score(product, [value for _, values in product.options for value in values], goal)


def missed_points(reward: Reward) -> int:
    """Return how many of the goal's points a purchase misses."""
    return (
        reward.attributes
        - reward.n_attributes
        + reward.options
        - reward.n_options
        + (not reward.r_price)
        + (reward.r_type < 1)
    )


def describe(name: str, values: Iterable[float]) -> None:
    """Print mean, least, median and most."""
    seen = sorted(values)
    print(
        f"{name:32} mean {statistics.mean(seen):7.2f}  {seen[0]:g} / {seen[len(seen) // 2]:g} / {seen[-1]:g}"
    )


def share(name: str, facts: Iterable[bool]) -> None:
    """Print how often something holds."""
    seen = list(facts)
    print(f"{name:32} {100 * statistics.mean(seen):6.1f} %")


def print_products(products: Sequence[Product]) -> None:
    """Print sizes, prices, options, and where the attributes of the products are said."""
    describe("words of a title", (len(p.title.split()) for p in products))
    describe("words of a description", (len(p.description.split()) for p in products))
    describe("bullets", (len(p.bullets) for p in products))
    describe("attributes", (len(p.attributes) for p in products))
    describe("nouns of a title", (len(p.nouns) for p in products))
    describe("option groups", (len(p.options) for p in products))
    describe("values of a group", (len(values) for p in products for _, values in p.options))
    describe("lowest price", (p.prices[0] for p in products))
    share("price ranges", (len(p.prices) > 1 for p in products))
    share("price 100.0", (p.prices == (100.0,) for p in products))
    share("without options", (not p.options for p in products))
    share("with a title of another product", (n > 1 for n in title_counts(products)))
    describe("words to search", (len(p.search_text.split()) for p in products))
    places = Counter(evidence(product, phrase) for product in products for phrase in product.attributes)
    for place, n in places.most_common():
        print(f"attributes said in {place:13} {100 * n / places.total():6.1f} %")


def title_counts(products: Sequence[Product]) -> list[int]:
    """Return for every product how many have its title."""
    counts = Counter(product.title for product in products)
    return [counts[product.title] for product in products]


def evidence(product: Product, phrase: str) -> str:
    """Return the most visible place where a product says an attribute."""
    texts = {
        "title": product.title,
        "first bullet": product.bullets[0],
        "later bullets": " ".join(product.bullets[1:]),
        "description": product.description,
    }
    return next((place for place, text in texts.items() if phrase in text.lower()), "the list only")


def print_goals(goals: Sequence[Goal], products: dict[str, Product]) -> None:
    """Print what goals ask for."""
    describe("words of an instruction", (len(goal.instruction.split()) for goal in goals))
    describe("words of the reference query", (len(goal.search.split()) for goal in goals))
    for n, goals_of_n in sorted(Counter(len(goal.options) for goal in goals).items()):
        print(f"goals with {n} options              {100 * goals_of_n / len(goals):6.1f} %")
    for n, goals_of_n in sorted(Counter(len(goal.attributes) for goal in goals).items()):
        print(f"goals with {n} attributes           {100 * goals_of_n / len(goals):6.1f} %")
    share("goals of a product at 100.0", (products[goal.asin].prices == (100.0,) for goal in goals))


def print_siblings(families: Sequence[Family]) -> None:
    """Print how near the siblings of a goal's product miss it."""
    misses = Counter(
        missed_points(buy_with_everything(product, goal))
        for family in families
        for goal in family.goals
        for product in family.products
        if product.asin != goal.asin
    )
    for points, n in sorted(misses.items()):
        print(f"siblings that miss {points} points      {100 * n / misses.total():6.1f} %")


def print_rivals(families: Sequence[Family]) -> None:
    """Print how many goals are fulfilled by another product, too."""
    by_query = defaultdict(list)
    for family in families:
        for product in family.products:
            by_query[product.query].append(product)
    goals = [goal for family in families for goal in family.goals]
    perfect = [
        sum(buy_with_everything(product, goal).perfect for product in by_query[goal.query]) for goal in goals
    ]
    share("goals with another perfect one", (n > 1 for n in perfect))


def print_search(goals: Sequence[Goal], index: Index, products: Sequence[Product]) -> None:
    """Print the place of a goal's product and the two policies' scores."""
    for name in ("instruction", "search"):
        places = [
            place_of(goal, [products[i].asin for i in index.top(getattr(goal, name), TOP)]) for goal in goals
        ]
        seen = sorted(places)
        pages = Counter((place - 1) // 10 + 1 for place in places)
        shown = ", ".join(f"{100 * pages[page] / len(places):.1f}" for page in range(1, TOP // 10 + 1))
        print(
            f"place of the product by {name:11}: median {seen[len(seen) // 2]}, first "
            f"{100 * sum(place == 1 for place in places) / len(places):.1f} %, "
            f"pages 1 to 5 {shown} %, not found {100 * pages[TOP // 10 + 1] / len(places):.2f} %"
        )
        lost = [goal for goal, place in zip(goals, places, strict=True) if place > TOP]
        for goal in lost if name == "search" else ():
            print(f"    not found: {goal.search} ({goal.asin})")
    rng = Rng("random purchase")
    first = [score(products[index.top(goal.instruction, 1)[0]], (), goal) for goal in goals]
    anyone = [score(rng.choice(products), (), goal) for goal in goals]
    for name, rewards in (("first result", first), ("random product", anyone)):
        print(
            f"{name:15} score {statistics.mean(r.total for r in rewards):.3f}, "
            f"perfect {100 * statistics.mean(r.perfect for r in rewards):.1f} %"
        )


def place_of(goal: Goal, found: Sequence[str]) -> int:
    """Return the place of the goal's product, counted from 1; one more than searched if it is not there."""
    return found.index(goal.asin) + 1 if goal.asin in found else TOP + 1


def main() -> None:
    """Draw the catalogue and print everything."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--products", type=int, default=5000)
    parser.add_argument("--instructions", type=int, default=0, help="print so many of each split")
    arguments = parser.parse_args()
    start = time.process_time()
    families = list(draw_families(arguments.products))
    products = [product for family in families for product in family.products]
    goals = [goal for family in families for goal in family.goals]
    print(f"{len(products)} products, {len(families)} families, {len(goals)} goals", end=", ")
    print(f"{time.process_time() - start:.2f} s CPU")
    print_products(products)
    print_goals(goals, {product.asin: product for product in products})
    print_siblings(families)
    print_rivals(families)
    with tempfile.TemporaryDirectory() as folder:
        index = build_index(products, Path(folder))
        for split in ("train", "val", "test", "test_ood"):
            chosen = [goal for family in families if family.split == split for goal in family.goals]
            print(f"\n{split}: {len(chosen)} goals")
            print_search(chosen, index, products)
            for goal in chosen[: arguments.instructions]:
                print(f"    {goal.instruction}\n        -> {goal.search}")


if __name__ == "__main__":
    main()
