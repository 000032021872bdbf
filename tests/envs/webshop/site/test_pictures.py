import io
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from PIL import Image, ImageChops

from arl_gym.envs.webshop.generator import full_family
from arl_gym.envs.webshop.mini import HOUSEHOLD, WORN
from arl_gym.envs.webshop.product import Product
from arl_gym.envs.webshop.site.pictures import picture, picture_png, swatch
from arl_gym.envs.webshop.site.pictures.kinds import SHAPES, kind_of
from arl_gym.envs.webshop.site.pictures.patterns import PATTERNS, pattern_of
from arl_gym.envs.webshop.site.pictures.pen import DISC, Pen
from arl_gym.envs.webshop.site.pictures.phrases import PHRASES
from arl_gym.envs.webshop.words import leaves
from arl_gym.errors import ConfigError
from tests.envs.webshop.shelf import mug

PLAIN_MUG = mug(title="Plain Mug", options=())
GENERIC = {"bottles", "device", "house", "groceries", "parcel"}
HOSTILE = (
    "",
    " ",
    "x" * 10_000,
    "red " * 5_000,
    "🙂🧦",
    "<script>alert(1)</script>",
    "\x00\ud83d",
    "|||",
    "› ›",
)


def rgb(code: str) -> tuple[int, int, int]:
    return int(code[1:3], 16), int(code[3:5], 16), int(code[5:], 16)


def close(a: tuple[int, ...], b: tuple[int, ...], by: int = 6) -> bool:
    return all(abs(x - y) <= by for x, y in zip(a, b, strict=True))


def colour_of(product: Product, selected: dict[str, str] | None = None) -> object:
    """Return the colour that covers most of the product, not of what is behind it."""
    middle = picture(product, selected).crop((60, 60, 196, 196))
    counted = sorted(middle.getcolors(1 << 16) or [], reverse=True)
    return next(colour for _, colour in counted if colour != DISC)


def named(query: str, category: str = "", path: str = "", title: str = "") -> str:
    return kind_of(mug(query=query, category=category, product_category=path, title=title))


# ---- kinds


def test_there_are_many_kinds_and_no_two_look_the_same():
    drawn = set()
    for draw in SHAPES.values():
        pen = Pen(64, cloth=(200, 60, 60), accent=None, pattern="solid")
        draw(pen)
        drawn.add(pen.image().tobytes())
    assert len(drawn) == len(SHAPES) >= 45


def test_every_kind_has_words_or_a_category_and_no_phrase_names_two():
    assert set(PHRASES) <= set(SHAPES)
    assert set(SHAPES) - set(PHRASES) <= GENERIC
    phrases = [phrase.strip() for phrases in PHRASES.values() for phrase in phrases.split(",")]
    assert [phrase for phrase, n in Counter(phrases).items() if n > 1] == []


def test_every_leaf_of_the_full_catalogue_has_a_silhouette_of_its_own():
    kinds = {leaf.query: named(leaf.query) for leaf in leaves()}
    assert not GENERIC & set(kinds.values())
    shared = {kind for kind, n in Counter(kinds.values()).items() if n > 1}
    assert shared == {"pump bottle"}  # shampoos and body lotions


@pytest.mark.parametrize("word", WORN + HOUSEHOLD)
def test_every_kind_of_the_mini_catalogue_has_its_silhouette(word):
    kinds = {"boots": "boot", "shirt": "tee", "shoes": "shoe"}
    assert named(word) == kinds.get(word, word)


@pytest.mark.parametrize(
    ("query", "kind"),
    [
        ("men's loafers", "shoe"),
        ("women's loafers & slip-ons", "shoe"),
        ("women's ankle boots", "boot"),
        ("hair treatments", "cream jar"),
        ("home theater", "home theater"),
        ("bedroom sets", "bed"),
        ("living room sets", "sofa"),
        ("men's dress shirts", "blouse"),
        ("shirt dresses", "dress"),
        ("men's hoodies", "hoodie"),
        ("cookies", "cookies"),
        ("coffee mugs", "mug"),
        ("coffee tables", "coffee table"),
        ("hair extensions, wigs & accessories", "hair"),
        ("tea towels for coffee lovers", "towel"),
        ("chocolate chip cookies with nuts", "cookies"),
        ("cell phone cases", "phone case"),
        ("cell phones", "phone"),
        ("shower curtains", "shower curtain"),
        ("batteries", "battery"),
    ],
)
def test_a_query_of_the_original_names_a_kind(query, kind):
    assert named(query) == kind


def test_the_query_comes_before_the_path_and_the_path_before_the_title():
    assert named("boots", path="Clothing › Dresses", title="A lamp") == "boot"
    assert named("qqq", path="Clothing › Dresses › Qqq", title="A lamp") == "dress"
    assert named("qqq", path="Clothes › Shirts › Tank Tops", title="A lamp") == "tank"
    assert named("qqq", path="Qqq", title="A lamp") == "lamp"


def test_what_nothing_tells_is_shown_by_its_category_or_as_a_parcel():
    generic = [
        named("qqq", category=c) for c in ("beauty", "electronics", "fashion", "garden", "grocery", "")
    ]
    assert generic == ["bottles", "device", "tee", "house", "groceries", "parcel"]


# ---- colours


@pytest.mark.parametrize(
    ("value", "alike"),
    [
        ("navy blue", (37, 52, 92)),
        ("b-black", (38, 40, 44)),
        ("z1-black", (38, 40, 44)),
        ("rose gold", (219, 163, 148)),
        ("black/white", (38, 40, 44)),
        ("white | silver", (253, 253, 251)),
        ("mustard yellow", (212, 160, 42)),
        ("Crème", (247, 237, 214)),
        ("#1b natural black", (38, 40, 44)),
    ],
)
def test_a_value_names_its_colour(value, alike):
    assert close(rgb(swatch(value) or ""), alike, by=2)


def test_light_and_dark_shift_a_colour():
    def brightness(value: str) -> int:
        return sum(rgb(swatch(value) or ""))

    for hue in ("grey", "blue", "green", "purple", "brown"):
        assert brightness(f"dark {hue}") < brightness(hue) < brightness(f"light {hue}")
        assert swatch(f"light{hue}") == swatch(f"light {hue}")
    assert len({swatch(f"{word} charcoal") for word in ("", "heather", "light", "deep")}) == 4


@pytest.mark.parametrize(
    "value", ["x-large", "10 wide", '52"w x 63"l', "pack of 6", "i13 pro max", *HOSTILE[:3], "🙂"]
)
def test_a_value_that_is_no_colour_names_none(value):
    assert swatch(value) is None


def test_every_value_of_the_full_catalogue_that_calls_itself_a_colour_shows_something():
    values = {
        value for leaf in leaves() for group in leaf.groups if "color" in group.name for value in group.values
    }
    assert {value for value in values if not swatch(value) and not pattern_of(value)} == set()


def test_the_selected_colour_is_drawn():
    product = mug(options=(("color", ("red", "royal blue")), ("size", ("small", "large"))))
    assert colour_of(product, {"color": "royal blue", "size": "small"}) == rgb(swatch("royal blue") or "")
    assert colour_of(product, {"size": "small"}) == rgb(swatch("red") or "")
    assert colour_of(product) == rgb(swatch("red") or "")


def test_a_selected_colour_need_not_be_the_products():
    assert colour_of(PLAIN_MUG, {"colour": "teal"}) == rgb(swatch("teal") or "")


def test_without_a_colour_among_the_options_the_title_tells_it_else_the_id():
    assert colour_of(mug(title="Green Mug", options=())) == rgb(swatch("green") or "")
    assert len({colour_of(mug(number, title="Mug", options=())) for number in range(20)}) > 4


def test_a_size_that_sounds_like_a_colour_does_not_decide_before_others():
    product = mug(options=(("size", ("red 9",)), ("style", ("green switch",))))
    assert colour_of(product) == rgb(swatch("green") or "")


def test_a_second_group_of_colours_and_a_second_tone_show():
    table = mug(query="coffee tables", options=(("top color", ("white",)), ("leg color", ("gold", "black"))))
    assert picture(table, {"leg color": "black"}).tobytes() != picture(table).tobytes()
    shoe = mug(query="shoes", options=(("color", ("black | gum", "black | red")),))
    assert picture(shoe, {"color": "black | red"}).tobytes() != picture(shoe).tobytes()


# ---- patterns


@pytest.mark.parametrize(
    ("text", "pattern"),
    [
        ("multicolor stripe", "rainbow"),
        ("leopard print", "leopard"),
        ("Red Buffalo Plaid", "checked"),
        ("polka dots", "dotted"),
        ("white marble", "marble"),
        ("natural oak", "wood"),
        ("cherry blossom", "floral"),
        ("army camo", "camo"),
        ("royal blue", None),
    ],
)
def test_words_name_a_pattern(text, pattern):
    assert pattern_of(text) == pattern


def test_a_pattern_shows_wherever_a_word_tells_it():
    dress = mug(query="dresses", title="A dress", options=(("color", ("red", "red stripe")),))
    plain = picture(dress).tobytes()
    striped = picture(dress, {"color": "red stripe"}).tobytes()
    by_title = mug(query="dresses", title="A striped dress", options=(("color", ("red",)),))
    by_attribute = mug(query="dresses", title="A dress", options=by_title.options, attributes=("striped",))
    assert picture(by_title).tobytes() == picture(by_attribute).tobytes() == striped != plain


def test_wood_shows_on_a_table_and_not_on_a_dress():
    def red(query: str, title: str) -> bytes:
        return picture(mug(query=query, title=title, options=(("color", ("red",)),))).tobytes()

    assert red("table", "wooden table") != red("table", "table")
    assert red("dress", "wooden dress") == red("dress", "dress")


def test_all_patterns_differ():
    def drawn(pattern: str) -> bytes:
        pen = Pen(64, cloth=(200, 60, 60), accent=None, pattern=pattern)
        SHAPES["towel"](pen)
        return pen.image().tobytes()

    assert len({drawn(pattern) for pattern in PATTERNS}) == len(PATTERNS)


def test_some_textiles_have_a_pattern_by_chance_but_none_that_are_plain():
    def looks(title: str) -> int:
        rugs = (mug(n, query="rugs", title=title, options=(("color", ("red",)),)) for n in range(16))
        return len({picture(rug, size=32).tobytes() for rug in rugs})

    assert looks("rug") > 2
    assert looks("plain rug") == 1


# ---- files


@pytest.mark.parametrize("size", [32, 100, 256, 257, 1024])
def test_a_picture_is_square_and_of_the_size_asked_for(size):
    image = picture(mug(), size=size)
    assert (image.mode, image.size) == ("RGB", (size, size))


@pytest.mark.parametrize("size", [31, 1025, 0, -1])
def test_a_size_out_of_range_is_refused(size):
    with pytest.raises(ConfigError, match=rf"32 to 1024 pixels, got {size}$"):
        picture(mug(), size=size)
    with pytest.raises(ConfigError, match="32 to 1024"):
        picture_png(mug(), size=size)


def test_the_file_shows_the_picture_in_few_colours():
    drawn = picture(mug(), size=128)
    read = Image.open(io.BytesIO(picture_png(mug(), size=128))).convert("RGB")
    assert read.size == drawn.size
    bands = ImageChops.difference(read, drawn).split()
    assert max(value for band in bands for value in band.tobytes()) < 24
    assert len(read.getcolors(256) or []) > 8


def test_a_picture_is_the_callers_own():
    picture(mug()).paste((0, 0, 0), (0, 0, 256, 256))
    assert picture(mug()).getpixel((0, 0)) == (248, 248, 246)


def test_files_are_small():
    products = [full_family(k).products[0] for k in range(40)]
    sizes = sorted(len(picture_png(product)) for product in products)
    assert sizes[len(sizes) // 2] < 8_000
    assert sizes[-1] < 16_000


def test_another_process_draws_the_same_bytes():
    product = mug(query="rugs", title="A rug", options=(("color", ("leopard", "black | gum")),))
    code = (
        "from tests.envs.webshop.shelf import mug\n"
        "from arl_gym.envs.webshop.site.pictures import picture_png\n"
        "product = mug(query='rugs', title='A rug', options=(('color', ('leopard', 'black | gum')),))\n"
        "print(picture_png(product).hex(), picture_png(product, {'color': 'black | gum'}).hex())"
    )
    root = Path(__file__).parents[4]
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True)
    assert done.stdout.split() == [
        picture_png(product).hex(),
        picture_png(product, {"color": "black | gum"}).hex(),
    ]


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_texts_are_drawn_like_others(text):
    product = mug(
        title=text,
        category=text,
        query=text,
        product_category=text,
        options=((text, (text, text)), ("color", (text,)), ("empty", ())),
        attributes=(text,),
        image=text,
    )
    assert picture(product, {text: text, "color": text}, size=32).size == (32, 32)
    assert picture_png(product, {text: text}, size=32).startswith(b"\x89PNG")
