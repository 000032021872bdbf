"""A shopper who uses the site through a browser: the same pages, clicks and scores as a `Session`.

What a page shows is read from the browser's document; where the shopper is, from its address. So the expert,
the state key and the reward need nothing of the site.

>>> session = BrowserSession(tasks, window=Window((1280, 800), pictures=True, marks=False))  # doctest: +SKIP
"""

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from http.client import HTTPException
from typing import Any
from urllib.parse import urlencode, urlsplit
from urllib.request import ProxyHandler, build_opener

import numpy as np
import numpy.typing as npt

from arl_gym.envs.webshop.browser import Browser, Node, Page, find_programs
from arl_gym.envs.webshop.goal import Goal
from arl_gym.envs.webshop.marks import draw_marks
from arl_gym.envs.webshop.pages import Button, Link, Option, Part, Text
from arl_gym.envs.webshop.session import Session, one_line
from arl_gym.envs.webshop.site.address import read_place
from arl_gym.envs.webshop.site.app import create_app
from arl_gym.envs.webshop.site.server import SiteServer
from arl_gym.envs.webshop.tasks import Tasks
from arl_gym.errors import BrowserError, ConfigError

_TIMEOUT_S = 20.0
_SCROLL_BY = 0.8


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """What the browser is looked at through."""

    size: tuple[int, int]
    """Width and height in pixels."""
    pictures: bool
    """Whether anybody looks: without, pictures are not loaded and there is no scrolling."""
    marks: bool
    """Whether what can be clicked is numbered in the screenshots."""


class BrowserSession(Session):
    """A shopper with a browser, which starts with the first visit and ends with `close`.

    Args:
        tasks: The shop and its goals.
        window: How it is looked at.
        site_url: A running site of the same shop; None starts one beside the browser, on a free port of this
            machine.
        options: Arguments of `Session`.

    Raises:
        BrowserError: If no browser is installed.
        ConfigError: If the site at `site_url` is not one of this shop.
    """

    def __init__(self, tasks: Tasks, *, window: Window, site_url: str | None = None, **options: Any):
        super().__init__(tasks.store, **options)
        self._window = window
        self._programs = find_programs()
        self._browser: Browser | None = None
        self._server: SiteServer | None = None
        self._closed = False
        self._app = create_app(tasks, options=options) if site_url is None else None
        if site_url is not None:
            self._site = site_url.rstrip("/")
            self._check_site(tasks, options)

    def _check_site(self, tasks: Tasks, options: Mapping[str, Any]) -> None:
        _, body = self._ask("/about")
        try:
            about = json.loads(body)
            theirs = {"content_hash": about["content_hash"], **about["options"]}
        except (ValueError, KeyError, TypeError) as err:
            raise ConfigError(f"{self._site}/about is not that of a WebShop: {body[:80]!r}") from err
        ours = {"content_hash": tasks.store.content_hash, **options}
        for name in sorted(ours.keys() | theirs.keys()):
            if ours.get(name) != theirs.get(name):
                raise ConfigError(
                    f"the site at {self._site} is another shop: its {name} is {theirs.get(name)!r}, "
                    f"the environment's {ours.get(name)!r}"
                )

    def _ask(self, path: str, **form: str) -> tuple[str, bytes]:
        """Return the final address of what the site answers, and the answer."""
        data = urlencode(form).encode() if form else None
        try:
            with _direct.open(self._site + path, data, timeout=_TIMEOUT_S) as answer:
                return answer.url, answer.read()
        except (OSError, ValueError, HTTPException) as err:  # an answer of 404 is an OSError here
            raise BrowserError(f"the site at {self._site} does not answer {path}: {err}") from err

    # ---- the browser

    def begin(self, goal: Goal, session_id: str) -> None:
        """Start over with a goal, in the browser there is; in a new one if that has failed."""
        if self._closed:
            raise BrowserError("a closed environment cannot begin an episode")
        super().begin(goal, session_id)
        if self._app is not None and self._server is None:
            self._server = SiteServer(self._app)
            self._site = self._server.url
        url, _ = self._ask("/visits", task_id=session_id)
        if self._browser is not None:
            with suppress(BrowserError):
                self._show(self._browser.open(url))
                return
            self._browser.close()
        self._browser = Browser(
            self._programs, site=self._site, size=self._window.size, pictures=self._window.pictures
        )
        self._show(self._browser.open(url))

    @property
    def browser(self) -> Browser:
        """The browser.

        Raises:
            BrowserError: Before the first visit and after `close`.
        """
        if self._browser is None:
            raise BrowserError("there is no browser: begin a visit first")
        return self._browser

    def _show(self, page: Page) -> None:
        """Follow the browser to where it is."""
        path, query = urlsplit(page.url)[2:4]
        place, name = read_place("", query), path.rpartition("/")[2]
        if name == "done" and self.product is not None:
            super().buy()
        elif place is None or not self.go(
            name,
            keywords=place.keywords,
            page_number=place.page_number,
            asin=place.asin,
            options=place.options,
        ):
            raise BrowserError(f"the browser shows no page of the shop: {page.title!r} at {page.url}")
        self._nodes = [*map(_node, page.nodes)]
        self._numbers = [node.number for node in page.nodes]
        self._url = page.url
        self._above, self._below = False, page.below

    def close(self) -> None:
        """End the browser, and the site if it is our own; a second call does nothing."""
        if self._browser is not None:
            self._browser.close()
        if self._server is not None:
            self._server.close()
        self._browser = self._server = None
        self._closed = True

    # ---- a session's own ways, through the browser

    def act(self, action: str) -> bool:
        """Search or click as in a `Session`; "scroll[down]" and "scroll[up]" where pictures are looked at."""
        direction = _SCROLLS.get(action.strip().lower())
        if direction is None or not self._window.pictures or self.page == "done":
            return super().act(action)
        moved, self._above, self._below = self.browser.scroll(direction)
        return moved

    def scrolls(self) -> Sequence[str]:
        """Return the scrolling actions that would show more of the page."""
        if not self._window.pictures or self.page == "done":
            return []
        return [action for action, more in zip(_SCROLLS, (self._below, self._above), strict=True) if more]

    def _click(self, argument: str) -> bool:
        if self._window.marks and argument not in self.clickable():
            argument = self.marks().get(argument, argument)
        return super()._click(argument)

    def _search(self, keywords: str) -> None:
        self._show(self.browser.search(one_line(keywords)))

    def _follow(self, node: Button | Link | Option) -> None:
        place = next(i for i, other in enumerate(self._nodes) if type(other) is type(node) and other == node)
        self._show(self.browser.click(self._numbers[place]))

    def _render(self) -> Sequence[Part]:
        return [Part(self._nodes)]

    def html(self) -> str:
        """Return the page's mark-up as the browser has it."""
        return self.browser.source()

    def url(self) -> str:
        """Return the address that the browser shows."""
        return self._url

    def screenshot(self) -> npt.NDArray[np.uint8]:
        """Return what the window shows, uint8 of shape (height, width, 3), with marks if it has them."""
        image = self.browser.screenshot()
        if not self._window.marks or not self.marks():
            return image
        clicked = [*self.clickable().values()]
        label = {
            n: clicked.index(x) + 1 for n, x in zip(self._numbers, self._nodes, strict=True) if x in clicked
        }
        boxes = [box for box in self.browser.boxes() if box.number in label]
        return draw_marks(image, [(str(label[box.number]), box[1:]) for box in boxes])


_SCROLLS = {"scroll[down]": _SCROLL_BY, "scroll[up]": -_SCROLL_BY}
_direct = build_opener(ProxyHandler({}))


def _node(node: Node) -> Text | Button | Link | Option:
    match node.kind:
        case "button":
            return Button(node.text, node.target)
        case "link":
            return Link(node.text, node.target, int(node.name))
        case "option":
            return Option(node.text, node.target, node.name)
        case _:
            return Text(node.text)
