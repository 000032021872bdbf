import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arl_gym.envs.webshop.product import Review
from arl_gym.envs.webshop.session import Session, _parse_as_original
from tests.envs.webshop.shelf import GOAL, OriginalReader, Shelf, mug

COLLIDING = (
    ("color", ("black", "features", "light | dark")),
    ("strap", ("black", "buy now", "search", 'a "b" [c]\nd')),
    ("größe", ("groß", "")),
)
MUGS = [mug(number) for number in range(47)] + [
    mug(47, options=COLLIDING, description="", bullets=("", " a\nb "), image='"><script>x</script>'),
    mug(48, options=(), reviews=(Review(title="Good", score="5", body="Holds <tea> & more."),)),
    mug(49, attributes=(), bullets=(), description=" \n "),
]


def begin(**chosen: bool | int) -> Session:
    session = Session(Shelf(MUGS), **chosen)  # type: ignore[arg-type]
    session.begin(GOAL, "s")
    return session


def after(*actions: str, **chosen: bool | int) -> Session:
    session = begin(**chosen)
    for action in actions:
        assert session.act(action), action
    return session


def test_a_search_opens_the_first_page_of_results():
    session = after("search[mug]")
    assert (session.page, session.keywords, session.page_number) == ("results", "mug", 1)
    assert list(session.results) == list(range(50))
    assert session.clickables() == ["back to search", "next >", *(f"b{n:09}" for n in range(10))]


def test_there_is_no_last_page():
    session = after("search[mug]", *["click[next >]"] * 4)
    assert session.text().count("Mug") == 10
    assert session.act("click[next >]")
    assert session.text() == (
        "Instruction: [SEP] i want a blue mug [SEP] Back to Search [SEP] Page 6 (Total results: 50)"
        " [SEP] < Prev [SEP] Next >"
    )
    assert session.url() == "http://127.0.0.1:3000/search_results/s/mug/6"
    assert session.act("click[next >]")
    assert session.act("click[< prev]")
    assert session.act("click[< prev]")
    assert session.clickables()[3:5] == ["b000000040", "b000000041"]


def test_the_button_to_an_empty_page_can_be_hidden():
    session = after("search[mug]", *["click[next >]"] * 4, hide_empty_next=True)
    assert session.clickables()[:3] == ["back to search", "< prev", "b000000040"]
    assert not session.act("click[next >]")
    assert "next >" not in after("search[mug]", hide_empty_next=True, results_per_page=50).clickables()


def test_products_that_were_opened_are_marked_on_request():
    session = after("search[mug]", "click[b000000001]", "click[< prev]", mark_clicked=True)
    assert " [SEP] B000000000 [SEP] Mug 0 [SEP] $9.5 [SEP] B000000001 (visited) [SEP] Mug 1" in session.text()
    assert "visited" not in after("search[mug]", "click[b000000001]", "click[< prev]").text()


def test_results_can_be_named_by_their_place():
    session = after("search[mug]", "click[next >]", number_results=True)
    assert session.clickables() == ["back to search", "< prev", "next >", *map(str, range(11, 21))]
    assert " [SEP] 11 [SEP] Mug 10 [SEP] $9.5 [SEP] 12 [SEP] " in session.text()
    assert session.link_name(12) == "13"
    assert not session.act("click[b000000012]")
    assert session.act("click[13]")
    assert session.product == MUGS[12]
    assert session.visited == ("B000000012",)
    assert session.url() == "http://127.0.0.1:3000/item_page/s/B000000012/mug/2/{}"
    assert session.act("click[< prev]")
    assert "[clicked button] 13 [clicked button_]" in session.text_rich()
    assert "/item_page/s/B000000012/" in session.html()


def test_a_page_can_have_another_length():
    session = after("search[mug]", "click[next >]", results_per_page=3)
    assert session.clickables()[3:] == ["b000000003", "b000000004", "b000000005"]


def test_a_search_without_results_is_a_page():
    shelf = Shelf(MUGS, {"nothing": ()})
    session = Session(shelf)
    session.begin(GOAL, "s")
    assert session.act("search[nothing]")
    assert session.text().endswith("Page 1 (Total results: 0) [SEP] Next >")


def test_searching_works_on_every_page_but_the_last():
    walk = ["search[a]", "click[b000000001]", "click[reviews]", "search[b c]"]
    session = after(*walk)
    assert (session.page, session.keywords, session.product) == ("results", "b c", None)
    session = after(*walk[:2], "click[red]", "search[b]", "click[b000000001]")
    assert session.selected == {}
    assert session.visited == ("B000000001",)


def test_going_back_from_a_product_returns_to_its_page_of_results_and_forgets_the_options():
    session = after("search[a]", "click[next >]", "click[b000000012]", "click[red]", "click[< prev]")
    assert (session.page, session.page_number, session.product) == ("results", 2, None)
    assert session.selected == {}
    assert "\n[clicked button] B000000012 [clicked button_]\n" in session.text_rich()
    assert "\n[button] B000000013 [button_]\n" in session.text_rich()


def test_going_back_and_paging_search_only_once():
    shelf = Shelf(MUGS)
    session = Session(shelf)
    session.begin(GOAL, "s")
    for action in ("search[a]", "click[next >]", "click[b000000012]", "click[< prev]", "click[< prev]"):
        session.act(action)
    assert shelf.searches == ["a"]


def test_options_stay_on_the_way_to_a_sub_page_and_back():
    session = after("search[a]", "click[b000000001]", "click[red]", "click[features]", "click[< prev]")
    assert session.page == "item"
    assert session.selected == {"color": "red"}


def test_the_last_option_of_a_group_counts_and_none_is_unselected():
    session = after("search[a]", "click[b000000001]", "click[red]", "click[small]", "click[blue]")
    assert session.selected == {"color": "blue", "size": "small"}
    assert session.act("click[blue]")
    assert session.selected == {"color": "blue", "size": "small"}


def test_options_do_not_leak_to_the_next_product():
    session = after("search[a]", "click[b000000001]", "click[red]", "click[< prev]", "click[b000000002]")
    assert session.selected == {}


def test_back_to_search_forgets_all_but_the_goal():
    session = after("search[a]", "click[next >]", "click[b000000012]", "click[red]", "click[back to search]")
    assert session.key() == begin().key()
    assert session.text() == begin().text()
    assert (session.keywords, session.page_number, session.visited) == ("", 1, ())
    assert list(session.results) == []


def test_buying_ends_it_and_is_scored():
    session = after("search[a]", "click[b000000000]", "click[blue]", "click[buy now]")
    assert session.page == "done"
    assert session.reward is not None
    assert session.reward.perfect
    assert session.clickables() == []
    assert not session.has_search_bar
    for action in ("search[a]", "click[back to search]", "click[search]", "click[buy now]", "x"):
        assert not session.act(action)
    assert session.page == "done"


def test_a_product_can_be_bought_without_options():
    session = after("search[a]", "click[b000000000]", "click[buy now]")
    assert session.reward is not None
    assert session.reward.total == 2 / 3


def test_a_new_beginning_keeps_nothing():
    session = after("search[a]", "click[b000000000]", "click[blue]", "click[buy now]")
    session.begin(GOAL, "s")
    assert session.reward is None
    assert session.key() == begin().key()


NOT_ACTIONS = ["", "\n", "search", "search[]", "click", "click[]", "[x]", "buy[x]", "]click[", "["]
NOT_HERE = [
    "click[search]",
    "click[nope]",
    "click[description]",
    "click[b000000000]",
    "click[back to search]",
]
NOT_CLEAN = ["I click[search]", "think\nsearch[a]", "click[ search ]"]


@pytest.mark.parametrize("compat", [False, True])
@pytest.mark.parametrize("action", NOT_ACTIONS + NOT_HERE + NOT_CLEAN)
def test_what_is_no_action_changes_nothing(action, compat):
    session = begin(compat=compat)
    before = session.key(), session.text_rich()
    assert not session.act(action)
    assert (session.key(), session.text_rich()) == before


@pytest.mark.parametrize(
    ("action", "keywords", "as_original"),
    [
        ("search[Red  MUG]", "red  mug", "red  mug"),
        (" Search [mug]", "mug", None),
        ("search[a\nb]", "a b", None),
        ("search[mug] please", "mug", "mug"),
        ("search[a [b] c]", "a [b] c", None),
        ("search[a]]", "a]", "a]"),
        ("search[ ]", " ", " "),
        ("search[a]\nclick[b]", "a] click[b", "a"),
    ],
)
def test_the_outermost_brackets_hold_the_argument(action, keywords, as_original):
    assert after(action).keywords == keywords
    original = begin(compat=True)
    assert original.act(action) == (as_original is not None)
    assert original.keywords == (as_original or "")


@given(st.text(alphabet="ab[]\n \r", max_size=12))
def test_compat_parses_as_the_original_s_pattern(action):
    match = re.match(r"(.+)\[(.+)\]", action)
    assert _parse_as_original(action) == (match.groups() if match else ("", ""))


def test_ambiguous_options_are_clicked_with_their_group():
    session = after("search[a]", *["click[next >]"] * 4, "click[b000000047]")
    assert session.clickables() == [
        *("back to search", "< prev", "description", "features", "reviews", "buy now"),
        *("color: black", "color: features", "light | dark"),
        *("strap: black", "strap: buy now", "strap: search", 'a "b" [c]\nd'),
        *("groß", "größe: "),
    ]
    for action in session.clickables()[6:]:
        assert session.act(f"click[{action}]")
    assert session.selected == {"color": "light | dark", "strap": 'a "b" [c]\nd', "größe": ""}
    assert session.act("click[color: black]")
    assert session.selected["color"] == "black"


def test_an_ambiguous_value_alone_means_its_last_group_or_the_button():
    session = after("search[a]", *["click[next >]"] * 4, "click[b000000047]", "click[black]")
    assert session.selected == {"strap": "black"}
    assert not session.act("click[search]")
    assert session.act("click[features]")
    assert session.page == "features"


def test_in_compat_ambiguous_options_are_lost_as_in_the_original():
    session = after("search[a]", *["click[next >]"] * 4, "click[b000000047]", "click[black]", compat=True)
    assert session.selected == {"strap": "black"}
    assert session.clickables() == [
        *("back to search", "< prev", "description", "features", "reviews", "buy now"),
        *("black", "light | dark", "search", 'a "b" [c]\nd', "groß", ""),
    ]
    assert not session.act("click[color: black]")
    assert not session.act('click[a "b" [c]\nd]')


def test_only_the_option_that_is_selected_is_marked():
    session = after("search[a]", *["click[next >]"] * 4, "click[b000000047]", "click[color: black]")
    session.act('click[a "b" [c]\nd]')
    session.act("click[groß]")
    rich = session.text_rich()
    assert rich.startswith(
        'You have clicked groß.\nYou have clicked a "b" [c]\nd.\nYou have clicked black.\nInst'
    )
    assert rich.count("[clicked button] black [clicked button_]") == 1
    assert rich.count("  [button] black [button_]") == 1


def test_in_compat_options_are_marked_by_the_address_as_in_the_original():
    walk = ["search[a]", *["click[next >]"] * 4, "click[b000000047]", "click[groß]", "click[black]"]
    rich = after(*walk, compat=True).text_rich()
    assert rich.count("[clicked button] black [clicked button_]") == 2
    assert "  [button] groß [button_]" in rich
    rich = after('search["red"]', "click[b000000001]", compat=True).text_rich()
    assert rich.startswith("You have clicked red.\nInst")


def test_selected_options_can_be_marked_in_text():
    walk = ("search[a]", "click[b000000001]", "click[blue]")
    plain = after(*walk).text()
    marked = after(*walk, mark_clicked=True)
    assert marked.text() == plain.replace(" blue [SEP] size", " blue (selected) [SEP] size")
    assert after(*walk[:2], mark_clicked=True).text() == plain
    assert marked.text_rich() == after(*walk).text_rich()


def test_the_attributes_have_a_page_only_if_asked_for():
    assert not after("search[a]", "click[b000000001]").act("click[attributes]")
    session = after("search[a]", "click[b000000001]", "click[red]", "click[attributes]", show_attributes=True)
    assert session.url().endswith("/s/B000000001/a/1/Attributes/{'color': 'red'}")
    assert session.text().endswith(
        "< Prev [SEP] bpa free [SEP] lead free [SEP] garden [SEP] mugs [SEP] Home › Kitchen › Mugs"
    )


def test_the_state_ignores_the_way_to_it():
    one = after("search[a]", "click[b000000001]", "click[red]", "click[small]")
    two = after("search[b]", "click[next >]", "search[a]", "click[b000000001]", "click[small]", "click[red]")
    assert one.key() == two.key()
    assert hash(one.key()) == hash(two.key())
    assert one.key() != after("search[a]", "click[b000000001]", "click[red]").key()
    assert one.key() != after("search[b]", "click[b000000001]", "click[red]", "click[small]").key()


def test_the_state_tells_what_was_visited():
    back = after("search[a]", "click[b000000001]", "click[< prev]")
    assert back.text() == after("search[a]").text()
    assert back.key() != after("search[a]").key()


def test_what_selected_returned_does_not_change():
    session = after("search[a]", "click[b000000001]", "click[red]")
    selected = session.selected
    session.act("click[blue]")
    assert selected == {"color": "red"}


WORDS = [
    "search",
    "click",
    "Search",
    "[",
    "]",
    "[back to search]",
    "[features]",
    "[red]",
    "[black]",
    "\n",
    "é",
]
NOISE = st.text(max_size=20) | st.lists(st.sampled_from(WORDS), max_size=6).map("".join)
SETTINGS = st.fixed_dictionaries(
    {
        "compat": st.booleans(),
        "mark_clicked": st.booleans(),
        "show_attributes": st.booleans(),
        "hide_empty_next": st.booleans(),
        "results_per_page": st.sampled_from([1, 10, 60]),
    }
)


def step(session: Session, choice: int) -> bool:
    """Search on the search page, else click one of what is offered."""
    if session.page == "search":
        return session.act(f"search[{choice}]")
    offered = session.clickables()
    # The last first: small numbers are drawn more often, and the first buttons lead back.
    return session.act(f"click[{offered[-1 - choice % len(offered)]}]")


def seen(session: Session) -> tuple[object, ...]:
    return session.key(), session.text(), session.text_rich(), session.url(), session.html()


def check_readings(session: Session, *, compat: bool, mark_clicked: bool) -> None:
    page = OriginalReader(session.html())
    assert not page.mismatched
    assert session.has_search_bar == ("search_input" in (at.get("id") for _, at in page.elements))
    fields = session.text().split(" [SEP] ")
    if session.page != "done":
        at = fields.index("Instruction:")
        assert (at, fields[at + 1]) == (int(session.page == "search"), GOAL.instruction)
    if not mark_clicked:
        assert page.text() == session.text()
    if compat:
        assert page.text_rich(session.url(), session.visited) == session.text_rich()
        assert page.clickables() == session.clickables()


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(0, 99), min_size=1, max_size=25), NOISE, SETTINGS)
def test_any_walk_shows_pages_that_read_alike(choices, noise, chosen):
    session = begin(**chosen)
    for choice in choices:
        assert session.page == "done" or step(session, choice) or chosen["compat"]
        check_readings(session, compat=chosen["compat"], mark_clicked=chosen["mark_clicked"])
        if session.page == "done":
            break
    before = seen(session)
    assert session.act(noise) or seen(session) == before
    check_readings(session, compat=chosen["compat"], mark_clicked=chosen["mark_clicked"])


@given(st.lists(st.integers(0, 99), max_size=15))
def test_equal_states_go_on_equally(choices):
    one, two = begin(), after("search[x]", "click[b000000003]", "click[red]", "click[back to search]")
    for choice in choices:
        assert seen(one) == seen(two)
        if one.page == "done":
            return
        step(one, choice)
        step(two, choice)


# ---- pages by their address


def go(session: Session, there: Session) -> bool:
    """Send a session where another one is."""
    place = there.place
    return session.go(
        there.page,
        keywords=place.keywords,
        page_number=place.page_number,
        asin=place.asin,
        options=place.options,
    )


@pytest.mark.parametrize(
    "actions",
    [
        ["search[mug]"],
        ["search[MUG]", "click[next >]", "click[next >]"],
        ["search[mug]", *["click[next >]"] * 5],
        ["search[mug]", "click[b000000003]", "click[blue]", "click[small]", "click[red]"],
        ["search[mug]", "click[b000000003]", "click[large]", "click[reviews]"],
        [
            "search[mug]",
            *["click[next >]"] * 4,
            "click[b000000047]",
            "click[color: black]",
            "click[features]",
        ],
    ],
)
def test_an_address_opens_the_page_that_clicks_open(actions):
    clicked, sent = after(*actions), begin()
    assert go(sent, clicked)
    assert sent.text_rich() == clicked.text_rich()
    assert sent.clickables() == clicked.clickables()
    assert sent.place == clicked.place


def test_a_session_goes_on_from_an_address():
    session = begin()
    assert session.go("item", keywords="mug", page_number=2, asin="B000000012", options={"color": "blue"})
    assert session.act("click[< prev]")
    assert session.clickables()[3] == "b000000010"
    assert session.visited == ("B000000012",)


@pytest.mark.parametrize(
    ("page", "fields"),
    [
        ("results", {}),
        ("results", {"keywords": "mug", "page_number": 0}),
        ("results", {"keywords": "mug", "page_number": -1}),
        ("item", {"keywords": "mug"}),
        ("item", {"keywords": "mug", "asin": "B999999999"}),
        ("item", {"keywords": "mug", "asin": "B000000012"}),
        ("item", {"asin": "B000000003"}),
        ("item", {"keywords": "mug", "asin": "B000000003", "options": {"color": "pink"}}),
        ("item", {"keywords": "mug", "asin": "B000000003", "options": {"shape": "red"}}),
        ("attributes", {"keywords": "mug", "asin": "B000000003"}),
        ("done", {"keywords": "mug", "asin": "B000000003"}),
        ("nowhere", {"keywords": "mug", "asin": "B000000003"}),
    ],
)
def test_an_address_that_no_click_leads_to_changes_nothing(page, fields):
    session = after("search[tea]", "click[b000000005]", "click[red]")
    before = session.text_rich()
    assert not session.go(page, **fields)
    assert session.text_rich() == before


def test_nothing_opens_after_the_purchase():
    session = after("search[mug]", "click[b000000003]", "click[buy now]")
    assert not session.go("search")
    assert session.page == "done"


def test_the_page_of_attributes_has_an_address_where_it_is_shown():
    session = begin(show_attributes=True)
    assert session.go("attributes", keywords="mug", asin="B000000003")
    assert "lead free" in session.text()


def test_only_the_beginning_of_a_very_long_query_is_read():
    shelf = Shelf(MUGS)
    session = Session(shelf)
    session.begin(GOAL, "s")
    assert session.act(f"search[{'é' * 3000}]")
    assert shelf.searches == ["é" * 2000]
