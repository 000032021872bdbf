import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from arl_gym.agents.types import Turn
from arl_gym.errors import ConfigError, DataError
from arl_gym.train.batch import Batch, micro_batches, minibatches, pack, pad_rows, turn_means
from tests.train.trajectories import trajectory, turn

PAD = 9


def rows_of_lengths(*lengths: int, per_group: int = 1, per_trajectory: int = 1) -> Batch:
    turns = [turn([1], [2] * (n - 1)) for n in lengths]
    chunks = [turns[i : i + per_trajectory] for i in range(0, len(turns), per_trajectory)]
    return pack([trajectory(*c, group=j // per_group) for j, c in enumerate(chunks)], pad_id=PAD)


def test_windowed_turns_make_a_row_each():
    batch = pack(
        [
            trajectory(turn([1, 2], [3, PAD], logprobs=[-0.1, -0.2]), turn([1, 4], [5]), group=4),
            trajectory(turn([6], [7, 8, PAD]), group=5),
        ],
        pad_id=PAD,
    )
    assert batch.ids.tolist() == [[1, 2, 3, PAD], [1, 4, 5, PAD], [6, 7, 8, PAD]]
    assert batch.lengths.tolist() == [4, 3, 4]
    # The pad id that was sampled as an end token carries loss; the one that pads does not.
    assert batch.action_mask.astype(int).tolist() == [[0, 0, 1, 1], [0, 0, 1, 0], [0, 1, 1, 1]]
    assert batch.segment.tolist() == [[-1, -1, 0, 0], [-1, -1, 1, -1], [-1, 2, 2, 2]]
    assert batch.rollout_logprobs[0].tolist() == pytest.approx([0, 0, -0.1, -0.2])
    assert batch.row_trajectory.tolist() == [0, 0, 1]
    assert batch.row_group.tolist() == [4, 4, 5]
    assert batch.turn_trajectory.tolist() == [0, 0, 1]
    assert (batch.n_rows, batch.n_turns) == (3, 3)


def test_a_turn_that_extends_the_row_joins_it():
    batch = pack([trajectory(turn([1], [2, 3]), turn([1, 2, 3, 4], [5]), turn([1, 2], [6]))], pad_id=0)
    assert batch.ids.tolist() == [[1, 2, 3, 4, 5], [1, 2, 6, 0, 0]]
    assert batch.segment.tolist() == [[-1, 0, 0, -1, 1], [-1, -1, 2, -1, -1]]


def test_rows_never_cross_trajectories():
    batch = pack([trajectory(turn([1], [2])), trajectory(turn([1, 2, 3], [4]))], pad_id=0)
    assert batch.lengths.tolist() == [2, 4]


def test_tokens_beyond_those_kept_carry_no_loss():
    batch = pack([trajectory(turn([1], [2, 3, 4], n_kept=2))], pad_id=0)
    assert batch.ids.tolist() == [[1, 2, 3]]
    assert batch.action_mask.sum() == 2


def test_tokens_not_kept_are_context_if_the_next_prompt_shows_them():
    batch = pack([trajectory(turn([1], [2, 3], n_kept=1), turn([1, 2, 3], [4]))], pad_id=0)
    assert batch.ids.tolist() == [[1, 2, 3, 4]]
    assert batch.segment.tolist() == [[-1, 0, -1, 1]]


def test_a_turn_without_tokens_counts_as_a_turn_but_makes_no_row():
    batch = pack([trajectory(turn([1], []), turn([1], [2])), trajectory(turn([1], []))], pad_id=0)
    assert batch.segment.tolist() == [[-1, 1]]
    assert batch.turn_trajectory.tolist() == [0, 0, 1]


def square(colour: str, size: int = 8) -> Image.Image:
    return Image.new("RGB", (size, size), colour)


def test_pictures_of_equal_pixels_are_kept_once():
    batch = pack(
        [
            trajectory(
                turn(pictures=[square("red"), square("blue")]), turn([3], pictures=[square("blue")]), copy=0
            ),
            trajectory(
                turn(pictures=[square("red")]), turn([3], pictures=[square("red", 4)]), turn([3]), copy=1
            ),
        ],
        pad_id=PAD,
    )
    assert [(p.size, p.getpixel((0, 0))) for p in batch.pictures] == [
        ((8, 8), (255, 0, 0)),
        ((8, 8), (0, 0, 255)),
        ((4, 4), (255, 0, 0)),
    ]
    assert batch.row_pictures == ((0, 1), (1,), (0,), (2,), ())


def test_a_prompt_with_other_pixels_does_not_extend_the_row_though_its_ids_do():
    for colour, rows in (("red", ((0, 1),)), ("green", ((0,), (1, 2)))):
        later = turn([1, 2, 3, 4], [5], pictures=[square(colour), square("blue")])
        batch = pack([trajectory(turn([1], [2, 3], pictures=[square("red")]), later)], pad_id=0)
        assert batch.row_pictures == rows, colour


def test_a_dialogue_has_the_pictures_of_all_its_turns():
    # The second turn says nothing; what it was shown stays in the third one's prompt.
    turns = [
        turn([1], [2], pictures=[square("red")]),
        turn([1, 2, 3], [], pictures=[square("blue")], append=True),
        turn([1, 2, 3, 4], [5], pictures=[square("red")], append=True),
    ]
    assert pack([trajectory(*turns)], pad_id=0).row_pictures == ((0, 1, 0),)
    # What was sampled beyond the tokens that the env read is gone, and so the dialogue goes on in a new row.
    cut = [
        turn([1], [2, 3], pictures=[square("red")]),
        turn([1, 9], [5], pictures=[square("red")], append=True),
    ]
    assert pack([trajectory(*cut)], pad_id=0).row_pictures == ((0,), (0, 0))


def test_chosen_and_dummy_rows_keep_their_own_pictures():
    turns = [turn(pictures=[square(c)]) for c in ("red", "green", "blue")]
    batch = pack([trajectory(t) for t in turns], pad_id=PAD)
    part = pad_rows(batch.select([2, 0]), 2)
    assert part.row_pictures == ((2,), (0,), (), ())
    assert part.pictures == batch.pictures


def test_nothing_packs_to_nothing():
    batch = pack([], pad_id=0)
    assert batch.ids.shape == (0, 0)
    assert minibatches(batch, 2) == []
    assert micro_batches(batch, [], max_tokens=8, keep_trajectories=False) == []


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (turn([1], [2, 3], logprobs=[-1.0]), "2 completion ids but 1 logprobs"),
        (turn([], [2]), "1 completion ids but no prompt ids"),
        (turn([1], [2], n_kept=2), "n_kept=2 of 1 completion ids"),
    ],
)
def test_broken_turns_are_named(bad, message):
    with pytest.raises(DataError, match=f"task 't7' group 3 copy 2 turn 1: {message}"):
        pack([trajectory(turn(), bad, group=3, copy=2)], pad_id=0)


def test_advantages_come_one_per_turn_in_the_packed_order():
    batch = pack([trajectory(turn(), turn()), trajectory(turn())], pad_id=0)
    given_back = batch.with_advantages([np.array([1, 2], np.float32), np.array([3], np.float32)])
    assert given_back.advantages is not None
    assert given_back.advantages.tolist() == [1, 2, 3]


def test_advantages_of_other_trajectories_are_refused():
    batch = pack([trajectory(turn(), turn()), trajectory(turn())], pad_id=0)
    with pytest.raises(DataError, match=r"expected \[2, 1\] values per trajectory, got \[1, 2\]"):
        batch.with_advantages([np.zeros(1, np.float32), np.zeros(2, np.float32)])


def test_scores_of_the_wrong_shape_are_refused():
    with pytest.raises(DataError, match=r"ref_logprobs: expected shape \(1, 2\), got \(1, 1\)"):
        pack([trajectory(turn())], pad_id=0).with_ref(np.zeros((1, 1), np.float32))


def test_select_keeps_the_order_asked_for_and_trims_to_the_longest():
    batch = rows_of_lengths(2, 5, 3)
    old = np.arange(15, dtype=np.float32).reshape(3, 5)
    part = batch.with_old(old, old + 100).with_ref(-old).select([2, 0])
    assert part.ids.tolist() == [[1, 2, 2], [1, 2, PAD]]
    assert part.segment.tolist() == [[-1, 2, 2], [-1, 0, -1]]
    assert part.row_trajectory.tolist() == [2, 0]
    assert part.n_turns == 3
    assert part.old_logprobs is not None
    assert part.old_logprobs.tolist() == [[10, 11, 12], [0, 1, 2]]
    assert part.entropies is not None
    assert part.entropies[0, 0] == 110
    assert part.ref_logprobs is not None
    assert part.ref_logprobs[0, 0] == -10


def test_dummy_rows_are_one_pad_token_without_loss():
    batch = pad_rows(rows_of_lengths(3).with_ref(np.ones((1, 3), np.float32)), 2)
    assert batch.ids.tolist() == [[1, 2, 2], [PAD] * 3, [PAD] * 3]
    assert batch.lengths.tolist() == [3, 1, 1]
    assert batch.action_mask.sum(axis=1).tolist() == [2, 0, 0]
    assert batch.row_trajectory.tolist() == batch.row_group.tolist() == [0, -1, -1]
    assert batch.ref_logprobs is not None
    assert batch.ref_logprobs.shape == (3, 3)


def test_an_empty_batch_can_be_padded():
    batch = pad_rows(pack([], pad_id=PAD), 1)
    assert batch.ids.tolist() == [[PAD]]
    assert not batch.action_mask.any()


def test_minibatches_never_split_a_group_and_are_as_even_as_groups_allow():
    # Rows per group: 2, 2, 2, 6.
    batch = pack(
        [trajectory(*[turn() for _ in range(k)], group=10 * g) for g, k in enumerate((2, 2, 2, 6))], pad_id=0
    )
    assert [part.tolist() for part in minibatches(batch, 2)] == [list(range(6)), list(range(6, 12))]
    assert [len(part) for part in minibatches(batch, 3)] == [4, 2, 6]
    assert [len(part) for part in minibatches(batch, 99)] == [2, 2, 2, 6]


def test_minibatches_leave_dummy_rows_out():
    assert [part.tolist() for part in minibatches(pad_rows(rows_of_lengths(2, 2), 2), 1)] == [[0, 1]]


def test_fewer_than_one_minibatch_is_an_error():
    with pytest.raises(ConfigError, match="minibatches must be at least 1, got 0"):
        minibatches(rows_of_lengths(2), 0)


def test_micro_batches_put_rows_of_similar_length_together():
    batch = rows_of_lengths(2, 6, 3, 2)
    parts = micro_batches(batch, [0, 1, 2, 3], max_tokens=6, keep_trajectories=False)
    assert [part.tolist() for part in parts] == [[1], [2, 0], [3]]


def test_micro_batches_take_only_the_rows_asked_for():
    parts = micro_batches(rows_of_lengths(2, 6, 3, 2), [3, 1], max_tokens=100, keep_trajectories=False)
    assert [part.tolist() for part in parts] == [[1, 3]]


def test_a_row_above_the_limit_still_gets_a_micro_batch():
    parts = micro_batches(rows_of_lengths(5, 5), [0, 1], max_tokens=3, keep_trajectories=False)
    assert [part.tolist() for part in parts] == [[0], [1]]


def test_micro_batches_can_keep_trajectories_whole():
    batch = rows_of_lengths(2, 6, 3, 2, 2, 2, per_trajectory=2)
    parts = micro_batches(batch, range(6), max_tokens=12, keep_trajectories=True)
    assert [part.tolist() for part in parts] == [[0, 1], [2, 3, 4, 5]]


lengths = st.lists(st.integers(2, 12), min_size=1, max_size=30)


@given(lengths=lengths, max_tokens=st.integers(1, 60), keep=st.booleans())
def test_micro_batches_hold_every_row_once_within_the_limit(lengths, max_tokens, keep):
    batch = rows_of_lengths(*lengths, per_trajectory=3)
    parts = micro_batches(batch, range(batch.n_rows), max_tokens=max_tokens, keep_trajectories=keep)
    assert sorted(np.concatenate(parts).tolist()) == list(range(batch.n_rows))
    for part in parts:
        owners = batch.row_trajectory[part]
        alone = len(set(owners)) == 1 if keep else len(part) == 1
        assert alone or len(part) * batch.lengths[part].max() <= max_tokens
    if keep:
        owners_of_parts = [set(batch.row_trajectory[part].tolist()) for part in parts]
        assert sum(map(len, owners_of_parts)) == len(set(batch.row_trajectory.tolist()))


@given(lengths=lengths, n=st.integers(1, 8))
def test_minibatches_hold_every_row_once_in_order(lengths, n):
    batch = rows_of_lengths(*lengths, per_group=3)
    parts = minibatches(batch, n)
    assert np.concatenate(parts).tolist() == list(range(batch.n_rows))
    assert len(parts) == min(n, len(set(batch.row_group.tolist())))
    assert all(len(part) for part in parts)


def test_means_of_turns_are_over_the_tokens_that_carry_loss():
    batch = pack(
        [
            trajectory(turn([1], [2, 3]), turn([1, 2, 3, 4], [5])),  # one row
            trajectory(turn([1], [2, 3], n_kept=0), turn([1], [2, 3, 4])),
        ],
        pad_id=PAD,
    )
    grid = np.array([[9.0, 1.0, 2.0, 9.0, 5.0], [9.0, 1.0, 2.0, 6.0, 9.0]], np.float32)
    first, second = turn_means(batch, grid)
    assert first.tolist() == [1.5, 5.0]
    assert np.isnan(second[0])
    assert second[1] == 3.0
    assert first.dtype == np.float32


def test_means_of_turns_ignore_dummy_rows_and_need_a_value_per_token():
    batch = pack([trajectory(turn([1], [2]))], pad_id=PAD)
    padded = pad_rows(batch, 2)
    assert turn_means(padded, np.ones(padded.ids.shape, np.float32))[0].tolist() == [1.0]
    assert turn_means(pack([], pad_id=PAD), np.zeros((0, 0), np.float32)) == []
    with pytest.raises(DataError, match=r"turn_means: expected shape \(1, 2\), got \(1, 1\)"):
        turn_means(batch, np.ones((1, 1), np.float32))


@st.composite
def dialogues(draw):
    """Trajectories whose turns extend, restart, stay empty or lose their tail; sampled ids are distinct."""
    fresh = iter(range(100, 10_000))
    out = []
    for _ in range(draw(st.integers(0, 4))):
        turns: list[Turn] = []
        history: list[int] = []
        for _ in range(draw(st.integers(1, 4))):
            extends = bool(history) and draw(st.booleans())
            context = draw(st.lists(st.integers(0, 3), min_size=1, max_size=3))
            prompt = history + context if extends else context
            completion = [next(fresh) for _ in range(draw(st.integers(0, 3)))]
            n_kept = draw(st.integers(0, len(completion)))
            turns.append(turn(prompt, completion, n_kept=n_kept, logprobs=[-0.01 * i for i in completion]))
            history = prompt + completion
        out.append(trajectory(*turns))
    return out


@given(trajectories=dialogues())
def test_every_kept_token_carries_loss_exactly_once_with_its_own_logprob(trajectories):
    batch = pack(trajectories, pad_id=0)
    turns = [t for trajectory in trajectories for t in trajectory.turns]
    expected = [(i, m) for m, t in enumerate(turns) for i in (t.completion_ids or [])[: t.n_kept]]
    mask = batch.action_mask
    assert sorted(zip(batch.ids[mask].tolist(), batch.segment[mask].tolist(), strict=True)) == sorted(
        expected
    )
    assert batch.rollout_logprobs[mask] == pytest.approx(-0.01 * batch.ids[mask], rel=1e-5)


@given(trajectories=dialogues())
def test_every_kept_token_follows_its_own_prompt(trajectories):
    batch = pack(trajectories, pad_id=0)
    turns = [t for trajectory in trajectories for t in trajectory.turns]
    for n, t in zip(*np.nonzero(batch.action_mask), strict=True):
        prompt = turns[batch.segment[n, t]].prompt_ids
        assert prompt is not None
        assert batch.ids[n, : len(prompt)].tolist() == prompt
