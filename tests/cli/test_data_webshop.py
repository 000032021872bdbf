import json

import pytest

from arl_gym.cli import data_webshop, main
from arl_gym.envs.webshop import original_check
from arl_gym.envs.webshop.store_cache import store_folders
from tests.envs.webshop.originals import record, write_files, written

ASINS = [f"B00000000{k}" for k in range(6)]


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("ARL_GYM_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def folder(tmp_path):
    return write_files(tmp_path / "data", [*map(record, ASINS), record("nan")])


def publish(monkeypatch, **counts: int) -> None:
    published = {"items_shuffle.json": {name.replace("_", " "): n for name, n in counts.items()}}
    monkeypatch.setattr(original_check, "PUBLISHED", published)
    monkeypatch.setattr(data_webshop, "PUBLISHED", published)


def test_an_import_says_what_was_found_and_where_it_is(folder, capsys):
    assert main(["data", "import", "webshop", str(folder), "--nouns", "heuristic"]) == 0
    shown = capsys.readouterr().out.splitlines()
    (store,) = store_folders()
    assert "        7  records read" in shown
    assert "        1  records left out: bad ASIN, e.g. 'nan'" in shown
    assert "        6  goals" in shown
    assert "splits paper: train none, val none, test 0-5" in shown
    assert "splits verl_agent: train none, val 0-5" in shown
    assert shown[-3:] == ["nouns by heuristic", shown[-2], f"store {store}"]


def test_an_import_takes_a_number_and_the_kind_of_goals(folder, capsys):
    args = ["--num-products", "2", "--goals", "synthetic", "--nouns", "heuristic"]
    assert main(["data", "import", "webshop", str(folder), *args]) == 0
    assert "        4  goals" in capsys.readouterr().out.splitlines()


def test_an_import_of_nothing_exits_1(tmp_path, capsys):
    assert main(["data", "import", "webshop", str(tmp_path)]) == 1
    assert capsys.readouterr().err == f"arl-gym: no items_shuffle.json in {tmp_path}\n"


def test_data_that_are_as_published_exit_0(folder, monkeypatch, capsys):
    publish(monkeypatch, products=7, human_goals=6, synthetic_goals=12, generated=0)
    assert main(["data", "check", "webshop", str(folder)]) == 0
    shown = capsys.readouterr()
    assert "no items_shuffle_1000.json\n" in shown.out
    assert "  products                         7           7\n" in shown.out
    assert shown.err == ""


def test_differences_are_marked_and_exit_1(folder, capsys):
    assert main(["data", "check", "webshop", str(folder)]) == 1
    shown = capsys.readouterr()
    assert "  human goals                      6       12087  -12081\n" in shown.out
    assert "  synthetic goals                 12\n" in shown.out
    assert "items_shuffle.json has 7 products, 1181436 are published" in shown.err


def test_goals_that_cannot_be_counted_are_a_difference(folder, monkeypatch, capsys):
    publish(monkeypatch, products=7, human_goals=6)
    (folder / "items_human_ins.json").unlink()
    assert main(["data", "check", "webshop", str(folder)]) == 1
    assert "human goals cannot be counted, a file is missing" in capsys.readouterr().err


def test_a_damaged_store_exits_1(folder, monkeypatch, capsys):
    publish(monkeypatch, products=7)
    main(["data", "import", "webshop", str(folder), "--nouns", "heuristic"])
    assert main(["data", "check", "webshop", str(folder)]) == 0
    (store,) = store_folders()
    assert f"store {store} is whole\n" in capsys.readouterr().out
    content = bytearray((store / "goals.rows").read_bytes())
    content[5] ^= 1
    (store / "goals.rows").write_bytes(content)
    assert main(["data", "check", "webshop", str(folder)]) == 1
    assert "goals.rows has changed since it was written: delete the folder" in capsys.readouterr().err


def test_an_exported_shop_is_known_as_generated(tmp_path, capsys):
    folder = tmp_path / "export"
    args = ["--catalogue", "full", "--num-products", "30"]
    assert main(["data", "export", "webshop", str(folder), *args]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith(f"{folder / 'items_shuffle.json'}\n")
    assert "30 products and " in shown
    assert main(["data", "check", "webshop", str(folder)]) == 1
    assert "items_shuffle.json has 30 generated, 0 are published" in capsys.readouterr().err
    assert main(["data", "export", "webshop", str(folder), *args]) == 1
    assert "exists: choose another folder" in capsys.readouterr().err


def test_human_goals_without_attributes_do_not_count(tmp_path, monkeypatch):
    human = {ASINS[0]: [written(ASINS[0], instruction_attributes=[])]}
    folder = write_files(tmp_path / "data", [record(ASINS[0])], human=human)
    publish(monkeypatch, products=1, human_goals=0)
    assert main(["data", "check", "webshop", str(folder)]) == 0
    (folder / "items_human_ins.json").write_text(json.dumps({ASINS[0]: [written(ASINS[0])]}))
    assert main(["data", "check", "webshop", str(folder)]) == 1


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["import", "webshops", "x"], "did you mean 'webshop'"),
        (["import", "webshop"], "required: DIR"),
        (["import", "webshop", "x", "--goals", "humans"], "invalid choice: 'humans'"),
        (["export", "webshop", "x", "--num-products", "0"], "must be at least 1"),
    ],
)
def test_bad_usage_exits_2(args, says, capsys):
    assert main(["data", *args]) == 2
    assert says in capsys.readouterr().err


def test_help_lists_the_actions(capsys):
    assert main(["data", "--help"]) == 0
    shown = capsys.readouterr().out
    for action in ("import", "check", "export"):
        assert f"\n  arl-gym data {action} webshop …\n" in shown
