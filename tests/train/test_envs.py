from collections import Counter

import pytest

from arl_gym.errors import ConfigError
from arl_gym.train.envs import (
    check_step_advantage,
    env_names,
    env_of_group,
    open_training_envs,
    training_episodes,
)
from arl_gym.train.methods import resolve

SOKOBAN = {"id": "ARL/Sokoban-v0", "prompt": "compact", "window": 0}


def cfg(**changes):
    return resolve({"rollout": {"groups": 4, "group_size": 2}, **changes})


@pytest.mark.parametrize("start", [0, 17, 1000])
def test_any_run_of_groups_has_close_to_the_weights_asked_for(start):
    run = cfg(envs=[{**SOKOBAN, "weight": 3.0}, {**SOKOBAN, "weight": 1.0}])
    counts = Counter(env_of_group(run, n) for n in range(start, start + 40))
    assert abs(counts[0] - 30) <= 2
    assert counts[0] + counts[1] == 40


def test_one_environment_gets_every_group():
    assert {env_of_group(cfg(env=SOKOBAN), n) for n in range(100)} == {0}


def test_names_are_short_and_numbered_where_they_repeat():
    alfworld = {"id": "ARL/ALFWorld-v0"}
    assert env_names(cfg(envs=[SOKOBAN, alfworld])) == ["Sokoban-v0", "ALFWorld-v0"]
    assert env_names(cfg(envs=[SOKOBAN, alfworld, SOKOBAN])) == [
        "Sokoban-v0.0",
        "ALFWorld-v0",
        "Sokoban-v0.2",
    ]


def test_a_try_plays_its_groups_once_each_over_the_environments():
    run = cfg(envs=[SOKOBAN, SOKOBAN])
    for attempt in (0, 1):
        shares = training_episodes(run, [["a", "b"], ["c"]], step=3, attempt=attempt)
        assert sorted((e.group, e.copy) for share in shares for e in share) == [
            (4 * attempt + g, c) for g in range(4) for c in range(2)
        ]
        assert {e.task_id for e in shares[0]} <= {"a", "b"}
        assert {e.task_id for e in shares[1]} == {"c"}
        for share in shares:
            assert all(len({e.task_id for e in share if e.group == g}) <= 1 for g in range(8))


def test_the_task_stream_is_a_pure_function_of_seed_step_try_and_index():
    ids = [[str(i) for i in range(1000)]]

    def tasks(groups, **place):
        (share,) = training_episodes(cfg(env=SOKOBAN, rollout={"groups": groups}), ids, **place)
        return [e.task_id for e in share if e.copy == 0]

    first = tasks(2, step=3, attempt=1)
    assert first == tasks(2, step=3, attempt=1) == tasks(4, step=3, attempt=1)[:2]
    assert first not in (tasks(2, step=3, attempt=0), tasks(2, step=4, attempt=1))


def test_oversampling_plays_more_groups_only_where_the_filter_is_active():
    def groups(step, **dials):
        run = cfg(
            env=SOKOBAN, rollout={"groups": 2}, filter={"oversample": 2.5, "cold_start_steps": 3, **dials}
        )
        return {e.group for e in training_episodes(run, [["a", "b"]], step=step, attempt=1)[0]}

    assert groups(3) == {2, 3}
    assert groups(4) == {5, 6, 7, 8, 9}
    assert groups(4, enable=False) == {2, 3}
    with pytest.raises(ConfigError, match="oversample"):
        groups(4, oversample=0.5)


@pytest.mark.parametrize("insist", [False, True])
def test_the_step_advantage_is_refused_where_turns_cannot_be_compared(insist):
    tirmath = {"id": "ARL/TIRMath-v0"}
    for envs in ({"env": tirmath}, {"envs": [SOKOBAN, tirmath]}):
        run = resolve({**envs, "advantage": {"step_anywhere": insist}})
        if insist:
            check_step_advantage(run)
        else:
            with pytest.raises(ConfigError, match=r"got 1\).* such as GSPO \(got SAMPO"):
                check_step_advantage(run)
    check_step_advantage(resolve({"env": tirmath, "method": "GSPO"}))
    check_step_advantage(resolve({"env": SOKOBAN}))


def test_ranks_share_the_slots():
    for ranks, slots in ((1, 16), (2, 8), (3, 6)):  # 8 groups of 2; thirds round up to 3 groups
        (env,) = open_training_envs(cfg(env=SOKOBAN, filter={"oversample": 2.0}), ranks=ranks)
        assert env.vec.num_envs == slots
        env.vec.close()


def test_identity_tells_other_tasks_apart():
    seen = []
    for kwargs in ({}, {}, {"dim_room": [7, 7]}):
        (env,) = open_training_envs(cfg(env={**SOKOBAN, "kwargs": kwargs}), ranks=1)
        seen.append(env.identity())
        env.vec.close()
    assert seen[0] == seen[1]
    assert seen[0]["content"] != seen[2]["content"]
    assert seen[0]["env_id"] == "ARL/Sokoban-v0"
