import json

import pytest

from arl_gym.envs.webshop.product import Product, read_prices, read_product
from arl_gym.errors import DataError

RECORD = {
    "asin": "B000000001",
    "name": "Mug",
    "category": "garden",
    "query": " Coffee Mugs ",
    "product_category": "Home › Mugs",
    "full_description": "A mug.",
    "small_description": ["Holds tea.", "Blue or red."],
    "pricing": "$4.50",
    "images": ["m.png"],
    "customization_options": {
        "Color": [{"value": " Red/Blue "}, {"value": "NAVY", "image": None}],
        "Size": None,
    },
}


def test_a_record_is_read_as_the_original_reads_it():
    mug = read_product(RECORD, attributes=["dishwasher safe"], nouns=["mug"])
    assert (mug.asin, mug.title, mug.query) == ("B000000001", "Mug", "coffee mugs")
    assert mug.options == (("color", ("red | blue", "navy")),)
    assert mug.bullets == ("Holds tea.", "Blue or red.")
    assert mug.search_text == "mug a mug. holds tea. color: red | blue, navy"
    assert (mug.price_tag, mug.price) == ("$4.5", 4.5)
    assert mug.attributes == ("dishwasher safe",)


def test_a_product_without_attributes_gets_the_originals_dummy():
    assert read_product(RECORD).attributes == ("DUMMY_ATTR",)


@pytest.mark.parametrize(
    ("pricing", "prices"),
    [
        ("$34.89", (34.89,)),
        ("$1,299.00", (1299.0,)),
        ("$7.07 - $8.23", (7.07, 8.23)),
        ("From $3 to $5 or $9", (3.0, 5.0)),
        ("", (100.0,)),
        (None, (100.0,)),
    ],
)
def test_prices(pricing, prices):
    assert read_prices(pricing) == prices


@pytest.mark.parametrize("pricing", ["cheap", "$", "$1.2.3"])
def test_a_price_without_an_amount_is_an_error(pricing):
    with pytest.raises(DataError, match="pricing must look like"):
        read_prices(pricing)


def test_tags_show_floats_as_the_original_does():
    assert read_product(RECORD | {"pricing": "$14"}).price_tag == "$14.0"
    assert read_product(RECORD | {"pricing": "$7.07 - $8.23"}).price_tag == "$7.07 to $8.23"
    assert read_product(RECORD | {"pricing": None}).price_tag == "$100.0"


def test_the_price_of_a_range_lies_in_it_and_stays_the_same():
    ranged = read_product(RECORD | {"pricing": "$7 - $8"})
    assert 7 <= ranged.price < 8
    assert ranged.price == read_product(RECORD | {"pricing": "$7 - $8"}).price
    assert ranged.price != read_product(RECORD | {"pricing": "$7 - $8", "asin": "B000000002"}).price


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"asin": "nan"}, "asin must be"),
        ({"asin": "B0123456789"}, "asin must be"),
        ({"name": None}, "product B000000001: name must be a text, got None"),
        ({"images": []}, "product B000000001: a field is missing"),
        ({"customization_options": {"color": [{}]}}, "product B000000001: a field is missing"),
        ({"small_description": 3}, "small_description must be"),
        ({"pricing": "cheap"}, "product B000000001: pricing must look"),
    ],
)
def test_a_bad_record_is_named_with_its_product(changed, message):
    with pytest.raises(DataError, match=message):
        read_product(RECORD | changed)


def test_a_row_brings_the_product_back():
    mug = read_product(RECORD, attributes=["dishwasher safe"], nouns=["mug"])
    assert Product.of_row(json.loads(json.dumps(mug.to_row()))) == mug


def test_every_product_of_the_real_titles_is_read(shared_data):
    records = json.loads((shared_data / "webshop/parity/items_shuffle_1000.json").read_text())
    products = [read_product(record) for record in records]
    assert len({p.asin for p in products}) == 1000
    assert sum(len(p.prices) == 2 for p in products) == 121
    assert sum(p.prices == (100.0,) for p in products) >= 105
    assert sum(not p.options for p in products) == 117
