import json
import os
import random

import pytest

from arl_gym.envs.webshop import original_products
from arl_gym.envs.webshop.json_stream import list_items
from arl_gym.envs.webshop.original import goal_range, original_store
from arl_gym.envs.webshop.original_goals import Written, human_goals, shuffled_goals
from arl_gym.envs.webshop.rows import RowWriter
from arl_gym.envs.webshop.store_cache import stores_root
from arl_gym.errors import ConfigError, DataError, DependencyMissing, UnknownNameError
from tests.envs.webshop.originals import listed, real_files, record, write_files, written
from tests.envs.webshop.shops import mug

ASINS = [f"B00000000{k}" for k in range(6)]
RECORDS = [record(asin) for asin in ASINS]


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("ARL_GYM_CACHE", str(tmp_path / "cache"))


def load(folder, num_products=None, goals="human", nouns="heuristic"):
    return original_store(folder, num_products, goals, nouns)


# ---- the reference data


@pytest.fixture(scope="module")
def real(shared_data, tmp_path_factory):
    folder = real_files(shared_data, tmp_path_factory.mktemp("real"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ARL_GYM_CACHE", str(tmp_path_factory.mktemp("real-cache")))
        yield {kind: load(folder, 1000, kind) for kind in ("synthetic", "human")}


def test_the_small_file_has_4121_synthetic_goals_over_415_products(real):
    shop = real["synthetic"]
    assert (len(shop), len(shop.goals)) == (1000, 4121)
    assert len({goal.asin for goal in shop.goals}) == 415
    assert {split: len(numbers) for split, numbers in shop.splits.items()} == {
        "test": 500,
        "val": 1000,
        "train": 2621,
    }


def test_goal_7_is_that_of_the_dump(real, shared_data):
    dump = json.loads((shared_data / "webshop/parity/orig_dump_synthetic_catalogue.json").read_text())[16]
    theirs, ours = dump["goal"], real["synthetic"].goals[7]
    assert ours.weight == theirs["weight"] == 0.01740314769975787
    for key in ("asin", "category", "query", "product_category"):
        assert getattr(ours, key) == theirs[key]
    assert ours.title == theirs["name"]
    assert list(ours.attributes) == theirs["attributes"]
    assert list(ours.options) == ["yellow", "x-large"] == list(theirs["goal_options"].values())
    assert ours.targets == ("yellow", "size x-large")
    assert ours.instruction.split(", and price")[0] == theirs["instruction_text"].split(", and price")[0]


def test_every_product_is_as_the_file_has_it(real, shared_data):
    records = json.loads((shared_data / "webshop/parity/items_shuffle_1000.json").read_text())
    shop = real["human"]
    assert [shop.card(k).title for k in range(1000)] == [r["name"] for r in records]
    assert [shop.number(r["asin"]) for r in records] == list(range(1000))
    priced = [shop.product(k).prices for k in range(1000)]
    assert sum(prices == (100.0,) for prices in priced) >= 105
    assert sum(len(prices) == 2 for prices in priced) == 121


def test_500_annotations_give_500_goals(real, shared_data):
    annotated = json.loads((shared_data / "webshop/parity/items_human_ins.json").read_text())
    texts = [records[0]["instruction"].strip(".") for records in annotated.values()]
    order = list(range(500))
    random.Random(233).shuffle(order)
    goals = [goal.instruction.split(", and price lower than")[0] for goal in real["human"].goals]
    assert goals == [texts[k] for k in order]
    assert {goal.weight for goal in real["human"].goals} == {1.0}


def test_human_goals_come_in_the_published_order(shared_data):
    texts = json.loads((shared_data / "webshop/human_goals.json").read_text(encoding="utf-8"))
    order = list(range(len(texts)))
    random.Random(233).shuffle(order)
    catalogue = dict(zip(order, texts, strict=True))
    products = [mug(f"B{k:09d}", prices=(5000.0,)) for k in range(len(texts))]
    source = human_goals({p.asin: [Written(catalogue[k], ("a",), ())] for k, p in enumerate(products)})
    goals = shuffled_goals(source, range(len(texts)), products.__getitem__)
    assert [goal.instruction for goal in goals] == [text.strip(".") for text in texts]
    assert len(texts) == 12087


# ---- splits


@pytest.mark.parametrize(
    ("mode", "split", "n", "numbers"),
    [
        ("paper", "test", 12087, range(500)),
        ("paper", "val", 12087, range(500, 1500)),
        ("paper", "train", 12087, range(1500, 12087)),
        ("verl_agent", "val", 6910, range(500)),
        ("verl_agent", "train", 6910, range(500, 6910)),
        ("paper", "test", 13, range(13)),
        ("paper", "val", 700, range(500, 700)),
    ],
)
def test_splits_are_ranges_of_goals(mode, split, n, numbers):
    assert goal_range(mode, split, n) == numbers


def test_a_split_without_goals_is_explained():
    with pytest.raises(DataError, match="begins at goal 1500, of only 13 goals: people wrote 13"):
        goal_range("paper", "train", 13)


def test_unknown_splits_are_errors():
    with pytest.raises(UnknownNameError, match="unknown split 'test'"):
        goal_range("verl_agent", "test", 10000)
    with pytest.raises(UnknownNameError, match="split mode 'papers'"):
        goal_range("papers", "test", 10000)


# ---- goals


def test_a_synthetic_goal_is_made_of_every_choice_of_options(tmp_path):
    folder = write_files(tmp_path / "data", RECORDS[:1])
    texts = sorted(goal.instruction.split(", and price")[0] for goal in load(folder, goals="synthetic").goals)
    assert texts == [
        "Find me mugs with dishwasher safe with color: navy blue, and size: l",
        "Find me mugs with dishwasher safe with color: navy blue, and size: s",
    ]


def test_the_weight_of_a_synthetic_goal_is_the_mean_rarity_of_its_attributes(tmp_path):
    plain = {"customization_options": None}
    wanted = [["a", "b"], ["a"], ["a", "c"]]
    attributes = {asin: listed(instruction_attributes=w) for asin, w in zip(ASINS[:3], wanted, strict=True)}
    folder = write_files(
        tmp_path / "data",
        [record(ASINS[0]), *(record(a, **plain) for a in ASINS[1:3])],
        attributes=attributes,
    )
    shop = load(folder, goals="synthetic")
    # The first product has two goals, so "a" is in four of them, "b" in two and "c" in one.
    weights = {goal.asin: goal.weight for goal in shop.goals}
    assert weights == {ASINS[0]: (1 / 4 + 1 / 2) / 2, ASINS[1]: 1 / 4, ASINS[2]: (1 / 4 + 1) / 2}
    assert len(shop.goals) == 4


def test_instructions_that_ask_for_nothing_are_no_goals(tmp_path):
    human = {
        ASINS[0]: [written(ASINS[0]), written(ASINS[0], instruction_attributes=[], instruction=None)],
        "B999999999": [written("B999999999")],
    }
    shop = load(write_files(tmp_path / "data", RECORDS, human=human))
    assert [goal.asin for goal in shop.goals] == [ASINS[0]]
    counts = shop.info.counts
    assert counts["instructions that ask for an attribute"] == 2
    assert counts["instructions left out: no attribute"] == 1
    assert (counts["products with goals"], counts["goals"]) == (1, 1)


def test_a_bound_stays_with_its_goal_whatever_else_is_there(tmp_path):
    few, many = (load(write_files(tmp_path / f"data{n}", RECORDS[:n])) for n in (3, 6))
    bounds = {goal.asin: goal.price_upper for goal in many.goals}
    assert all(bounds[goal.asin] == goal.price_upper for goal in few.goals)
    assert len({*bounds.values()}) > 1


def test_human_targets_are_values_and_colours(tmp_path):
    human = {ASINS[0]: [written(ASINS[0], instruction_options=["navy blue", "x-large"])]}
    (goal,) = load(write_files(tmp_path / "data", RECORDS[:1], human=human)).goals
    assert (goal.options, goal.targets) == (("navy blue", "x-large"), ("blue", "x-large"))


def test_no_goal_at_all_is_an_error(tmp_path):
    with pytest.raises(DataError, match="no goal for any of these products"):
        load(write_files(tmp_path / "data", RECORDS, human={}))


# ---- products


def test_records_that_are_no_products_are_counted_with_examples(tmp_path):
    bad = [
        record("nan"),
        record("B0000000001"),
        record(None),
        record(ASINS[0], name="again"),
        record("B1", pricing="call us"),
        {"asin": "B2"},
    ]
    shop = load(write_files(tmp_path / "data", [*RECORDS, *bad], attributes={ASINS[0]: listed()}))
    assert len(shop) == 6
    assert (
        shop.info.counts.items()
        >= {
            "records read": 12,
            "records left out: bad ASIN": 3,
            "records left out: duplicate ASIN": 1,
            "records left out: bad price": 1,
            "records left out: a field is missing or of another form": 1,
            "products kept": 6,
            "products that the attribute file lacks": 5,
        }.items()
    )
    assert shop.info.examples["records left out: bad ASIN"] == ["'nan'", "'B0000000001'", "None"]
    assert shop.product(0).attributes == ("dishwasher safe", "easy clean")
    assert shop.product(1).attributes == ("DUMMY_ATTR",)


def test_a_file_without_products_is_an_error(tmp_path):
    with pytest.raises(DataError, match=r"none of 1 records is a product: .*bad ASIN"):
        load(write_files(tmp_path / "data", [{"reviews": []}]))


def test_the_first_products_are_those_of_the_whole_file(tmp_path):
    shop = load(write_files(tmp_path / "data", RECORDS), 4)
    assert [shop.product(k).asin for k in range(len(shop))] == ASINS[:4]
    assert shop.dataset == "original"


def test_more_products_than_there_are_is_an_error(tmp_path):
    with pytest.raises(DataError, match="has 6 products, 7 were asked for"):
        load(write_files(tmp_path / "data", RECORDS), 7)


@pytest.mark.parametrize("number", [None, 1001])
def test_the_small_file_is_not_taken_for_the_whole(tmp_path, number):
    folder = write_files(tmp_path / "data", RECORDS, small=True)
    with pytest.raises(DataError, match=r"no items_shuffle\.json in .*pass num_products=1000"):
        load(folder, number)
    assert len(load(folder, 6)) == 6


@pytest.mark.parametrize("name", ["items_shuffle.json", "items_ins_v2.json", "items_human_ins.json"])
def test_a_missing_file_is_named(tmp_path, name):
    folder = write_files(tmp_path / "data", RECORDS)
    (folder / name).unlink()
    with pytest.raises(DataError, match=f"no {name} in"):
        load(folder)


@pytest.mark.parametrize("name", ["items_shuffle.json", "items_ins_v2.json", "items_human_ins.json"])
def test_a_file_cut_short_is_an_error(tmp_path, name):
    folder = write_files(tmp_path / "data", RECORDS)
    os.truncate(folder / name, (folder / name).stat().st_size - 3)
    with pytest.raises(DataError, match=rf"{name}.*is the file whole"):
        load(folder)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("items_ins_v2.json", [1]),
        ("items_ins_v2.json", {"B1": {"attributes": "x"}}),
        ("items_ins_v2.json", {"B1": {"attributes": [1]}}),
        ("items_ins_v2.json", {"B1": {"instruction": 3}}),
        ("items_human_ins.json", {"B1": {}}),
        ("items_human_ins.json", {"B1": [{}]}),
        ("items_human_ins.json", {"B1": [written("B1", instruction_options="x")]}),
        ("items_human_ins.json", {"B1": [written("B1", instruction=None)]}),
    ],
)
def test_another_file_in_the_place_of_one_is_an_error(tmp_path, name, content):
    folder = write_files(tmp_path / "data", RECORDS)
    (folder / name).write_text(json.dumps(content))
    with pytest.raises(DataError, match=f"{name}.* must "):
        load(folder)


def test_wrong_arguments_are_errors(tmp_path):
    with pytest.raises(ConfigError, match="num_products must be at least 1, or None"):
        load(tmp_path, 0)
    with pytest.raises(UnknownNameError, match="did you mean 'human'"):
        load(tmp_path, goals="humans")
    with pytest.raises(UnknownNameError, match="unknown tagger"):
        load(tmp_path, nouns="nltk")


# ---- made once


def test_a_shop_is_made_anew_only_when_its_files_change(tmp_path, monkeypatch):
    folder = write_files(tmp_path / "data", RECORDS)
    first = load(folder)
    assert load(folder) is first
    assert load(str(folder)) is first
    changed = write_files(folder, [*RECORDS, record("B9")])
    assert len(load(changed)) == 7
    assert len([path for path in stores_root().iterdir() if path.is_dir()]) == 1


def test_a_made_shop_needs_no_tagger(tmp_path, monkeypatch):
    folder = write_files(tmp_path / "data", RECORDS)
    shop = load(folder)

    def missing(kind: str) -> None:
        raise DependencyMissing("x", "nouns")

    monkeypatch.setattr("arl_gym.envs.webshop.original.load_tagger", missing)
    assert load(folder) is shop
    with pytest.raises(DependencyMissing):
        load(folder, 3)


class Interrupted(Exception):
    """Stands for a killed process."""


def test_an_interrupted_import_goes_on_where_it_was(tmp_path, monkeypatch):
    monkeypatch.setattr(original_products, "_BATCH", 2)
    folder = write_files(tmp_path / "data", [*RECORDS, record(ASINS[0]), record("B9")])
    whole = load(folder)
    again = write_files(tmp_path / "again", [*RECORDS, record(ASINS[0]), record("B9")])
    add = RowWriter.add
    calls, starts = list[int](), list[int]()

    def stop_at_5(writer, row):
        calls.append(1)
        if len(calls) == 6:
            raise Interrupted
        add(writer, row)

    def spy(path, start=0):
        starts.append(start)
        return list_items(path, start)

    monkeypatch.setattr(original_products, "list_items", spy)
    monkeypatch.setattr(RowWriter, "add", stop_at_5)
    with pytest.raises(Interrupted):
        load(again)
    monkeypatch.setattr(RowWriter, "add", add)
    resumed = load(again)
    assert (starts[0], starts[1] > 0) == (0, True)
    assert resumed.content_hash == whole.content_hash
    assert resumed.info.counts == whole.info.counts
    assert not list(stores_root().glob("*-reading"))


def test_an_interrupted_import_of_a_file_that_changed_begins_anew(tmp_path, monkeypatch):
    monkeypatch.setattr(original_products, "_BATCH", 2)
    folder = write_files(tmp_path / "data", [*RECORDS[:4], {"asin": 3}])
    text = (folder / "items_shuffle.json").read_text()
    (folder / "items_shuffle.json").write_text(text[:-1])
    with pytest.raises(DataError, match="is the file whole"):
        load(folder)
    write_files(folder, list(reversed(RECORDS)))
    shop = load(folder)
    assert [shop.product(k).asin for k in range(len(shop))] == ASINS[::-1]
