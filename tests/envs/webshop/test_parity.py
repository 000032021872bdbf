"""The recorded episode of the original, step by step.

Its results come from another engine than the original's, so the shop here returns them as recorded. The nouns
of the one title that matters are written by hand: ten, one of them twice, which gives the recorded score.
"""

import json
from dataclasses import replace

import pytest

from arl_gym.envs.webshop.goal import Goal
from arl_gym.envs.webshop.product import read_product
from arl_gym.envs.webshop.reward import option_target
from arl_gym.envs.webshop.session import Session
from tests.envs.webshop.shelf import OriginalReader, Shelf, mug

NOUNS = ["sangamei", "strap", "apple", "watch", "band", "iwatch", "band", "replacement", "bracelet", "women"]


@pytest.fixture(scope="module")
def dump(shared_data):
    return json.loads((shared_data / "webshop/parity/orig_dump_synthetic_catalogue.json").read_text("utf-8"))


@pytest.fixture(scope="module")
def shelf(shared_data, dump):
    records = json.loads((shared_data / "webshop/parity/items_shuffle_1000.json").read_text("utf-8"))
    known = json.loads((shared_data / "webshop/items_ins_v2_1000.json").read_text("utf-8"))
    products = [read_product(r, attributes=known[r["asin"]]["attributes"], nouns=NOUNS) for r in records]
    numbers = {product.asin: number for number, product in enumerate(products)}
    links = [text.upper() for step in dump[1:3] for text in step["actions"]["clickables"]]
    first = [numbers[text] for text in links if text in numbers]
    assert len(first) == 20
    fillers = [number for number in range(100) if number not in first][:30]
    return Shelf(products, {dump[1]["action"][7:-1].lower(): first + fillers})


@pytest.fixture(scope="module")
def goal(dump):
    fields = dump[16]["goal"]
    return Goal(
        instruction=fields["instruction_text"],
        asin=fields["asin"],
        category=fields["category"],
        query=fields["query"],
        title=fields["name"],
        product_category=fields["product_category"],
        attributes=tuple(fields["attributes"]),
        options=tuple(fields["goal_options"].values()),
        targets=tuple(option_target(value, name) for name, value in fields["goal_options"].items()),
        price_upper=fields["price_upper"],
        nouns=tuple(NOUNS),
    )


@pytest.fixture(params=[False, True], ids=["fixed", "compat"])
def session(request, shelf, goal):
    session = Session(shelf, compat=request.param)
    session.begin(goal, "7")
    return session


def test_the_recorded_episode_gives_the_recorded_pages(session, dump):
    for step in dump[:16]:
        acted = step["action"] == "reset" or session.act(step["action"])
        assert acted == (step["action"] not in ("bogus", "click[nope]"))
        assert session.text() == step["text"]
        assert session.text_rich() == step["text_rich"]
        assert session.url() == step["url"]
        assert session.clickables() == step["actions"]["clickables"]
        assert session.has_search_bar == step["actions"]["has_search_bar"]
        assert (session.page == "done") == bool(step["done"])


def test_the_recorded_purchase_is_worth_what_it_was(session, dump):
    for step in dump[1:16]:
        session.act(step["action"])
    assert session.reward.total == dump[15]["reward"] == 1.0
    assert session.reward.perfect
    assert session.reward.details() == pytest.approx(dump[16]["verbose"])


def test_our_html_reads_like_the_original_s(session, dump):
    for step in dump[:16]:
        session.act(step["action"])
        theirs, ours = OriginalReader(step["html"]), OriginalReader(session.html())
        assert theirs.text() == step["text"]  # the reader is right
        assert theirs.text_rich(step["url"], session.visited) == step["text_rich"]
        assert theirs.clickables() == step["actions"]["clickables"]
        assert ours.text() == step["text"]
        assert ours.text_rich(step["url"], session.visited) == step["text_rich"]
        assert ours.clickables() == step["actions"]["clickables"]
        assert not ours.mismatched


def test_our_html_tells_neither_query_nor_category(session, dump):
    session.act(dump[1]["action"])
    assert "men shoes" in dump[1]["html"]
    assert "men shoes" not in session.html()
    assert "A › B › C" not in session.html()


def site_page(shared_data, name):
    return OriginalReader((shared_data / f"webshop/mock_parse_{name}.html").read_text("utf-8"))


def test_pages_of_the_real_site_read_like_ours(shared_data, goal):
    """One product has three colours, five sizes and eight bullets with outer spaces."""
    item, description, features = (
        site_page(shared_data, f"item_page_ws{part}") for part in ("", "_desc", "_feat")
    )
    fields = item.text().split(" [SEP] ")
    assert (fields[4], fields[8]) == ("color", "size")
    shoe = mug(
        asin="B09P87V3LZ",
        title=fields[14],
        prices=(100.0,),
        options=(("color", tuple(fields[5:8])), ("size", tuple(fields[9:14]))),
        description=description.nodes[-1][2],
        bullets=tuple(data.removeprefix(" ") for _, _, data in features.nodes[4:]),
    )
    assert len(shoe.bullets) == 8
    session = Session(Shelf([shoe]))
    session.begin(replace(goal, instruction=fields[1]), "abc")
    session.act("search[red basketball shoes]")
    walk = {"b09p87v3lz": item, "features": features, "< prev": item, "description": description}
    for action, page in walk.items():
        assert session.act(f"click[{action}]")
        assert session.text() == page.text()
        assert session.text_rich() == page.text_rich("", ())
        assert OriginalReader(session.html()).clickables() == page.clickables()


def test_results_of_the_real_site_read_like_ours(shared_data, goal):
    site = site_page(shared_data, "results_ws")
    fields = site.text().split(" [SEP] ")
    cards = list(zip(fields[5::3], fields[6::3], fields[7::3], strict=True))
    assert len(cards) == 10
    products = [
        mug(asin=asin, title=title, prices=tuple(float(price[1:]) for price in tag.split(" to ")))
        for asin, title, tag in cards
    ]
    shelf = Shelf(products + [mug(number) for number in range(40)])
    session = Session(shelf)
    session.begin(replace(goal, instruction=fields[1]), "abc")
    session.act("search[red basketball shoes]")
    assert session.text() == site.text()
    assert session.text_rich() == site.text_rich("", ())
    assert session.clickables() == site.clickables()
