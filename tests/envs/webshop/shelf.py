"""A shop for tests, and the original's way of reading a page's HTML."""

from collections.abc import Mapping, Sequence
from html.parser import HTMLParser

from arl_gym.envs.webshop.goal import Goal
from arl_gym.envs.webshop.product import Card, Product


class Shelf:
    """A shop whose search finds what it was told to find, at first everything, in the order given."""

    def __init__(self, products: Sequence[Product], found: Mapping[str, Sequence[int]] | None = None):
        self.products = products
        self.found = found or {}
        self.searches: list[str] = []

    def search(self, query: str) -> Sequence[int]:
        self.searches.append(query)
        return self.found.get(query, range(min(50, len(self.products))))

    def number(self, asin: str) -> int | None:
        return next((i for i, product in enumerate(self.products) if product.asin == asin), None)

    def product(self, number: int) -> Product:
        return self.products[number]

    def card(self, number: int) -> Card:
        return self.products[number].card


def mug(number: int = 0, **changed: object) -> Product:
    """Return one product of many."""
    fields: dict[str, object] = {
        "asin": f"B{number:09}",
        "title": f"Mug {number}",
        "category": "garden",
        "query": "mugs",
        "product_category": "Home › Kitchen › Mugs",
        "description": "Holds tea.",
        "bullets": ("Dishwasher safe", "12 oz"),
        "prices": (9.5,),
        "options": (("color", ("red", "blue")), ("size", ("small", "large"))),
        "attributes": ("bpa free", "lead free"),
        "nouns": ("mug",),
        "image": "",
    }
    return Product(**(fields | changed))  # type: ignore[arg-type]


GOAL = Goal(
    instruction="i want a blue mug",
    asin="B000000000",
    category="garden",
    query="mugs",
    title="Mug 0",
    product_category="Home › Kitchen › Mugs",
    attributes=("bpa free",),
    options=("blue",),
    targets=("blue",),
    price_upper=1_000_000.0,
    nouns=("mug",),
)


class OriginalReader(HTMLParser):
    """Reads a page as the original did with its parser.

    A text node ends at any tag or comment. One that is all white space, outside `pre`, becomes a new line if
    it holds one, else a space. What is in the head, a script or a comment is not seen.
    """

    VOID = ("br", "hr", "img", "input", "link", "meta")

    def __init__(self, page: str):
        super().__init__()
        self.open: list[tuple[str, dict[str, str | None]]] = []
        self.nodes: list[tuple[str, str | None, str]] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.mismatched = 0
        self._data = ""
        self.feed(page)
        self.close()
        self._end_node()

    def _end_node(self) -> None:
        data, self._data = self._data, ""
        inside = [name for name, _ in self.open]
        if data and not data.strip(" \n\t\f\r") and "pre" not in inside:
            data = "\n" if "\n" in data else " "
        if inside and inside[-1] not in ("style", "script", "head", "title") and data not in ("", "\n"):
            self.nodes.append((inside[-1], self.open[-1][1].get("class"), data))

    def handle_data(self, data: str) -> None:
        self._data += data

    def handle_comment(self, data: str) -> None:
        self._end_node()

    def handle_decl(self, decl: str) -> None:
        self._end_node()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._end_node()
        self.elements.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        self._end_node()
        self.mismatched += not self.open or self.open[-1][0] != tag
        names = [name for name, _ in self.open]
        if tag in names:
            del self.open[len(names) - 1 - names[::-1].index(tag) :]

    def text(self) -> str:
        """Return the page as the observation `text`."""
        return " [SEP] ".join(data.strip() for _, _, data in self.nodes)

    def text_rich(self, url: str, visited: Sequence[str]) -> str:
        """Return the page as the observation `text_rich`."""
        page = ""
        for tag, css, data in self.nodes:
            if tag == "button":
                page += f"[button] {data} [button_]\n"
            elif tag == "label" and f'"{data}"' in url:
                page = f"You have clicked {data}.\n{page}  [clicked button] {data} [clicked button_]\n"
            elif tag == "label":
                page += f"  [button] {data} [button_]\n"
            elif css == "product-link":
                word = "clicked button" if data in visited else "button"
                page += f"\n[{word}] {data} [{word}_]\n"
            else:
                page += f"{data}\n"
        return page

    def clickables(self) -> list[str]:
        """Return what the original offers to click."""
        buttons = [data.lower() for tag, css, data in self.nodes if tag == "button" or css == "product-link"]
        radios = [at["value"] or "" for _, at in self.elements if at.get("type") == "radio"]
        return list(dict.fromkeys(buttons + radios))
