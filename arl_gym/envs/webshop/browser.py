"""A headless Chromium that looks at the site: starts it, clicks, reads pages, takes pictures, ends it.

Knows the mark-up of the site's templates, not what it means; see `browser_session`. The browser runs until
`close`, or until it fails: then it is ended at once and nothing of it is left.

>>> with Browser(find_programs(), size=(1280, 800), pictures=True) as browser:  # doctest: +SKIP
...     page = browser.open("http://127.0.0.1:3000/")
"""

import io
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Literal, NamedTuple
from urllib.parse import urlsplit

import numpy as np
import numpy.typing as npt
from PIL import Image
from selenium.common.exceptions import TimeoutException, WebDriverException
from selenium.webdriver import ChromeOptions, Remote
from selenium.webdriver.common.proxy import Proxy, ProxyType
from selenium.webdriver.remote.client_config import ClientConfig
from selenium.webdriver.remote.remote_connection import RemoteConnection
from selenium.webdriver.support.ui import WebDriverWait
from urllib3.exceptions import HTTPError

from arl_gym.errors import BrowserError

CHROMIUM = "ARL_CHROMIUM"
"""Variable that names the browser where it is not at a usual place."""
CHROMEDRIVER = "ARL_CHROMEDRIVER"
"""Variable that names its driver."""

_NAMES = {
    CHROMIUM: ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome"),
    CHROMEDRIVER: ("chromedriver", "chromium.chromedriver"),
}
_USUAL_FOLDERS = ("/usr/bin", "/usr/local/bin", "/usr/lib/chromium", "/snap/bin", "/opt/google/chrome")
_START_TIMEOUT_S = 30.0
_COMMAND_TIMEOUT_S = 30
_PAGE_TIMEOUT_S = 20.0
_REMOVE_TIMEOUT_S = 5.0
_POLL_S = 0.005
_LONGEST_FOLDER = 40

# Whoever holds the other end of standard input owns the browser: when it is gone, so is the whole group.
_OWNED = '"$@" </dev/null & read -r _; trap "" TERM; kill -TERM 0; sleep 1; rm -rf "$HOME"; kill -KILL 0'

_READ = """
const nodes = [...document.querySelectorAll('[data-n]')].map(e => {
  const d = e.dataset;
  return [Number(d.n), d.kind, e.textContent, d.to ?? d.asin ?? d.group ?? '', d.number ?? d.click ?? ''];
});
const token = document.documentElement.dataset.token ?? '';
const below = innerHeight < document.documentElement.scrollHeight;
return [token, document.readyState, location.href, document.title, nodes, below];
"""
_CLICK = "document.querySelector(`[data-n='${arguments[0]}']`).click();"
_SEARCH = """
const form = document.querySelector('form[role=search]');
form.elements.q.value = arguments[0];
form.submit();
"""
_SCROLL = """
const before = scrollY;
scrollBy({top: arguments[0] * innerHeight, behavior: 'instant'});
const height = document.documentElement.scrollHeight;
return [scrollY != before, scrollY > 0, Math.ceil(scrollY + innerHeight) < height];
"""
_BOXES = """
return [...document.querySelectorAll('[data-n]:not([data-kind=text])')].map(e => {
  const r = e.getBoundingClientRect();
  return [Number(e.dataset.n), r.left, r.top, r.right, r.bottom];
});
"""


class Programs(NamedTuple):
    """Where the browser and its driver are."""

    chromium: str
    chromedriver: str


def find_programs() -> Programs:
    """Return the browser and the driver that `ARL_CHROMIUM` and `ARL_CHROMEDRIVER` name, else the installed.

    Raises:
        BrowserError: If one is missing; says how to install both.
    """
    return Programs(_find(CHROMIUM), _find(CHROMEDRIVER))


def _find(variable: str) -> str:
    named = os.environ.get(variable)
    places = os.pathsep.join([os.environ.get("PATH", ""), *_USUAL_FOLDERS])
    names = (named,) if named else _NAMES[variable]
    found = next((path for name in names if (path := shutil.which(name, path=places))), None)
    if found is None:
        raise BrowserError(
            f"no program {' or '.join(names)} was found: apt-get install chromium chromium-driver, "
            f"or name the programs in {CHROMIUM} and {CHROMEDRIVER}"
        )
    return found


class Node(NamedTuple):
    """An element that is part of the page's text, as the site marks it."""

    number: int
    kind: str
    text: str
    target: str
    """A button's page, a link's product, an option's group."""
    name: str
    """A link's number, what selects an option."""


class Page(NamedTuple):
    """What the browser shows."""

    url: str
    title: str
    nodes: Sequence[Node]
    """In the order of the text."""
    below: bool
    """Whether it goes on below the window."""


class Scrolled(NamedTuple):
    """What scrolling did."""

    moved: bool
    above: bool
    """Whether the page goes on above the window now."""
    below: bool


class Box(NamedTuple):
    """Where in the window an element is, in pixels."""

    number: int
    left: float
    top: float
    right: float
    bottom: float


class Browser:
    """One browser window.

    Args:
        programs: See `find_programs`.
        site: Address of the only host that it may ask.
        size: Width and height of the window's inside, in pixels.
        pictures: Whether pictures are loaded.

    Attributes:
        pid: Of the process group that all its processes are in.

    Raises:
        BrowserError: If it does not start, from the constructor; from every method, if it has failed.
    """

    def __init__(self, programs: Programs, *, site: str, size: tuple[int, int], pictures: bool):
        self._ready = ("complete",) if pictures else ("interactive", "complete")
        self._token = ""
        self._connection: RemoteConnection | None = None
        folder = tempfile.mkdtemp(prefix="arl-browser-", dir=_short_folder())
        log_file = Path(folder, "driver.log")
        command = [programs.chromedriver, "--port=0", "--log-level=SEVERE"]
        with log_file.open("wb") as log:
            process = subprocess.Popen(
                ["/bin/sh", "-c", _OWNED, "sh", *command],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                env={**os.environ, "HOME": folder, "TMPDIR": folder},
            )
        self.pid = process.pid
        self._end = weakref.finalize(self, _end, process, folder, os.getpid())
        with self._watched("start"):
            server = f"http://127.0.0.1:{_port(log_file)}"
            self._connection = RemoteConnection(
                client_config=ClientConfig(server, timeout=_COMMAND_TIMEOUT_S, proxy=_no_proxy())
            )
            self._driver = Remote(
                self._connection, options=_options(programs.chromium, folder, site, size, pictures)
            )

    def __enter__(self) -> "Browser":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, err: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @contextmanager
    def _watched(self, what: str) -> Iterator[None]:
        if not self._end.alive:
            raise BrowserError(f"the browser cannot {what}: it has ended")
        try:
            yield
        except (WebDriverException, HTTPError, OSError, KeyError, TypeError) as err:
            self.close()
            reason = str(getattr(err, "msg", None) or err).strip().split("\n")[0]
            raise BrowserError(
                f"the browser failed to {what} and was ended: {type(err).__name__}: {reason[:300]}"
            ) from err

    def open(self, url: str) -> Page:
        """Go to an address."""
        with self._watched("open a page"):
            self._driver.get(url)
            return self._next_page()

    def click(self, number: int) -> Page:
        """Click the element of this number and wait for the page it leads to."""
        return self._leave(f"click element {number}", _CLICK, number)

    def search(self, words: str) -> Page:
        """Search for words with the form of the page."""
        return self._leave("search", _SEARCH, words)

    def _leave(self, what: str, script: str, argument: object) -> Page:
        with self._watched(what):
            self._driver.execute_script(script, argument)
            return self._next_page()

    def _next_page(self) -> Page:
        """Wait for a page that has another token than the last one, and read it."""
        try:
            return WebDriverWait(self._driver, _PAGE_TIMEOUT_S, _POLL_S).until(self._read)
        except TimeoutException as err:
            raise TimeoutError(f"no new page after {_PAGE_TIMEOUT_S:g} s") from err

    def _read(self, driver: Remote) -> Page | Literal[False]:
        token, state, url, title, nodes, below = driver.execute_script(_READ)
        if token in ("", self._token) or state not in self._ready:
            return False
        self._token = token
        return Page(url, title, sorted(Node(*node) for node in nodes), below)

    def source(self) -> str:
        """Return the page's mark-up as the browser has it."""
        with self._watched("give the page's source"):
            return str(self._driver.page_source)

    def scroll(self, screens: float) -> Scrolled:
        """Scroll down by this share of the window's height, up if it is negative."""
        with self._watched("scroll"):
            return Scrolled(*self._driver.execute_script(_SCROLL, screens))

    def boxes(self) -> list[Box]:
        """Return where the elements are that can be clicked, also those outside the window."""
        with self._watched("measure the page"):
            return [Box(*box) for box in self._driver.execute_script(_BOXES)]

    def screenshot(self) -> npt.NDArray[np.uint8]:
        """Return what the window shows, uint8 of shape (height, width, 3)."""
        with self._watched("take a screenshot"):
            png = self._driver.get_screenshot_as_png()
        return np.array(Image.open(io.BytesIO(png)).convert("RGB"))

    def close(self) -> None:
        """End all its processes, close its connection and remove its files; a second call does nothing."""
        self._end()
        if self._connection is not None:
            self._connection.close()


def _options(chromium: str, folder: str, site: str, size: tuple[int, int], pictures: bool) -> ChromeOptions:
    options = ChromeOptions()
    options.binary_location = chromium
    options.page_load_strategy = "normal" if pictures else "eager"
    host = urlsplit(site).hostname
    for argument in (
        "--headless=new",
        f"--user-data-dir={folder}/profile",
        f"--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE {host}",
        f"--window-size={size[0]},{size[1]}",
        "--disable-dev-shm-usage",
        "--disable-extensions",
        "--disable-gpu",
        "--force-color-profile=srgb",
        "--hide-scrollbars",
        "--mute-audio",
        "--no-first-run",
        "--no-proxy-server",
        "--renderer-process-limit=1",
    ):
        options.add_argument(argument)
    if not pictures:
        options.add_argument("--blink-settings=imagesEnabled=false")
    if os.geteuid() == 0:
        options.add_argument("--no-sandbox")  # as root Chromium starts only so; it sees nothing but the site
    metrics = {"width": size[0], "height": size[1], "pixelRatio": 1.0, "touch": False, "mobile": False}
    options.add_experimental_option("mobileEmulation", {"deviceMetrics": metrics})
    return options


def _no_proxy() -> Proxy:
    return Proxy({"proxyType": ProxyType.DIRECT})


def _port(log: Path) -> int:
    """Wait until the driver has written on which port it listens."""
    until = time.monotonic() + _START_TIMEOUT_S
    while time.monotonic() < until:
        said = log.read_text(errors="replace")
        if found := re.search(r"started successfully on port (\d+)", said):
            return int(found[1])
        time.sleep(_POLL_S)
    raise TimeoutError(f"the driver did not start in {_START_TIMEOUT_S:g} s")


def _short_folder() -> str:
    """Return where temporary files go."""
    folder = tempfile.gettempdir()
    # Chromium makes sockets there, whose paths have at most some hundred characters.
    return folder if len(folder) <= _LONGEST_FOLDER else "/tmp"


def _end(process: "subprocess.Popen[bytes]", folder: str, owner: int) -> None:
    if os.getpid() != owner:
        return  # a fork of the owner: the browser is not its
    # Before the group's first process is waited for, so that its number cannot be somebody else's yet.
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    if process.stdin is not None:
        process.stdin.close()
    until = time.monotonic() + _REMOVE_TIMEOUT_S
    shutil.rmtree(folder, ignore_errors=True)
    while os.path.exists(folder) and time.monotonic() < until:  # a process that dies may be writing still
        time.sleep(_POLL_S)
        shutil.rmtree(folder, ignore_errors=True)
