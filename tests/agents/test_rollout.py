import random
from collections.abc import Sequence
from contextlib import closing
from typing import Any

import pytest

from arl_gym.agents.policies import RandomPolicy, ScriptedPolicy, respond_in
from arl_gym.agents.rollout import RolloutStats, rollout
from arl_gym.agents.types import Episode, Policy, Reply, Request, Trajectory
from arl_gym.core import pictures_of
from arl_gym.errors import PolicyError
from arl_gym.make import make_chat_vec
from arl_gym.rng import derive
from tests.agents.counting import ID, say


def episodes(*numbers: int, split: str = "train") -> list[Episode]:
    return [Episode(task_id=f"{split}/{i}", group=i) for i in numbers]


def play(
    policy: Policy, of: Sequence[Episode], *, num_envs: int = 2, seed: int = 0, step: int = 0, **kwargs: Any
):
    stats = kwargs.pop("stats", None)
    with closing(make_chat_vec(ID, num_envs, **kwargs)) as vec:
        return rollout(vec, policy, of, env_id=ID, seed=seed, step=step, stats=stats)


class Shuffling:
    """Hands requests to another policy and gives its replies late and out of order."""

    def __init__(self, policy: Policy, seed: int):
        self.policy, self.random, self.held = policy, random.Random(seed), list[Reply]()

    def submit(self, requests: Sequence[Request]) -> None:
        self.policy.submit(requests)

    def poll(self) -> list[Reply]:
        self.held += self.policy.poll()
        self.random.shuffle(self.held)
        n = self.random.randint(1, len(self.held))
        out, self.held = self.held[:n], self.held[n:]
        return out


class Tokens:
    """Answers "up" in two tokens, numbered by the turn, and keeps the requests."""

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.pending: list[Request] = []

    def submit(self, requests: Sequence[Request]) -> None:
        self.requests += requests
        self.pending += requests

    def poll(self) -> list[Reply]:
        pending, self.pending = self.pending, []
        return [
            Reply(
                key=r.key,
                response=say("up"),
                finish="stop",
                prompt_ids=[*(r.context_ids or []), 7],
                completion_ids=[8, 9],
                logprobs=[-0.5, -0.25],
            )
            for r in pending
        ]


def test_a_turn_joins_what_was_seen_said_and_gained():
    (t,) = play(ScriptedPolicy([say("up"), "<action>sideways</action>", say("up")]), episodes(1))
    assert (t.env_id, t.task_id, t.dataset, t.split, t.group, t.copy) == (
        ID,
        "train/1",
        "generated",
        "train",
        1,
        0,
    )
    assert (t.stop, t.success, t.score, t.error) == ("terminated", True, 1.0, "")
    assert [turn.anchor for turn in t.turns] == ["0 of 2", "1 of 2", "1 of 2"]
    assert [turn.action for turn in t.turns] == ["up", "sideways", "up"]
    assert [turn.env_reward for turn in t.turns] == [-0.25, -0.25, 1.0]
    assert [turn.format_penalty for turn in t.turns] == [0.0, 0.1, 0.0]
    assert [turn.format_valid for turn in t.turns] == [True, False, True]
    assert [turn.action_valid for turn in t.turns] == [True, False, True]
    assert t.env_return == 0.5
    assert "1 of 2" in str(t.turns[2].messages[-1]["content"])


def test_trajectories_come_in_the_order_of_the_episodes_with_fewer_slots_than_episodes():
    order = episodes(2, 0, 1, 5, 4, 3, 0)
    out = play(ScriptedPolicy(lambda _: say("up")), order, num_envs=2)
    assert [t.task_id for t in out] == [e.task_id for e in order]
    assert [len(t.turns) for t in out] == [3, 1, 2, 3, 2, 1, 1]


@pytest.mark.parametrize("num_envs", [1, 3, 16])
@pytest.mark.parametrize("shuffle", [0, 1])
def test_the_order_of_replies_and_the_number_of_slots_change_nothing(num_envs, shuffle):
    of = [Episode(task_id=f"train/{i}", group=i, copy=c) for i in range(4) for c in range(2)]
    policy = RandomPolicy(3, respond_in("strict", ID))
    expected = play(policy, of, num_envs=8, seed=5)
    assert play(Shuffling(policy, shuffle), of, num_envs=num_envs, seed=5) == expected
    assert len({tuple(turn.action for turn in t.turns) for t in expected}) > 1


def test_worker_processes_change_nothing():
    policy = RandomPolicy(3, respond_in("strict", ID))
    of = episodes(0, 1, 2, 3)
    assert play(policy, of, num_envs=3, workers=2) == play(policy, of)


class Counted(ScriptedPolicy):
    """Always says "up" and notes how many requests come at once."""

    def __init__(self) -> None:
        super().__init__(lambda _: say("up"))
        self.sizes: list[int] = []

    def submit(self, requests: Sequence[Request]) -> None:
        self.sizes.append(len(requests))
        super().submit(requests)


def test_all_free_slots_are_filled_and_all_ready_requests_go_out_together():
    policy = Counted()
    play(policy, episodes(0, 1, 2, 0, 0), num_envs=4)  # the fifth takes the place of a one-turn episode
    assert policy.sizes == [4, 3, 1]


def test_the_sampling_stream_is_a_function_of_seed_step_task_copy_and_turn():
    policy = Tokens()
    play(policy, [Episode(task_id="train/1", group=9, copy=4)], seed=5, step=2)
    assert [r.stream for r in policy.requests] == [derive("turn", 5, 2, "train/1", 4, k) for k in range(2)]


def test_tokens_are_kept_as_sampled():
    (t,) = play(Tokens(), episodes(0))
    (turn,) = t.turns
    assert (turn.prompt_ids, turn.completion_ids, turn.logprobs, turn.n_kept) == (
        [7],
        [8, 9],
        [-0.5, -0.25],
        2,
    )


def test_a_dialogue_carries_its_ids_on():
    policy = Tokens()
    (t,) = play(policy, episodes(2), window=None)
    assert [r.context_ids for r in policy.requests] == [None, [7, 8, 9], [7, 8, 9, 7, 8, 9]]
    assert t.turns[2].prompt_ids == [7, 8, 9, 7, 8, 9, 7]


def test_a_windowed_prompt_carries_no_ids_on():
    policy = Tokens()
    play(policy, episodes(2), window=1)
    assert [r.context_ids for r in policy.requests] == [None, None, None]


def test_the_step_limit_truncates():
    (t,) = play(ScriptedPolicy(lambda _: say("down")), episodes(0))
    assert (t.stop, t.success, len(t.turns)) == ("truncated", False, 4)


def test_an_empty_response_is_an_invalid_turn_and_no_way_out():
    (t,) = play(ScriptedPolicy([say("up"), ""]), episodes(2))
    assert (t.stop, t.success, len(t.turns)) == ("truncated", False, 4)
    for turn in t.turns[1:]:
        assert (turn.response, turn.action, turn.finish) == ("", "", "empty")
        assert (turn.format_valid, turn.action_valid) == (False, False)
        assert turn.format_penalty == 0.1
    assert t.turns[1].anchor == "1 of 3"


class Full(Tokens):
    """Has no room for a second turn."""

    def poll(self) -> list[Reply]:
        full = [r for r in self.pending if r.context_ids]
        self.pending = [r for r in self.pending if not r.context_ids]
        return super().poll() + [Reply(key=r.key, response="", finish="context_full") for r in full]


def test_a_prompt_without_room_ends_the_episode_without_a_turn():
    first, second = play(Full(), episodes(2, 0), window=None)
    assert (first.stop, len(first.turns)) == ("context_full", 1)
    assert (second.stop, len(second.turns)) == ("terminated", 1)


def test_a_full_dialogue_ends_the_episode():
    (t,) = play(ScriptedPolicy(lambda _: say("down")), episodes(0), window=None, max_chars=1)
    assert (t.stop, len(t.turns)) == ("context_full", 1)


def test_a_broken_env_ends_its_episode_and_no_other():
    def crash_after_one(request: Request) -> str:
        return say("crash" if request.info["anchor"] == "1 of 3" else "up")

    first, second = play(ScriptedPolicy(crash_after_one), episodes(2, 1))
    assert (first.stop, first.success, first.score, first.is_valid) == ("env_error", False, 0.0, False)
    assert "the env broke" in first.error
    assert first.content_hash
    assert [(t.action, t.env_reward) for t in first.turns] == [("up", -0.25), ("", 0.0)]
    assert (second.stop, second.success, second.error) == ("terminated", True, "")


def test_a_task_that_cannot_begin_is_an_env_error_without_turns():
    first, second = play(ScriptedPolicy(lambda _: say("up")), episodes(0, 1), num_envs=1, broken="train/0")
    assert (first.stop, first.turns, first.task_id) == ("env_error", (), "train/0")
    assert second.success


class Mute:
    def submit(self, requests: Sequence[Request]) -> None: ...

    def poll(self) -> list[Reply]:
        return []


class Babbling(Mute):
    def poll(self) -> list[Reply]:
        return [Reply(key=99, response="x", finish="stop")]


@pytest.mark.parametrize("policy", [Mute(), Babbling()])
def test_a_policy_that_does_not_answer_what_it_was_asked_is_an_error(policy):
    with pytest.raises(PolicyError, match="expected replies to some of the requests"):
        play(policy, episodes(0))


def test_progress_and_stats_count_episodes_and_turns():
    seen: list[tuple[int, int]] = []
    stats = RolloutStats()
    with closing(make_chat_vec(ID, 2)) as vec:
        for _ in range(2):
            rollout(
                vec,
                ScriptedPolicy(lambda _: say("up")),
                episodes(0, 1, 2),
                env_id=ID,
                seed=0,
                progress=lambda done, total: seen.append((done, total)),
                stats=stats,
            )
    assert seen == [(1, 3), (2, 3), (3, 3)] * 2
    assert stats.n_turns == 12
    assert 0 < stats.policy_s < stats.total_s


def test_no_episodes_are_no_trajectories():
    out: list[Trajectory] = play(Mute(), [])
    assert out == []


def test_every_episode_is_told_as_it_ends():
    told = []
    with closing(make_chat_vec(ID, 2)) as vec:
        episodes = [Episode(task_id=f"train/{i}", group=i) for i in (2, 0)]  # three turns, one turn
        played = rollout(
            vec,
            ScriptedPolicy(lambda _: say("up")),
            episodes,
            env_id=ID,
            seed=0,
            on_episode=lambda i, t: told.append((i, t)),
        )
    assert told == [(1, played[1]), (0, played[0])]


@pytest.mark.parametrize(
    ("window", "expected"),
    [(None, [1, 2, 3]), (0, [1, 1, 1]), (1, [1, 2, 2])],
)
def test_a_request_brings_the_pictures_of_its_whole_prompt(window, expected):
    policy = Tokens()
    with closing(
        make_chat_vec("ARL/Sokoban-v0", 1, obs_mode="image", max_steps=3, window=window, format="none")
    ) as vec:
        episode = Episode(task_id="train-000000", group=0)
        (t,) = rollout(vec, policy, [episode], env_id="ARL/Sokoban-v0", seed=0)
    assert [len(r.pictures) for r in policy.requests] == expected
    assert policy.requests[2].pictures[-1] is pictures_of(t.turns[2].messages)[-1]
