import numpy as np
import pytest

from arl_gym.errors import DataError
from arl_gym.train.batch import pack, pad_rows
from arl_gym.train.tokens import token_records
from tests.train.trajectories import trajectory, turn

# Rows: [1 2 | 3 4 . 5] joins two turns of the first trajectory; its third turn keeps nothing; [6 | 7].
EPISODES = [
    trajectory(turn([1, 2], [3, 4]), turn([1, 2, 3, 4, 9], [5]), turn([1], [8], n_kept=0)),
    trajectory(turn([6], [7, 8], n_kept=1)),
]


def grid(*rows: list[float]) -> np.ndarray:
    return np.array(rows, dtype=np.float32)


def test_the_numbers_of_a_row_go_back_to_the_turns_they_are_about():
    batch = pack(EPISODES, pad_id=0).with_old(
        grid([0, 0, -0.1, -0.2, 0, -0.3], [0, -0.4, 0, 0, 0, 0]),
        grid([0, 0, 1, 2, 0, 3], [0, 4, 0, 0, 0, 0]),
    )
    batch = batch.with_advantages([np.array([0.5, -0.5, 0.25], np.float32), np.array([1 / 3], np.float32)])
    assert token_records(EPISODES, batch, grid([9, 9, -1, -2, 9, -3], [9, -4, 9, 9, 9, 9])) == [
        [
            {"advantage": 0.5, "old_logprobs": [-0.1, -0.2], "entropies": [1, 2], "new_logprobs": [-1, -2]},
            {"advantage": -0.5, "old_logprobs": [-0.3], "entropies": [3], "new_logprobs": [-3]},
            {"advantage": 0.25, "old_logprobs": [], "entropies": [], "new_logprobs": []},
        ],
        [{"advantage": 0.33333, "old_logprobs": [-0.4], "entropies": [4], "new_logprobs": [-4]}],
    ]


def test_dummy_rows_and_the_order_of_rows_change_nothing():
    batch = pack(EPISODES, pad_id=0).with_ref(grid([0, 0, -1, -2, 0, -3], [0, -4, 0, 0, 0, 0]))
    expected = [[[-1, -2], [-3], []], [[-4]]]
    for same in (batch, pad_rows(batch, 2), batch.select([1, 0])):
        got = token_records(EPISODES, same)
        assert [[t["ref_logprobs"] for t in turns] for turns in got] == expected


def test_a_decoder_adds_the_texts_of_the_kept_tokens():
    got = token_records(EPISODES, pack(EPISODES, pad_id=0), decode="abcdefghij".__getitem__)
    assert [[t["tokens"] for t in turns] for turns in got] == [[["d", "e"], ["f"], []], [["h"]]]


def test_a_number_that_is_not_finite_is_none():
    batch = pack([trajectory(turn([1], [2, 3]))], pad_id=0)
    (((record,),)) = token_records([trajectory(turn())], batch, grid([0, np.nan, -np.inf]))
    assert record == {"new_logprobs": [None, None]}


def test_other_trajectories_or_shapes_are_refused():
    batch = pack(EPISODES, pad_id=0)
    with pytest.raises(DataError, match=r"\[3\] turns"):
        token_records(EPISODES[:1], batch)
    with pytest.raises(DataError, match=r"\(2, 6\), got \(1, 2\)"):
        token_records(EPISODES, batch, grid([0, 0]))


def test_no_trajectories_give_no_records():
    assert token_records([], pack([], pad_id=0)) == []
