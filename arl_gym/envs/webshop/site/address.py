"""The addresses of the site's pages: everything that a page depends on, but for the visit's goal.

>>> address("results", Place(session_id="k3", keywords="red shoes", page_number=2, options={}))
'/s/k3/results?q=red+shoes&page=2'
"""

import re
from collections.abc import Mapping, Sequence
from urllib.parse import parse_qsl, urlencode

from arl_gym.envs.webshop.pages import Place

_OPTION = "o."
_PAGE = re.compile("[1-9][0-9]{0,5}")
_MAX_FIELDS = 500


def address(page: str, place: Place) -> str:
    """Return the address of a page, without the host."""
    query = urlencode(fields(page, place), errors="surrogatepass")
    return f"/s/{place.session_id}/{page}" + (f"?{query}" if query else "")


def fields(page: str, place: Place) -> Sequence[tuple[str, str]]:
    """Return the fields of an address: words and page of the results, product, options."""
    if page in ("search", "done"):
        return ()
    found = [("q", place.keywords), ("page", str(place.page_number))]
    if page == "results":
        return found
    return [*found, *product_fields(place.asin, place.options)]


def product_fields(asin: str, options: Mapping[str, str]) -> Sequence[tuple[str, str]]:
    """Return the fields that name a product with its selected options."""
    return [("asin", asin), *((_OPTION + name, value) for name, value in options.items())]


def read_place(session_id: str, query: str) -> Place | None:
    """Return the place that the part of an address after "?" names, None if it is none of the site's."""
    try:
        pairs = parse_qsl(query, keep_blank_values=True, max_num_fields=_MAX_FIELDS, errors="surrogatepass")
    except ValueError:
        return None
    given = dict(pairs)
    options = {key[len(_OPTION) :]: value for key, value in given.items() if key.startswith(_OPTION)}
    page = given.get("page", "1")
    others = {key for key in given if not key.startswith(_OPTION)}
    if len(given) < len(pairs) or not others <= {"q", "page", "asin"} or not _PAGE.fullmatch(page):
        return None
    return Place(
        session_id=session_id,
        keywords=given.get("q", ""),
        page_number=int(page),
        asin=given.get("asin", ""),
        options=options,
    )
