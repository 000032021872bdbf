import math

import pytest

from arl_gym.errors import DataError
from arl_gym.train.recordings import episode_fields, message_text, recorded_steps, turn_fields
from tests.train.fake_run import recorded_episode


def test_steps_are_found_in_the_order_of_training(tmp_path):
    for name in ("step-000010", "step-000002", "step-1000000", "draft", "step-x"):
        path = tmp_path / "trajectories" / f"{name}.jsonl.gz"
        path.parent.mkdir(exist_ok=True)
        path.touch()
    assert list(recorded_steps(tmp_path)) == [2, 10, 1000000]


def test_a_run_without_recordings_is_an_error_that_names_it(tmp_path):
    with pytest.raises(DataError, match=f"{tmp_path.name} has no recorded episodes"):
        recorded_steps(tmp_path)


def test_a_turn_has_the_fields_of_its_episode_and_its_own():
    fields = turn_fields(recorded_episode(group=4, copy=2, rewards=(-0.1, 10.9), penalties=(0.5, 0.0)))[0]
    assert fields == {
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
