"""What the site's templates show: the page of a session, its nodes numbered and sorted into places.

A page is laid out for people, in another order than it is read as text; the numbers keep that order.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple
from urllib.parse import urlencode

from markupsafe import Markup, escape

from arl_gym.envs.webshop.goal import NO_BOUND
from arl_gym.envs.webshop.pages import Link, Mark, Node, Option, Text
from arl_gym.envs.webshop.product import Product
from arl_gym.envs.webshop.reward import has_attribute, option_target, same_words
from arl_gym.envs.webshop.session import Session
from arl_gym.envs.webshop.site.address import address, product_fields
from arl_gym.envs.webshop.site.pictures import swatch

_OWN_TEMPLATE = ("search", "results", "item", "done")


class Shown(NamedTuple):
    """A node as a template shows it."""

    node: Node
    number: int
    """Its place in the order in which the page is read as text."""
    href: str
    chosen: bool
    """Whether it is a selected option or a product that was opened."""

    @property
    def kind(self) -> str:
        """The kind of node in lower case."""
        return type(self.node).__name__.lower()


def view(session: Session) -> dict[str, Any]:
    """Return what the template of a session's page needs."""
    nodes = _shown(session)
    root = f"/s/{session.place.session_id}"
    found: dict[str, Any] = {
        "page": session.page,
        "query": session.keywords,
        "search_action": f"{root}/results",
    }
    if session.page == "search":
        return found | dict(zip(("brand", "label", "instruction", "search"), nodes, strict=True))
    if session.page == "done":
        return found | _done(list(nodes), session)
    found |= {"label": next(nodes), "instruction": next(nodes), "home": next(nodes)}
    if session.page == "results":
        return found | _results(nodes, session)
    product = session.product
    assert product is not None
    found |= {
        "back": next(nodes),
        "product": product,
        "picture": picture_address(product.asin, session.selected),
    }
    if session.page == "item":
        return found | _item(nodes, session, product)
    return found | _about(list(nodes), session.page)


def page(session: Session, *, with_parts: bool = False) -> tuple[str, dict[str, Any]]:
    """Return the template of a session's page and what it needs.

    Args:
        session: Whose page it is.
        with_parts: Whether the last page shows what the score is made of and what was asked for.
    """
    found = view(session)
    if session.page == "done" and with_parts:
        found |= {"wishes": wishes(session), "reward": session.reward, "goal": session.goal}
    return f"{session.page if session.page in _OWN_TEMPLATE else 'about_product'}.html", found


def picture_address(asin: str, selected: Mapping[str, str] | None = None) -> str:
    """Return the address of a product's picture."""
    return "/picture.png?" + urlencode(product_fields(asin, selected or {}), errors="surrogatepass")


def _picture_of(node: Node) -> str:
    assert isinstance(node, Link)
    return picture_address(node.asin)


def _results(nodes: Iterator[Shown], session: Session) -> dict[str, Any]:
    listed = list(nodes)
    links = [i for i, shown in enumerate(listed) if shown.kind == "link"]
    head = listed[: links[0]] if links else listed
    cards = [(*listed[i : i + 3], _picture_of(listed[i].node)) for i in links]
    return {"title": head[0], "turns": head[1:], "cards": cards, "n_found": len(session.results)}


def _item(nodes: Iterator[Shown], session: Session, product: Product) -> dict[str, Any]:
    groups = [(next(nodes), list(islice(nodes, len(values)))) for _, values in product.options]
    title, price, rating, *buttons = nodes
    *pages, buy = buttons
    return {
        "groups": [(name, [(value, swatch(value.node.text)) for value in values]) for name, values in groups],
        "title": title,
        "price": price,
        "rating": rating,
        "pages": pages,
        "buy": buy,
        "buy_action": address("buy", session.place),
    }


def _about(texts: Sequence[Shown], page: str) -> dict[str, Any]:
    blank = not any(shown.node.text.strip() for shown in texts)
    if page != "reviews":
        return {"texts": texts, "blank": blank}
    reviews = [(*texts[i : i + 3], _share(texts[i + 1].node.text)) for i in range(0, len(texts), 3)]
    return {"reviews": reviews, "blank": blank}


def _share(score: str) -> float | None:
    """Return how many of the stars a score of 0 to 5 has, from 0 to 1; None if it is no such score."""
    return float(score) / 5 if re.fullmatch(r"[0-4](\.[0-9]+)?|5(\.0+)?", score) else None


def _done(nodes: Sequence[Shown], session: Session) -> dict[str, Any]:
    at = next(i for i, shown in enumerate(nodes) if shown.node.text.startswith("Your score"))
    product, reward = session.product, session.reward
    assert product is not None
    assert reward is not None
    return {
        "thanks": nodes[0],
        "score": nodes[at : at + 2],
        "rest": [*nodes[1:at], *nodes[at + 2 :]],
        "product": product,
        "picture": picture_address(product.asin, session.selected),
        "selected": session.selected,
        "kind": _KINDS[reward.r_type],
    }


_KINDS = {
    1.0: "the right kind of product",
    0.5: "another kind of product, which halves the score",
    0.1: "a product that has hardly a word in common, which leaves a tenth of the score",
    0.0: "a product that has no word in common, which leaves nothing of the score",
}
"""What `Reward.r_type` says of a purchase."""


class Wish(NamedTuple):
    """Something a goal asks for, and whether the purchase has it."""

    what: str
    wanted: str
    met: bool


def wishes(session: Session) -> Sequence[Wish]:
    """Return what the goal of a purchase asked for."""
    goal, product = session.goal, session.product
    assert product is not None
    chosen = [option_target(value) for value in session.selected.values()]
    found = [Wish("attribute", wanted, has_attribute(product, wanted)) for wanted in goal.attributes]
    for name, target in zip(goal.options, goal.targets, strict=True):
        found.append(Wish("option", name, any(same_words(value, target) for value in chosen)))
    bound = "any" if goal.price_upper == NO_BOUND else f"at most ${goal.price_upper:.2f}"
    return [*found, Wish("price", bound, product.price <= goal.price_upper)]


def _shown(session: Session) -> Iterator[Shown]:
    nodes = (node for part in session.content() for node in part.nodes if not isinstance(node, Mark))
    for number, node in enumerate(nodes):
        yield Shown(
            node=node,
            number=number,
            href="" if isinstance(node, Text) else address(*session.place.after(node)),
            chosen=isinstance(node, Link | Option) and session.chosen(node),
        )


def exact(text: str) -> Markup:
    """Return a text as mark-up that a browser reads back unchanged."""
    # A browser reads a bare carriage return as a new line.
    return Markup(str(escape(text)).replace("\r", "&#13;"))
