"""The site's mark-up: the nodes that a browser reads, what it must not hold, what helps people."""

import re
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from flask.testing import FlaskClient

from arl_gym.core import TaskIds
from arl_gym.envs.webshop import site
from arl_gym.envs.webshop.goal import Goal
from arl_gym.envs.webshop.pages import Button, Link, Mark, Node, Option
from arl_gym.envs.webshop.product import Review
from arl_gym.envs.webshop.session import Session
from arl_gym.envs.webshop.site.address import address
from arl_gym.envs.webshop.site.app import create_app
from tests.envs.webshop.shelf import GOAL, Shelf, mug
from tests.envs.webshop.site.documents import Document, Element

SCRIPT = "<script>alert(1)</script> & \"q\" 'a' &amp; {{ 7 * 7 }}\r\n <b>"
BREAKS_OUT = '"><img src=x onerror=alert(1)>'
RIGHT_TO_LEFT = "\u202eכוס תה\u202c 🫖👩‍👩‍👧"
LONG = "x" * 10_000
REVIEWS = (
    Review(title="Good", score="3.5", body="Holds tea."),
    Review(title=SCRIPT, score=BREAKS_OUT, body=LONG),
)
MUGS = [
    mug(0, reviews=REVIEWS, description="Holds tea.\nAnd coffee."),
    mug(
        1,
        title=SCRIPT,
        description=SCRIPT,
        bullets=(SCRIPT, BREAKS_OUT),
        attributes=(SCRIPT,),
        reviews=REVIEWS,
    ),
    mug(2, title=LONG, options=((LONG, (LONG,)), (BREAKS_OUT, (SCRIPT, BREAKS_OUT, "red")))),
    mug(3, title=RIGHT_TO_LEFT, options=((RIGHT_TO_LEFT, (RIGHT_TO_LEFT, "")),), bullets=(), description=""),
    mug(4, options=(), prices=(1.0, 1e300)),
    mug(
        5,
        options=(
            ("size", tuple(f"{n} oz" for n in range(60))),
            ("color", ("light | dark", "60 oz", "search")),
        ),
    ),
    *[mug(number) for number in range(6, 25)],
]


class Market(Shelf):
    dataset, content_hash = "generated", "0" * 16

    def __len__(self) -> int:
        return len(self.products)


class Errands:
    splits = ("train", "test")

    def __init__(self, goal: Goal):
        self.store = Market(MUGS, {"nothing": ()})
        self._goal = goal

    def ids(self, split: str, most: int | None) -> TaskIds:
        return TaskIds(split, 30)

    def goal(self, task_id: str) -> Goal:
        return self._goal


@cache
def the_site(goal: Goal, *, show_attributes: bool) -> tuple[Shelf, FlaskClient]:
    tasks: Any = Errands(goal)
    return tasks.store, create_app(tasks, options={"show_attributes": show_attributes}).test_client()


class Visit:
    """A visit to the site, and the session that shows what its pages should say."""

    def __init__(
        self, *actions: str, goal: Goal = GOAL, with_parts: bool = True, show_attributes: bool = False
    ):
        shop, self.client = the_site(goal, show_attributes=show_attributes)
        form = {"task_id": "train-000000", **({"with_parts": "1"} if with_parts else {})}
        self.root = self.client.post("/visits", data=form).location.removesuffix("/search")
        self.session = Session(shop, show_attributes=show_attributes)
        self.session.begin(goal, self.root.rpartition("/")[2])
        for action in actions:
            self.act(action)

    def act(self, action: str) -> None:
        if action == "click[buy now]":
            assert self.client.post(address("buy", self.session.place)).status_code == 303
        assert self.session.act(action), action
        self.source = self.client.get(address(self.session.page, self.session.place)).text

    def nodes(self) -> list[Node]:
        found = (node for part in self.session.content() for node in part.nodes)
        return [node for node in found if not isinstance(node, Mark)]


OPEN = {f"mug {n}": ("search[mug]", f"click[b{n:09}]") for n in range(6)}
PAGES = {
    "results": ("search[mug]",),
    "second results": ("search[mug]", "click[b000000000]", "click[< prev]", "click[next >]"),
    "beyond the end": ("search[mug]", *["click[next >]"] * 3),
    "nothing found": ("search[nothing]",),
    **OPEN,
    "selected": (*OPEN["mug 0"], "click[blue]", "click[large]"),
    "long selected": (*OPEN["mug 2"], f"click[{LONG}]"),
    **{
        f"{page} of {name}": (*OPEN[name], f"click[{page}]")
        for page in ("description", "features", "reviews", "attributes")
        for name in ("mug 0", "mug 1", "mug 3")
    },
    "bought": (*OPEN["mug 1"], "click[blue]", "click[buy now]"),
    "bought the long one": (*OPEN["mug 2"], f"click[{LONG}]", "click[buy now]"),
}
HOSTILE_GOAL = replace(
    GOAL, instruction=f"{SCRIPT} {RIGHT_TO_LEFT}", title=BREAKS_OUT, attributes=(SCRIPT,), options=(LONG,)
)


def document(*actions: str, **chosen: Any) -> Document:
    return Document(Visit(*actions, **chosen).source)


def kept(node: Node) -> tuple[str, ...]:
    """Return what the mark-up says of a node beside its text."""
    match node:
        case Button():
            return "button", node.to
        case Link():
            return "link", node.asin, str(node.number)
        case Option():
            return "option", node.group, node.click
    return ("text",)


def said(element: Element) -> tuple[str, ...]:
    names = {"button": ("to",), "link": ("asin", "number"), "option": ("group", "click"), "text": ()}
    kind = element["data-kind"]
    return kind, *(element[f"data-{name}"] for name in names[kind])


@pytest.mark.parametrize("goal", [GOAL, HOSTILE_GOAL], ids=["goal", "hostile goal"])
@pytest.mark.parametrize("actions", PAGES.values(), ids=PAGES)
def test_every_node_of_a_page_is_one_element_with_exactly_its_text(actions, goal):
    visit = Visit(*actions, goal=goal, show_attributes=True)
    shown, nodes = Document(visit.source).nodes(), visit.nodes()
    assert [int(element["data-n"]) for element in shown] == list(range(len(nodes)))
    assert [element.text for element in shown] == [node.text for node in nodes]
    assert [said(element) for element in shown] == [kept(node) for node in nodes]


def home(query: str = "", goal: Goal = GOAL) -> Document:
    return Document(the_site(goal, show_attributes=False)[1].get("/" + query).text)


@cache
def pages() -> dict[str, Document]:
    found = {
        name: document(*actions, goal=HOSTILE_GOAL, show_attributes=True) for name, actions in PAGES.items()
    }
    visit = Visit(goal=HOSTILE_GOAL)
    found["search"] = Document(visit.client.get(visit.root + "/search").text)
    found["error"] = Document(visit.client.get(visit.root + "/nowhere").text)
    return found | {"home": home(goal=HOSTILE_GOAL), "home of test": home("?split=test&first=12")}


def test_pages_run_nothing_and_ask_nobody_else():
    for name, page in pages().items():
        assert not [x for x in page.elements if x.tag in ("script", "style", "b", "iframe", "object")], name
        attributes = [(k, v or "") for x in page.elements for k, v in x.attributes.items()]
        assert not [k for k, _ in attributes if k == "style" or k.startswith("on")], name
        addresses = [v for k, v in attributes if k in ("href", "src", "action") and v != "data:,"]
        assert addresses, name
        assert all(re.match(r"/(?!/)|\?", where) for where in addresses), name
        assert [x["href"] for x in page.all("link", rel="stylesheet")] == ["/static/shop.css"], name


def test_pages_have_one_heading_landmarks_and_labels():
    for name, page in pages().items():
        assert len(page.all("h1")) == 1, name
        assert page.all("h1")[0].text.strip(), name
        assert len(page.all("main")) == 1, name
        assert page.all("html")[0]["lang"] == "en", name
        ids = [x["id"] for x in page.elements if x["id"]]
        assert len(ids) == len({*ids}), name
        named = [word for x in page.elements for word in (x["aria-labelledby"] + " " + x["for"]).split()]
        assert {*named} <= {*ids}, name
        for field in page.all("input"):
            labelled = field["aria-label"] or page.all("label", **{"for": field["id"]})
            assert labelled or field["type"] == "hidden", name
        assert all("alt" in x.attributes and x["width"] and x["height"] for x in page.all("img")), name
        assert all(x["aria-label"] for x in page.all("nav")), name


def test_drawings_say_nothing_to_those_who_cannot_see_them():
    for page in pages().values():
        for drawing in page.all("svg"):
            assert drawing.text.strip() == ""
            assert any(x["aria-hidden"] == "true" for x in (drawing, *drawing.around))


def test_the_title_of_a_product_is_read_before_the_rest_of_it():
    page = document(*OPEN["mug 0"])
    inside = [x for x in page.elements if x["data-n"] and any(around.tag == "main" for around in x.around)]
    assert (inside[0].tag, inside[0].text) == ("h1", "Mug 0")


def test_options_are_grouped_under_the_name_of_their_group():
    page = document(*OPEN["mug 0"])
    groups = page.all(role="group")
    names = [page.all(id=group["aria-labelledby"])[0].text for group in groups]
    assert names == ["color", "size"]
    values = [[x.text for x in page.all("a", data_kind="option") if group in x.around] for group in groups]
    assert values == [["red", "blue"], ["small", "large"]]


def test_only_selected_options_are_current_and_ticked():
    page = document(*PAGES["selected"])
    assert [x.text for x in page.all("a", aria_current="true")] == ["blue", "large"]
    ticks = [x for x in page.all("path") if x["class"] == "check"]
    assert [next(y.text for y in x.around if y.tag == "a") for x in ticks] == ["blue", "large"]
    assert not document(*OPEN["mug 0"]).all("a", aria_current="true")


def test_a_card_has_one_link_named_by_the_title_and_the_id_and_tells_whether_it_was_opened():
    page = document(*OPEN["mug 0"], "click[< prev]")
    cards = [x for x in page.all("li") if "card" in x["class"].split()]
    links = [[x for x in page.all("a") if card in x.around] for card in cards]
    assert [len(x) for x in links] == [1] * 10
    name = [page.all(id=word)[0].text for word in links[7][0]["aria-labelledby"].split()]
    assert name == ["Mug 7", "B000000007"]
    assert ["visited" in card["class"] for card in cards] == [True] + [False] * 9


def test_empty_pages_say_why_beside_their_nodes():
    beyond, nothing = document(*PAGES["beyond the end"]), document(*PAGES["nothing found"])
    assert "beyond the last page" in beyond.words
    assert "Nothing was found" in nothing.words
    assert "There is nothing here" in document(*PAGES["description of mug 3"]).words
    assert "There is nothing here" in document(*PAGES["reviews of mug 3"]).words
    for name in ("results", "description of mug 0", "reviews of mug 0"):
        assert not [
            x for x in document(*PAGES[name], show_attributes=True).elements if x["class"] == "nothing"
        ]


def test_stars_are_filled_by_the_score_and_left_out_without_one():
    page = document(*PAGES["reviews of mug 0"])
    stars = page.all("svg", **{"class": "stars"})
    filled = [x["width"] for x in page.all("svg") if x.around and x.around[-1]["class"] == "stars"]
    assert (len(stars), filled) == (1, ["70.0"])  # 3.5 of 5


def test_agents_see_their_score_and_people_what_it_is_made_of():
    bought = (*OPEN["mug 0"], "click[red]", "click[buy now]")
    goal = replace(GOAL, asin="B000000007", title="Mug 7", price_upper=9.0)
    agents, people = document(*bought, goal=goal, with_parts=False), document(*bought, goal=goal)
    hidden = [x for x in agents.elements if "hidden" in x.attributes]
    assert agents.words.removesuffix(" ".join(hidden[0].text.split())).strip() == (
        "Thank you for shopping with us! Your score (min 0.0, max 1.0) 0.3333333333333333"
    )
    rows = [" ".join(x.text.split()) for x in people.all("tr")]
    assert rows[1:] == ["attributebpa freeyes", "optionblueno", "priceat most $9.00no"]
    assert "1 of 3 parts fit, and it is the right kind of product." in people.words
    assert [x.text for x in people.all("dd")] == ["Mug 0", "color: red", "Mug 7, with blue"]
    assert people.all("img")[0]["src"] == "/picture.png?asin=B000000000&o.color=red"


def test_the_very_product_is_named_so():
    page = document(*OPEN["mug 0"], "click[blue]", "click[buy now]")
    assert page.all("dd")[-1].text == "this very product, with blue"
    assert "2 of 2" not in page.words
    assert "3 of 3 parts fit" in page.words


@pytest.mark.parametrize(
    ("nouns", "kind"),
    [
        (("mug",), "the right kind of product."),
        (("mug", *"abcde"), "another kind of product, which halves the score."),
        (("mug", *"abcdefghijk"), "which leaves a tenth of the score."),
        (("tent",), "which leaves nothing of the score."),
    ],
)
def test_the_kind_of_product_is_told_in_words(nouns, kind):
    goal = replace(GOAL, query="tents", product_category="Outdoor", nouns=nouns)
    assert kind in document(*OPEN["mug 0"], "click[buy now]", goal=goal).words


def test_the_first_page_offers_goals_by_split_page_and_id():
    page = home("?split=test&first=12")
    assert [(x.text, x["aria-current"]) for x in page.all("a") if x["class"] == "tab"] == [
        ("train", ""),
        ("test", "page"),
    ]
    offered = [x["value"] for x in page.all("button", name="task_id")]
    assert offered == [f"test-{n:06}" for n in range(12, 24)]
    turns = [(x.text, x["href"]) for x in page.all("a") if "first=" in x["href"]]
    assert turns == [("Earlier goals", "?split=test&first=0"), ("More goals", "?split=test&first=24")]
    assert "13 to 24 of 30" in page.words
    field = page.all("input", name="task_id")[0]
    assert [x.text for x in page.all("label", **{"for": field["id"]})] == ["Goal id"]


STYLE = Path(site.__path__[0], "static", "shop.css").read_text()


def test_the_style_sheet_is_small_still_and_asks_for_nothing():
    assert len(STYLE) < 15_000
    assert not re.search(r"url\(|@import|@font-face|transition|animation|https?:", STYLE)


@pytest.mark.parametrize(
    ("text", "ground"),
    [
        ("ink", "paper"),
        ("ink", "card"),
        ("ink", "mist"),
        ("quiet", "paper"),
        ("quiet", "card"),
        ("sea", "paper"),
        ("sea", "mist"),
        ("card", "sea"),
        ("card", "deep"),
        ("card", "buy"),
        ("card", "quiet"),
    ],
)
def test_texts_stand_out_from_their_ground(text, ground):
    colours = dict(re.findall(r"--(\w+): #(\w+);", STYLE))
    light, dark = sorted((luminance(colours[text]), luminance(colours[ground])), reverse=True)
    assert (light + 0.05) / (dark + 0.05) >= 4.5


def luminance(colour: str) -> float:
    """Return the relative luminance as WCAG 2 defines it."""
    parts = re.findall("..", colour) if len(colour) == 6 else [2 * digit for digit in colour]
    levels = [int(part, 16) / 255 for part in parts]
    linear = [v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in levels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
