"""The site's answers: visits, addresses, purchases, and what it does not tell."""

import re
from dataclasses import replace
from html import unescape
from typing import Any

import pytest

from arl_gym.envs.webshop.site.app import create_app
from tests.envs.webshop.shelf import GOAL, mug
from tests.envs.webshop.site.fronts import HOSTILE, FrontTasks

MUGS = [mug(number) for number in range(30)]
NODE = re.compile(r"<(\w+)[^>]*? data-n=\"(\d+)\"[^>]*>(.*?)</\1>", re.DOTALL)


def site(products=MUGS, goals=(GOAL,), **kwargs: Any):
    tasks: Any = FrontTasks(products, goals)
    return create_app(tasks, **kwargs).test_client()


def begin(client, **form: str):
    """Begin a visit; return the beginning of its addresses."""
    answer = client.post("/visits", data={"task_id": "test-000000", **form})
    assert answer.status_code == 303
    return answer.location.removesuffix("search")


def text(answer) -> str:
    assert answer.status_code == 200, answer.text
    nodes = sorted((int(n), re.sub("<svg.*?</svg>", "", shown)) for _, n, shown in NODE.findall(answer.text))
    return " [SEP] ".join(unescape(shown).strip() for _, shown in nodes if shown.strip())


ITEM = "q=mug&page=1&asin=B000000003"


def test_pages_have_the_texts_of_the_text_environment_in_its_order():
    client = site()
    root = begin(client)
    head = "Instruction: [SEP] i want a blue mug [SEP] Back to Search"
    first = text(client.get(root + "search"))
    assert first == "WebShop [SEP] Instruction: [SEP] i want a blue mug [SEP] Search"
    results = text(client.get(root + "results?q=mug&page=3"))
    assert results.startswith(
        f"{head} [SEP] Page 3 (Total results: 30) [SEP] < Prev [SEP] Next > [SEP] B000000020"
    )
    assert text(client.get(root + "item?" + ITEM)) == (
        f"{head} [SEP] < Prev [SEP] color [SEP] red [SEP] blue [SEP] size [SEP] small [SEP] large [SEP] Mug 3"
        " [SEP] Price: $9.5 [SEP] Rating: N.A. [SEP] Description [SEP] Features [SEP] Reviews [SEP] Buy Now"
    )
    assert (
        text(client.get(root + "features?" + ITEM))
        == f"{head} [SEP] < Prev [SEP] Dishwasher safe [SEP] 12 oz"
    )


def test_a_purchase_shows_its_score_and_ends_the_visit():
    client = site()
    root = begin(client)
    answer = client.post(f"{root}buy?{ITEM}&o.color=blue")
    assert (answer.status_code, answer.location) == (303, root + "done")
    assert "Your score (min 0.0, max 1.0) [SEP] 1.0" in text(client.get(root + "done"))
    for path in ("search", "results?q=mug&page=1", "item?" + ITEM):
        assert client.get(root + path).location == root + "done"
    # Another product, without the option: the purchase stands.
    assert client.post(f"{root}buy?q=mug&page=1&asin=B000000004").location == root + "done"
    assert "B000000003" in client.get(root + "done").text


def test_what_a_score_is_made_of_is_shown_to_those_who_ask_for_it_when_they_begin():
    client = site()
    plain, parts = begin(client), begin(client, with_parts="1")
    for root in (plain, parts):
        client.post(f"{root}buy?{ITEM}")
    wanted = ("bpa free", "blue")
    assert not any(what in client.get(plain + "done").text for what in wanted)
    assert all(what in client.get(parts + "done").text for what in wanted)


def test_no_page_tells_the_goal_or_a_score_before_the_purchase():
    secret = replace(GOAL, asin="B000000029", attributes=("quite secret",), price_upper=77.0)
    client = site(goals=(secret,))
    root = begin(client, with_parts="1")
    pages = ["search", "results?q=mug&page=1", *(f"{p}?{ITEM}" for p in ("item", "features", "reviews"))]
    for page in ["/", "/about", *(root + page for page in pages)]:
        shown = client.get(page).text
        assert not any(word in shown for word in ("B000000029", "quite secret", "77", "score:"))


@pytest.mark.parametrize(
    "path",
    [
        "",
        "nowhere",
        "done",
        "attributes?" + ITEM,
        "results",
        "results?q=mug&page=0",
        "results?q=mug&page=one",
        "results?q=mug&page=1&more=1",
        "item?q=mug&page=1&asin=B000000013",
        "item?q=mug&page=1&asin=b000000003",
        "item?q=mug&page=1&asin=../../etc/passwd",
        f"item?{ITEM}&o.color=pink",
        f"item?{ITEM}&o.colour=red",
        f"item?{ITEM}&o.color=red&o.color=blue",
        "../../about",
        "%2e%2e/about",
    ],
)
def test_an_address_that_no_link_leads_to_is_not_found(path):
    client = site()
    assert client.get(begin(client) + path).status_code == 404


def test_a_purchase_that_no_button_leads_to_is_not_found():
    client = site()
    root = begin(client)
    for query in ("", "q=mug&page=1&asin=B000000013", f"{ITEM}&o.color=pink"):
        assert client.post(f"{root}buy?{query}").status_code == 404
    assert client.get(f"{root}buy?{ITEM}").status_code == 404
    assert client.get(root + "item?" + ITEM).status_code == 200


def test_visits_are_apart_and_their_ids_cannot_be_guessed():
    client = site()
    one, other = begin(client), begin(client)
    ids = {root.split("/")[2] for root in (one, other)}
    assert len(ids) == 2
    assert all(len(id) >= 22 for id in ids)  # 128 bits
    client.post(f"{one}buy?{ITEM}")
    assert client.get(other + "search").status_code == 200
    for id in ("1", "fixed_7", next(iter(ids))[:-1], next(iter(ids)) + "A"):
        assert client.get(f"/s/{id}/search").status_code == 404


def test_the_longest_unused_visit_ends_when_there_are_too_many():
    client = site(max_visits=2)
    first, second = begin(client), begin(client)
    client.get(first + "search")
    third = begin(client)
    statuses = [client.get(root + "search").status_code for root in (first, second, third)]
    assert statuses == [200, 404, 200]


def test_a_goal_that_there_is_not_is_not_found():
    client = site()
    for task_id in ("", "test-000001", "train-000000", "0", "test-0000000", HOSTILE[:500]):
        assert client.post("/visits", data={"task_id": task_id}).status_code == 404


def test_the_goals_are_listed_by_their_number():
    goals = [replace(GOAL, instruction=f"goal number {k}") for k in range(30)]
    client = site(goals=goals)
    assert "goal number 0" in client.get("/").text
    assert "goal number 29" in client.get("/?split=test&first=24").text
    for query in ("first=30", "first=-1", "split=train"):
        assert client.get(f"/?{query}").status_code == 404


def test_hostile_words_are_shown_as_words():
    product = mug(3, title=HOSTILE, description=HOSTILE, bullets=(HOSTILE,), options=((HOSTILE, (HOSTILE,)),))
    client = site([product], [replace(GOAL, instruction=HOSTILE)])
    root = begin(client, with_parts="1")
    pages = ("results?q=mug&page=1", *(f"{page}?{ITEM}" for page in ("item", "description", "features")))
    for page in ("/", root + "search", *(root + page for page in pages)):
        answer = client.get(page)
        assert answer.status_code == 200
        assert HOSTILE in unescape(answer.text)
        assert not re.search("<script|<b>", answer.text)
    answer = client.get(root + "results", query_string={"q": HOSTILE[:100], "page": 1})
    assert HOSTILE[:100].lower() in unescape(answer.text)
    assert "<script" not in answer.text
    client.post(f"{root}buy?{ITEM}")
    assert "<script" not in client.get(root + "done").text


def test_answers_forbid_scripts_other_hosts_and_keeping_pages():
    client = site()
    for path in ("/", begin(client) + "search", "/nowhere"):
        headers = client.get(path).headers
        assert "default-src 'none'" in headers["Content-Security-Policy"]
        assert "script-src" not in headers["Content-Security-Policy"]
        assert headers["Cache-Control"] == "no-store"
        assert headers["X-Content-Type-Options"] == "nosniff"


def test_pictures_are_drawn_for_products_there_are():
    client = site()
    answer = client.get("/picture.png?asin=B000000003&o.color=red")
    assert answer.mimetype == "image/png"
    assert answer.data.startswith(b"\x89PNG")
    assert client.get("/picture.png?asin=B999999999").status_code == 404
    assert client.get("/picture.png?asin=B000000003&size=100000").status_code == 404


def test_a_form_beyond_all_measure_is_refused():
    client = site()
    assert client.post("/visits", data={"task_id": "x" * 100_000}).status_code == 413


def test_the_site_says_which_shop_it_is():
    client = site(options={"results_per_page": 5})
    assert client.get("/about").json == {
        "content_hash": "f" * 16,
        "dataset": "generated",
        "options": {"results_per_page": 5},
    }


def test_a_wrong_option_says_so_at_once():
    with pytest.raises(TypeError, match="colour"):
        site(options={"colour": 1})
