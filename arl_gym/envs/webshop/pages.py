"""The shop's pages: one description of each, read out as text, as rich text and as HTML.

A page is a sequence of parts, a part a sequence of nodes. What is shown and what can be clicked is written
once, in the nodes, so the three readings cannot differ. Nothing here knows a session; see `session`.

>>> text([Part([Text("Rating: N.A.", "h4"), Button("Buy Now", "done")])])
'Rating: N.A. [SEP] Buy Now'
"""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from typing import NamedTuple
from urllib.parse import quote

from arl_gym.envs.webshop.product import Card, Product

SEPARATOR = " [SEP] "
SUB_PAGES = ("description", "features", "reviews", "attributes")
HOST = "http://127.0.0.1:3000"
# What a click on a product's page means beside its sub pages; "search" and nothing never click an option.
_WORDS = ("back to search", "< prev", "buy now", "search", "")


class Text(NamedTuple):
    """Something to read, in an element of its own unless `tag` is empty."""

    text: str
    tag: str = "p"


class Button(NamedTuple):
    """A button and where it leads: "query" (of the search bar), "next", "prev", or the name of a page."""

    text: str
    to: str


class Link(NamedTuple):
    """A link to a product; its text is the product's id, or the place among the results."""

    text: str
    asin: str
    number: int


class Option(NamedTuple):
    """A value of an option group."""

    text: str
    group: str
    click: str
    """What is clicked to select it: the value, or "group: value" where the value alone is ambiguous."""


class Mark(NamedTuple):
    """Mark-up around other nodes; it shows no text."""

    html: str
    text: str = ""


Node = Text | Button | Link | Option | Mark
Chosen = Callable[[Link | Option], bool]
"""Whether a link was visited or an option is selected."""


class Part:
    """Consecutive nodes; what does not depend on the session is worked out once."""

    __slots__ = ("clicks", "nodes", "shown", "text")

    def __init__(self, nodes: Iterable[Node]):
        self.nodes = tuple(nodes)
        self.shown = tuple((node, text) for node in self.nodes if (text := _text(node)) not in ("", "\n"))
        """The nodes that show text, with the text."""
        self.text = "".join([SEPARATOR + text.strip() for _, text in self.shown])
        """The text, each field after a separator."""
        self.clicks = _clicks(self.nodes)
        """What can be clicked, by the words that do it: buttons and links in lower case, then options."""

    @property
    def options(self) -> tuple[Option, ...]:
        """The options."""
        return tuple(node for node in self.nodes if isinstance(node, Option))


def _clicks(nodes: Iterable[Node]) -> dict[str, Button | Link | Option]:
    clicks: dict[str, Button | Link | Option] = {}
    options = list[Option]()
    for node in nodes:
        if isinstance(node, Option):
            options.append(node)
        elif isinstance(node, (Button, Link)):
            clicks[node.text.lower()] = node
    for option in options:
        if not isinstance(clicks.get(option.click), Button):
            clicks[option.click] = option
    return clicks


def _text(node: Node) -> str:
    text = node.text
    if text.strip():
        return text
    # As the original's HTML parser does: what is only white space becomes one character of it.
    if text.strip(" \n\t\f\r"):
        return text
    return "\n" if "\n" in text else text[:1] and " "


def text(parts: Iterable[Part], chosen: Chosen | None = None) -> str:
    """Return a page as text: its fields, joined by separators.

    Args:
        parts: The page.
        chosen: If given, the options that it holds of are marked.
    """
    if chosen is None:
        return "".join([part.text for part in parts])[len(SEPARATOR) :]
    return SEPARATOR.join(_marked(node, shown, chosen) for part in parts for node, shown in part.shown)


def _marked(node: Node, shown: str, chosen: Chosen) -> str:
    if isinstance(node, (Link, Option)) and chosen(node):
        return shown.strip() + (" (selected)" if isinstance(node, Option) else " (visited)")
    return shown.strip()


def text_rich(parts: Iterable[Part], chosen: Chosen) -> str:
    """Return a page as text with its buttons marked, a node a line; selected options are told on top."""
    lines: list[str] = []
    clicked: list[str] = []
    for node, shown in (pair for part in parts for pair in part.shown):
        if isinstance(node, Text):
            lines.append(shown)
        elif isinstance(node, Button):
            lines.append(f"[button] {shown} [button_]")
        elif isinstance(node, Link | Option):
            word = "clicked button" if chosen(node) else "button"
            start = "  " if isinstance(node, Option) else "\n"
            lines.append(f"{start}[{word}] {shown} [{word}_]")
            if isinstance(node, Option) and word == "clicked button":
                clicked.append(f"You have clicked {shown}.")
    return "".join(f"{line}\n" for line in clicked[::-1] + lines)


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a session is, as the addresses of its pages tell it."""

    session_id: str
    keywords: str = ""
    page_number: int = 1
    asin: str = ""
    options: Mapping[str, str]

    def url(self, page: str) -> str:
        """Return the address of a page as the original's text environment writes it."""
        words = self.keywords.replace(" ", "+")
        options = dict(self.options)
        shown = json.dumps(options) if page == "item" else str(options)
        return HOST + _path(page, self.session_id, self.asin, words, str(self.page_number), shown)

    def path(self, page: str) -> str:
        """Return the address of a page as the original's site writes it: percent-encoded, with no host."""
        words, options = str(self.keywords.split(" ")), str(dict(self.options))
        fields = (self.session_id, self.asin, words, str(self.page_number), options)
        return _path(page, *(quote(field, safe="") for field in fields))

    def after(self, node: Button | Link | Option) -> tuple[str, "Place"]:
        """Return the page that a button, a link or an option leads to, and where that is."""
        if isinstance(node, Link):
            return "item", replace(self, asin=node.asin, options={})
        if isinstance(node, Option):
            return "item", replace(self, options={**self.options, node.group: node.text})
        step = {"next": 1, "prev": -1}.get(node.to)
        if step is not None:
            return "results", replace(self, page_number=self.page_number + step)
        return node.to, self


def _path(page: str, session_id: str, asin: str, words: str, number: str, options: str) -> str:
    match page:
        case "search" | "query":
            return f"/{session_id}"
        case "results":
            return f"/search_results/{session_id}/{words}/{number}"
        case "item":
            return f"/item_page/{session_id}/{asin}/{words}/{number}/{options}"
        case "done":
            return f"/done/{session_id}/{asin}/{options}"
        case _:
            return f"/item_sub_page/{session_id}/{asin}/{words}/{number}/{page.capitalize()}/{options}"


def html(parts: Iterable[Part], place: Place, chosen: Chosen) -> str:
    """Return a page as an HTML document.

    Buttons, links and options have the classes and types that readers of the original's pages look for:
    `button.btn`, `a.product-link`, `input[type=radio]`, `input#search_input`, `#instruction-text h4`.
    """
    nodes = (node for part in parts for node in part.nodes)
    body = "".join(_element(node, i, place, chosen) for i, node in enumerate(nodes))
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>WebShop</title>\n</head>\n'
        f"<body>\n{body}</body>\n</html>\n"
    )


def _element(node: Node, i: int, place: Place, chosen: Chosen) -> str:
    if isinstance(node, Mark):
        return node.html
    shown = _escape(node.text)
    if isinstance(node, Text):
        return f"<{node.tag}>{shown}</{node.tag}>\n" if node.tag else shown
    page, there = place.after(node)
    to = _escape(there.path(page))
    if isinstance(node, Link):
        return f'<h4><a class="product-link" href="{to}">{shown}</a></h4>\n'
    if isinstance(node, Button):
        return _form(node, shown, to)
    checked = " checked" if chosen(node) else ""
    return (
        f'<input type="radio" id="option{i}" name="{_escape(node.group)}" value="{shown}"{checked}'
        f' data-url="{to}" onchange="location = this.dataset.url">\n<label for="option{i}">{shown}</label>\n'
    )


def _form(node: Button, shown: str, to: str) -> str:
    bar = '<input id="search_input" name="search_query" type="text" placeholder="Search..." required>'
    return (
        f'<form method="post" action="{to}">{bar if node.to == "query" else ""}'
        f'<button type="submit" class="btn">{shown}</button></form>\n'
    )


def _escape(value: str) -> str:
    # A browser reads a bare carriage return as a new line.
    return escape(value).replace("\r", "&#13;")


def search_page(instruction: str) -> Part:
    """Return the page with the search bar."""
    return Part(
        [Text("WebShop", "h2"), *_instruction("Instruction: ", instruction), Button("Search", "query")]
    )


def head(instruction: str) -> Part:
    """Return what all pages but the first and the last begin with."""
    return Part([*_instruction("Instruction:", instruction), Button("Back to Search", "search")])


def _instruction(label: str, instruction: str) -> Sequence[Node]:
    start = Mark('<div id="instruction-text"><h4>')
    return start, Text(label, ""), Mark("<br>"), Text(instruction, ""), Mark("</h4></div>\n")


def results_head(page_number: int, total: int, *, more: bool) -> Part:
    """Return what stands above the results; `more` puts the button of the next page there."""
    nodes: list[Node] = [Text(f"Page {page_number} (Total results: {total})", "h3")]
    if page_number > 1:
        nodes.append(Button("< Prev", "prev"))
    if more:
        nodes.append(Button("Next >", "next"))
    return Part(nodes)


def result(card: Card, number: int, place: int | None = None) -> Part:
    """Return one of the results; where a place is given, it stands for the product's id."""
    link = Link(card.asin if place is None else str(place), card.asin, number)
    return Part([link, Text(card.title, "h4"), Text(card.price_tag, "h5")])


def item_page(product: Product, *, show_attributes: bool = False, compat: bool = False) -> Part:
    """Return the page of a product.

    Args:
        product: What it shows.
        show_attributes: Whether there is a button for the attributes.
        compat: Options are clicked by their value even where another group or a button has the same.
    """
    shown = SUB_PAGES if show_attributes else SUB_PAGES[:-1]
    return Part(
        [
            Button("< Prev", "results"),
            *_image(product.image),
            *_options(product, None if compat else {*shown, *_WORDS}),
            Text(product.title, "h2"),
            Text(f"Price: {product.price_tag}", "h4"),
            Text("Rating: N.A.", "h4"),
            *(Button(name.capitalize(), name) for name in shown),
            Button("Buy Now", "done"),
        ]
    )


def _image(source: str) -> Iterator[Node]:
    if source:
        yield Mark(f'<img id="product-image" src="{_escape(source)}" alt="">\n')


def _options(product: Product, words: set[str] | None) -> Iterator[Node]:
    """Yield the options; `words` are those that mean something else on the page, None to ignore that."""
    groups = Counter(value for _, values in product.options for value in {*values})
    for group, values in product.options:
        yield Text(group, "h4")
        for value in values:
            ambiguous = words is not None and (groups[value] > 1 or value in words)
            yield Option(value, group, f"{group}: {value}" if ambiguous else value)


def sub_page(product: Product, page: str) -> Part:
    """Return one of the `SUB_PAGES` of a product."""
    return Part([Button("< Prev", "item"), *_SUB_PAGES[page](product)])


def _description(product: Product) -> Iterator[Node]:
    yield Text(product.description)


def _features(product: Product) -> Iterator[Node]:
    return _list(product.bullets)


def _list(entries: Iterable[str]) -> Iterator[Node]:
    yield Mark("<ul>\n")
    yield from (Text(f" {entry}", "li") for entry in entries)
    yield Mark("</ul>\n")


def _reviews(product: Product) -> Iterator[Node]:
    for review in product.reviews:
        yield Text(f'"{review.title}"', "h4")
        yield Text(review.score)
        yield Text(review.body)


def _attributes(product: Product) -> Iterator[Node]:
    yield from _list(product.attributes)
    for value in (product.category, product.query, product.product_category):
        yield Text(value, "h5")


_SUB_PAGES = dict(zip(SUB_PAGES, (_description, _features, _reviews, _attributes), strict=True))


def done_page(asin: str, options: Mapping[str, str], reward: float) -> Part:
    """Return the page after a purchase; it tells the score, and "None" where the original knows no more."""
    bought = {"asin": asin, "options": _json(options)}
    return Part(
        [
            Text("Thank you for shopping with us!", "h1"),
            Text("Your code: ", "h3"),
            Text("None", "pre"),
            Text(" (Paste it in your MTurk interface.)"),
            Mark("<div hidden>\n"),
            Text("Purchased", "h2"),
            *_pairs({**bought, **dict.fromkeys(("attrs", "category", "query", "product category"), "None")}),
            Text("Target", "h2"),
            *_pairs(dict.fromkeys(_GOAL_FIELDS, "")),
            *_pairs({"Goal ": "None"}),
            Text("Reward", "h2"),
            Mark("</div>\n"),
            *_pairs({"Your score (min 0.0, max 1.0)": str(reward)}),
            Mark("<div hidden>\n"),
            *_pairs({"Reward Details ": "None"}),
            Mark("</div>\n"),
        ]
    )


_GOAL_FIELDS = (
    "asin",
    "options",
    "attrs",
    "price upper",
    "instuction text",  # codespell:ignore instuction
    "category",
    "product category",
    "query",
)


def _pairs(fields: Mapping[str, str]) -> Iterator[Node]:
    for name, value in fields.items():
        yield Text(name, "h4")
        yield Text(value, "pre")


def _json(options: Mapping[str, str]) -> str:
    # The original writes JSON that is safe within HTML.
    unsafe = str.maketrans({c: f"\\u{ord(c):04x}" for c in "<>&'"})
    return json.dumps(options, sort_keys=True).translate(unsafe)
