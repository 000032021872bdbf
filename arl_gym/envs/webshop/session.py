"""One shopper's way through the shop: which page is open, what is selected, what an action changes.

Not an environment: no steps are counted, no goals drawn, and nothing is raised on what an agent says.
Pages are reached by actions (`act`), or by their address as links of a site lead to them (`go`).
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache

from arl_gym.core import check_count
from arl_gym.envs.webshop import pages
from arl_gym.envs.webshop.goal import Goal
from arl_gym.envs.webshop.pages import Button, Link, Option, Part
from arl_gym.envs.webshop.product import Product
from arl_gym.envs.webshop.reward import Reward, score
from arl_gym.envs.webshop.shop import Shop

MAX_QUERY = 2000
"""Characters of a query that are read; the longest instruction of the original has 898."""

_BREAKS = str.maketrans("\r\n", "  ")


class Session:
    """A shopper with a goal; call `begin` first.

    Args:
        shop: The products and the search engine.
        results_per_page: Products on a page of results.
        show_attributes: Whether products have a page with their attributes.
        hide_empty_next: Hide the button "Next >" where no result is left; the original always shows it.
        mark_clicked: Write " (selected)" after selected options and " (visited)" after products that were
            opened in `text`; the original shows neither.
        number_results: Name results by their place, from 1, instead of the products' ids.
        compat: Parse actions, name options and mark selected options as the original does, with its defects.

    Attributes:
        goal: What the shopper is to buy.
        page: "search", "results", "item", one of `pages.SUB_PAGES`, or "done".
        keywords: Of the current search, in lower case; empty if there is none.
        results: Numbers of the products that it found.
        page_number: Of the results, from 1; also on the pages of a product.
        product: What is open or was bought.
        reward: What the purchase was worth; None before.
    """

    def __init__(
        self,
        shop: Shop,
        *,
        results_per_page: int = 10,
        show_attributes: bool = False,
        hide_empty_next: bool = False,
        mark_clicked: bool = False,
        number_results: bool = False,
        compat: bool = False,
    ):
        self._shop = shop
        check_count("results_per_page", results_per_page)
        self.results_per_page = results_per_page
        self._show_attributes = show_attributes
        self._hide_empty_next = hide_empty_next
        self._mark_clicked = mark_clicked
        self._number_results = number_results
        self._compat = compat

    def begin(self, goal: Goal, session_id: str) -> None:
        """Start over on the search page with a goal."""
        self.goal = goal
        self._id = session_id
        self._home = pages.search_page(goal.instruction)
        self._made_head: Part | None = None
        self.reward: Reward | None = None
        self._back_to_search()

    def _back_to_search(self) -> None:
        self.keywords = ""
        self.results: Sequence[int] = ()
        self.page_number = 1
        self._visited: dict[str, None] = {}
        self._leave_product()
        self._open("search")

    def _leave_product(self) -> None:
        self.product: Product | None = None
        self._selected: dict[str, str] = {}

    def _open(self, page: str) -> None:
        self.page = page
        self._parts: Sequence[Part] | None = None
        self._clicks: dict[str, Button | Link | Option] | None = None

    @property
    def selected(self) -> Mapping[str, str]:
        """The selected option of each group, in the order in which the groups were first chosen from."""
        return dict(self._selected)

    @property
    def visited(self) -> Sequence[str]:
        """The products opened since the search page, in order."""
        return tuple(self._visited)

    @property
    def has_search_bar(self) -> bool:
        """Whether the page shows a search bar; searching works on every page but the last."""
        return self.page == "search"

    def clickables(self) -> list[str]:
        """Return what can be clicked: buttons and links in page order, in lower case, then options."""
        return list(self.clickable())

    def clickable(self) -> Mapping[str, Button | Link | Option]:
        """Return what can be clicked, by the words that do it; see `clickables`."""
        if self._clicks is None:
            self._clicks = {}
            for part in self.content():
                self._clicks |= part.clicks
        return self._clicks

    def marks(self) -> Mapping[str, str]:
        """Return what can be clicked, by its number in screenshots with marks: "#1" and so on."""
        if self.has_search_bar:
            return {}
        return {f"#{k}": name for k, name in enumerate(self.clickables(), 1)}

    def link_name(self, number: int) -> str:
        """Return what is clicked to open a product that is among the results."""
        if self._number_results:
            return str(self.results.index(number) + 1)
        return self._shop.card(number).asin.lower()

    def option_name(self, group: str, value: str) -> str:
        """Return what is clicked on the page of a product to select a value of a group."""
        options = (option for part in self.content() for option in part.options)
        return next(option.click for option in options if (option.group, option.text) == (group, value))

    def act(self, action: str) -> bool:
        """Search with "search[words]" or click with "click[what]"; return whether that could be done."""
        name, argument = _parse_as_original(action) if self._compat else _parse(action)
        argument = argument.lower()
        if self.page == "done" or not argument:
            return False
        if name == "search":
            self._search(argument)
            return True
        return name == "click" and argument != "search" and self._click(argument)

    def go(
        self,
        page: str,
        *,
        keywords: str = "",
        page_number: int = 1,
        asin: str = "",
        options: Mapping[str, str] | None = None,
    ) -> bool:
        """Open a page by its address; return False, and change nothing, if clicks could not lead there.

        Args:
            page: "search", "results", "item" or one of `pages.SUB_PAGES`.
            keywords: What was searched for, on all pages but the first.
            page_number: Of the results, from 1.
            asin: The product, which is on this page of the results.
            options: Its selected options, by group.
        """
        if self.page == "done":
            return False
        if page == "search":
            self._back_to_search()
            return True
        keywords = one_line(keywords.lower())
        results = self.results if keywords == self.keywords else tuple(self._shop.search(keywords))
        if not keywords or page_number < 1:
            return False
        if page == "results":
            self.keywords, self.results = keywords, results
            self._show_results(page_number)
            return True
        number = self._shop.number(asin)
        start = (page_number - 1) * self.results_per_page
        if number is None or number not in results[start : start + self.results_per_page]:
            return False
        product, item = self._view(number)
        if not self._has_page(item, page) or not _has_options(product, options or {}):
            return False
        self.keywords, self.results, self.page_number = keywords, results, page_number
        self.product, self._item, self._selected = product, item, dict(options or {})
        self._visited[asin] = None
        self._open(page)
        return True

    @staticmethod
    def _has_page(item: Part, page: str) -> bool:
        leads_to = {node.to for node in item.nodes if isinstance(node, Button)}
        return page == "item" or (page in pages.SUB_PAGES and page in leads_to)

    def _search(self, keywords: str) -> None:
        self.keywords = one_line(keywords)
        self.results = tuple(self._shop.search(self.keywords))
        self._show_results(1)

    def _show_results(self, page_number: int) -> None:
        self.page_number = page_number
        self._leave_product()
        self._open("results")

    def _click(self, argument: str) -> bool:
        node = self.clickable().get(argument) or self._ambiguous(argument)
        if node is None:
            return False
        self._follow(node)
        return True

    def _follow(self, node: Button | Link | Option) -> None:
        match node:
            case Option():
                self._selected[node.group] = node.text
            case Link():
                self._visit(node)
            case Button():
                self._press(node.to)

    def _ambiguous(self, value: str) -> Option | None:
        """Return the last option of a value that more than one group has: the bare value selects that."""
        if self.page != "item" or self._compat:
            return None
        return next((option for option in reversed(self._item.options) if option.text == value), None)

    def _visit(self, link: Link) -> None:
        self.product, self._item = self._view(link.number)
        self._visited[link.asin] = None
        self._open("item")

    def _view(self, number: int) -> tuple[Product, Part]:
        return _view(self._shop, number, show_attributes=self._show_attributes, compat=self._compat)

    def _press(self, to: str) -> None:
        match to:
            case "search":
                self._back_to_search()
            case "next":
                self._show_results(self.page_number + 1)
            case "prev":
                self._show_results(self.page_number - 1)
            case "results":
                self._show_results(self.page_number)
            case "done":
                self.buy()
            case _:
                self._open(to)

    def buy(self) -> None:
        """Buy the product that is open, which ends the visit."""
        assert self.product is not None
        self.reward = score(self.product, self._selected.values(), self.goal)
        self._open("done")

    def content(self) -> Sequence[Part]:
        """Return the parts of the page."""
        if self._parts is None:
            self._parts = self._render()
        return self._parts

    @property
    def _head(self) -> Part:
        if self._made_head is None:
            self._made_head = pages.head(self.goal.instruction)
        return self._made_head

    def _render(self) -> Sequence[Part]:
        if self.page == "search":
            return (self._home,)
        if self.page == "results":
            return (self._head, *self._results_page())
        assert self.product is not None
        if self.page == "item":
            return self._head, self._item
        if self.page == "done":
            assert self.reward is not None
            return (pages.done_page(self.product.asin, self._selected, self.reward.total),)
        return self._head, pages.sub_page(self.product, self.page)

    def _results_page(self) -> Sequence[Part]:
        start = (self.page_number - 1) * self.results_per_page
        end = start + self.results_per_page
        more = not self._hide_empty_next or end < len(self.results)
        top = _results_head(self.page_number, len(self.results), more)
        numbers = self.results[start:end]
        if self._number_results:
            return top, *(_result(self._shop, n, place) for place, n in enumerate(numbers, start + 1))
        return top, *[_result(self._shop, n) for n in numbers]

    def text(self) -> str:
        """Return the page as text."""
        marks = self._mark_clicked and self._visited
        return pages.text(self.content(), self.chosen if marks else None)

    def text_rich(self) -> str:
        """Return the page as text with buttons marked, those that were clicked too."""
        return pages.text_rich(self.content(), self._chosen_as_original if self._compat else self.chosen)

    def _chosen_as_original(self, node: Link | Option) -> bool:
        if isinstance(node, Link):
            return self.chosen(node)
        # The original looks for the value in the address, where JSON has escaped some characters.
        return f'"{node.text}"' in self.place.url(self.page)

    def html(self) -> str:
        """Return the page as an HTML document."""
        return pages.html(self.content(), self.place, self.chosen)

    def url(self) -> str:
        """Return the address of the page."""
        return self.place.url(self.page)

    @property
    def place(self) -> pages.Place:
        """Where the session is."""
        return pages.Place(
            session_id=self._id,
            keywords=self.keywords,
            page_number=self.page_number,
            asin=self.product.asin if self.product else "",
            options=self._selected,
        )

    def chosen(self, node: Link | Option) -> bool:
        """Return whether a link was visited or an option is selected."""
        if isinstance(node, Link):
            return node.asin in self._visited
        return self._selected.get(node.group) == node.text

    def key(self) -> tuple[object, ...]:
        """Return what tells this state from others: neither the goal, nor how the session came here."""
        asin = self.product.asin if self.product else ""
        options, visited = sorted(self._selected.items()), sorted(self._visited)
        return self.page, self.keywords, self.page_number, asin, tuple(options), tuple(visited)


def _parse(action: str) -> tuple[str, str]:
    """Split "name[argument]" at the outermost brackets; what follows them is ignored."""
    name, _, rest = action.partition("[")
    argument, _, _ = rest.rpartition("]")
    return name.strip().lower(), argument


def _parse_as_original(action: str) -> tuple[str, str]:
    """Split "name[argument]" of the first line at the last bracket that leaves an argument before a "]"."""
    line, _, _ = action.partition("\n")
    end = line.rfind("]")
    start = line.rfind("[", 1, max(end - 1, 1))
    return (line[:start], line[start + 1 : end]) if start > 0 else ("", "")


def one_line(query: str) -> str:
    """Return a query as the search bar of a browser takes it."""
    return query[:MAX_QUERY].translate(_BREAKS).encode(errors="replace").decode()


def _has_options(product: Product, selected: Mapping[str, str]) -> bool:
    values = dict(product.options)
    return all(value in values.get(group, ()) for group, value in selected.items())


@lru_cache(maxsize=256)
def _results_head(page_number: int, total: int, more: bool) -> Part:
    return pages.results_head(page_number, total, more=more)


@lru_cache(maxsize=8192)
def _result(shop: Shop, number: int, place: int | None = None) -> Part:
    return pages.result(shop.card(number), number, place)


@lru_cache(maxsize=2048)
def _view(shop: Shop, number: int, *, show_attributes: bool, compat: bool) -> tuple[Product, Part]:
    product = shop.product(number)
    return product, pages.item_page(product, show_attributes=show_attributes, compat=compat)
