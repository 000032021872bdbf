import math

import pytest

from arl_gym.errors import DataError
from arl_gym.train.actions import Move
from arl_gym.train.recordings import (
    episode_fields,
    message_text,
    read_step,
    recorded_steps,
    recording_paths,
    turn_fields,
)
from tests.train.fake_run import episode, recorded_episode, scored, write_episodes


def test_steps_are_found_in_the_order_of_training(tmp_path):
    for name in ("step-000010", "step-000002", "step-1000000", "draft", "step-x"):
        path = tmp_path / "trajectories" / f"{name}.jsonl.gz"
        path.parent.mkdir(exist_ok=True)
        path.touch()
    assert list(recording_paths(tmp_path)) == [2, 10, 1000000]


def test_a_run_without_recordings_is_an_error_that_names_it(tmp_path):
    with pytest.raises(DataError, match=f"{tmp_path.name} has no recorded episodes"):
        recording_paths(tmp_path)


def test_a_turn_has_the_fields_of_its_episode_and_its_own():
    fields = turn_fields(recorded_episode(group=4, copy=2, rewards=(-0.1, 10.9), penalties=(0.5, 0.0)))[0]
    assert fields == {
        "env": "ARL/Sokoban-v0",
        "group": 4,
        "copy": 2,
        "task": "train/000007",
        "kind": "",
        "success": True,
        "score": 1.0,
        "stop": "terminated",
        "return": pytest.approx(10.8),
        "turns": 2,
        "turn": 1,
        "prompt": "Step 1.\n[image abc]",
        "response": "<action>right</action>",
        "action": "right",
        "env_reward": -0.1,
        "penalty": 0.5,
        "reward": -0.6,
        "format_valid": False,
        "action_valid": True,
        "finish": "stop",
        "n_tokens": 3,
    }


def test_what_the_trainer_recorded_becomes_ratios_and_means():
    episode = recorded_episode(rewards=(1.0,), penalties=(0.0,))
    episode["turns"][0] |= {
        "advantage": -0.5,
        "old_logprobs": [-1.0, -2.0, None],
        "new_logprobs": [-0.9, -2.3, -1.0],
        "entropies": [0.2, 0.4, None],
    }
    (fields,) = turn_fields(episode)
    assert fields["advantage"] == -0.5
    # exp(0.1) = 1.10517, exp(-0.3) = 0.74082
    assert fields["ratios"] == [pytest.approx(1.10517, abs=1e-5), pytest.approx(0.74082, abs=1e-5), None]
    # The mean of the logarithms is (0.1 - 0.3) / 2.
    assert fields["ratio"] == pytest.approx(math.exp(-0.1))
    assert fields["entropy"] == pytest.approx(0.3)


def test_a_turn_without_tokens_has_no_means():
    episode = recorded_episode(rewards=(1.0,), penalties=(0.0,))
    episode["turns"][0] |= {"old_logprobs": [], "new_logprobs": [], "entropies": []}
    (fields,) = turn_fields(episode)
    assert fields["ratios"] == []
    assert not fields.keys() & {"ratio", "entropy", "advantage"}


def test_ratios_stay_finite():
    episode = recorded_episode(rewards=(1.0,), penalties=(0.0,))
    episode["turns"][0] |= {"old_logprobs": [-500.0], "new_logprobs": [0.0]}
    assert turn_fields(episode)[0]["ratio"] == pytest.approx(math.exp(20))


def test_a_turn_that_lacks_something_names_its_task():
    episode = recorded_episode()
    del episode["turns"][1]["action"]
    with pytest.raises(DataError, match=r"train/000007.*'action'"):
        turn_fields(episode)


def test_an_episode_has_fields_even_without_a_turn():
    episode = recorded_episode(rewards=(), penalties=(), success=False)
    assert turn_fields(episode) == []
    assert episode_fields(episode)["return"] == 0


def test_a_message_is_text_and_names_of_images():
    assert message_text({"role": "user", "content": "look"}) == "look"


def write(folder, number, *records):
    path = folder / "trajectories" / f"step-{number:06d}.jsonl.gz"
    write_episodes(path, records)
    return path


def test_a_recorded_turn_has_its_scores(tmp_path):
    step = read_step(7, write(tmp_path, 7, episode(False), scored(episode(True), advantage=-0.5)))
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
    (played,) = read_step(1, write(tmp_path, 1, record)).episodes
    assert played.success
    assert played.env_id == "ARL/Sokoban-v0"
    assert played.moves[0] == Move(action="right", observation="the board", valid=False)


def test_a_reference_is_optional(tmp_path):
    record = scored(episode(True))
    for turn in record["turns"]:
        del turn["ref_logprobs"]
    assert read_step(1, write(tmp_path, 1, record)).turns[0].ref is None


@pytest.mark.parametrize("scores", [{"advantage": None}, {"new_logprobs": []}, {"advantage": float("nan")}])
def test_turns_that_were_not_trained_on_have_no_scores(tmp_path, scores):
    assert read_step(1, write(tmp_path, 1, scored(episode(True), **scores))).turns == ()


def test_scores_of_different_lengths_are_refused(tmp_path):
    path = write(tmp_path, 1, scored(episode(True), entropies=[0.1]))
    with pytest.raises(DataError, match=r"step-000001.*differ in length: \[1, 2\]"):
        read_step(1, path)


def test_steps_come_in_the_order_of_their_numbers(tmp_path):
    for number in (1_000_000, 20, 3):
        write(tmp_path, number, episode(True))
    assert [s.step for s in recorded_steps(tmp_path)] == [3, 20, 1_000_000]


def test_a_file_that_is_not_compressed_is_refused(tmp_path):
    path = tmp_path / "step-1.jsonl.gz"
    path.write_text("{}")
    with pytest.raises(DataError, match=r"cannot read episodes from .*step-1"):
        read_step(1, path)


def test_a_turn_of_another_schema_names_its_file_and_task(tmp_path):
    record = episode(True)
    del record["turns"][0]["action"]
    with pytest.raises(DataError, match=r"step-000001.*test/000017.*KeyError 'action'"):
        read_step(1, write(tmp_path, 1, record))
