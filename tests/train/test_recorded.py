import json

import pytest

from arl_gym.errors import DataError
from arl_gym.train.actions import Move
from arl_gym.train.recorded import read_step, recorded_steps
from tests.train.fake_run import episode, scored, write_episodes


def write(folder, number, *records):
    path = folder / "trajectories" / f"step-{number:06d}.jsonl.gz"
    write_episodes(path, records)
    return path


def test_a_recorded_turn_has_its_scores(tmp_path):
    step = read_step(write(tmp_path, 7, episode(False), scored(episode(True), advantage=-0.5)))
    assert step.step == 7
    assert len(step.turns) == 2
    turn = step.turns[0]
    assert (turn.trajectory, turn.advantage) == (1, -0.5)
    assert [None if a is None else a.tolist() for a in (turn.old, turn.new, turn.ref, turn.entropy)] == [
        [-1.0, -2.0],
        [-0.9, -2.2],
        [-1.0, -2.0],
        [0.5, 0.3],
    ]


def test_an_episode_has_its_moves(tmp_path):
    record = episode(True)
    record["turns"][0] |= {"anchor": "the board", "action_valid": False}
    (played,) = read_step(write(tmp_path, 1, record)).episodes
    assert played.success
    assert played.env_id == "ARL/Sokoban-v0"
    assert played.moves[0] == Move(action="right", observation="the board", valid=False)


def test_a_reference_is_optional(tmp_path):
    record = scored(episode(True))
    for turn in record["turns"]:
        del turn["ref_logprobs"]
    assert read_step(write(tmp_path, 1, record)).turns[0].ref is None


@pytest.mark.parametrize("scores", [{"advantage": None}, {"new_logprobs": []}, {"advantage": float("nan")}])
def test_turns_that_were_not_trained_on_have_no_scores(tmp_path, scores):
    assert read_step(write(tmp_path, 1, scored(episode(True), **scores))).turns == ()


def test_scores_of_different_lengths_are_refused(tmp_path):
    path = write(tmp_path, 1, scored(episode(True), entropies=[0.1]))
    with pytest.raises(DataError, match=r"step-000001.*differ in length: \[1, 2\]"):
        read_step(path)


def test_steps_come_in_the_order_of_their_numbers(tmp_path):
    for number in (1_000_000, 20, 3):
        write(tmp_path, number, episode(True))
    assert [s.step for s in recorded_steps(tmp_path)] == [3, 20, 1_000_000]


def test_a_run_without_recorded_steps_is_refused(tmp_path):
    write_episodes(tmp_path / "trajectories" / "eval.jsonl.gz", [episode(True)])
    with pytest.raises(DataError, match="has no trajectories/step-"):
        recorded_steps(tmp_path)


def test_a_file_of_another_name_or_content_is_refused(tmp_path):
    write_episodes(tmp_path / "eval.jsonl.gz", [episode(True)])
    with pytest.raises(DataError, match="step-NUMBER"):
        read_step(tmp_path / "eval.jsonl.gz")
    (tmp_path / "step-1.jsonl.gz").write_text(json.dumps(episode(True)))
    with pytest.raises(DataError, match="cannot read the trajectories of step-1"):
        read_step(tmp_path / "step-1.jsonl.gz")
