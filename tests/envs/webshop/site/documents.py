"""Pages of the site as a browser has them."""

from collections.abc import Mapping, Sequence
from html.parser import HTMLParser

VOID = {"br", "circle", "img", "input", "link", "meta", "path", "rect"}


class Element:
    """An element with all text in it and the attributes of the elements around it."""

    def __init__(self, tag: str, attributes: Mapping[str, str | None], around: Sequence["Element"]):
        self.tag, self.attributes, self.around, self.text = tag, attributes, around, ""

    def __getitem__(self, name: str) -> str:
        return self.attributes.get(name) or ""


class Document(HTMLParser):
    """A page as a browser has it: its elements in order."""

    def __init__(self, source: str):
        super().__init__()
        self.elements: list[Element] = []
        self._open: list[Element] = []
        self.feed(source.removeprefix("<!doctype html>"))
        self.close()
        assert not self._open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert len({name for name, _ in attrs}) == len(attrs)
        self.elements.append(Element(tag, dict(attrs), tuple(self._open)))
        if tag not in VOID:
            self._open.append(self.elements[-1])

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop().tag == tag

    def handle_data(self, data: str) -> None:
        for element in self._open:
            element.text += data

    def all(self, tag: str = "", **attributes: str) -> list[Element]:
        wanted = {name.replace("_", "-"): value for name, value in attributes.items()}
        return [
            x
            for x in self.elements
            if x.tag == (tag or x.tag) and all(x.attributes.get(k) == v for k, v in wanted.items())
        ]

    def nodes(self) -> list[Element]:
        marked = [element for element in self.elements if "data-n" in element.attributes]
        return sorted(marked, key=lambda element: int(element["data-n"]))

    @property
    def words(self) -> str:
        """All text, with single blanks."""
        return " ".join(self.all("body")[0].text.split())
