import dataclasses

import numpy as np
import pytest
import torch

from arl_gym.train.batch import pack, pad_rows
from arl_gym.train.engine import can_share_prompts, tree_attention
from arl_gym.train.model import tiny_model, tiny_tokenizer
from arl_gym.train.packing import layout
from tests.train.engine_jobs import LOSS, OPTIM, first_gradient, make_engine, scored
from tests.train.trajectories import trajectory, turn


def copies():
    """Two groups of three rows; the prompts 1 2 3 4 5 6 7 8 and 9 9 9 9 9 9 9 9."""
    first, second = [1, 2, 3, 4, 5, 6, 7, 8], [9] * 8
    answers = [[10, 11], [12, 13, 14], [15, 16], [20, 21], [22], [23, 24]]
    return [
        trajectory(turn(first if i < 3 else second, answer, reward=float(i % 3)), group=i // 3, copy=i % 3)
        for i, answer in enumerate(answers)
    ]


def test_a_shared_prompt_is_laid_down_once_and_branches_follow_it():
    plan = layout(pack(copies(), pad_id=0), share=True)
    assert plan.forest is not None
    # The first group: 8 of prompt, then what its rows feed back: 10, 12 13 and 15. The second one: 20 and 23.
    assert plan.ids.tolist() == [
        [1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 13, 15],
        [9, 9, 9, 9, 9, 9, 9, 9, 20, 23, 0, 0],
    ]
    assert plan.forest.positions.tolist()[0] == [0, 1, 2, 3, 4, 5, 6, 7, 8, 8, 9, 8]
    assert plan.forest.branch.tolist() == [[0] * 8 + [1, 2, 2, 3], [0] * 8 + [1, 3, 0, 0]]
    assert plan.forest.tree.tolist() == [[0] * 12, [0] * 10 + [-1, -1]]
    # First tokens are predicted by the end of the prompt (7; in the second row of 12: 12 + 7), the others by
    # the token before them.
    assert plan.before.tolist() == [7, 8, 7, 9, 10, 7, 11, 19, 20, 19, 19, 21]


def test_a_layout_says_of_every_token_which_row_it_is_from():
    plan = layout(pack(copies(), pad_id=0), share=True)
    assert plan.forest is not None
    assert plan.forest.row[:, :10].tolist() == [[0] * 9 + [1], [3] * 9 + [5]]


def test_prompts_of_equal_ids_that_show_something_else_are_not_shared():
    batch = pack(copies(), pad_id=0)
    seen = np.full(batch.ids.shape, -1)
    seen[:, 3] = [0, 0, 7, 1, 1, 1]
    plan = layout(batch, share=True, seen=seen)
    assert plan.forest is not None
    # The third row has a tree of its own; it finds no room beside the others.
    assert plan.ids.tolist() == [
        [1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 13],
        [9, 9, 9, 9, 9, 9, 9, 9, 20, 23, 0],
        [1, 2, 3, 4, 5, 6, 7, 8, 15, 0, 0],
    ]


def test_small_trees_lie_side_by_side():
    prompts = [[n] * 6 for n in range(1, 4)]
    played = [
        trajectory(turn(p, [50 + c, 60]), group=g, copy=c) for g, p in enumerate(prompts) for c in range(2)
    ]
    played += [trajectory(turn([9] * 20, [70, 71]), group=9, copy=c) for c in range(2)]
    plan = layout(pack(played, pad_id=0), share=True)
    assert plan.forest is not None
    # 20 + 2 for the long one; 6 + 2 for each of the three others, two of which fit into 22.
    assert plan.ids.shape == (3, 22)
    assert plan.forest.tree[1].tolist() == [0] * 8 + [1] * 8 + [-1] * 6


@pytest.mark.parametrize("share", [False, True])
def test_rows_without_a_common_prompt_stay_as_they_are(share):
    batch = pack([trajectory(turn([i, 2, 3], [4, 5]), copy=i) for i in range(4)], pad_id=0)
    plan = layout(batch, share=share)
    assert plan.forest is None
    assert plan.ids is batch.ids
    assert plan.before.tolist() == [2, 3, 7, 8, 12, 13, 17, 18]  # rows are 5 long


def test_rows_without_a_token_to_score_are_no_tree():
    nothing = pad_rows(pack([], pad_id=0), 2)
    assert layout(nothing, share=True).before.tolist() == []
    mixed = layout(pad_rows(pack(copies(), pad_id=0), 3), share=True)
    assert mixed.ids.shape == (2, 12)


def test_a_tree_never_costs_more_attention_than_its_rows_alone():
    # Short prompts, long answers: (2 + 2 x 39)^2 is more than 2 x 41^2.
    played = [trajectory(turn([1, 2], list(range(10, 50))), copy=c) for c in range(4)]
    assert layout(pack(played, pad_id=0), share=True).forest is None


def test_long_rows_share_only_what_the_mask_can_hold(monkeypatch):
    monkeypatch.setattr("arl_gym.train.packing._LONGEST", 10)
    plan = layout(pack(copies(), pad_id=0), share=True)
    assert plan.forest is not None
    # 8 of prompt and 10 make 9; 12 13 do not fit beside that, and then neither does 15.
    assert plan.ids.tolist() == [
        [1, 2, 3, 4, 5, 6, 7, 8, 12, 13],
        [9, 9, 9, 9, 9, 9, 9, 9, 20, 23],
        [1, 2, 3, 4, 5, 6, 7, 8, 10, 0],
        [1, 2, 3, 4, 5, 6, 7, 8, 15, 0],
    ]


def test_a_token_sees_the_prompt_and_its_own_branch():
    tree, branch = torch.tensor([[0, 0, 0, 0, 0, 1, -1]]), torch.tensor([[0, 0, 1, 1, 2, 0, 0]])
    seen = tree_attention(tree, branch)[0, 0].int().tolist()
    assert seen == [
        [1, 0, 0, 0, 0, 0, 0],
        [1, 1, 0, 0, 0, 0, 0],
        [1, 1, 1, 0, 0, 0, 0],
        [1, 1, 1, 1, 0, 0, 0],
        [1, 1, 0, 0, 1, 0, 0],
        [0, 0, 0, 0, 0, 1, 0],
        [0, 0, 0, 0, 0, 0, 1],
    ]


def test_sharing_prompts_changes_neither_scores_nor_gradient():
    played = copies()
    # A dialogue beside them: two turns in one row, the second turn's prompt among its own tokens.
    talk = [turn([1, 2, 3, 4, 5, 6, 7, 8], [30, 31]), turn([1, 2, 3, 4, 5, 6, 7, 8, 30, 31, 40], [32, 33])]
    played += [trajectory(*talk, group=0, copy=7)]
    results = []
    for share in (False, True):
        engine = make_engine(dataclasses.replace(OPTIM, share_prompts=share))
        batch = scored(engine, played)
        assert (layout(batch, share=share).forest is not None) == share
        _, seen, _ = engine.update(batch, LOSS, total_steps=1)
        results.append((batch.old_logprobs, batch.entropies, seen, first_gradient(engine)))
    for alone, shared in zip(*results, strict=True):
        assert np.abs(alone).max() > 0.01
        assert np.allclose(alone, shared, rtol=1e-4, atol=2e-6)


def test_models_that_do_not_take_any_mask_do_not_share():
    model = tiny_model(tiny_tokenizer(), seed=0, hidden=48, layers=2)
    assert can_share_prompts(model)
    model.config._attn_implementation = "flash_attention_2"
    assert not can_share_prompts(model)
    model.config._attn_implementation = "sdpa"
    model.config.layer_types = ["full_attention", "sliding_attention"]
    assert not can_share_prompts(model)
