import pytest

from arl_gym.envs.webshop import pages
from arl_gym.envs.webshop.pages import Button, Link, Mark, Option, Part, Place, Text
from arl_gym.envs.webshop.product import Review
from tests.envs.webshop.shelf import OriginalReader, mug

HEAD = "Instruction: [SEP] buy it [SEP] Back to Search [SEP] "


def unchosen(node: Link | Option) -> bool:
    return False


def read(part: Part) -> str:
    return pages.text([pages.head("buy it"), part])


def rich(part: Part) -> str:
    return pages.text_rich([part], unchosen)


def page(*parts: Part, **place: object) -> str:
    return pages.html(parts, Place(session_id="s", **({"options": {}} | place)), unchosen)  # type: ignore[arg-type]


def test_the_search_page():
    part = pages.search_page("buy it")
    assert pages.text([part]) == "WebShop [SEP] Instruction: [SEP] buy it [SEP] Search"
    assert rich(part) == "WebShop\nInstruction: \nbuy it\n[button] Search [button_]\n"


def test_the_first_page_of_results():
    assert read(pages.results_head(1, 50, more=True)) == HEAD + "Page 1 (Total results: 50) [SEP] Next >"
    assert rich(pages.result(mug(3, prices=(7.0, 9.99)).card, 3)) == (
        "\n[button] B000000003 [button_]\nMug 3\n$7.0 to $9.99\n"
    )


def test_a_later_page_of_results_has_both_buttons():
    part = pages.results_head(3, 50, more=True)
    assert read(part) == HEAD + "Page 3 (Total results: 50) [SEP] < Prev [SEP] Next >"
    assert list(part.clicks) == ["< prev", "next >"]


def test_a_product():
    assert read(pages.item_page(mug())) == HEAD + (
        "< Prev [SEP] color [SEP] red [SEP] blue [SEP] size [SEP] small [SEP] large [SEP] Mug 0"
        " [SEP] Price: $9.5 [SEP] Rating: N.A. [SEP] Description [SEP] Features [SEP] Reviews [SEP] Buy Now"
    )


def test_a_product_without_options():
    part = pages.item_page(mug(options=()), show_attributes=True)
    assert rich(part) == (
        "[button] < Prev [button_]\nMug 0\nPrice: $9.5\nRating: N.A.\n[button] Description [button_]\n"
        "[button] Features [button_]\n[button] Reviews [button_]\n[button] Attributes [button_]\n"
        "[button] Buy Now [button_]\n"
    )
    assert list(part.clicks) == ["< prev", "description", "features", "reviews", "attributes", "buy now"]


def test_options_come_last_among_what_can_be_clicked():
    clicks = list(pages.item_page(mug()).clicks)
    assert clicks == [
        "< prev",
        "description",
        "features",
        "reviews",
        "buy now",
        "red",
        "blue",
        "small",
        "large",
    ]


def test_a_value_twice_in_one_group_is_not_ambiguous():
    part = pages.item_page(mug(options=(("color", ("red", "red")), ("size", ("8",)))))
    assert list(part.clicks)[-2:] == ["red", "8"]


@pytest.mark.parametrize(
    ("description", "field", "line"),
    [
        ("Holds\ntea. ", " [SEP] Holds\ntea.", "Holds\ntea. \n"),
        ("", "", ""),
        (" \n ", "", ""),
        ("   ", " [SEP] ", " \n"),
        ("\u00a0", " [SEP] ", "\u00a0\n"),
    ],
)
def test_white_space_counts_as_in_the_original(description, field, line):
    part = pages.sub_page(mug(description=description), "description")
    assert read(part) == HEAD + "< Prev" + field
    assert rich(part) == "[button] < Prev [button_]\n" + line
    reader = OriginalReader(page(part))
    assert (reader.text(), reader.text_rich("", ())) == ("< Prev" + field, rich(part))


def test_an_empty_bullet_is_an_empty_field():
    part = pages.sub_page(mug(bullets=("soft ", "", " a\nb", "\n")), "features")
    assert read(part) == HEAD + "< Prev [SEP] soft [SEP]  [SEP] a\nb"
    assert rich(part) == "[button] < Prev [button_]\n soft \n \n  a\nb\n"


def test_reviews():
    good, bad = Review(title="Good", score="5.0", body="Holds tea."), Review(title="", score="1", body="")
    part = pages.sub_page(mug(reviews=(good, bad)), "reviews")
    assert read(part) == HEAD + '< Prev [SEP] "Good" [SEP] 5.0 [SEP] Holds tea. [SEP] "" [SEP] 1'
    assert read(pages.sub_page(mug(), "reviews")) == HEAD + "< Prev"


def test_attributes():
    assert rich(pages.sub_page(mug(), "attributes")) == (
        "[button] < Prev [button_]\n bpa free\n lead free\ngarden\nmugs\nHome › Kitchen › Mugs\n"
    )


def test_the_last_page_writes_options_sorted_and_safe_within_html():
    part = pages.done_page("B000000000", {"size": "men's <8>", "color": 'groß & "red"'}, 2 / 3)
    fields = pages.text([part]).split(" [SEP] ")
    assert fields[8] == (r'{"color": "gro\u00df \u0026 \"red\"", "size": "men\u0027s \u003c8\u003e"}')
    assert fields[-4:] == ["Your score (min 0.0, max 1.0)", "0.6666666666666666", "Reward Details", "None"]
    assert OriginalReader(page(part)).text_rich("", ()) == rich(part)


def test_html_escapes_what_it_shows():
    nasty = "<b>\"R&amp;D'</b>\r<!-- x --></script><script>alert(1)</script>"
    product = mug(title=nasty, options=((nasty, (nasty,)),), image=nasty, bullets=(nasty,), description=nasty)
    for part in (pages.item_page(product), *(pages.sub_page(product, name) for name in pages.SUB_PAGES)):
        reader = OriginalReader(page(part, keywords=nasty, options={nasty: nasty}))
        assert not reader.mismatched
        assert "script" not in dict(reader.elements)
        assert reader.text() == pages.text([part])
        assert reader.text_rich("", ()) == rich(part)
    item = OriginalReader(page(pages.item_page(product)))
    assert next(at["src"] for tag, at in item.elements if tag == "img") == nasty
    assert next(at["value"] for tag, at in item.elements if tag == "input") == nasty


def test_html_keeps_carriage_returns_from_browsers():
    assert "<p>a&#13;b</p>" in page(pages.sub_page(mug(description="a\rb"), "description"))


def test_html_is_a_well_formed_document():
    reader = OriginalReader(page(pages.head("buy it"), pages.item_page(mug())))
    assert (reader.mismatched, reader.open) == (0, [])
    assert [tag for tag, _ in reader.elements][:5] == ["html", "head", "meta", "title", "body"]
    names = [at["id"] for _, at in reader.elements if "id" in at]
    assert len(names) == len({*names}) == 5
    labels = [at["for"] for tag, at in reader.elements if tag == "label"]
    assert labels == names[1:]


def test_html_leads_where_the_buttons_say():
    place = {"keywords": "red mug", "page_number": 2, "asin": "B000000000", "options": {"color": "red"}}
    reader = OriginalReader(
        page(
            pages.results_head(2, 50, more=True),
            pages.item_page(mug()),
            pages.sub_page(mug(), "features"),
            **place,
        )
    )
    words, red = "%5B%27red%27%2C%20%27mug%27%5D", "%7B%27color%27%3A%20%27red%27%7D"
    actions = [at["action"] for tag, at in reader.elements if tag == "form"]
    assert actions == [
        f"/search_results/s/{words}/1",
        f"/search_results/s/{words}/3",
        f"/search_results/s/{words}/2",
        f"/item_sub_page/s/B000000000/{words}/2/Description/{red}",
        f"/item_sub_page/s/B000000000/{words}/2/Features/{red}",
        f"/item_sub_page/s/B000000000/{words}/2/Reviews/{red}",
        f"/done/s/B000000000/{red}",
        f"/item_page/s/B000000000/{words}/2/{red}",
    ]
    option = next(at for _, at in reader.elements if at.get("value") == "small")
    assert option["name"] == "size"
    both = "%7B%27color%27%3A%20%27red%27%2C%20%27size%27%3A%20%27small%27%7D"
    assert option["data-url"] == f"/item_page/s/B000000000/{words}/2/{both}"


def test_html_ticks_what_is_selected():
    chosen = pages.html(
        [pages.item_page(mug())], Place(session_id="s", options={}), lambda node: node.text == "red"
    )
    ticked = [at["value"] for _, at in OriginalReader(chosen).elements if "checked" in at]
    assert ticked == ["red"]


def test_addresses_are_those_of_the_original():
    place = Place(session_id="s", keywords="a  b", page_number=1, asin="B1", options={"color": "groß"})
    assert place.url("search") == "http://127.0.0.1:3000/s"
    assert place.url("results") == "http://127.0.0.1:3000/search_results/s/a++b/1"
    assert place.url("item") == r'http://127.0.0.1:3000/item_page/s/B1/a++b/1/{"color": "gro\u00df"}'
    assert place.url("reviews") == "http://127.0.0.1:3000/item_sub_page/s/B1/a++b/1/Reviews/{'color': 'groß'}"
    assert place.url("done") == "http://127.0.0.1:3000/done/s/B1/{'color': 'groß'}"


def test_a_button_keeps_its_words_when_an_option_has_them_too():
    part = Part(
        [Option("features", "kind", "features"), Button("Features", "features"), Mark("<hr>"), Text("x")]
    )
    assert part.clicks == {"features": Button("Features", "features")}
    assert [node for node, _ in part.shown] == [part.nodes[0], part.nodes[1], part.nodes[3]]


def test_paths_are_percent_encoded():
    place = Place(session_id="a/b", keywords="c++ é/", asin="B1", options={"size": "1 | 2"})
    assert place.path("search") == "/a%2Fb"
    assert place.path("results") == "/search_results/a%2Fb/%5B%27c%2B%2B%27%2C%20%27%C3%A9%2F%27%5D/1"
    assert place.path("done") == "/done/a%2Fb/B1/%7B%27size%27%3A%20%271%20%7C%202%27%7D"
