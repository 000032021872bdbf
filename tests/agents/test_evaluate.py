import dataclasses
import json

import pytest

from arl_gym.agents.evaluate import (
    EvalResult,
    evaluate,
    paired_difference,
    pass_at_k,
    summarise,
    wilson_interval,
)
from arl_gym.agents.policies import ScriptedPolicy
from arl_gym.agents.records import read_trajectories
from arl_gym.agents.rollout import rollout
from arl_gym.agents.types import Trajectory, Turn
from arl_gym.errors import ConfigError, UnknownNameError
from tests.agents.counting import ID, say

UP = ScriptedPolicy(lambda _: say("up"))


def trajectory(task: str, rewards: list[float], success: bool) -> Trajectory:
    turns = tuple(
        Turn(
            messages=[],
            response="",
            action="",
            env_reward=reward,
            format_penalty=0.5,
            anchor="",
            format_valid=reward > 0,
            action_valid=True,
            finish="stop",
        )
        for reward in rewards
    )
    return Trajectory(
        env_id=ID,
        task_id=task,
        dataset="generated",
        split="test",
        content_hash=task,
        group=0,
        copy=0,
        turns=turns,
        stop="terminated",
        success=success,
        score=float(success),
    )


def test_the_expert_solves_the_first_tasks_of_the_split():
    result = evaluate("expert", ID, episodes=3, num_envs=2)
    assert result.task_ids == ("test/0", "test/1", "test/2")
    assert result.successes == (True, True, True)
    assert result.returns == (1.0, 0.75, 0.5)
    assert (result.success_rate, result.return_mean, result.length_mean) == (1.0, 0.75, 2.0)
    assert (result.dataset, result.split, result.n, result.n_env_errors) == ("generated", "test", 3, 0)
    assert result.format_valid_share == 1.0


def test_a_random_evaluation_is_repeatable_and_depends_on_its_seed():
    first = evaluate("random", ID, episodes=12, seed=1)
    assert evaluate("random", ID, episodes=12, seed=1, num_envs=5) == first
    assert evaluate("random", ID, episodes=12, seed=2).returns != first.returns


def test_a_split_with_fewer_tasks_is_played_whole():
    assert evaluate(UP, ID, episodes=100).n == 12


def test_chosen_tasks_are_played_in_their_order():
    assert evaluate(UP, ID, split="val", task_ids=["val/4", "val/2"]).task_ids == ("val/4", "val/2")


def test_keyword_arguments_reach_the_env_and_the_agent_layer():
    result = evaluate(UP, ID, episodes=3, max_steps=1, format="action_only", step_timeout_s=5.0)
    assert result.successes == (True, False, False)


def test_broken_episodes_count_as_failures_and_are_reported():
    result = evaluate(UP, ID, episodes=2, broken="test/0")
    assert (result.n, result.n_env_errors, result.successes) == (2, 1, (False, True))
    assert "no such level" in result.first_error


def test_the_mean_is_over_episodes_not_over_turns():
    long_failure = trajectory("a", [0.0, 0.0, 0.0, 0.0], False)
    result = summarise([long_failure, trajectory("b", [10.0], True)], split="test")
    assert (result.return_mean, result.length_mean, result.format_valid_share) == (5.0, 2.5, 0.2)
    # half width: 1.959964 * sd / sqrt(n), sd = 10 / sqrt(2)
    assert result.return_interval == pytest.approx((5 - 9.79982, 5 + 9.79982))


def test_the_step_weighted_return_counts_an_episode_once_a_turn():
    played = [trajectory("a", [0.0, 0.0, 0.0, 4.0], False), trajectory("b", [10.0], True)]
    result = summarise(played, split="test")
    # Four turns of an episode that returned 4, one of an episode that returned 10: 26 / 5.
    assert (result.return_step_weighted, result.return_mean, result.score_mean) == (5.2, 7.0, 0.5)
    assert summarise([trajectory("a", [], False)], split="test").return_step_weighted == 0.0


def test_panels_are_equal_only_with_the_same_tasks_of_the_same_content():
    def panel(*tasks):
        played = [
            dataclasses.replace(trajectory(task, [1.0], True), content_hash=content)
            for task, content in tasks
        ]
        return summarise(played, split="test").panel_hash

    two = panel(("a", "x"), ("b", "y"))
    assert two == panel(("a", "x"), ("b", "y"))
    assert len({two, panel(("b", "y"), ("a", "x")), panel(("a", "x")), panel(("a", "y"), ("b", "y"))}) == 4
    assert two != panel(("c", "x"), ("b", "y"))


def test_several_samples_are_one_panel():
    assert evaluate(UP, ID, episodes=3, samples=2).panel_hash == evaluate(UP, ID, episodes=3).panel_hash


def test_episodes_may_be_played_by_another_function():
    seen = []

    def play(vec, policy, episodes, **more):
        seen.append([e.task_id for e in episodes])
        return rollout(vec, policy, episodes, **more)

    assert evaluate(UP, ID, episodes=2, play=play) == evaluate(UP, ID, episodes=2)
    assert seen == [["test/0", "test/1"]]


def test_success_is_told_by_kind_of_task_also_for_kinds_not_played():
    played = [(trajectory("a", [1.0], True), "look"), (trajectory("b", [0.0], False), "look")]
    result = summarise(
        [dataclasses.replace(t, task_type=kind) for t, kind in played],
        split="test",
        task_types=("heat", "look"),
    )
    assert result.success_by_type == {"heat": (0, 0), "look": (1, 2)}
    assert summarise([trajectory("a", [1.0], True)], split="test").success_by_type == {}


def test_one_episode_has_no_return_interval():
    assert summarise([trajectory("a", [1.0], True)], split="test").return_interval is None


@pytest.mark.parametrize(
    ("k", "n", "low", "high"),
    [(5, 10, 0.23659, 0.76341), (0, 10, 0.0, 0.27753), (10, 10, 0.72247, 1.0), (1, 1, 0.20655, 1.0)],
)
def test_wilson_interval_of_known_cases(k, n, low, high):
    assert wilson_interval(k, n) == pytest.approx((low, high), abs=1e-5)


def results() -> tuple[EvalResult, EvalResult]:
    a = summarise([trajectory(t, [2.0], t != "c") for t in "abcd"], split="test")
    b = summarise([trajectory(t, [1.0], t == "b") for t in "abcd"], split="test")
    return a, b


def test_a_paired_difference_is_taken_task_by_task():
    a, b = results()
    # differences 1, 0, 0, 1: sd = 1 / sqrt(3), half width 1.959964 * sd / 2
    assert paired_difference(a, b) == pytest.approx((0.5, 0.5 - 0.565793, 0.5 + 0.565793), abs=1e-5)
    assert paired_difference(a, b, metric="return") == pytest.approx((1.0, 1.0, 1.0))


def test_only_equal_tasks_can_be_paired():
    a, b = results()
    with pytest.raises(ConfigError, match="same tasks"):
        paired_difference(a, dataclasses.replace(b, task_ids=tuple("abce")))
    with pytest.raises(ConfigError, match="same tasks"):
        paired_difference(a, dataclasses.replace(b, content_hash="other"))


def test_the_json_holds_every_field():
    result = evaluate(UP, ID, episodes=2)
    assert json.loads(result.to_json())["successes"] == [True, True]
    assert set(json.loads(result.to_json())) == {f.name for f in dataclasses.fields(EvalResult)}


def test_recorded_episodes_are_those_evaluated(tmp_path):
    result = evaluate(UP, ID, episodes=3, record=tmp_path)
    recorded = read_trajectories(tmp_path / "eval-Counting-v0-test.jsonl.gz")
    assert tuple(t.env_return for t in recorded) == result.returns


def test_nothing_to_play_is_an_error():
    with pytest.raises(ConfigError, match="at least one task"):
        evaluate(UP, ID, episodes=0)


def test_an_unknown_policy_is_named():
    with pytest.raises(UnknownNameError, match="did you mean 'expert'"):
        evaluate("expart", ID)


# ---- several episodes of each task


def played(outcomes: str):
    """Return the episodes of tasks whose successes are given as letters, as in "110 000"."""
    return [
        dataclasses.replace(trajectory(f"t{i}", [float(c == "1")], c == "1"), group=i, copy=j)
        for i, task in enumerate(outcomes.split())
        for j, c in enumerate(task)
    ]


def test_pass_at_k_is_the_chance_that_one_of_k_succeeds():
    assert pass_at_k(4, 1, 1) == 0.25
    assert pass_at_k(4, 1, 2) == 0.5
    assert pass_at_k(4, 2, 2) == pytest.approx(5 / 6)
    assert pass_at_k(4, 3, 2) == 1.0
    assert pass_at_k(4, 0, 4) == 0.0
    assert pass_at_k(4, 4, 1) == 1.0
    for n, c, k in ((4, 5, 1), (4, -1, 1), (4, 1, 0), (4, 1, 5)):
        with pytest.raises(ConfigError):
            pass_at_k(n, c, k)


def test_samples_of_a_task_count_together():
    result = summarise(played("1100 0000 1111"), split="test")
    assert (result.n, result.samples, result.task_ids) == (12, 4, ("t0", "t1", "t2"))
    assert result.success_rate == 0.5
    assert result.pass_at == {1: 0.5, 2: pytest.approx((5 / 6 + 0 + 1) / 3), 4: pytest.approx(2 / 3)}
    # Over three tasks with means 0.5, 0 and 1: standard deviation 0.5.
    assert result.success_interval == pytest.approx(
        (0.5 - 1.96 * 0.5 / 3**0.5, 0.5 + 1.96 * 0.5 / 3**0.5), abs=1e-4
    )


def test_the_number_of_samples_need_not_be_a_power_of_two():
    assert list(summarise(played("110 000"), split="test").pass_at) == [1, 2, 3]


def test_tasks_are_compared_by_the_mean_of_their_samples():
    a, b = (summarise(played(outcomes), split="test") for outcomes in ("11 01", "10 00"))
    mean, low, high = paired_difference(a, b)
    assert (mean, low, high) == (0.5, 0.5, 0.5)


def test_an_evaluation_plays_every_task_as_often_as_it_is_told(tmp_path):
    result = evaluate("random", "ARL/Sokoban-v0", episodes=3, samples=2, num_envs=4)
    assert (result.n, result.samples, len(result.task_ids)) == (6, 2, 3)
    stored = json.loads(result.to_json())
    assert stored["pass_at"].keys() == {"1", "2"}
    with pytest.raises(ConfigError, match="samples=0"):
        evaluate("random", "ARL/Sokoban-v0", samples=0)
