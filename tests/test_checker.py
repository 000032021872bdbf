import itertools
import pickle
import random
import subprocess
import threading
from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from arl_gym import checker
from arl_gym.checker import check_text_env, conformance, episodes, surroundings, tasks, values
from arl_gym.core import Outcome, Unicode
from arl_gym.errors import ArlGymError, ConfigError, ConformanceError
from arl_gym.rng import digest
from tests.counting_env import CountingEnv

OTHER_PROCESS = {
    surroundings.make_env_works_in_another_process,
    surroundings.another_process_plays_the_same_episode,
}


@pytest.fixture
def in_process(monkeypatch):
    """Leave out the rules that start a process: they cost most of the time."""
    monkeypatch.setattr(checker, "RULES", tuple(r for r in checker.RULES if r not in OTHER_PROCESS))


class Counting(CountingEnv):
    """A counting env that keeps all rules."""

    def _apply(self, action):
        return super()._apply(action)._replace(valid=action in ("up", "wait"))

    def _content_hash(self):
        return digest(self._task_id)


def make_wrapped():
    return gym.wrappers.OrderEnforcing(Counting())


class Changed(Counting):
    """A counting env whose step results go through `change`."""

    def change(self, obs, reward, terminated, truncated, info):
        return obs, reward, terminated, truncated, info

    def step(self, action):
        return self.change(*super().step(action))


class WrongSpace(Counting):
    def __init__(self):
        super().__init__()
        self.observation_space = Unicode(max_length=2)


class WordyReward(Changed):
    def change(self, obs, reward, terminated, truncated, info):
        return obs, str(reward), terminated, truncated, info


class NoSuccess(Counting):
    def _info(self):
        return {"task_id": self._task_id}


class NumpyBool(Counting):
    def _success(self):
        return np.bool_(super()._success())


class HighScore(Counting):
    def _score(self):
        return 2.0


class Unseeded(Counting):
    counter = itertools.count()

    def _observation(self):
        return f"{next(self.counter)}"


class OtherTask(Counting):
    def reset(self, *, seed=None, options=None):
        return super().reset(seed=seed, options={"task_id": "train/0"} if options else None)


class Squeamish(Counting):
    def _apply(self, action):
        if action not in ("up", "wait"):
            raise KeyError(action)
        return super()._apply(action)


class Patient(Counting):
    def step(self, action):
        self._n_steps = 0
        return super().step(action)


class Both(Changed):
    def change(self, obs, reward, terminated, truncated, info):
        return obs, reward, terminated or truncated, terminated or truncated, info


class Endless(Counting):
    def step(self, action):
        self._running = True
        return super().step(action)


class Reused(Counting):
    shared: dict[str, Any] = {}  # noqa: RUF012

    def _info(self):
        self.shared.update(super()._info())
        return self.shared


class SharedList(Counting):
    moves = ["up", "wait"]  # noqa: RUF012

    def _admissible(self):
        return self.moves


class Reseeds(Counting):
    def reset(self, *, seed=None, options=None):
        if seed is not None:
            random.seed(seed)
        return super().reset(seed=seed, options=options)


class NumpyGlobal(Counting):
    def _apply(self, action):
        np.random.rand()  # noqa: NPY002
        return super()._apply(action)


class ClosesOnce(Counting):
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


class KnowsAnything(Counting):
    def task_ids(self, split=None):
        return Forgetful()


class EagerIds(Counting):
    ids = [f"train/{k % 3}" for k in range(10_001)]  # noqa: RUF012

    def task_ids(self, split=None):
        return self.ids


class OneSplit(Counting):
    def task_ids(self, split=None):
        return super().task_ids("train")


class BadSnapshot(Counting):
    def get_state(self):
        return {"task_id": self._task_id, "actions": []}


class NoJson(Counting):
    def get_state(self):
        return {**super().get_state(), "when": b"now"}


class BadExpert(Counting):
    def expert_action(self):
        return "wait"


class NoSpace(Counting):
    def __init__(self):
        super().__init__()
        del self.observation_space


class Extra(Counting):
    """A counting env with one more key in its info."""

    def value(self):
        raise NotImplementedError

    def _extra_info(self):
        return {"extra": self.value()}


class NumpyScalar(Extra):
    def value(self):
        return np.float64(0.5)


class PictureInInfo(Extra):
    def value(self):
        return {"pages": [np.zeros((2, 2, 3), np.uint8)]}


class NumberAsKey(Extra):
    def value(self):
        return {1: "one"}


class NotANumber(Extra):
    def value(self):
        return float("nan")


class SometimesNone(Extra):
    def value(self):
        return "" if self.count else None


class ChangingTask(Counting):
    def _task(self):
        return f"Count {self.goal - self.count} more."


class Remembers(Counting):
    n_resets = 0

    def _begin(self, task_id):
        self.n_resets += self.count > 0
        super()._begin(task_id)

    def _observation(self):
        return "again" if self.n_resets else "new"


class SharedCount(Counting):
    shown = [0]  # noqa: RUF012

    def _begin(self, task_id):
        super()._begin(task_id)
        self.shown[0] = 0

    def _apply(self, action):
        self.shown[0] += 1
        return super()._apply(action)

    def _observation(self):
        return str(self.shown[0])


class Restarts(Counting):
    last_seed = None

    def reset(self, *, seed=None, options=None):
        self.last_seed = self.last_seed if seed is None else seed
        return super().reset(seed=self.last_seed, options=options)


class DrawsAnew(Counting):
    counter = itertools.count()

    def reset(self, *, seed=None, options=None):
        return super().reset(seed=next(self.counter) if seed is None else seed, options=options)


class Tolerant(Counting):
    def _check_action(self, action):
        pass

    def _apply(self, action):
        return super()._apply(str(action))


class CountsFirst(Counting):
    def step(self, action):
        self._n_steps += 1
        self.count += not isinstance(action, str)
        result = super().step(action)
        self._n_steps -= 1
        return result


class Boastful(Counting):
    def _admissible(self):
        return ["up", "fly"]


class EarlyBird(Counting):
    goal = 1

    def step(self, action):
        self._running = self._running or not self._task_id
        return super().step(action)

    def _begin(self, task_id):
        self.said = ""
        super()._begin(task_id)

    said, lock = "", None


class Recounts(Counting):
    def set_state(self, state):
        result = super().set_state(state)
        self._n_steps = 0
        return result


class LivingSnapshot(Counting):
    def get_state(self):
        return {"task_id": self._task_id, "actions": self._actions}


class FirstInstead(Counting):
    def reset(self, *, seed=None, options=None):
        known = not options or options["task_id"] in self.task_ids()
        return super().reset(seed=seed, options=options if known else {"task_id": "train/0"})


class NamesNothing(Counting):
    def reset(self, *, seed=None, options=None):
        if options and options["task_id"] not in self.task_ids():
            raise KeyError("task_id")
        return super().reset(seed=seed, options=options)


class SameContent(Counting):
    def _content_hash(self):
        return digest(f"goal {self.goal}")


class NoText(Counting):
    def _ansi(self):
        return None


class FloatPicture(Counting):
    def _rgb(self):
        return np.zeros((2, 2, 3))


class MovesWhenDrawn(Counting):
    def _ansi(self):
        self.said = "I was drawn."
        return "drawn"


class OtherFrame(Counting):
    counter = itertools.count()

    def _ansi(self):
        return str(next(self.counter))


class AnyMode(Counting):
    def __init__(self, *, render_mode=None):
        super().__init__()
        self.render_mode = render_mode


class OneBoard(Counting):
    """All observations are one array."""

    def __init__(self):
        super().__init__()
        self.observation_space = gym.spaces.Box(0, 9, (1,), np.uint8)
        self.board = np.zeros(1, np.uint8)

    def _observation(self):
        self.board[0] = self.count
        return self.board


class Started(Counting):
    """Starts something that its close does not end."""

    kept: list[Any] = []  # noqa: RUF012

    def _begin(self, task_id):
        super()._begin(task_id)
        self.kept.append(self.start())

    def start(self):
        raise NotImplementedError


class LeavesAThread(Started):
    end = threading.Event()

    def start(self):
        thread = threading.Thread(target=self.end.wait, name="left-over", daemon=True)
        thread.start()
        return thread


class LeavesAProcess(Started):
    def start(self):
        return subprocess.Popen(["cat"], stdin=subprocess.PIPE)


class LeavesAFile(Started):
    def start(self):
        return open(__file__)


BROKEN = [
    (NoSpace, values.gymnasium_accepts_the_environment, "must specify an observation space"),
    (WrongSpace, values.observations_lie_in_their_space, "expected an observation in Unicode(2), got 0 of"),
    (WordyReward, values.returned_values_have_their_exact_types, "expected a number as reward, got"),
    (
        NoSuccess,
        values.infos_have_their_keys_and_exact_types,
        "expected info['success'], got ['task_id'] (step 0)",
    ),
    (
        NumpyBool,
        values.infos_have_their_keys_and_exact_types,
        "info['success'] of <class 'bool'>, got <class 'numpy.bool",
    ),
    (HighScore, values.infos_have_their_keys_and_exact_types, "info['score'] in [0, 1], got 2.0"),
    (Unseeded, episodes.the_same_seed_plays_the_same_episode, "expected the same observation: "),
    (OtherTask, tasks.a_task_id_gives_its_task, "got train/0"),
    (Squeamish, episodes.garbage_costs_a_step_and_never_raises, "got KeyError: ''"),
    (
        Patient,
        episodes.garbage_costs_a_step_and_never_raises,
        "the end after 5 garbage actions, got a running",
    ),
    (Both, episodes.an_episode_ends_once_and_in_time, "expected terminated or truncated, got both"),
    (
        Patient,
        episodes.an_episode_ends_once_and_in_time,
        "expected the end after 5 steps, got 5 steps and no end",
    ),
    (Endless, episodes.a_step_needs_a_running_episode, "expected an exception from step() after the end"),
    (Reused, values.observations_and_infos_are_fresh_objects, "returned earlier, looked at later"),
    (
        SharedList,
        values.observations_and_infos_are_fresh_objects,
        "expected a new object as admissible_actions",
    ),
    (NumpyScalar, values.infos_survive_json, "info['extra'] of a JSON type, got <class 'numpy.float64'>"),
    (
        PictureInInfo,
        values.infos_survive_json,
        "info['extra']['pages'][0] of a JSON type, got <class 'numpy.nd",
    ),
    (NumberAsKey, values.infos_survive_json, "expected strings as keys of info['extra'], got 1"),
    (NotANumber, values.infos_survive_json, "expected a finite info['extra'], got nan"),
    (SometimesNone, values.info_values_keep_their_type, "of <class 'NoneType'>, got <class 'str'>"),
    (ChangingTask, values.an_episode_keeps_its_task, "expected info['task'] = 'Count"),
    (Remembers, episodes.a_reset_leaves_nothing_of_the_episode_before, "'new', got 'again' (after other"),
    (SharedCount, episodes.environments_side_by_side_do_not_disturb_one_another, "beside another env"),
    (Restarts, episodes.resets_without_a_seed_go_on_with_the_stream, "another task by and by, got 20 times"),
    (DrawsAnew, episodes.resets_without_a_seed_go_on_with_the_stream, "seed 0, 1 resets later"),
    (Tolerant, episodes.an_action_that_is_no_string_raises_and_costs_nothing, "exception from step(None)"),
    (CountsFirst, episodes.an_action_that_is_no_string_raises_and_costs_nothing, "the next step after it"),
    (Boastful, episodes.admissible_actions_are_valid, "info['action_valid'] after 'fly', got False"),
    (EarlyBird, episodes.a_step_needs_a_running_episode, "exception from step() before the first reset"),
    (Recounts, episodes.a_snapshot_keeps_the_step_count, "expected truncation at step 5, got False"),
    (LivingSnapshot, episodes.a_snapshot_returns_to_its_moment, "a snapshot that stays as it is, got {"),
    (FirstInstead, tasks.an_unknown_task_is_named, "for the task 'no such task', got the task 'train/0'"),
    (NamesNothing, tasks.an_unknown_task_is_named, "an error that names 'no such task', got KeyError: 'task"),
    (SameContent, tasks.splits_share_no_content, "other content in val, got 'val/0' like 'train/0' of train"),
    (NoText, surroundings.declared_render_modes_are_honoured, "a string from render(), got <class 'NoneT"),
    (
        FloatPicture,
        surroundings.declared_render_modes_are_honoured,
        "uint8 of shape (H, W, 3) from render(), g",
    ),
    (MovesWhenDrawn, surroundings.declared_render_modes_are_honoured, "(drawn as ansi, step 1)"),
    (OtherFrame, surroundings.declared_render_modes_are_honoured, "expected the same frame again"),
    (AnyMode, surroundings.an_unknown_render_mode_is_refused, "for render_mode='no such mode', got an env"),
    (DrawsAnew, surroundings.vector_runs_from_one_seed_are_alike, "the same observations: "),
    (OneBoard, surroundings.autoreset_keeps_the_last_observation, "(autoreset SAME_STEP)"),
    (LeavesAThread, surroundings.closing_leaves_nothing_behind, "got thread left-over"),
    (LeavesAProcess, surroundings.closing_leaves_nothing_behind, "(cat)"),
    (LeavesAFile, surroundings.closing_leaves_nothing_behind, "test_checker.py"),
    (Reseeds, surroundings.global_random_generators_are_left_alone, "expected the state of random as before"),
    (
        NumpyGlobal,
        surroundings.global_random_generators_are_left_alone,
        "expected the state of numpy.random as",
    ),
    (ClosesOnce, surroundings.closing_works_at_any_time_and_twice, "got OSError: already closed"),
    (
        KnowsAnything,
        tasks.task_ids_are_finite_lazy_and_stable,
        "'no such task' not in the sequence, got it is",
    ),
    (EagerIds, tasks.task_ids_are_finite_lazy_and_stable, "expected a lazy sequence, got a list of 10001"),
    (OneSplit, tasks.splits_share_no_task, "['train/0', 'train/1', 'train/2']"),
    (BadSnapshot, episodes.a_snapshot_returns_to_its_moment, "after set_state"),
    (NoJson, episodes.a_snapshot_returns_to_its_moment, "bytes is not JSON serializable"),
    (BadExpert, episodes.the_expert_succeeds, "expected success, got False after 5 steps"),
]


@pytest.mark.parametrize(
    ("env", "rule", "what"), BROKEN, ids=[f"{e.__name__}-{r.__name__}" for e, r, _ in BROKEN]
)
def test_an_env_that_breaks_a_rule_is_told_which_and_how(monkeypatch, env, rule, what):
    monkeypatch.setattr(checker, "RULES", (rule,))
    (finding,) = conformance(env).broken
    assert finding.title == rule.__doc__.partition("\n")[0].removesuffix(".")
    assert what in finding.detail


def test_every_rule_has_an_env_that_breaks_it():
    beside = OTHER_PROCESS | {surroundings.the_spec_survives_pickle_and_json}
    assert {rule for _, rule, _ in BROKEN} | beside == set(checker.RULES)


@pytest.fixture(autouse=True)
def _end_what_was_left():
    LeavesAThread.end.clear()
    yield
    LeavesAThread.end.set()
    for left in Started.kept:
        if isinstance(left, subprocess.Popen):
            left.communicate()
        elif not isinstance(left, threading.Thread):
            left.close()
    Started.kept.clear()


class HashOrder(Counting):
    """What is seen depends on the hash seed of the process, as with the order of a set."""

    def _observation(self):
        return str(hash("up"))


@pytest.mark.parametrize("fixed", [None, "1"])
def test_content_that_depends_on_the_process_is_found(monkeypatch, fixed):
    if fixed is not None:
        monkeypatch.setenv("PYTHONHASHSEED", fixed)
    (finding,) = conformance(HashOrder, episodes=1).broken
    assert finding.title == "Another process plays the same episode"
    assert "(seed 0, another process, step 0)" in finding.detail
    assert "arl_gym.rng.derive" in finding.hint


def test_a_make_env_that_cannot_travel_is_found():
    lock = threading.Lock()

    def make():
        with lock:
            return Counting()

    report = conformance(make, episodes=1)
    assert [f.title for f in report.broken] == ["`make_env` works in another process"]
    assert "cannot pickle '_thread.lock' object" in report.broken[0].detail
    untried = {f.title: f.detail for f in report.not_tried}
    assert untried["Another process plays the same episode"] == "make_env does not work there"


def test_an_id_that_only_this_process_knows_is_found(monkeypatch):
    monkeypatch.setattr(gym.envs.registration, "registry", dict(gym.registry))
    gym.register("Test/Counting-v1", f"{__name__}:Counting")
    (finding,) = conformance(lambda: gym.make("Test/Counting-v1"), episodes=1).broken
    assert finding.title == "`make_env` works in another process"
    assert "NamespaceNotFound" in finding.detail


class Registered(Counting):
    def __init__(self, *, note: object = "", render_mode=None):
        super().__init__(render_mode=render_mode)
        self.note = note

    def _task(self):
        return f"{self.note}"


@pytest.mark.usefixtures("in_process")
@pytest.mark.parametrize(
    ("entry_point", "note", "what"),
    [
        (Registered, "", "Callable found in Test/Registered-v0"),
        (f"{__name__}:Registered", b"bytes", "not JSON serializable"),
        (f"{__name__}:Registered", (1, 2), "info['task'] as before: '(1, 2)', got '[1, 2]' (made from JSON)"),
        (f"{__name__}:Registered", [1, 2], None),
    ],
)
def test_a_spec_that_does_not_survive_json_is_found(monkeypatch, entry_point, note, what):
    monkeypatch.setattr(gym.envs.registration, "registry", dict(gym.registry))
    gym.register("Test/Registered-v0", entry_point)
    report = conformance(lambda **kw: gym.make("Test/Registered-v0", note=note, **kw), episodes=1)
    assert report.name == "Test/Registered-v0"
    if what is None:
        assert report.broken == []
    else:
        (finding,) = report.broken
        assert finding.title.startswith("Its spec survives")
        assert what in finding.detail


def test_a_good_env_passes_with_and_without_wrappers():
    check_text_env(Counting)
    check_text_env(make_wrapped, episodes=1)
    check_text_env(lambda: gym.wrappers.TimeLimit(Counting(max_steps=50), 4), episodes=1)


def test_all_rules_are_tried_on_an_env_of_a_spec(monkeypatch):
    monkeypatch.setattr(gym.envs.registration, "registry", dict(gym.registry))
    gym.register("Test/Counting-v1", f"{__name__}:Counting")
    report = conformance(partial(gym.make, gym.spec("Test/Counting-v1")))
    assert report.broken == report.not_tried == []


class Foreign(gym.Env):
    """Somebody's env: only the required keys, no task list, no expert, no snapshot, no known length."""

    observation_space = action_space = Unicode()
    left = 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.task_id = str(self.np_random.integers(9))
        self.left = 3
        return f"task {self.task_id}", {"task_id": self.task_id, "success": False}

    def step(self, action):
        if not self.left or not isinstance(action, str):
            raise ArlGymError("over")
        self.left -= 1
        done = not self.left
        return f"{self.left} left", 0.0, done, False, {"task_id": self.task_id, "success": done}


@pytest.mark.usefixtures("in_process")
def test_an_env_with_the_required_keys_only_passes_and_hears_what_was_not_tried():
    check_text_env(Foreign)
    reasons = {f.title.partition(":")[0]: f.detail for f in conformance(Foreign).not_tried}
    assert reasons == {
        "An action that is listed as admissible is valid": "its infos list no admissible_actions with an "
        "action_valid",
        "A snapshot survives JSON and returns to its moment, from where play goes on alike": "it has no "
        "get_state()",
        "A snapshot keeps the step count": "it has no get_state()",
        "The expert succeeds, with actions of the action space": "it has no expert_action()",
        '`reset(options={"task_id"': "it has no task_ids()",  # two rules
        "`task_ids()` is finite, lazy, stable and knows its ids": "it has no task_ids()",
        "No task id is in two splits": "it has no task_ids()",
        "No content is in two splits, by `content_hash`": "it has no task_ids()",
        "Its spec survives pickling and JSON, and makes the same environment again": "it was not made by "
        "gym.make",
        'Declared render modes give a string ("ansi") or a picture ("rgb_array"), and drawing changes '
        "nothing": "it declares neither ansi nor rgb_array",
        "An unknown render mode is refused when the environment is made": "Foreign takes no render_mode",
    }


class OneSplitOnly(Counting):
    """Knows no other split; its episodes are too long to be played to the end."""

    def __init__(self, *, split="train"):
        if split != "train":
            raise ConfigError(f"unknown split {split!r}")
        super().__init__(max_steps=100_000)

    def task_ids(self, split=None):
        if split not in (None, "train"):
            raise ConfigError(f"unknown split {split!r}")
        return super().task_ids("train")

    def _begin(self, task_id):
        super()._begin(task_id)
        self.goal = 700

    def _admissible(self):
        return ["wait"]


@pytest.mark.usefixtures("in_process")
def test_a_single_split_and_a_long_episode_leave_rules_untried():
    report = conformance(OneSplitOnly, episodes=1)
    assert report.broken == []
    reasons = [f.detail for f in report.not_tried]
    assert reasons.count("it has no two splits") == 2
    assert reasons.count("no episode ended within 200 steps") == 2
    assert reasons.count("idling does not lead to the step limit") == 1


class Silent(Counting):
    def expert_action(self):
        raise NotImplementedError

    def _apply(self, action):
        return Outcome(reward=0.0, terminated=False, valid=True)


@pytest.mark.usefixtures("in_process")
def test_an_env_without_an_expert_passes():
    check_text_env(Silent)


class Numbers(Counting):
    def __init__(self):
        super().__init__()
        self.action_space = gym.spaces.Discrete(2)

    def _check_action(self, action):
        pass

    def _apply(self, action):
        return super()._apply(("up", "wait")[action])

    def expert_action(self):
        return 0


@pytest.mark.usefixtures("in_process")
def test_rules_about_strings_are_not_tried_on_numbers():
    report = conformance(Numbers)
    assert report.broken == []
    reasons = [f.detail for f in report.not_tried]
    assert reasons.count("its action space does not take every string") == 2
    assert "make_env passes no render_mode on" not in str(report)  # its constructor takes none
    assert "Numbers takes no render_mode" in reasons


def test_a_function_that_passes_no_keyword_on_is_told(in_process):
    report = conformance(make_wrapped, episodes=1)
    said = "make_env passes no split on: give the class itself, or a registered id"
    assert said in [f.detail for f in report.not_tried]


@pytest.mark.usefixtures("in_process")
def test_the_report_is_a_table_and_the_exception_lists_what_is_broken():
    report = conformance(HighScore, episodes=1)
    n = len(checker.RULES)
    assert str(report).split("\n")[0] == f"HighScore: {n - 2} rules hold, 1 broken, 1 not tried"
    assert "\n    ok  Every observation lies in the observation space\n" in str(report)
    assert (
        "\n  FAIL  The info has its keys, each with its exact type, on every reset and step\n"
        "        expected info['score'] in [0, 1], got 2.0 (step 0)\n"
        "        `task_id` and `success` are needed; `arl_gym.core.INFO_TYPES` lists the others.\n"
    ) in str(report)
    assert "\n     -  Its spec survives pickling" in str(report)
    with pytest.raises(ConformanceError) as caught:
        check_text_env(HighScore, episodes=1)
    assert str(caught.value) == (
        f"HighScore: {n - 2} rules hold, 1 broken, 1 not tried\n"
        "- The info has its keys, each with its exact type, on every reset and step: "
        "expected info['score'] in [0, 1], got 2.0 (step 0)\n"
        "  `task_id` and `success` are needed; `arl_gym.core.INFO_TYPES` lists the others."
    )


@pytest.mark.parametrize(
    ("make", "what"),
    [(Counting(), "makes an environment, got <"), (dict, "must make a gymnasium.Env, got dict")],
)
def test_what_makes_no_environment_is_refused(make, what):
    with pytest.raises(ConfigError, match=what):
        check_text_env(make)


def test_what_make_env_raises_is_raised():
    with pytest.raises(ConfigError, match="max_steps must be"):
        check_text_env(lambda: Counting(max_steps=0))


@pytest.mark.usefixtures("in_process")
def test_the_check_leaves_the_global_generators_where_they_were():
    before = random.getstate(), pickle.dumps(np.random.get_state())  # noqa: NPY002
    check_text_env(Counting)
    assert before == (random.getstate(), pickle.dumps(np.random.get_state()))  # noqa: NPY002
