import os
import subprocess
import sys
from itertools import product

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from arl_gym.core import SPLITS
from arl_gym.envs.sokoban import generator
from arl_gym.envs.sokoban.compiled import numba_installed
from arl_gym.envs.sokoban.generator import RoomSpec, check_possible, draw_room, room
from arl_gym.envs.sokoban.rules import codes, draw, make_level
from arl_gym.envs.sokoban.solver import solve
from arl_gym.errors import ConfigError, UnknownNameError
from arl_gym.rng import Rng, digest
from tests.conftest import require

SPEC = RoomSpec(height=6, width=6, boxes=1, lo=3, hi=10)
LARGER = SPEC.out_of_distribution
SPECS = {"train": SPEC, "val": SPEC, "test": SPEC, "test_ood": LARGER}


def board(level):
    return draw(level, level.boxes, level.player)


def turned(level):
    """Return the same room after a quarter turn."""
    rows = [list(row) for row in zip(*level.text.split("\n")[::-1], strict=True)]
    stride, height = level.width + 1, level.text.count("\n") + 1

    def at(cell):
        r, c = divmod(cell, stride)
        return c * (height + 1) + height - 1 - r

    text = "\n".join("".join(row) for row in rows)
    return make_level(text, boxes=map(at, level.boxes), player=at(level.player))


def first_rooms(n, split):
    return [room(SPECS[split], split, i) for i in range(n)]


def least_form(level):
    """Return the same bytes for all rooms that are turned, mirrored, or walled in more thickly."""
    grid = codes(board(level))
    rows, columns = np.nonzero(grid)
    inside = grid[rows.min() : rows.max() + 1, columns.min() : columns.max() + 1]
    forms = (side[::a, ::b] for side in (inside, inside.T) for a in (1, -1) for b in (1, -1))
    return min((form.shape, form.tobytes()) for form in forms)


@pytest.mark.parametrize("split", SPLITS)
def test_stated_optimum_is_the_solver_s_and_in_range(split):
    for level in first_rooms(64, split):
        assert SPEC.lo <= level.optimal <= SPEC.hi
        assert len(solve(level).moves) == level.optimal
        assert not level.boxes & level.targets


@pytest.mark.parametrize(
    ("spec", "n"),
    [
        (RoomSpec(height=7, width=9, boxes=3, lo=8, hi=14), 4),
        (RoomSpec(height=8, width=8, boxes=2, lo=20, hi=40), 4),
        (RoomSpec(height=10, width=10, boxes=4, lo=20, hi=40), 2),
    ],
)
def test_the_optimum_is_exact_in_harder_and_oblong_rooms(spec, n):
    for i in range(n):
        level = room(spec, "train", i)
        assert len(solve(level, max_nodes=10**6).moves) == level.optimal
        assert spec.lo <= level.optimal <= spec.hi
        assert len(level.boxes) == spec.boxes
        assert [len(row) for row in level.text.split("\n")] == [spec.width] * spec.height


def test_splits_are_disjoint_by_content_over_20_000_rooms():
    seen: dict[str, set[object]] = {split: set() for split in ("train", "val", "test")}
    two_boxes = RoomSpec(height=6, width=6, boxes=2, lo=3, hi=10)
    for spec, (split, n) in product((SPEC, two_boxes), [("train", 9000), ("val", 512), ("test", 512)]):
        seen[split] |= {least_form(room(spec, split, i)) for i in range(n)}
    assert len(seen["val"]) == len(seen["test"]) == 1024
    assert not seen["train"] & seen["val"]
    assert not seen["train"] & seen["test"]
    assert not seen["val"] & seen["test"]


def test_a_turned_room_is_another_board_of_equal_content():
    for level in first_rooms(5, "train"):
        assert turned(level).content_hash == level.content_hash
        assert least_form(turned(level)) == least_form(level)
        assert board(turned(level)) != board(level)


@pytest.mark.parametrize(
    ("split", "digits"), [("train", range(8)), ("val", [8]), ("test", [9]), ("test_ood", [9])]
)
def test_the_last_digit_of_the_content_hash_names_the_split_in_any_configuration(split, digits):
    for spec in (SPEC, RoomSpec(height=7, width=6, boxes=2, lo=4, hi=8)):
        assert all(int(room(spec, split, i).content_hash, 16) % 10 in digits for i in range(20))


@pytest.mark.parametrize("split", ["val", "test", "test_ood"])
def test_held_out_rooms_all_differ(split):
    assert len({level.content_hash for level in first_rooms(512, split)}) == 512


# ---- compiled and plain


def outcome(spec, split, index, backend):
    """Return everything about a room, or the message that there is none."""
    try:
        level = draw_room(spec, split, index, backend=backend, share=1 / 8)
    except ConfigError as error:
        return str(error)
    return board(level), sorted(level.floor), level.text, level.optimal


@pytest.mark.parametrize(
    ("size", "optimal", "n"),
    [
        ((6, 6, 1), (3, 10), 100),
        ((5, 6, 1), (9, 11), 20),  # many topologies a room
        ((7, 9, 3), (8, 14), 20),
        ((8, 8, 2), (20, 40), 10),
        ((10, 10, 4), (3, 10), 10),
        ((10, 10, 4), (30, 30), 1),
        ((12, 11, 5), (10, 14), 2),
        ((15, 6, 1), (40, 10**20), 5),
        ((6, 6, 1), (60, 90), 1),  # none
        ((6, 6, 7), (3, 10), 1),  # none
        ((3, 7, 1), (1, 4), 20),
    ],
)
def test_compiled_and_plain_draw_the_same_rooms(size, optimal, n):
    require(numba_installed(), "numba is not installed (extra fast)")
    height, width, boxes = size
    spec = RoomSpec(height=height, width=width, boxes=boxes, lo=optimal[0], hi=optimal[1])
    for split, i in product(("train", "val", "test_ood"), range(n)):
        assert outcome(spec, split, i, "numba") == outcome(spec, split, i, "numpy")


@given(
    *(st.integers(3, 14), st.integers(3, 14), st.integers(1, 8)),
    *(st.integers(1, 9), st.integers(0, 15), st.integers(0, 1000)),
)
@settings(max_examples=150, deadline=None)
def test_compiled_and_plain_make_the_same_tables(height, width, boxes, lo, more, seed):
    require(numba_installed(), "numba is not installed (extra fast)")
    assume((height - 2) * (width - 2) > 2 * boxes)
    spec = RoomSpec(height=height, width=width, boxes=boxes, lo=lo, hi=lo + more)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(generator, "_MAX_ENTRIES", 2000)
        made = []
        for draw_topology in (generator._plain_topology, generator._compiled_topology):
            rng = Rng(seed)
            topology = draw_topology(spec, rng)
            starts = [(list(cells), player, moves) for cells, player, moves in topology.starts]
            made.append((topology.n_entries, topology.text, topology.floor, starts, rng.state))
    assert made[0] == made[1]


def test_rooms_too_large_for_the_compiled_version_are_drawn_all_the_same():
    require(numba_installed(), "numba is not installed (extra fast)")
    wide = RoomSpec(height=3, width=300, boxes=1, lo=3, hi=9)
    assert outcome(wide, "train", 0, "numba") == outcome(wide, "train", 0, "numpy")


@pytest.mark.parametrize(("limit", "loaded"), [("10**6", "False"), ("1000", "True")])
def test_numba_is_loaded_only_after_much_work(limit, loaded):
    require(numba_installed(), "numba is not installed (extra fast)")
    code = f"""
import sys
from arl_gym.envs.sokoban import generator
generator._PLAIN_WORK = {limit}
spec = generator.RoomSpec(height=6, width=6, boxes=1, lo=3, hi=10)
for i in range(32):
    generator.room(spec, "train", i)
print("numba" in sys.modules)
"""
    assert fresh_python(code).split() == [loaded]


def test_an_unknown_backend_is_refused():
    with pytest.raises(UnknownNameError, match=r"backend 'numbs'.*did you mean 'numba'"):
        draw_room(SPEC, "train", 0, backend="numbs")


# ---- the same rooms everywhere and always


def fresh_python(code, *args, hash_seed="0"):
    """Run code in a new interpreter and return what it prints."""
    env = os.environ | {
        "PYTHONHASHSEED": hash_seed,
        "PYTHONPATH": os.pathsep.join(sys.path),
        "PYTHONIOENCODING": "utf-8",
    }
    command = [sys.executable, "-c", code, *args]
    return subprocess.run(command, capture_output=True, text=True, check=True, env=env).stdout


SCRIPT = """
import sys
from arl_gym.envs.sokoban.generator import RoomSpec, room
spec = RoomSpec(height=6, width=6, boxes=1, lo=3, hi=10)
for split, index in [("val", 40), ("train", 999_999), ("test", 5), ("train", 0), ("val", 3)]:
    level = room(spec, split, index, sys.argv[1])
    print(level.text.replace("\\n", "/"), sorted(level.boxes), level.player, level.optimal)
"""


def test_rooms_are_equal_in_every_process():
    # In other orders, with other hash seeds: nothing may depend on what was drawn before.
    backends = ("numpy", "numba") if numba_installed() else ("numpy", "auto")
    outputs = {fresh_python(SCRIPT, name, hash_seed=seed) for name, seed in zip(backends, "12", strict=True)}
    here = []
    for split, index in reversed([("val", 40), ("train", 999_999), ("test", 5), ("train", 0), ("val", 3)]):
        level = room(SPEC, split, index)
        here.append(f"{level.text!s} {sorted(level.boxes)} {level.player} {level.optimal}".replace("\n", "/"))
    assert outputs == {"\n".join(reversed(here)) + "\n"}


@pytest.mark.parametrize(
    ("split", "recorded"),
    [
        ("train", "1f91351bab3438fc"),
        ("val", "fbcbd204bb2b1df5"),
        ("test", "8d9acb97e415e081"),
        ("test_ood", "786f2386c3ac0655"),
    ],
)
def test_known_rooms_never_change(split, recorded):
    """Recorded at the first release: a change here needs a new version of the environment."""
    boards = [board(level) + str(level.optimal) for level in first_rooms(50, split)]
    assert digest("\n\n".join(boards)) == recorded


def test_a_known_room_never_changes():
    """Recorded at the first release: a change here needs a new version of the environment."""
    assert board(room(SPEC, "train", 0)) == "######\n######\n####_#\n#__P_#\n#_OX_#\n######"


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"height": 3, "width": 4}, r"2 \* num_boxes \+ 1 cells"),
        ({"height": 2, "width": 9}, "num_boxes"),
        ({"boxes": 8}, "num_boxes=8"),
        ({"boxes": 0}, "num_boxes=0"),
        ({"lo": 5, "hi": 4}, r"lo <= hi, got \(5, 4\)"),
        ({"lo": 0}, r"1 <= lo"),
        ({"lo": 60, "hi": 90}, r"found no room .* optimal=\(60, 90\)"),
        ({"boxes": 7}, "found no room .* num_boxes=7"),
    ],
)
def test_impossible_settings_are_refused(spec, message):
    values = {"height": 6, "width": 6, "boxes": 1, "lo": 3, "hi": 10} | spec
    with pytest.raises(ConfigError, match=message):
        check_possible(RoomSpec(**values), "train")


@pytest.mark.parametrize(
    ("size", "optimal"),
    [((3, 7, 1), (1, 4)), ((5, 5, 2), (3, 9)), ((6, 6, 1), (12, 12))],
)
def test_a_held_out_split_of_too_few_different_rooms_is_refused_at_once(size, optimal):
    height, width, boxes = size
    spec = RoomSpec(height=height, width=width, boxes=boxes, lo=optimal[0], hi=optimal[1])
    check_possible(spec, "train")
    with pytest.raises(ConfigError, match=r"found no other room for task \d+ of split 'val'"):
        check_possible(spec, "val")
