import gc
import multiprocessing
import pickle
import shutil
from pathlib import Path

import pytest

from arl_gym.envs.webshop import store as store_module
from arl_gym.envs.webshop.bm25 import Index
from arl_gym.envs.webshop.store import Store, Task, find_store, open_store, write_store
from arl_gym.envs.webshop.store_cache import cached_store, stores_root
from arl_gym.errors import DataError
from tests.envs.webshop.shops import REVIEWED, mug, mug_goal

A, B = mug("B000000002", title="Red teapot"), mug("B000000001", title="Blue kettle")


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("ARL_GYM_CACHE", str(tmp_path / "cache"))


def write(folder: Path, *content: object, number: int = 1) -> Store:
    items = content or (A, B, REVIEWED, Task("train", mug_goal(A.asin)), Task("val", mug_goal(B.asin)))
    return write_store(folder, items, dataset="mugs", arguments={"number": number}, tagger="none", expected=9)  # type: ignore[arg-type]


@pytest.fixture
def shop(tmp_path):
    return write(tmp_path / "shop")


def test_products_come_back_as_they_were(shop):
    assert len(shop) == 3
    assert [shop.product(k) for k in range(3)] == [A, B, REVIEWED]
    assert [shop.card(k) for k in range(3)] == [A.card, B.card, REVIEWED.card]


def test_products_are_found_by_asin(shop):
    assert [shop.number(p.asin) for p in (A, B, REVIEWED)] == [0, 1, 2]
    wrong = ["", "B", "B000000000", "B0000000011", "ZZZZZZZZZZ", "B00000000é", "b000000001"]
    assert [shop.number(asin) for asin in wrong] == [None] * len(wrong)


def test_asins_of_any_characters_and_lengths_are_found(tmp_path):
    shop = write(tmp_path / "odd", mug("é" * 10), mug("B"), mug("BB"))
    assert [shop.number("é" * 10), shop.number("B"), shop.number("BB")] == [0, 1, 2]


def test_a_number_beyond_the_last_is_an_error(shop):
    for number in (3, -1):
        with pytest.raises(IndexError, match="of 3"):
            shop.product(number)
        with pytest.raises(IndexError, match="of 3"):
            shop.card(number)


def test_goals_come_back_by_number_and_by_split(shop):
    assert list(shop.goals) == [mug_goal(A.asin), mug_goal(B.asin)]
    assert shop.goals[-1] == mug_goal(B.asin)
    assert shop.goals[:1] == [mug_goal(A.asin)]
    assert {name: list(numbers) for name, numbers in shop.splits.items()} == {"train": [0], "val": [1]}


def test_a_shop_without_goals_has_none(tmp_path):
    assert len(write(tmp_path / "bare", A).goals) == 0


def test_search_asks_the_index_and_remembers(shop, monkeypatch):
    assert shop.search("kettle") == (1,)
    assert shop.search("nothing like it") == ()
    monkeypatch.setattr(Index, "top", lambda *args: pytest.fail("asked again"))
    assert shop.search("kettle") == (1,)


def test_at_most_50_are_found(tmp_path):
    shop = write(tmp_path / "many", *(mug(f"B{k:09d}") for k in range(60)))
    assert shop.search("mug") == tuple(range(50))


def test_the_hash_goes_with_every_product_goal_and_split(tmp_path):
    goal = mug_goal(A.asin)
    contents = [
        (A, B, Task("train", goal)),
        (B, A, Task("train", goal)),
        (A, REVIEWED, Task("train", goal)),
        (A, B, Task("val", goal)),
        (A, B, Task("train", mug_goal(B.asin))),
        (A, B),
    ]
    hashes = [write(tmp_path / f"shop{k}", *content).content_hash for k, content in enumerate(contents)]
    assert len({*hashes}) == len(contents)
    assert write(tmp_path / "again", *contents[0]).content_hash == hashes[0]


def test_one_asin_twice_is_an_error(tmp_path):
    with pytest.raises(DataError, match="two products have the ASIN B000000002"):
        write(tmp_path / "twice", A, B, A)
    assert list(tmp_path.iterdir()) == []


def test_a_line_break_in_an_asin_is_an_error(tmp_path):
    with pytest.raises(DataError, match="line break in the ASIN"):
        write(tmp_path / "broken", mug("B00\n1"))


def test_no_product_is_an_error(tmp_path):
    with pytest.raises(DataError, match="at least one product"):
        write(tmp_path / "empty", Task("train", mug_goal("B1")))


# ---- the folder


def test_a_process_has_one_store_of_a_folder(shop):
    assert open_store(shop.folder) is shop
    assert pickle.loads(pickle.dumps(shop)) is shop


def test_a_store_nobody_holds_goes(tmp_path):
    write(tmp_path / "shop").search("mug")
    gc.collect()
    assert tmp_path / "shop" not in store_module._in_use


def _ask(shop: Store, out: "multiprocessing.Queue[object]") -> None:
    out.put((shop.product(1), shop.search("teapot"), shop.number(REVIEWED.asin), shop.goals[1]))


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_other_processes_may_use_it(shop, method):
    shop.search("mug")
    context = multiprocessing.get_context(method)
    out = context.Queue()
    workers = [context.Process(target=_ask, args=(shop, out)) for _ in range(2)]
    for worker in workers:
        worker.start()
    assert [out.get(timeout=60) for _ in workers] == [(B, (0,), 2, mug_goal(B.asin))] * 2
    for worker in workers:
        worker.join(30)


@pytest.mark.parametrize("name", ["products.rows", "cards.ends", "asins.npy", "split-train.i4"])
def test_a_file_cut_short_is_named_with_the_remedy(shop, name):
    folder, path = shop.folder, shop.folder / name
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(DataError, match=rf"{name} has \d+ bytes, expected \d+: delete the folder .*shop"):
        Store(folder)


def test_a_missing_file_is_named(shop):
    (shop.folder / "goals.rows").unlink()
    with pytest.raises(DataError, match=r"goals\.rows is missing: delete the folder"):
        Store(shop.folder)


def test_other_bytes_are_found_by_a_check(shop):
    assert shop.faults() == []
    path = shop.folder / "cards.rows"
    content = bytearray(path.read_bytes())
    content[3] ^= 1
    path.write_bytes(content)
    (fault,) = Store(shop.folder).faults()
    assert "cards.rows has changed since it was written: delete the folder" in fault


@pytest.mark.parametrize("text", ["", "[1]", "{", '{"format": 1}', '{"format": 0}'])
def test_an_unreadable_info_is_an_error(shop, text):
    (shop.folder / "info.json").write_text(text)
    with pytest.raises(DataError, match="delete the folder"):
        Store(shop.folder)


def test_a_folder_without_a_store_is_an_error(tmp_path):
    with pytest.raises(DataError, match=r"no store in .*: cannot read info\.json"):
        open_store(tmp_path)


def test_a_store_is_only_read(shop):
    for path in [*shop.folder.rglob("*"), shop.folder]:
        path.chmod(0o555 if path.is_dir() else 0o444)
    before = {p: p.stat().st_mtime_ns for p in [shop.folder, *shop.folder.rglob("*")]}
    fresh = Store(shop.folder)
    assert (fresh.search("teapot"), fresh.number(A.asin)) == ((0,), 0)
    assert {p: p.stat().st_mtime_ns for p in [shop.folder, *shop.folder.rglob("*")]} == before


# ---- the cache


def cached(number: int = 1) -> Store:
    return cached_store("shop", {"number": number}, lambda folder: write(folder, number=number))


def test_a_store_is_made_once(monkeypatch):
    first = cached()
    assert first.folder == stores_root() / "shop"
    monkeypatch.setattr("tests.envs.webshop.test_store.write", lambda *args, **kwargs: pytest.fail("anew"))
    assert cached() is first


def test_other_arguments_take_the_place_of_a_store():
    first = cached(1)
    second = cached(2)
    assert second is not first
    assert second.info.arguments == {"number": 2}
    assert find_store(second.folder, {"number": 1}) is None
    assert sorted(path.name for path in stores_root().iterdir()) == ["shop", "shop.lock"]


def test_another_version_is_made_anew(monkeypatch):
    first = cached()
    monkeypatch.setattr(store_module, "FORMAT", 2)
    assert cached() is not first


def test_a_store_replaced_by_another_process_is_opened_anew():
    mine = cached(1)
    worker = multiprocessing.get_context("fork").Process(target=cached, args=(2,))
    worker.start()
    worker.join(30)
    assert find_store(mine.folder, {"number": 1}) is None
    theirs = find_store(mine.folder, {"number": 2})
    assert theirs is not None
    assert theirs is not mine


def test_a_damaged_store_is_reported_and_made_anew_when_deleted():
    folder = cached().folder
    gc.collect()
    (folder / "cards.rows").write_bytes(b"")
    with pytest.raises(DataError, match="delete the folder"):
        cached()
    shutil.rmtree(folder)
    assert cached().faults() == []


def _count(out: "multiprocessing.Queue[int]") -> None:
    made = list[int]()
    cached_store("shop", {"number": 1}, lambda folder: made.append(1) or write(folder))  # type: ignore[func-returns-value]
    out.put(len(made))


def test_of_processes_that_start_at_once_one_makes_the_store():
    context = multiprocessing.get_context("fork")
    out = context.Queue()
    workers = [context.Process(target=_count, args=(out,)) for _ in range(3)]
    for worker in workers:
        worker.start()
    assert sorted(out.get(timeout=30) for _ in workers) == [0, 0, 1]
    for worker in workers:
        worker.join(30)


def test_without_locks_the_store_of_a_faster_process_stays(tmp_path, monkeypatch):
    faster = write(tmp_path / "shop", number=1)
    monkeypatch.setattr(Path, "exists", lambda path: False)
    assert write(tmp_path / "shop", number=2).info == faster.info
    assert [path.name for path in tmp_path.iterdir()] == ["shop"]


def test_what_a_killed_process_left_is_removed():
    left = stores_root() / ".shop.0123.part"
    left.mkdir(parents=True)
    (left / "products.rows").write_bytes(b"half")
    cached()
    assert not left.exists()


def test_where_nothing_can_be_kept_a_store_lives_as_long_as_the_process(tmp_path, monkeypatch):
    (tmp_path / "file").write_bytes(b"")
    monkeypatch.setenv("ARL_GYM_CACHE", str(tmp_path / "file" / "cache"))
    with pytest.warns(UserWarning, match="ARL_GYM_CACHE"):
        shop = cached()
    assert shop.search("teapot") == (0,)
    assert cached() is shop
