import pytest
from hypothesis import given
from hypothesis import strategies as st

from arl_gym.envs.webshop.pages import Place
from arl_gym.envs.webshop.site.address import address, read_place

PLACE = Place(
    session_id="k3",
    keywords="red & blue",
    page_number=2,
    asin="B0/1?",
    options={"size": "5' 3\"", "größe = x": "a/b"},
)


def test_an_address_names_all_that_a_page_depends_on():
    assert address("search", PLACE) == "/s/k3/search"
    assert address("results", PLACE) == "/s/k3/results?q=red+%26+blue&page=2"
    assert address("features", PLACE) == (
        "/s/k3/features?q=red+%26+blue&page=2&asin=B0%2F1%3F&o.size=5%27+3%22&o.gr%C3%B6%C3%9Fe+%3D+x=a%2Fb"
    )
    assert address("done", PLACE) == "/s/k3/done"


texts = st.text(st.characters(codec="utf-8"), max_size=20)


@given(keywords=texts, asin=texts, number=st.integers(1, 999_999), options=st.dictionaries(texts, texts))
def test_an_address_is_read_back(keywords, asin, number, options):
    place = Place(session_id="k", keywords=keywords, page_number=number, asin=asin, options=options)
    there = read_place("k", address("item", place).partition("?")[2])
    assert there == place
    assert there is not None
    assert list(there.options) == list(options)


@pytest.mark.parametrize(
    "query",
    [
        "page=0",
        "page=-1",
        "page=+1",
        "page=1000000",
        "page=",
        "page=²",
        "page=1e3",
        "q=a&q=b",
        "o.color=red&o.color=blue",
        "who=me",
        "&".join(f"o.{k}=x" for k in range(600)),
    ],
)
def test_what_the_site_does_not_write_is_no_place(query):
    assert read_place("k", query) is None
