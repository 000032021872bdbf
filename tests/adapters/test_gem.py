"""The adapter to GEM against a stand-in for it; `real/test_gem.py` has the same in GEM's own machinery."""

import copy
import importlib
import pickle
import sys

import pytest

from arl_gym.errors import ConfigError, DependencyMissing, EpisodeOverError, UnknownNameError
from tests.adapters import peer_gem
from tests.adapters.generators import states_of_the_process
from tests.agents.counting import ID, say

ADAPTER = "arl_gym.adapters.gem"
SOKOBAN = "ARL/Sokoban-v0"


@pytest.fixture
def adapter(monkeypatch):
    for name, module in peer_gem.modules().items():
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.delitem(sys.modules, ADAPTER, raising=False)
    yield importlib.import_module(ADAPTER)
    sys.modules.pop(ADAPTER, None)


def task_ids(env, n):
    """Return the tasks of the next episodes."""
    return [env.reset()[1]["task_id"] for _ in range(n)]


def finish(env):
    """Play an episode of Counting to its end and return the last step."""
    while True:
        step = env.step(say("up"))
        if step[2] or step[3]:
            return step


def test_without_gem_the_import_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "gem", None)
    monkeypatch.delitem(sys.modules, ADAPTER, raising=False)
    with pytest.raises(DependencyMissing, match=r"pip install 'arl-gym\[gem\]'"):
        importlib.import_module(ADAPTER)


def test_every_id_of_this_package_is_registered_and_twice_is_fine(adapter):
    adapter.register()
    adapter.register()
    assert sorted(peer_gem.ENV_REGISTRY) == [
        "arl:ALFWorld-v0",
        "arl:Sokoban-v0",
        "arl:TIRMath-v0",
        "arl:WebShop-v0",
    ]
    env = peer_gem.make("arl:Sokoban-v0", seed=3, max_steps=2)
    obs, info = env.reset()
    assert "You play Sokoban" in obs
    assert info["max_steps"] == 2


def test_a_turn_brings_the_reward_the_flags_and_what_the_step_advantage_needs(adapter):
    env = adapter.GemEnv(ID, task_id="train/1")  # two "up" to go
    obs, info = env.reset()
    assert "0 of 2" in obs
    assert info["anchor"] == "0 of 2"
    obs, reward, terminated, truncated, info = env.step(say("up"))
    assert "1 of 2" in obs
    assert (reward, terminated, truncated) == (-0.25, False, False)
    assert (info["anchor"], info["format_valid"]) == ("1 of 2", True)
    assert "record" not in info
    obs, reward, terminated, truncated, info = env.step("up without tags")
    assert (reward, terminated, truncated) == (-0.35, False, False)
    assert (info["env_reward"], info["format_penalty"], info["format_valid"]) == (-0.25, 0.1, False)
    obs, reward, terminated, truncated, info = env.step(say("up"))
    assert (reward, terminated, truncated) == (1.0, True, False)
    assert info["record"]["rewards"] == [-0.25, -0.35, 1.0]
    assert info["record"]["anchors"] == ["0 of 2", "1 of 2", "1 of 2"]
    assert info["record"]["success"] is True


def test_the_step_limit_is_told_from_the_end_of_the_task(adapter):
    env = adapter.GemEnv(ID, task_id="train/0", max_steps=2)
    env.reset()
    env.step(say("down"))
    _, _, terminated, truncated, info = env.step("\x00<action>")
    assert (terminated, truncated) == (False, True)
    assert info["record"]["stop"] == "truncated"


def test_a_step_outside_an_episode_is_an_error(adapter):
    env = adapter.GemEnv(ID, task_id="train/0")
    with pytest.raises(EpisodeOverError, match="no episode of Test/Counting-v0 has begun"):
        env.step(say("up"))
    env.reset()
    finish(env)
    with pytest.raises(EpisodeOverError):
        env.step(say("up"))


def test_what_the_last_step_returned_survives_a_vector_env_that_resets_at_once(adapter):
    env = adapter.GemEnv(ID, task_id="train/0")
    env.reset()
    obs, reward, terminated, _, info = peer_gem.step_or_restart(env, say("up"))
    assert (reward, terminated) == (1.0, True)
    assert "0 of 1" in obs
    assert "1 of 1" in info["final_obs"]
    assert info["final_info"]["success"] is True
    assert info["final_info"]["record"]["rewards"] == [1.0]
    _, info = env.reset()
    assert "final_obs" not in info  # nothing was played since


def test_infos_are_the_callers_own(adapter):
    env = adapter.GemEnv(ID, task_id="train/0")
    _, first = env.reset()
    first.clear()
    _, _, _, _, last = env.step(say("up"))
    last.clear()
    _, info = env.reset()
    assert info["final_info"]["record"]["anchors"] == ["0 of 1"]


def test_a_seed_picks_the_first_task_and_those_after_it(adapter):
    env = adapter.GemEnv(SOKOBAN, seed=5)
    tasks = task_ids(env, 4)
    assert len(set(tasks)) == 4
    assert task_ids(adapter.GemEnv(SOKOBAN, seed=5), 4) == tasks
    assert task_ids(adapter.GemEnv(SOKOBAN, seed=6), 4) != tasks
    again = [env.reset(seed=5)[1]["task_id"], *task_ids(env, 3)]
    assert again == tasks


def test_a_seed_is_that_of_the_environment_itself(adapter):
    from arl_gym.make import make_chat_env

    _, info = make_chat_env(SOKOBAN).reset(seed=17)
    assert adapter.GemEnv(SOKOBAN).reset(seed=17)[1]["task_id"] == info["task_id"]


def test_a_group_shares_its_task_whatever_the_seeds(adapter):
    members = [adapter.GemEnv(SOKOBAN, task_id="train-000007", seed=s) for s in range(3)]
    firsts = [env.reset(seed=100 + k) for k, env in enumerate(members)]
    assert {info["task_id"] for _, info in firsts} == {"train-000007"}
    assert len({obs for obs, _ in firsts}) == 1
    assert task_ids(members[0], 2) == ["train-000007"] * 2


def test_a_group_shares_the_task_of_an_environment_without_task_ids(adapter):
    members = [
        adapter.GemEnv("tests.adapters.dice:Test/Dice-v0", task_id="train-3", seed=s) for s in range(3)
    ]
    assert len({env.reset(seed=s)[0] for s, env in enumerate(members)}) == 1


def test_the_generators_of_the_process_stay_as_they_are(adapter):
    before = states_of_the_process()
    env = adapter.GemEnv(SOKOBAN, seed=1)
    env.reset(seed=2)
    env.step(env.sample_random_action())
    env.reset()
    assert states_of_the_process() == before


def test_random_actions_are_admissible_and_follow_from_the_seed(adapter):
    env = adapter.GemEnv(SOKOBAN, seed=1)
    env.reset()
    drawn = [env.sample_random_action() for _ in range(20)]
    assert len(set(drawn)) == 4
    other = adapter.GemEnv(SOKOBAN, seed=1)
    other.reset()
    assert [other.sample_random_action() for _ in range(20)] == drawn
    _, _, _, _, info = env.step(drawn[0])
    assert (info["format_valid"], info["action_valid"]) == (True, True)


def test_a_random_action_is_in_the_format_of_the_environment(adapter):
    env = adapter.GemEnv(SOKOBAN, format="action_only")
    assert env.sample_random_action().startswith("<action>")  # before a reset too
    math = adapter.GemEnv("ARL/TIRMath-v0", format="none")
    assert "<action>" not in math.sample_random_action()


def copies(env):
    yield copy.deepcopy(env)
    yield pickle.loads(pickle.dumps(env))
    yield env.spawn(same_state=True)


def test_copies_in_the_middle_of_an_episode_go_on_alike_and_apart(adapter):
    env = adapter.GemEnv(SOKOBAN, seed=9)
    env.reset()
    env.reset()
    env.step(say("up"))
    for other in copies(env):
        assert other.get_state() == env.get_state()
        assert other.step(say("left"))[:4] == copy.deepcopy(env).step(say("left"))[:4]
        assert len(env.get_state()["responses"]) == 1
        assert task_ids(other, 2) == task_ids(copy.deepcopy(env), 2)


def test_copies_before_the_first_episode_are_a_group(adapter):
    env = adapter.GemEnv(SOKOBAN, seed=9)
    expected = adapter.GemEnv(SOKOBAN, seed=9).reset()[0]
    assert [other.reset()[0] for other in copies(env)] == [expected] * 3


def test_a_copy_after_the_end_still_tells_of_it(adapter):
    env = adapter.GemEnv(ID, task_id="train/0")
    env.reset()
    finish(env)
    for other in copies(env):
        assert "1 of 1" in other.reset()[1]["final_obs"]


def test_another_environment_of_the_same_arguments_or_of_others(adapter):
    env = adapter.GemEnv(SOKOBAN, seed=9, max_steps=3)
    tasks = task_ids(env, 3)
    assert task_ids(env.spawn(), 3) == tasks
    assert env.spawn().reset()[1]["max_steps"] == 3
    assert task_ids(env.spawn(seed=10), 3) != tasks
    assert env.spawn(max_steps=4).reset()[1]["max_steps"] == 4


def test_a_state_is_restored_from_json(adapter):
    env = adapter.GemEnv(ID, task_id="train/2")
    env.reset()
    state = env.get_state()
    assert state == {"seed": 0, "n_episodes": 1, "responses": []}
    env.step(say("up"))
    env.set_state(state)
    assert env.step(say("up"))[4]["anchor"] == "1 of 3"


def test_a_memory_window_gives_whole_prompts(adapter):
    env = adapter.GemEnv(SOKOBAN, seed=1, window=2)
    env.reset()
    assert "You play Sokoban" in env.step(say("up"))[0]
    dialogue = adapter.GemEnv(SOKOBAN, seed=1)
    dialogue.reset()
    assert "You play Sokoban" not in dialogue.step(say("up"))[0]


def test_pictures_are_refused_in_one_line(adapter):
    env = adapter.GemEnv(SOKOBAN, obs_mode="image")
    with pytest.raises(ConfigError, match="choose an obs_mode of text"):
        env.reset()


def test_a_wrong_name_is_found_before_the_first_reset(adapter):
    with pytest.raises(UnknownNameError, match="Sokoban"):
        adapter.GemEnv("ARL/Sokobann-v0")
    with pytest.raises(UnknownNameError, match="format"):
        adapter.GemEnv(SOKOBAN, format="xml")


def test_closing_twice_is_fine_and_a_reset_opens_it_again(adapter):
    env = adapter.GemEnv(ID, task_id="train/0")
    env.reset()
    env.close()
    env.close()
    assert "0 of 1" in env.reset()[0]
