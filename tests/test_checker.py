import itertools
import pickle
import random
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from arl_gym import checker
from arl_gym.checker import check_text_env
from arl_gym.core import Outcome, Unicode
from arl_gym.errors import ArlGymError, ConformanceError
from tests.counting_env import CountingEnv, make_counting_env

OTHER_PROCESS = checker.another_process_plays_the_same_episode


@pytest.fixture
def in_process(monkeypatch):
    """Leave out the rule that starts a process: it costs most of the time."""
    monkeypatch.setattr(checker, "RULES", tuple(r for r in checker.RULES if r is not OTHER_PROCESS))


class Changed(CountingEnv):
    """A counting env whose step results go through `change`."""

    def change(self, obs, reward, terminated, truncated, info):
        return obs, reward, terminated, truncated, info

    def step(self, action):
        return self.change(*super().step(action))


class WrongSpace(CountingEnv):
    def __init__(self):
        super().__init__()
        self.observation_space = Unicode(max_length=2)


class WordyReward(Changed):
    def change(self, obs, reward, terminated, truncated, info):
        return obs, str(reward), terminated, truncated, info


class NoSuccess(CountingEnv):
    def _info(self):
        return {"task_id": self._task_id}


class NumpyBool(CountingEnv):
    def _success(self):
        return np.bool_(super()._success())


class HighScore(CountingEnv):
    def _score(self):
        return 2.0


class Unseeded(CountingEnv):
    counter = itertools.count()

    def _observation(self):
        return f"{next(self.counter)}"


class OtherTask(CountingEnv):
    def reset(self, *, seed=None, options=None):
        return super().reset(seed=seed, options={"task_id": "train/0"} if options else None)


class Squeamish(CountingEnv):
    def _apply(self, action):
        if action not in ("up", "wait"):
            raise KeyError(action)
        return super()._apply(action)


class Patient(CountingEnv):
    def step(self, action):
        self._n_steps = 0
        return super().step(action)


class Both(Changed):
    def change(self, obs, reward, terminated, truncated, info):
        return obs, reward, terminated or truncated, terminated or truncated, info


class Endless(CountingEnv):
    def step(self, action):
        self._running = True
        return super().step(action)


class Reused(CountingEnv):
    shared: dict[str, Any] = {}  # noqa: RUF012

    def _info(self):
        self.shared.update(super()._info())
        return self.shared


class SharedList(CountingEnv):
    moves = ["up", "wait"]  # noqa: RUF012

    def _admissible(self):
        return self.moves


class Reseeds(CountingEnv):
    def reset(self, *, seed=None, options=None):
        if seed is not None:
            random.seed(seed)
        return super().reset(seed=seed, options=options)


class NumpyGlobal(CountingEnv):
    def _apply(self, action):
        np.random.rand()  # noqa: NPY002
        return super()._apply(action)


class ClosesOnce(CountingEnv):
    is_open = True

    def close(self):
        if not self.is_open:
            raise OSError("already closed")
        self.is_open = False


class Forgetful:
    """Task ids that do not know themselves."""

    def __len__(self):
        return 3

    def __getitem__(self, k):
        return f"train/{range(3)[k]}"

    def __contains__(self, task_id):
        return True


class KnowsAnything(CountingEnv):
    def task_ids(self, split=None):
        return Forgetful()


class EagerIds(CountingEnv):
    ids = [f"train/{k % 3}" for k in range(10_001)]  # noqa: RUF012

    def task_ids(self, split=None):
        return self.ids


class OneSplit(CountingEnv):
    def task_ids(self, split=None):
        return super().task_ids("train")


class BadSnapshot(CountingEnv):
    def get_state(self):
        return {"task_id": self._task_id, "actions": []}


class NoJson(CountingEnv):
    def get_state(self):
        return {**super().get_state(), "when": b"now"}


class BadExpert(CountingEnv):
    def expert_action(self):
        return "wait"


class NoSpace(CountingEnv):
    def __init__(self):
        super().__init__()
        del self.observation_space


BROKEN = [
    (NoSpace, checker.gymnasium_accepts_the_environment, "must specify an observation space"),
    (WrongSpace, checker.observations_lie_in_their_space, "expected an observation in Unicode(2), got 0 of"),
    (WordyReward, checker.returned_values_have_their_exact_types, "expected a number as reward, got"),
    (
        NoSuccess,
        checker.infos_have_their_keys_and_exact_types,
        "expected info['success'], got ['task_id'] (step 0)",
    ),
    (
        NumpyBool,
        checker.infos_have_their_keys_and_exact_types,
        "info['success'] of <class 'bool'>, got <class 'numpy.bool",
    ),
    (HighScore, checker.infos_have_their_keys_and_exact_types, "info['score'] in [0, 1], got 2.0"),
    (Unseeded, checker.the_same_seed_plays_the_same_episode, "expected the same observation: "),
    (OtherTask, checker.a_task_id_gives_its_task, "got train/0"),
    (Squeamish, checker.garbage_costs_a_step_and_never_raises, "got KeyError: ''"),
    (
        Patient,
        checker.garbage_costs_a_step_and_never_raises,
        "the end after 5 garbage actions, got a running",
    ),
    (Both, checker.an_episode_ends_once_and_in_time, "expected terminated or truncated, got both"),
    (
        Patient,
        checker.an_episode_ends_once_and_in_time,
        "expected the end after 5 steps, got 5 steps and no end",
    ),
    (Endless, checker.stepping_after_the_end_raises, "expected an exception from step() after the end"),
    (Reused, checker.observations_and_infos_are_fresh_objects, "returned earlier, looked at later"),
    (
        SharedList,
        checker.observations_and_infos_are_fresh_objects,
        "expected a new object as admissible_actions",
    ),
    (Reseeds, checker.global_random_generators_are_left_alone, "expected the state of random as before"),
    (NumpyGlobal, checker.global_random_generators_are_left_alone, "expected the state of numpy.random as"),
    (ClosesOnce, checker.closing_twice_works, "got OSError: already closed"),
    (
        KnowsAnything,
        checker.task_ids_are_finite_lazy_and_stable,
        "'no such task' not in the sequence, got it is",
    ),
    (EagerIds, checker.task_ids_are_finite_lazy_and_stable, "expected a lazy sequence, got a list of 10001"),
    (OneSplit, checker.splits_share_no_task, "['train/0', 'train/1', 'train/2']"),
    (BadSnapshot, checker.a_snapshot_returns_to_its_moment, "after set_state"),
    (NoJson, checker.a_snapshot_returns_to_its_moment, "bytes is not JSON serializable"),
    (BadExpert, checker.the_expert_succeeds, "expected success, got False after 5 steps"),
]


@pytest.mark.usefixtures("in_process")
@pytest.mark.parametrize(
    ("env", "rule", "what"), BROKEN, ids=[f"{e.__name__}-{r.__name__}" for e, r, _ in BROKEN]
)
def test_an_env_that_breaks_a_rule_is_told_which_and_how(env, rule, what):
    with pytest.raises(ConformanceError) as caught:
        check_text_env(env)
    line = next(line for line in str(caught.value).split("\n") if rule.__doc__.removesuffix(".") in line)
    assert what in line


def test_every_rule_has_an_env_that_breaks_it():
    assert {rule for _, rule, _ in BROKEN} | {OTHER_PROCESS} == set(checker.RULES)


class HashOrder(CountingEnv):
    """What is seen depends on the hash seed of the process, as with the order of a set."""

    def _observation(self):
        return str(hash("up"))


def test_content_that_depends_on_the_process_is_found():
    with pytest.raises(
        ConformanceError, match="1 of 17 rules are broken:\n- Another process plays the same episode"
    ):
        check_text_env(HashOrder, episodes=1)


def test_a_good_env_passes_with_and_without_wrappers():
    check_text_env(make_counting_env)
    check_text_env(lambda: gym.wrappers.TimeLimit(CountingEnv(max_steps=50), 4), episodes=1)


class Foreign(gym.Env):
    """Somebody's env: only the required keys, no task list, no expert, no snapshot, no known length."""

    observation_space = action_space = Unicode()
    left = 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.task_id = (options or {}).get("task_id") or str(self.np_random.integers(9))
        self.left = 3
        return f"task {self.task_id}", {"task_id": self.task_id, "success": False}

    def step(self, action):
        if not self.left:
            raise ArlGymError("over")
        self.left -= 1
        done = not self.left
        return f"{self.left} left", 0.0, done, False, {"task_id": self.task_id, "success": done}


@pytest.mark.usefixtures("in_process")
def test_an_env_with_the_required_keys_only_passes():
    check_text_env(Foreign)


class Silent(CountingEnv):
    def expert_action(self):
        raise NotImplementedError

    def _apply(self, action):
        return Outcome(reward=0.0, terminated=False, valid=True)


@pytest.mark.usefixtures("in_process")
def test_an_env_without_an_expert_passes():
    check_text_env(Silent)


@pytest.mark.usefixtures("in_process")
def test_the_check_leaves_the_global_generators_where_they_were():
    before = random.getstate(), pickle.dumps(np.random.get_state())  # noqa: NPY002
    check_text_env(make_counting_env)
    assert before == (random.getstate(), pickle.dumps(np.random.get_state()))  # noqa: NPY002
