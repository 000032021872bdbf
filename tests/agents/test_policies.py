import pytest
from hypothesis import given
from hypothesis import strategies as st

from arl_gym.agents.policies import (
    FALLBACK_ACTIONS,
    ExpertPolicy,
    RandomPolicy,
    ScriptedPolicy,
    format_response,
    respond_in,
)
from arl_gym.agents.types import Request
from arl_gym.errors import PolicyError, UnknownNameError
from arl_gym.wrappers import parse_response
from tests.agents.counting import ID

PLAIN = respond_in("none", ID)


def request(key: int = 0, stream: int = 0, **info: object) -> Request:
    return Request(key=key, messages=[], info=info, context_ids=None, stream=stream)


def answers(policy, *requests: Request) -> list[str]:
    policy.submit(requests)
    return [reply.response for reply in policy.poll()]


@pytest.mark.parametrize("format", ["strict", "lenient", "action_only", "none"])
@given(action=st.text("abc []", min_size=1).map(str.strip))
def test_a_formatted_response_is_read_back_as_its_action(format, action):
    parsed = parse_response(format_response(format, "go on", action), format)
    assert parsed == (action, True)


def test_the_default_format_is_the_envs_own():
    assert respond_in("default", "ARL/Sokoban-v0")("a", "b") == "<think>a</think><action>b</action>"


def test_braces_in_an_action_stay():
    assert format_response("none", "", "\\boxed{0}") == "\\boxed{0}"


def test_an_unknown_format_names_the_nearest():
    with pytest.raises(UnknownNameError, match="did you mean 'strict'"):
        respond_in("strickt", ID)


def test_the_random_policy_is_a_function_of_seed_and_stream():
    asked = [request(stream=s, admissible_actions=["a", "b", "c"]) for s in range(60)]
    once = answers(RandomPolicy(1, PLAIN), *asked)
    assert once == answers(RandomPolicy(1, PLAIN), *asked)
    assert once != answers(RandomPolicy(2, PLAIN), *asked)
    assert set(once) == {"a", "b", "c"}


def test_the_random_policy_has_something_to_say_where_nothing_is_enumerated():
    (said,) = answers(RandomPolicy(0, PLAIN), request(admissible_actions=[]))
    assert said in FALLBACK_ACTIONS


def test_a_script_is_followed_per_episode_and_then_falls_silent():
    policy = ScriptedPolicy(["x", "y"])
    assert answers(policy, request(0), request(1)) == ["x", "x"]
    assert answers(policy, request(1)) == ["y"]
    policy.submit([request(1)])
    assert [(r.response, r.finish) for r in policy.poll()] == [("", "empty")]


def test_nothing_is_answered_twice():
    policy = ScriptedPolicy(lambda r: "x")
    assert answers(policy, request()) == ["x"]
    assert policy.poll() == []


def test_the_expert_says_what_the_env_says():
    policy = ExpertPolicy(respond_in("strict", ID))
    assert answers(policy, request(expert_action="up", expert_thought="2 to go")) == [
        "<think>2 to go</think><action>up</action>"
    ]


def test_an_env_made_without_expert_is_an_error():
    policy = ExpertPolicy(PLAIN)
    policy.submit([request()])
    with pytest.raises(PolicyError, match="expert=True"):
        policy.poll()


def test_a_thought_comes_first_where_a_response_may_be_prose():
    respond = respond_in("default", "ARL/TIRMath-v0")
    assert respond("Add them.", "\\boxed{2}") == "Add them.\n\\boxed{2}"
    assert respond("", "\\boxed{2}") == "\\boxed{2}"
    assert respond_in("none", "ARL/Sokoban-v0")("a", "up") == "up"
