"""Rules about how episodes go."""

import json
from itertools import zip_longest
from typing import Any

from arl_gym.checker.probe import (
    Mismatch,
    Moment,
    NotApplicable,
    Probe,
    max_steps,
    require,
    require_same,
    require_same_play,
    reset,
    step,
    takes_text,
)
from arl_gym.worker import one_line

_GARBAGE = ("", " \n\t", "no such action", "<|im_end|><|endoftext|>", "好🙂\x00\u202e", "x" * 100_000)
_MANY_RESETS = 20
"""Resets in which an environment of several tasks must have given a second one."""
_FEW_ACTIONS = 10
"""How many admissible actions of a first moment are tried."""


def the_same_seed_plays_the_same_episode(probe: Probe) -> None:
    """The same seed and actions play the same episode.

    Draw only from `self.np_random`, after `super().reset(seed=seed)`.
    """
    with probe.env() as one, probe.env() as two:
        for seed in probe.seeds():
            moments, actions = probe.play(one, seed)
            require_same_play(moments, probe.play(two, seed, actions)[0], f"seed {seed}")


def a_reset_leaves_nothing_of_the_episode_before(probe: Probe) -> None:
    """A reset leaves nothing of the episodes before.

    Set everything that an episode changes anew in `reset`, in the middle of an episode too.
    """
    with probe.env() as fresh, probe.env() as used:
        actions = probe.play(used, probe.seed + 1)[1]
        probe.play(used, probe.seed + 1, actions[: len(actions) // 2])
        moments, actions = probe.play(fresh, probe.seed)
        require_same_play(moments, probe.play(used, probe.seed, actions)[0], "after other episodes")


def environments_side_by_side_do_not_disturb_one_another(probe: Probe) -> None:
    """Environments side by side do not disturb one another.

    Keep what changes on the instance, not on the class or the module.
    """
    seeds = (probe.seed, probe.seed + 1)
    with probe.env() as one, probe.env() as two:
        alone = [probe.play(one, seed) for seed in seeds]
        both = [[reset(env, seed)] for env, seed in zip((one, two), seeds, strict=True)]
        for actions in zip_longest(alone[0][1], alone[1][1]):
            for env, moments, action in zip((one, two), both, actions, strict=True):
                if action is not None:
                    moments.append(step(env, action))
        for (expected, _), got in zip(alone, both, strict=True):
            require_same_play(expected, got, "beside another environment")


def resets_without_a_seed_go_on_with_the_stream(probe: Probe) -> None:
    """Resets without a seed go on with the stream of the last seed.

    `seed=None` must neither start the stream again nor draw a new one.
    """
    with probe.env() as one, probe.env() as two:
        two.reset()  # the first reset may come without a seed, and must not matter after one with it
        drawn = [[reset(env, probe.seed), *(reset(env) for _ in range(3))] for env in (one, two)]
        for k, (x, y) in enumerate(zip(*drawn, strict=True)):
            require_same(x, y, f"seed {probe.seed}, {k} resets later")
        task_ids = getattr(one.unwrapped, "task_ids", None)
        if task_ids is None or len(task_ids()) == 1:
            return
        first = drawn[0][0].info["task_id"]
        others = (reset(one).info["task_id"] != first for _ in range(_MANY_RESETS))
        require(any(others), "another task by and by", f"{_MANY_RESETS} times {first!r}")


def garbage_costs_a_step_and_never_raises(probe: Probe) -> None:
    """Any string is a legal action: garbage costs a step and never raises."""
    with probe.env() as env:
        if not takes_text(env):
            raise NotApplicable("its action space does not take every string")
        limit = max_steps(env)
        env.reset(seed=probe.seed)
        for t in range(limit or len(_GARBAGE)):
            action = _GARBAGE[t % len(_GARBAGE)]
            try:
                moment = step(env, action)
            except Exception as err:
                raise Mismatch(
                    f"expected no exception, got {one_line(err)} (action {action[:40]!r})"
                ) from err
            if moment.is_last:
                return
        require(limit is None, f"the end after {limit} garbage actions", "a running episode")


def an_action_that_is_no_string_raises_and_costs_nothing(probe: Probe) -> None:
    """An action that is no string raises, and costs no step.

    It is a mistake of the program around the environment, never of the agent.
    """
    with probe.base() as one, probe.base() as two:
        if not takes_text(one):
            raise NotApplicable("its action space does not take every string")
        moments, actions = probe.play(one, probe.seed)
        two.reset(seed=probe.seed)
        for wrong in (None, 7, ["a list"]):
            _require_raises(two, wrong, f"step({wrong!r})")
        require_same(moments[1], step(two, actions[0]), "the next step after it")


def _require_raises(env: Any, action: Any, what: str) -> None:
    try:
        env.step(action)
    except Exception:
        return
    raise Mismatch(f"expected an exception from {what}, got a result")


def admissible_actions_are_valid(probe: Probe) -> None:
    """An action that is listed as admissible is valid."""
    with probe.env() as env:
        info = reset(env, probe.seed).info
        actions = [a for a in info.get("admissible_actions", []) if env.action_space.contains(a)]
        if not actions or "action_valid" not in info:
            raise NotApplicable("its infos list no admissible_actions with an action_valid")
        for action in actions[:_FEW_ACTIONS]:
            env.reset(seed=probe.seed)
            valid = step(env, action).info["action_valid"]
            require(valid is True, f"info['action_valid'] after {action!r}", valid, "step 1")


def an_episode_ends_once_and_in_time(probe: Probe) -> None:
    """An episode is terminated or truncated, not both, and in time."""
    with probe.env() as env:
        limit = max_steps(env)
        for seed in probe.seeds():
            moments, actions = probe.play(env, seed)
            last = moments[-1]
            require(not (last.terminated and last.truncated), "terminated or truncated", "both")
            in_time = limit is None or last.is_last
            require(in_time, f"the end after {limit} steps", f"{len(actions)} steps and no end")


def a_step_needs_a_running_episode(probe: Probe) -> None:
    """A step before the first reset and after the end raises.

    Keep in the environment whether an episode runs.
    """
    with probe.base() as env:
        env.action_space.seed(probe.seed)
        _require_raises(env, env.action_space.sample(), "step() before the first reset")
    with probe.base() as env:
        moments, actions = probe.play(env, probe.seed)
        if not moments[-1].is_last:
            raise NotApplicable(f"no episode ended within {len(actions)} steps")
        _require_raises(env, actions[-1], "step() after the end")


def a_snapshot_returns_to_its_moment(probe: Probe) -> None:
    """A snapshot survives JSON and returns to its moment, from where play goes on alike."""
    with probe.base_with("get_state", "set_state") as one, probe.base() as two:
        for seed in probe.seeds():
            moments, actions = probe.play(one, seed)
            for k in {0, len(actions) // 2}:
                probe.play(one, seed, actions[:k])
                state = one.get_state()
                text = json.dumps(state)
                step(one, actions[k])
                require(json.dumps(state) == text, "a snapshot that stays as it is", state, "one step later")
                obs, info = two.set_state(json.loads(text))
                restored = Moment(obs, moments[k].reward, moments[k].terminated, moments[k].truncated, info)
                require_same(moments[k], restored, "after set_state")
                rest = [step(two, action) for action in actions[k:]]
                require_same_play(moments[k + 1 :], rest, "played on after set_state")


def a_snapshot_keeps_the_step_count(probe: Probe) -> None:
    """A snapshot keeps the step count: the episode is truncated when the first one would have been."""
    with probe.base_with("get_state", "set_state") as one, probe.base() as two:
        action = "no such action" if takes_text(one) else one.action_space.sample()
        moments = [reset(one, probe.seed)]
        while not moments[-1].is_last and len(moments) <= (max_steps(one) or 0):
            moments.append(step(one, action))
        if not moments[-1].truncated:
            raise NotApplicable("idling does not lead to the step limit")
        probe.play(one, probe.seed, [action] * (len(moments) - 2))
        two.set_state(json.loads(json.dumps(one.get_state())))
        truncated = step(two, action).truncated
        require(truncated, f"truncation at step {len(moments) - 1}", truncated, "after set_state")


def the_expert_succeeds(probe: Probe) -> None:
    """The expert succeeds, with actions of the action space."""
    with probe.base() as env:
        for seed in probe.seeds():
            moments = probe.play_by_expert(env, seed)
            success = moments[-1].info["success"]
            steps = f"{success} after {len(moments) - 1} steps"
            require(success is True, "success", steps, f"seed {seed}")


RULES = (
    the_same_seed_plays_the_same_episode,
    a_reset_leaves_nothing_of_the_episode_before,
    environments_side_by_side_do_not_disturb_one_another,
    resets_without_a_seed_go_on_with_the_stream,
    garbage_costs_a_step_and_never_raises,
    an_action_that_is_no_string_raises_and_costs_nothing,
    admissible_actions_are_valid,
    an_episode_ends_once_and_in_time,
    a_step_needs_a_running_episode,
    a_snapshot_returns_to_its_moment,
    a_snapshot_keeps_the_step_count,
    the_expert_succeeds,
)
