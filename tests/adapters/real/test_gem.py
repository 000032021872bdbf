"""The adapter in GEM's own machinery (gem-llm): `gem.make`, `gem.make_vec` and GEM's wrappers."""

import copy
import inspect
import random
from importlib import import_module

import gem
import pytest
from gem.vector.vector_env import AutoresetMode
from gem.wrappers.wrapper_factory import get_wrapper_fns

from arl_gym.adapters.gem import GemEnv, register
from arl_gym.adapters.tasks import task_dataset
from tests.adapters import peer_gem
from tests.adapters.examples import run_example
from tests.adapters.generators import states_of_the_process
from tests.adapters.page import run_section
from tests.adapters.scripted import FIRST_TASKS, native_episodes, response_to, rewards_of
from tests.agents.counting import say

SOKOBAN = "arl:Sokoban-v0"

register()


def play_through(vec, env_id):
    """Play one episode in each slot; return rewards and last infos, and step only those that go on."""
    _, infos = vec.reset()
    going = dict(enumerate(infos))
    rewards: list[list[float]] = [[] for _ in infos]
    final = {}
    while going:
        said = {i: response_to(env_id, info) for i, info in going.items()}
        _, gained, terminated, truncated, infos = vec.step(said)
        for i, gain, over, info in zip(said, gained, terminated | truncated, infos, strict=True):
            rewards[i].append(float(gain))
            going[i] = info
            if over:
                final[i] = info["final_info"]
                del going[i]
    return rewards, [final[i] for i in range(len(rewards))]


@pytest.mark.parametrize("async_mode", [False, True])
def test_twenty_episodes_bring_what_they_bring_in_our_own_loop(async_mode):
    stops, invalid = [], 0
    for env_id, n in FIRST_TASKS.items():
        ids = [row["task_id"] for row in task_dataset(env_id, n=n)]
        vec = gem.make_vec(
            [env_id.replace("ARL/", "arl:")] * n,
            vec_kwargs=[{"task_id": task_id} for task_id in ids],
            async_mode=async_mode,
            expert=True,
        )
        rewards, infos = play_through(vec, env_id)
        native = native_episodes(env_id, ids)
        assert rewards == [pytest.approx(rewards_of(t)) for t in native]
        for info, t in zip(infos, native, strict=True):
            record = info["record"]
            assert (record["task_id"], record["success"], record["stop"]) == (t.task_id, t.success, t.stop)
            assert record["anchors"] == [turn.anchor for turn in t.turns]
            assert record["format_valid"] == [turn.format_valid for turn in t.turns]
            invalid += record["format_valid"].count(False)
            stops.append(record["stop"])
    assert len(stops) == 20
    assert set(stops) == {"terminated", "truncated"}
    assert invalid > 0


@pytest.mark.parametrize("async_mode", [False, True])
def test_equal_seeds_play_equal_tasks_also_after_gems_resets(async_mode):
    def tasks():
        vec = gem.make_vec([SOKOBAN] * 3, async_mode=async_mode, seed=11, max_steps=2)
        _, infos = vec.reset()
        seen = [infos]
        for _ in range(6):
            random.random()
            seen.append(vec.step([say("up")] * 3)[4])
        return [[info["task_id"] for info in infos] for infos in seen]

    first = tasks()
    random.seed(99)
    assert tasks() == first
    assert len({task for row in first for task in row}) == 12  # 3 slots, 4 episodes


def test_gems_reset_of_the_whole_vector_takes_seeds():
    vec = gem.make_vec([SOKOBAN] * 2)
    _, infos = vec.reset(seed=40)
    expected = [gem.make(SOKOBAN, seed=seed).reset()[1]["task_id"] for seed in (40, 41)]
    assert [info["task_id"] for info in infos] == expected


def test_gem_resets_at_once_and_the_last_step_is_in_the_infos():
    vec = gem.make_vec([SOKOBAN] * 2, vec_kwargs=[{"max_steps": 1}, {"max_steps": 9}])
    vec.reset()
    obs, _, terminated, truncated, infos = vec.step(["nonsense"] * 2)
    assert list(terminated) == [False, False]
    assert list(truncated) == [True, False]
    assert "You play Sokoban" in obs[0]  # the next episode
    assert "step 1" in infos[0]["final_obs"]
    assert infos[0]["final_info"]["record"]["stop"] == "truncated"
    assert "final_obs" not in infos[1]


@pytest.mark.parametrize("async_mode", [False, True])
def test_gems_other_way_to_reset_keeps_the_last_observation(async_mode):
    vec = gem.make_vec([SOKOBAN], async_mode=async_mode, max_steps=1)
    vec.autoreset_mode = AutoresetMode.NEXT_STEP
    vec.reset()
    obs, _, _, truncated, infos = vec.step(["nonsense"])
    assert truncated[0]
    assert "step 1" in obs[0]
    assert infos[0]["record"]["stop"] == "truncated"
    obs, rewards, _, truncated, _ = vec.step([say("up")])
    assert (rewards[0], truncated[0]) == (0.0, False)
    assert "You play Sokoban" in obs[0]


def test_a_part_of_the_slots_can_be_stepped():
    vec = gem.make_vec([SOKOBAN] * 3, async_mode=True, seed=2)
    vec.reset()
    obs, rewards, *_, infos = vec.step({2: say("up"), 0: "nonsense"})
    assert len(obs) == len(infos) == 2
    assert list(rewards) == pytest.approx([-0.1, -0.2])  # in the order asked, the second with a penalty
    assert "step 2" in vec.step({0: say("up")})[0][0]


def test_gems_wrappers_join_the_dialogue():
    env = gem.make(SOKOBAN, seed=4)
    for wrap in get_wrapper_fns("concat_with_action,episode_tracking"):
        env = wrap(env)
    first, info = env.reset()
    assert info["step_counter"] == 0
    second, reward, _, _, info = env.step(say("up"))
    assert second.startswith(f"{first}{say('up')}\n")
    assert "Board after step 1" in second
    assert (info["step_counter"], info["cumulative_rewards"]) == (1, reward)
    assert info["success"] is False
    again, _ = env.reset()
    assert "You play Sokoban" in again
    assert say("up") not in again


def test_gems_wrappers_keep_of_a_turn_what_the_environment_read():
    env = get_wrapper_fns("concat_with_action")[0](gem.make("arl:TIRMath-v0"))
    env.reset()
    turn = "Let me see.\n```python\nprint(6 * 7)\n```"
    obs, *_ = env.step(f"{turn} and then some more text")
    assert turn in obs
    assert "42" in obs
    assert "some more text" not in obs


def test_copies_of_a_wrapped_environment_are_a_group():
    parent = get_wrapper_fns("concat_with_action")[0](gem.make(SOKOBAN, seed=4))
    members = [copy.deepcopy(parent) for _ in range(3)]
    assert len({member.reset()[0] for member in members}) == 1
    middle = copy.deepcopy(members[0])
    assert middle.step(say("up"))[:2] == members[0].step(say("up"))[:2]
    assert members[0].unwrapped is not members[1].unwrapped


def test_the_generators_of_the_process_stay_as_they_are():
    before = states_of_the_process()
    vec = gem.make_vec([SOKOBAN] * 2, max_steps=1)
    vec.reset(seed=3)
    vec.step([say("up")] * 2)
    assert states_of_the_process() == before


def test_gem_make_keeps_its_attributes_to_itself():
    env = gem.make(SOKOBAN, seed=4)
    assert (env.env_id, env.entry_point) == (SOKOBAN, GemEnv)
    assert copy.deepcopy(env).env_id == SOKOBAN


@pytest.mark.parametrize(
    ("module", "names"),
    [("gem", ["Env", "register", "make"]), ("gem.envs.registration", ["ENV_REGISTRY"])],
)
def test_the_stand_in_has_only_what_gem_has(module, names):
    real, stand_in = import_module(module), peer_gem.modules()[module]
    public = {name for name in vars(stand_in) if not name.startswith("_")}
    assert public - {"envs", "registration"} == set(names)
    for name in names:
        theirs, ours = getattr(real, name), getattr(stand_in, name)
        if not callable(theirs):
            assert type(ours) is type(theirs)
        elif not inspect.isclass(theirs):
            assert list(inspect.signature(ours).parameters) == list(inspect.signature(theirs).parameters)


def test_the_stand_ins_environment_has_the_methods_of_gems():
    for name, ours in vars(peer_gem.Env).items():
        if not name.startswith("_"):
            theirs = inspect.getattr_static(gem.Env, name)
            assert type(ours) is type(theirs)
            if callable(ours):
                assert list(inspect.signature(ours).parameters) == list(inspect.signature(theirs).parameters)


def test_the_code_on_the_page_makes_environments():
    made = run_section("GEM")
    _, info = made["env"].reset()
    assert info["split"] == "val"
    observations, _ = made["vec"].reset()
    assert len(observations) == 8


def test_the_example_runs(tmp_path):
    assert "13 of 13 rooms solved" in run_example("gem_vector.py", tmp_path)
