import csv

import pytest

from arl_gym.envs.sokoban.levels import load_levels, parse
from arl_gym.envs.sokoban.rules import draw
from arl_gym.errors import DataError

GOOD = "#####\n#@$.#\n#####\n"


def shown(level):
    return draw(level, level.boxes, level.player).split("\n")


def test_ragged_rows_keep_their_leading_blanks_and_outside_is_wall():
    (level,) = parse("  ####\n###  ####\n#.@ $   #\n#########", "text")
    assert shown(level) == ["#########", "###__####", "#OP_X___#", "#########"]


def test_titles_comments_and_headers_separate_levels():
    text = (
        "; My set\n; by nobody\n\n; 1\n'first'\n#####\n#@$.#\n#####\nTitle: x\n; 2\n\n#####\n#.$@#\n#####\n"
    )
    assert [shown(level)[1] for level in parse(text, "text")] == ["#PXO#", "#OXP#"]


def test_dashes_and_underscores_are_floor():
    (level,) = parse("#######\n#@-_$.#\n#######", "text")
    assert shown(level)[1] == "#P__XO#"


def test_run_lengths_in_one_line_and_in_several():
    for text in ("7#|#@2-$.#|7#", "7#\n#@2-$.#\n7#", "7#|#@2-$.#|7#|"):
        (level,) = load_levels(["; 1\n" + text]).values()
        assert shown(level) == ["#######", "#P__XO#", "#######"]


def test_groups_of_run_lengths_and_empty_rows_between_bars():
    (level,) = parse("9#|#@2($-)2.#|#7-#|9#", "text")
    assert shown(level) == ["#########", "#PX_X_OO#", "#_______#", "#########"]
    (nested,) = parse("2(2(2#))#|#@3-$.-#|9#", "text")
    assert shown(nested) == ["#########", "#P___XO_#", "#########"]


def test_the_letters_of_the_sok_format_are_read_in_rows_with_a_wall():
    (level,) = parse("Bob: so op\n#######\n#pb-oB#\n#######", "text")
    assert shown(level)[1] == "#PX_O√#"
    (level,) = parse("#####\n#Pb #\n#####", "text")
    assert shown(level)[1] == "#SX_#"


def test_a_comment_over_several_lines_shows_no_level():
    text = "Comment:\n#####\n#.$@#\n#####\nComment-End:\n" + GOOD + "Comment: one line\n\n" + GOOD
    assert [shown(level)[1] for level in parse(text, "text")] == ["#PXO#", "#PXO#"]


def test_a_ruler_below_a_board_is_not_part_of_it():
    assert [len(shown(level)) for level in parse(GOOD + "-----\n\n" + GOOD + "-\n-----\n", "text")] == [3, 3]


def test_solutions_after_a_board_are_skipped():
    assert len(parse(GOOD + "Solution\nrR2(dR)\n\n" + GOOD + "Saved Game\nR\n", "text")) == 2


def test_a_walled_in_box_on_a_target_stays_and_counts():
    (level,) = parse("########\n#@$.##*#\n########", "text")
    assert shown(level)[1] == "#PXO##√#"
    assert len(level.boxes) == 2


def test_windows_line_ends_and_a_byte_order_mark_are_fine(tmp_path):
    path = tmp_path / "set.txt"
    path.write_bytes("\ufeff; 0\r\n#####\r\n#@$.#\r\n#####\r\n".encode())
    assert list(load_levels(path)) == ["set:0"]


def test_a_name_in_an_old_encoding_does_not_matter(tmp_path):
    path = tmp_path / "set.sok"
    path.write_bytes(b"Author: Andr\xe9\n\n#####\n#@$.#\n#####\n")
    assert list(load_levels(path)) == ["set:0"]


def test_ids_of_files_folders_and_texts(tmp_path):
    (tmp_path / "b.xsb").write_text("#####\n#@$.#\n#####\n\n#####\n#.$@#\n#####")
    (tmp_path / "a.txt").write_text("#####\n#@$.#\n#####")
    (tmp_path / "LICENSE").write_text("no level")
    assert list(load_levels(str(tmp_path))) == ["a:0", "b:0", "b:1"]
    inline = load_levels(["#####\n#@$.#\n#####", tmp_path / "b.xsb", "#####\n#.$@#\n#####"])
    assert list(inline) == ["level:0", "b:0", "b:1", "level:1"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected at least one level"),
        ("; 1\n\n; 2\n\n" + GOOD, r"set.xsb, line 1: level '; 1' is empty"),
        (GOOD + "\n; 7\n", r"set.xsb, line 5: level '; 7' is empty"),
        (GOOD + "\n#####\n# $.#\n#####", r"set.xsb, level 1 \(line 5\): expected one player, got 0"),
        ("#####\n#@$.#\n#@  #\n#####", r"expected one player, got 2: line 2, column 2; line 3, column 2"),
        ("#####\n#@$ #\n#####", "got 1 boxes and 0 targets"),
        ("####\n#@ #\n####", "got 0 boxes and 0 targets"),
        ("#####\n#@* #\n#####", "solved already"),
        ("\n######\n#@$.\n######", r"the level is open: the player can walk out at line 3, column 6"),
        ("#####\n#@$.#", "the level is open"),
        ("######\n#@  .#\n#$   #\n######", r"the box at line 3, column 2 can be pushed to no target"),
        ("#######\n#@ $#.#\n#######", r"the target at line 2, column 6 is walled off"),
        ("#####\n#@%.#\n#####", r"set.xsb, line 2: expected a board row .* got '%'"),
        ("7#|#@2-$.#|7#2", r"a symbol or a \(group\) after every run length"),
        ("7#|#@2-$.#|7(#", r"a symbol or a \(group\) after every run length"),
        (";\n99999999999#|#@$.#", r"set.xsb, line 2: expected rows of at most 999 cells"),
        ("99(99(99(#)))|#@$.#", "at most 999 cells"),
    ],
)
def test_a_bad_level_is_refused_with_its_place(tmp_path, text, message):
    path = tmp_path / "set.xsb"
    path.write_text(text)
    with pytest.raises(DataError, match=message) as err:
        load_levels(path)
    assert str(path) in str(err.value)


def test_missing_paths_are_refused(tmp_path):
    with pytest.raises(DataError, match=r"cannot read the levels .*nothing\.txt"):
        load_levels(tmp_path / "nothing.txt")
    with pytest.raises(DataError, match="got none"):
        load_levels(tmp_path)
    with pytest.raises(DataError, match="empty list"):
        load_levels([])
    with pytest.raises(DataError, match="got int: 3"):
        load_levels([3])  # type: ignore[list-item]


def test_two_files_of_one_stem_are_refused(tmp_path):
    for name in ("a.txt", "a.xsb"):
        (tmp_path / name).write_text(GOOD)
    for levels in (tmp_path, [tmp_path / "a.txt", tmp_path / "a.xsb"]):
        with pytest.raises(DataError, match="'a:0'"):
            load_levels(levels)


def test_every_real_file_is_read_whole(real_levels):
    counts = {
        "boxoban/unfiltered_test_000.txt": 1000,
        "boxoban/medium_valid_000_first200.txt": 200,
        "boxoban/unfiltered_valid_000_first200.txt": 200,
        "xsb/microban_xye.xsb": 155,
    }
    assert {name: len(load_levels(real_levels / name)) for name in counts} == counts
    with (real_levels / "optimal.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 555
    assert all(int(row["index"]) < counts[row["file"]] for row in rows)


def test_microban_traps(real_levels):
    levels = list(load_levels(real_levels / "xsb" / "microban_xye.xsb").values())
    # Header "; 24": blanks left of the room are outside.
    assert shown(levels[23]) == ["#######", "###___#", "###XXP#", "#___###", "#_____#", "#_O_O_#", "#######"]
    # Header "; 3": rows begin with blanks and end early.
    assert shown(levels[2])[:3] == ["#########", "###__####", "#_____X_#"]
    assert sum(level.player in level.targets for level in levels) == 2
    assert sum(bool(level.boxes & level.targets) for level in levels) == 30
    assert sorted({len(level.boxes) for level in levels})[:: len({len(v.boxes) for v in levels}) - 1] == [
        1,
        16,
    ]
