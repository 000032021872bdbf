import dataclasses

import pytest

from arl_gym.agents.collection import CollectFilter, filter_episodes, lint_episode, lint_response
from arl_gym.agents.types import Trajectory, Turn
from arl_gym.errors import ConfigError, UnknownNameError

GOOD = "<think>left is free</think><action>left</action>"


def turn(response=GOOD, *, valid=True, ids=None):
    return Turn(
        messages=[],
        response=response,
        action="",
        env_reward=0.0,
        format_penalty=0.0,
        anchor="",
        format_valid=valid,
        action_valid=True,
        finish="stop",
        completion_ids=ids,
    )


def episode(*turns, task="a", success=True, score=1.0, stop="terminated", env_id="E-v0") -> Trajectory:
    return Trajectory(
        env_id=env_id,
        task_id=task,
        dataset="",
        split="train",
        content_hash="",
        group=0,
        copy=0,
        turns=turns,
        stop=stop,
        success=success,
        score=score,
    )


def dropped(trajectories, **rules):
    kept, counts = filter_episodes(trajectories, CollectFilter(**rules))
    assert len(kept) + sum(counts.values()) == len(trajectories)
    return kept, {reason: n for reason, n in counts.items() if n}


def test_every_episode_is_dropped_for_its_first_reason():
    good = episode(turn())
    bad = [
        episode(turn(), stop="env_error", success=False),
        episode(success=False),
        episode(turn(valid=False), success=False, score=0.0),
        episode(turn(), task="b", score=0.5),
        episode(turn(), turn(valid=False), task="c"),
        episode(turn()),
    ]
    kept, counts = dropped([good, *bad], min_score=0.9)
    assert kept == [good]
    assert counts == {"env_error": 1, "no_turns": 1, "success": 1, "score": 1, "format": 1, "duplicate": 1}


def test_rules_that_are_off_drop_nothing():
    played = [episode(turn(valid=False), success=False, score=0.0)] * 2
    kept, counts = dropped(played, success_only=False, format_valid=False, duplicates=True)
    assert (kept, counts) == (played, {})


def test_a_score_at_the_bound_is_kept():
    assert dropped([episode(turn(), score=0.9)], min_score=0.9)[1] == {}


def test_duplicates_are_of_one_task_and_say_the_same_on_every_turn():
    one, two = turn("x"), turn("y")
    different = [
        episode(one, two),
        episode(two, one),
        episode(one),
        episode(one, two, task="b"),
        episode(one, two, env_id="F-v0"),
    ]
    assert dropped(different)[1] == {}
    assert dropped([*different, episode(one, two)])[1] == {"duplicate": 1}


def test_an_episode_that_was_dropped_makes_no_later_one_a_duplicate():
    lost, won = episode(turn(), success=False), episode(turn())
    assert dropped([lost, won]) == ([won], {"success": 1})


def test_the_longest_response_counts_in_tokens():
    short, long = episode(turn(ids=[1, 2])), episode(turn(ids=[1]), turn(ids=[1, 2, 3]))
    assert dropped([short, long], max_tokens=2) == ([short], {"tokens": 1})
    with pytest.raises(ConfigError, match="turn 0 of E-v0 task a has none"):
        dropped([episode(turn())], max_tokens=2)


def test_problems_of_responses_drop_an_episode_where_they_are_named():
    empty = episode(turn("<think></think><action>up</action>"))
    assert dropped([empty])[1] == {}
    assert dropped([empty], problems=("empty_think",))[1] == {"lint": 1}
    assert dropped([empty], problems=("empty_think",), format="action_only")[1] == {}
    with pytest.raises(UnknownNameError, match="did you mean 'repeated'"):
        CollectFilter(problems=("repeatd",))


WORDS = " ".join(f"w{i}" for i in range(23))  # 20 runs of four words, all different


@pytest.mark.parametrize(
    ("text", "format", "problems"),
    [
        (GOOD, "strict", []),
        ("", "strict", ["empty", "format"]),
        (" ", "none", ["empty"]),
        ("<think> </think><action>up</action>", "strict", ["empty_think"]),
        ("<think>a<action>up</action>", "strict", ["format", "tags"]),
        ("<think>a<action>up</think></action>", "lenient", ["tags"]),
        ("</think>a<think><action>up</action>", "strict", ["format", "tags"]),
        ("<think>a</think><think>b</think><action>up</action>", "strict", ["format"]),
        (f"so: {GOOD}", "strict", ["format"]),
        (f"so: {GOOD}", "action_only", []),
        ("<think>左</think><action>left</action>", "strict", ["format", "cjk"]),
        ("<think>a</think><action>up", "none", []),
        ("!" * 20, "none", ["repeated"]),
        ("!" * 19 + "?!", "none", []),
        ("#" * 40 + "\n" + "-" * 40, "none", []),
        (WORDS, "none", []),
        ("go left now please " * 6, "none", ["repeated"]),  # 24 words: 21 runs, 4 of them different
        ("go left now please " * 5, "none", []),  # 20 words: 17 runs are too few to tell
        (WORDS + " " + " ".join(f"w{i}" for i in range(19)), "none", []),  # 39 runs, 23 different
    ],
)
def test_the_lint_finds(text, format, problems):
    assert lint_response(text, format) == problems


def test_the_lint_of_an_episode_counts_its_responses():
    assert lint_episode(episode(turn(), turn(""), turn("")), "strict") == {"empty": 2, "format": 2}


def test_the_lint_knows_the_formats():
    with pytest.raises(UnknownNameError, match="format"):
        lint_response(GOOD, "xml")


def test_a_filter_does_not_change_what_it_keeps():
    played = [episode(turn()), dataclasses.replace(episode(turn("z")), copy=1)]
    assert filter_episodes(played, CollectFilter())[0] == played
