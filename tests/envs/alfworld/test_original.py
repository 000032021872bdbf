import csv
import gc
import gzip
import io
import json
import multiprocessing
import os
import sys
import warnings
from collections import Counter
from pathlib import Path

import pytest

from arl_gym import caches
from arl_gym.assets import cache_root
from arl_gym.envs.alfworld import original_index
from arl_gym.envs.alfworld.game import read_game
from arl_gym.envs.alfworld.grammars import UnknownRules
from arl_gym.envs.alfworld.house import House
from arl_gym.envs.alfworld.original import PUBLISHED, OriginalGames
from arl_gym.envs.alfworld.scene import TASK_TYPES
from arl_gym.errors import DataError, UnknownNameError
from arl_gym.rng import digest
from tests.envs.alfworld.trees import TASKS, folder_name, record, write_game, write_tree

SIMPLE = "pick_and_place_simple"
FIRST = f"valid_seen/{folder_name('look_at_obj_in_light')}/trial_T0"


@pytest.fixture(autouse=True)
def _fresh(tmp_path, monkeypatch):
    monkeypatch.setenv("ARL_GYM_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("ALFWORLD_DATA", raising=False)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    write_tree(tmp_path / "data")
    return tmp_path / "data"


def no_reading(monkeypatch) -> None:
    def fail(text: str):
        raise AssertionError("a game was parsed")

    monkeypatch.setattr(original_index, "read_game", fail)


def the_cache() -> Path:
    files = list((cache_root() / "alfworld").glob("*.index"))
    assert len(files) == 1
    return files[0]


# ---- where the data is


@pytest.mark.parametrize("below", ["", "json_2.1.1"])
def test_the_folder_above_and_the_folder_of_the_splits_are_the_same_data(data, below):
    assert len(OriginalGames(data / below).ids("valid_seen")) == 12


def test_a_relative_folder_stays_where_it_was(data, monkeypatch, tmp_path):
    monkeypatch.chdir(data.parent)
    games = OriginalGames("data")
    monkeypatch.chdir("/")
    assert len(games.ids("valid_seen")) == 12
    assert games.root == (tmp_path / "data" / "json_2.1.1").resolve()


def test_the_variable_says_where_and_data_dir_comes_before_it(data, monkeypatch, tmp_path):
    monkeypatch.setenv("ALFWORLD_DATA", str(data))
    assert len(OriginalGames().ids("valid_seen")) == 12
    write_tree(tmp_path / "other", per_type=1)
    assert len(OriginalGames(tmp_path / "other").ids("valid_seen")) == 6


def test_the_usual_place_is_in_the_home_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    write_tree(tmp_path / ".cache" / "alfworld", per_type=1)
    assert len(OriginalGames().ids("valid_seen")) == 6
    assert OriginalGames("~/.cache/alfworld").root == OriginalGames().root


@pytest.mark.parametrize("variable", [None, "", "/no/such/place"])
def test_missing_data_is_one_message_that_says_what_to_do(monkeypatch, tmp_path, variable):
    monkeypatch.setenv("HOME", str(tmp_path))
    if variable is not None:
        monkeypatch.setenv("ALFWORLD_DATA", variable)
    with pytest.raises(DataError) as caught:
        OriginalGames()
    place = variable or str(tmp_path / ".cache" / "alfworld")
    for said in (place, "ALFWORLD_DATA", "alfworld-download", 'dataset="generated"'):
        assert said in str(caught.value)


# ---- splits and ids


def test_splits_have_the_benchmarks_names_and_two_aliases(data):
    games = OriginalGames(data)
    asked = ("train", "valid_seen", "valid_unseen", "val", "test_ood")
    named = ["train", "valid_seen", "valid_unseen", "valid_seen", "valid_unseen"]
    assert [games.split_name(split) for split in asked] == named
    with pytest.raises(UnknownNameError, match=r"no such split.*known: test_ood, train, val, valid_seen"):
        games.split_name("test")


def test_ids_are_sorted_paths_of_one_type_or_of_all(data):
    games = OriginalGames(data)
    ids = games.ids("val")
    assert list(ids) == sorted(
        f"valid_seen/{folder_name(task)}/trial_T{k}" for task in TASKS for k in range(2)
    )
    assert games.ids("val", SIMPLE) == tuple(f"valid_seen/{folder_name(SIMPLE)}/trial_T{k}" for k in range(2))
    assert games.game_id(ids[0]) == f"{folder_name('look_at_obj_in_light')}/trial_T0"
    with pytest.raises(UnknownNameError, match="pick_and_place_simple"):
        games.ids("val", "pick_and_place")


def test_a_game_is_that_of_its_file(data):
    games = OriginalGames(data)
    for task_id in games.ids("val"):
        text = games.file_text(task_id)
        assert text == (data / "json_2.1.1" / task_id / "game.tw-pddl").read_text()
        game = games.game(task_id)
        assert game.to_row() == read_game(text).to_row()
        assert game.task == TASKS[game.task_type][1]
        assert House(game).act("open fridge 1") == "Nothing happens."
    mugs = [len(games.game(task_id).objects) for task_id in games.ids("val", SIMPLE)]
    assert mugs == [3, 4]  # the lamp is one


def test_copies_share_index_and_games(data):
    one, two = OriginalGames(data), OriginalGames(data)
    assert one.ids("val") is two.ids("val")
    assert one.game(FIRST) is two.game(FIRST)


@pytest.mark.parametrize("task_id", ["valid_seen/nope/trial_T0", "nope/x/y", "valid_seen-000000", ""])
def test_an_unknown_task_is_named(data, task_id):
    games = OriginalGames(data)
    for ask in (games.game, games.file_text):
        with pytest.raises(UnknownNameError, match=r"unknown (task_id|split)"):
            ask(task_id)


def test_an_empty_split_says_what_was_left_out_and_what_to_run(data):
    with pytest.raises(DataError, match=r"no game in .*train \(left out: none\).*alfworld-download"):
        OriginalGames(data).ids("train")
    write_game(data / "json_2.1.1" / "train", SIMPLE, "trial_T0", game=None)
    with pytest.raises(DataError, match=r"left out: 1 no game\.tw-pddl"):
        OriginalGames(data).ids("train")


def test_a_type_without_games_is_an_error(data):
    write_game(data / "json_2.1.1" / "train", SIMPLE, "trial_T0", game=record(SIMPLE))
    games = OriginalGames(data)
    assert len(games.ids("train")) == 1
    with pytest.raises(DataError, match="no game of type pick_two_obj_and_place"):
        games.ids("train", "pick_two_obj_and_place")


# ---- what is left out


def without(key: str) -> dict[str, object]:
    return {k: v for k, v in record(SIMPLE).items() if k != key}


PROBLEM = record(SIMPLE)["pddl_problem"]
ON_DESK = record(SIMPLE, at="Desk_bar_1")["pddl_problem"]
BAD_GAMES: dict[str, tuple[object, str]] = {
    "truncated": (json.dumps(record(SIMPLE))[:5000], "game.tw-pddl is no JSON"),
    "empty": ("", "game.tw-pddl is no JSON"),
    "deep": ("[" * 100_000, "game.tw-pddl is no JSON"),
    "missing": (None, "no game.tw-pddl"),
    "a list": ("[1, 2]", "no key solvable"),
    "other JSON": ({"name": "package"}, "no key solvable"),
    "other JSON, solvable": ({"solvable": True}, "problem or goal cannot be read"),
    "no key": (without("solvable"), "no key solvable"),
    "false": ({**record(SIMPLE), "solvable": False}, "not solvable"),
    "null": ({**record(SIMPLE), "solvable": None}, "not solvable"),
    "no problem": (without("pddl_problem"), "problem or goal cannot be read"),
    "half a problem": (
        {**record(SIMPLE), "pddl_problem": PROBLEM[:900]},
        "problem or goal cannot be read",
    ),
    "unknown goal": (
        {**record(SIMPLE), "pddl_problem": PROBLEM.replace("(objecttype ?o mugtype)", "(opened ?r)")},
        "problem or goal cannot be read",
    ),
    "other goal": ({**record("pick_two_obj_and_place")}, "goal of another task type"),
    "already true": ({**record(SIMPLE), "pddl_problem": ON_DESK}, "goal true at the start"),
}


@pytest.mark.parametrize("case", BAD_GAMES)
def test_a_bad_game_is_left_out_with_its_reason(data, case):
    content, reason = BAD_GAMES[case]
    write_game(data / "json_2.1.1" / "valid_seen", SIMPLE, "trial_bad", game=content)  # type: ignore[arg-type]
    games = OriginalGames(data)
    report = games.report().splits["valid_seen"]
    assert report.skipped == {reason: 1}
    assert report.examples == {reason: [f"{folder_name(SIMPLE)}/trial_bad"]}
    assert report.types == dict.fromkeys(TASK_TYPES, 2)
    assert len(games.ids("val")) == 12


@pytest.mark.parametrize(
    ("folder", "task", "reason"),
    [
        ("pick_and_place_simple-AppleSliced-None-Desk-10", None, "movable or sliced objects"),
        ("pick_and_place_with_movable_recep-Mug-Bowl-Desk-10", None, "movable or sliced objects"),
        ("", {"task_type": "pick_and_place_with_movable_recep"}, "another task type"),
        ("", {"plan": []}, "another task type"),
        ("", "[]", "another task type"),
        ("", '{"task_type": "pick_and', "traj_data.json is no JSON"),
    ],
)
def test_a_task_the_benchmark_leaves_out_is_left_out(data, folder, task, reason):
    write_game(
        data / "json_2.1.1" / "valid_seen", SIMPLE, "trial_bad", game=record(SIMPLE), task=task, folder=folder
    )
    report = OriginalGames(data).report().splits["valid_seen"]
    assert (report.n_games, report.skipped) == (12, {reason: 1})


def test_a_game_without_its_task_file_is_left_out(data):
    (data / "json_2.1.1" / FIRST / "traj_data.json").unlink()
    report = OriginalGames(data).report().splits["valid_seen"]
    assert (report.n_games, report.skipped) == (11, {"no traj_data.json": 1})


def test_a_huge_file_is_not_loaded(data):
    with (data / "json_2.1.1" / FIRST / "game.tw-pddl").open("ab") as file:
        file.truncate((64 << 20) + 1)
    report = OriginalGames(data).report().splits["valid_seen"]
    assert report.skipped == {"game.tw-pddl is larger than 64 MB": 1}


def test_at_most_three_folders_of_a_reason_are_named(data):
    for k in range(5):
        write_game(data / "json_2.1.1" / "valid_seen", SIMPLE, f"trial_bad{k}", game=None)
    report = OriginalGames(data).report().splits["valid_seen"]
    assert report.skipped == {"no game.tw-pddl": 5}
    assert report.examples["no game.tw-pddl"] == [f"{folder_name(SIMPLE)}/trial_bad{k}" for k in range(3)]


def test_equal_games_are_kept_and_counted(data):
    split = data / "json_2.1.1" / "valid_seen"
    other_ids = PROBLEM.replace("Mug_bar_", "Mug_bar_plus_").replace("loc_bar_", "loc_bar_0")
    write_game(split, SIMPLE, "trial_same", game={**record(SIMPLE), "pddl_problem": other_ids})
    games = OriginalGames(data)
    same = [games.game(f"valid_seen/{folder_name(SIMPLE)}/trial_{end}") for end in ("T0", "same")]
    assert same[0].content_hash == same[1].content_hash
    assert games.report().splits["valid_seen"].duplicates == 1
    assert len(games.ids("val", SIMPLE)) == 3


@pytest.mark.parametrize("key", ["grammar", "pddl_domain"])
def test_unknown_rules_are_an_error_unless_textworld_plays(data, key):
    changed = record(SIMPLE)
    changed[key] = changed[key].replace("You arrive at", "You walk to").replace("(:action", "(:act1on")
    write_game(data / "json_2.1.1" / "valid_seen", SIMPLE, "trial_new", game=changed)
    with pytest.raises(DataError, match=r'1 of the 13 games .*trial_new: use engine="textworld"'):
        OriginalGames(data).ids("val")
    games = OriginalGames(data, need_native=False)
    new = f"valid_seen/{folder_name(SIMPLE)}/trial_new"
    assert new in games.ids("val", SIMPLE)
    assert json.loads(games.file_text(new))[key] == changed[key]
    with pytest.raises(UnknownRules, match="digest"):
        games.game(new)
    assert games.game(FIRST).task_type == "look_at_obj_in_light"


def test_the_report_counts_what_was_generated(data):
    task = {"task_type": SIMPLE, "generated_by": "somebody"}
    write_game(data / "json_2.1.1" / "train", SIMPLE, "trial_T0", game=record(SIMPLE), task=task)
    report = OriginalGames(data).report()
    assert report.n_generated == 1
    assert report.splits["train"].generated == 1
    assert len(report.differences()) == 3


def test_published_numbers_sum_to_those_of_the_paper():
    assert {split: sum(types.values()) for split, types in PUBLISHED.items()} == {
        "train": 3553,
        "valid_seen": 140,
        "valid_unseen": 134,
    }


# ---- the cache


def restart() -> None:
    """Forget what a new process would not know."""
    gc.collect()
    original_index._in_use.clear()
    original_index._game.cache_clear()


def test_a_second_start_parses_nothing(data, monkeypatch):
    first = OriginalGames(data)
    rows = {task_id: first.game(task_id).to_row() for task_id in first.ids("val")}
    report = first.report()
    restart()
    no_reading(monkeypatch)
    second = OriginalGames(data)
    assert {task_id: second.game(task_id).to_row() for task_id in second.ids("val")} == rows
    assert second.report() == report


def test_only_the_split_asked_for_is_read(data):
    write_game(data / "json_2.1.1" / "train", SIMPLE, "trial_T0", game=record(SIMPLE))
    OriginalGames(data).ids("val")
    assert the_cache().name.endswith("-valid_seen.index")


def change_game(trial: Path) -> None:
    (trial / "game.tw-pddl").write_text(json.dumps(record("look_at_obj_in_light", mugs=7)))


def drop_game(trial: Path) -> None:
    (trial / "game.tw-pddl").unlink()


def mend_task(trial: Path) -> None:
    (trial / "traj_data.json").write_text("{}")


@pytest.mark.parametrize(("change", "left"), [(change_game, 12), (drop_game, 11), (mend_task, 11)])
def test_a_changed_tree_is_indexed_anew(data, change, left):
    assert len(OriginalGames(data).ids("val")) == 12
    change(data / "json_2.1.1" / FIRST)
    games = OriginalGames(data)
    assert len(games.ids("val")) == left
    if left == 12:
        assert len(games.game(FIRST).objects) == 8


def test_another_version_of_the_format_is_indexed_anew(data, monkeypatch):
    OriginalGames(data).ids("val")
    before = the_cache().read_bytes()
    monkeypatch.setattr(original_index, "_FORMAT", "another")
    assert len(OriginalGames(data).ids("val")) == 12
    assert the_cache().read_bytes() != before


def test_a_change_of_what_is_read_raises_the_version_of_the_format(data):
    games = OriginalGames(data)
    hashes = [games.game(task_id).content_hash for task_id in games.ids("val")]
    assert (original_index._FORMAT, digest("".join(hashes))) == (
        "arl_gym ALFWorld index, version 1",
        "b8abb6baad17b745",
    )


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: b"",
        lambda content: content[:-1],
        lambda content: content[: len(content) // 3],
        lambda content: content.replace(b"trial_T0", b"trial_T9", 1),
        lambda content: b"\x00" * len(content),
    ],
)
def test_a_damaged_cache_is_made_anew(data, damage):
    OriginalGames(data).ids("val")
    whole = the_cache().read_bytes()
    the_cache().write_bytes(damage(whole))
    assert len(OriginalGames(data).ids("val")) == 12
    assert the_cache().read_bytes() == whole


def test_a_damaged_row_is_read_from_the_game(data):
    games = OriginalGames(data)
    row = games.game(FIRST).to_row()
    check, head, rows = the_cache().read_bytes().split(b"\n", 2)
    the_cache().write_bytes(b"\n".join((check, head, bytes(b ^ 1 for b in rows))))
    restart()
    assert OriginalGames(data).game(FIRST).to_row() == row


def test_a_cache_that_goes_while_games_are_played_does_no_harm(data):
    games = OriginalGames(data)
    row = games.game(FIRST).to_row()
    original_index._game.cache_clear()
    the_cache().unlink()
    assert games.game(FIRST).to_row() == row


def test_a_cache_that_cannot_be_written_is_announced(data, monkeypatch, tmp_path):
    (tmp_path / "file").touch()
    monkeypatch.setenv("ARL_GYM_CACHE", str(tmp_path / "file" / "cache"))
    with pytest.warns(UserWarning, match="set ARL_GYM_CACHE to a folder that can be written to"):
        ids = OriginalGames(data).ids("val")
    assert len(ids) == 12
    with pytest.warns(UserWarning, match="cannot be kept"):
        assert House(OriginalGames(data).game(FIRST)).act("go to desk 1").startswith("You arrive at desk 1.")


def test_a_full_disk_is_announced_and_leaves_nothing(data, monkeypatch):
    def full(*args: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.warns(UserWarning, match="No space left on device"):
        OriginalGames(data).ids("val")
    assert [path.suffix for path in (cache_root() / "alfworld").iterdir()] == [".lock"]


def test_a_lock_nobody_gives_back_only_costs_time(data, monkeypatch):
    import fcntl

    monkeypatch.setattr(caches, "_LOCK_TIMEOUT_S", 0.2)
    OriginalGames(data).ids("val")
    lock = the_cache().with_suffix(".lock")
    the_cache().unlink()
    with lock.open("wb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert len(OriginalGames(data).ids("val")) == 12
    assert the_cache().exists()


def _count(data: Path, go: "multiprocessing.synchronize.Event", out: "multiprocessing.Queue[int]") -> None:
    go.wait(30)
    out.put(sum(len(OriginalGames(data).game(i).objects) for i in OriginalGames(data).ids("val")))


def test_processes_that_start_at_once_all_get_the_index(data):
    context = multiprocessing.get_context("fork")
    go, out = context.Event(), context.Queue()
    workers = [context.Process(target=_count, args=(data, go, out)) for _ in range(3)]
    for worker in workers:
        worker.start()
    go.set()
    # Two and three mugs, and the lamp.
    assert [out.get(timeout=30) for _ in workers] == [6 * (3 + 4)] * 3
    for worker in workers:
        worker.join(30)
        assert worker.exitcode == 0
    assert the_cache().exists()
    assert not list(the_cache().parent.glob("*.part"))


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("stream", "shown"), [(Terminal, True), (io.StringIO, False)])
def test_a_long_wait_shows_a_bar_on_a_terminal(data, monkeypatch, stream, shown):
    monkeypatch.setattr(caches, "_BAR_AFTER_S", -1.0)
    stderr = stream()
    monkeypatch.setattr(sys, "stderr", stderr)
    OriginalGames(data).ids("val")
    assert ("indexing the games of valid_seen" in stderr.getvalue()) == shown


# ---- the data stay as they are


def contents(folder: Path) -> dict[Path, tuple[int, int]]:
    return {p: (p.stat().st_mtime_ns, p.stat().st_size) for p in [folder, *folder.rglob("*")]}


def test_the_data_are_never_written_to(data):
    for path in [data, *data.rglob("*")]:
        path.chmod(0o555 if path.is_dir() else 0o444)
    before = contents(data)
    games = OriginalGames(data)
    for task_id in games.ids("val"):
        games.game(task_id)
        games.file_text(task_id)
    games.report()
    assert contents(data) == before
    for path in [data, *data.rglob("*")]:
        path.chmod(0o755 if path.is_dir() else 0o644)


def test_a_game_that_goes_or_changes_is_an_error(data):
    games = OriginalGames(data)
    one, two, three = games.ids("val")[:3]
    (data / "json_2.1.1" / one / "game.tw-pddl").unlink()
    (data / "json_2.1.1" / two / "game.tw-pddl").write_text(json.dumps(record(SIMPLE, mugs=9)))
    for ask in (games.game, games.file_text):
        with pytest.raises(DataError, match=r"cannot read the game .*: No such file"):
            ask(one)
        with pytest.raises(DataError, match="has changed since it was indexed"):
            ask(two)
    os.utime(data / "json_2.1.1" / three / "game.tw-pddl")
    assert games.game(three).to_row() == read_game(games.file_text(three)).to_row()


def test_a_folder_that_cannot_be_listed_is_an_error(data, monkeypatch):
    real = os.scandir

    def scandir(path: Path):
        if path.name.startswith("trial"):
            raise PermissionError(13, "Permission denied")
        return real(path)

    monkeypatch.setattr(os, "scandir", scandir)
    with pytest.raises(DataError, match=r"cannot list the folder .*: Permission denied"):
        OriginalGames(data).ids("val")


def test_a_file_the_system_refuses_is_an_error_and_leaves_no_cache(data):
    refused = data / "json_2.1.1" / FIRST / "game.tw-pddl"
    refused.unlink()
    refused.mkdir()
    with pytest.raises(DataError, match=r"cannot read .*game\.tw-pddl: Is a directory"):
        OriginalGames(data).ids("val")
    assert not list(cache_root().rglob("*.index"))


def test_reading_good_data_warns_of_nothing(data):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        OriginalGames(data).report()


# ---- the names of the real data


def test_the_filter_leaves_the_eligible_tasks_of_alfred(shared_data, tmp_path):
    counts = Counter[str]()
    with gzip.open(shared_data / "alfworld" / "alfred_task_index.csv.gz", "rt") as file:
        for row in csv.DictReader(file):
            found = original_index.Found(f"{row['task_dir']}/{row['trial']}", (-1, 0), (1, 0))
            with pytest.raises(original_index._Skip) as caught:
                original_index._judge(tmp_path, found)
            counts[row["split"], str(caught.value)] += 1  # type: ignore[index]
    assert {split: counts[split, "no game.tw-pddl"] for split in PUBLISHED} == {  # type: ignore[index]
        "train": 4839,
        "valid_seen": 187,
        "valid_unseen": 192,
    }


def test_games_named_elsewhere_have_the_layout_of_our_ids(shared_data, data):
    lists = {
        path.stem: [name for names in json.loads(path.read_text()).values() for name in names]
        for path in (shared_data / "alfworld" / "agentbench_game_lists").glob("*.json")
    }
    n_by_type = {"train_valid": (728, 191, 581, 368, 468, 814), "standard": (9, 8, 9, 8, 8, 8)}
    for name, expected in n_by_type.items():
        types = Counter(path.split("/")[2].partition("-")[0] for path in lists[name])
        assert tuple(types[task_type] for task_type in TASK_TYPES) == expected
    games = OriginalGames(data)
    for path in (path for paths in lists.values() for path in paths):
        root, split, game_id = path.removesuffix("/game.tw-pddl").split("/", 2)
        assert (root, games.split_name(split)) == ("json_2.1.1", split)
        assert game_id == games.game_id(f"{split}/{game_id}")
        assert len(game_id.split("/")) == 2
    # The benchmark itself leaves these out.
    sliced = {name: sum("Sliced" in path for path in paths) for name, paths in lists.items()}
    assert sliced == {"dev": 0, "standard": 0, "new_std": 2, "train_valid": 3}
