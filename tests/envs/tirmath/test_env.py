r"""The rules of TIR-Math: programs, boxes, void turns, rewards; with real programs in a real sandbox."""

import json
import threading
from collections.abc import Sequence
from contextlib import closing
from typing import Any

import gymnasium as gym
import pytest

import arl_gym
from arl_gym.agents.rollout import rollout
from arl_gym.agents.types import Episode, Reply, Request
from arl_gym.envs.tirmath.env import TIRMathEnv
from arl_gym.envs.tirmath.grading import GRADER_VERSION
from arl_gym.envs.tirmath.sandbox import Execution, serve
from arl_gym.errors import ConfigError, EpisodeOverError, SandboxError, UnknownNameError

gym.register_envs(arl_gym)


@pytest.fixture(scope="module")
def problems(tmp_path_factory) -> str:
    """A file with a problem: what is 6 times 7?"""
    path = tmp_path_factory.mktemp("math") / "problems.jsonl"
    rows = [
        {"problem": "What is 6 times 7?", "answer": "42"},
        {"problem": "What is 1/3?", "answer": "\\frac{1}{3}"},
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


@pytest.fixture
def new_env(problems):
    def make(**kwargs: Any) -> TIRMathEnv:
        env = TIRMathEnv(dataset="original", data=problems, split="test", **kwargs)
        env.reset(options={"task_id": "test-000000"})
        return env

    return make


def program(*lines: str) -> str:
    return "\n".join(["Let me see.", "```python", *lines, "```"])


def test_the_question_is_the_first_observation(problems):
    env = TIRMathEnv(dataset="original", data=problems, split="test")
    seen, info = env.reset(options={"task_id": "test-000000"})
    assert seen == info["task"] == "What is 6 times 7?"
    assert (info["dataset"], info["split"]) == ("original", "test")


def test_a_right_answer_is_worth_one_and_ends_the_episode(new_env):
    seen, reward, terminated, truncated, info = new_env().step("It is \\boxed{42}.")
    assert (seen, reward, terminated, truncated) == ("", 1.0, True, False)
    assert (info["success"], info["score"], info["answer"], info["graded"]) == (True, 1.0, "42", "string")


@pytest.mark.parametrize(
    "answer", ["\\boxed{41}", "\\boxed{}", "\\boxed{42} or \\boxed{43}", "\\boxed{42, 43}"]
)
def test_a_wrong_answer_ends_the_episode_without_reward(new_env, answer):
    _, reward, terminated, _, info = new_env().step(answer)
    assert (reward, terminated, info["success"]) == (0.0, True, False)


def test_a_program_shows_what_it_prints(new_env):
    env = new_env()
    seen, reward, terminated, _, info = env.step(program("print(6 * 7)") + "\nSo it is \\boxed{41}.")
    assert (seen, reward, terminated) == ("Code execution result: 42", 0.0, False)
    assert (info["execution"], info["action_valid"], info["void_turn"]) == ("ok", True, False)
    assert info["parsed_action"] == program("print(6 * 7)")
    assert info["consumed"] == len(program("print(6 * 7)"))
    assert info["run_ms"] > 0
    _, reward, terminated, *_ = env.step("\\boxed{42}")
    assert (reward, terminated) == (1.0, True)


def test_a_box_before_the_program_answers_after_it_has_run(new_env):
    seen, reward, terminated, *_ = new_env().step("I say \\boxed{42}.\n" + program("print(5)"))
    assert (seen, reward, terminated) == ("Code execution result: 5", 1.0, True)


def test_a_box_in_the_program_itself_is_no_answer(new_env):
    _, reward, terminated, _, info = new_env().step(
        program("# \\boxed{42}", "x = '\\\\boxed{42}'", "print(1)")
    )
    assert (reward, terminated, info["answer"]) == (0.0, False, "")


@pytest.mark.parametrize("line", ["final_answer(6 * 7)", "print('\\\\boxed{' + str(6 * 7) + '}')"])
def test_a_program_can_answer(new_env, line):
    seen, reward, terminated, *_ = new_env().step("First \\boxed{1}.\n" + program(line))
    assert (seen, reward, terminated) == ("Code execution result: \\boxed{42}", 1.0, True)


def test_programs_cannot_answer_where_that_is_switched_off(new_env):
    env = new_env(final_answer=False)
    seen, *_ = env.step(program("final_answer(42)"))
    assert seen == "Code execution result: NameError: name 'final_answer' is not defined"
    _, _, terminated, *_ = env.step(program("print('\\\\boxed{42}')"))
    assert not terminated


def test_what_python_prints_is_graded_as_mathematics(problems):
    env = TIRMathEnv(dataset="original", data=problems, split="test")
    env.reset(options={"task_id": "test-000001"})
    _, reward, *_ = env.step(program("from fractions import Fraction", "final_answer(Fraction(2, 6))"))
    assert reward == 1.0


# ---- void turns


def test_a_turn_without_program_and_box_ends_the_episode(new_env):
    seen, reward, terminated, _, info = new_env().step("I do not know.")
    assert (seen, reward, terminated) == ("", 0.0, True)
    assert (info["void_turn"], info["action_valid"], info["success"]) == (True, False, False)


@pytest.mark.parametrize(("on_void", "cost"), [("continue", 0.0), ("penalize", -0.1)])
def test_a_void_turn_may_go_on(new_env, on_void, cost):
    env = new_env(on_void=on_void)
    seen, reward, terminated, _, info = env.step("```python\nprint(42)")
    assert (reward, terminated, info["void_turn"]) == (cost, False, True)
    assert seen == "Neither a Python block nor a \\boxed{} answer was found."
    _, reward, terminated, _, info = env.step("\\boxed{42}")
    assert (reward, terminated, info["void_turn"]) == (1.0, True, False)


# ---- programs that go wrong


def test_of_an_error_the_last_line_is_shown(new_env):
    seen, *_, info = new_env().step(program("print(1)", "1 / 0"))
    assert seen == "Code execution result: ZeroDivisionError: division by zero"
    assert info["execution"] == "error"


def test_a_whole_traceback_names_the_lines_of_the_program(new_env):
    seen, *_ = new_env(errors="full").step(program("print(1)", "1 / 0"))
    assert seen.startswith("Code execution result: 1\nTraceback (most recent call last):\n")
    assert "line 2, in <module>" in seen
    assert seen.endswith("ZeroDivisionError: division by zero")


def test_a_program_that_takes_too_long_is_stopped(new_env):
    seen, *_, info = new_env(timeout_s=0.3).step(program("while True: pass"))
    assert info["execution"] == "timeout"
    assert seen.startswith("Code execution result: the program was stopped after 0.")


def test_a_long_output_loses_its_middle(new_env):
    seen, *_ = new_env(max_output_chars=8).step(program("print('abcdefghij')"))
    assert seen == "Code execution result: abcd ...[2 characters left out]... ghij"


def test_a_silent_program_is_told_so_if_asked_for(new_env):
    assert new_env().step(program("6 * 7"))[0] == "Code execution result: "
    assert new_env(hint_silent=True).step(program("6 * 7"))[0].endswith("(nothing was printed: use print())")


def test_a_failure_of_the_sandbox_is_no_output(new_env, monkeypatch):
    env = new_env()
    failed = Execution(
        status="sandbox_error", stdout="", stderr="no more processes", returncode=None, truncated=False,
        queue_ms=0.0, run_ms=0.0,
    )  # fmt: skip

    class Broken:
        tier = "namespace"

        def run(self, code: str, **kwargs: Any) -> Execution:
            return failed

    monkeypatch.setattr(env, "_sandbox", Broken())
    with pytest.raises(SandboxError, match="test-000000: no more processes"):
        env.step(program("print(1)"))


# ---- state


def test_names_do_not_outlive_a_program(new_env):
    env = new_env()
    env.step(program("x = 42"))
    assert env.step(program("print(x)"))[0] == "Code execution result: NameError: name 'x' is not defined"


def test_earlier_programs_are_replayed_silently_if_asked_for(new_env):
    env = new_env(state="replayed")
    env.step(program("x = 41", "print('once')"))
    env.step(program("y = 1", "boom"))
    assert env.step(program("x += 1", "print(x)"))[0] == "Code execution result: 42"
    assert env.step(program("print(x)"))[0] == "Code execution result: 42"
    assert env.step(program("print(y)"))[0] == "Code execution result: NameError: name 'y' is not defined"


def test_random_numbers_depend_on_problem_and_turn_only(new_env):
    draw = program("import random, numpy as np", "print(random.random(), np.random.rand())")
    one, two = new_env(), new_env()
    first, second = one.step(draw)[0], one.step(draw)[0]
    assert first != second
    assert (two.step(draw)[0], two.step(draw)[0]) == (first, second)


def test_the_last_turn_runs_its_program(new_env):
    env = new_env(max_steps=2)
    env.step(program("print(1)"))
    seen, reward, terminated, truncated, _ = env.step(program("print(2)"))
    assert (seen, reward, terminated, truncated) == ("Code execution result: 2", 0.0, False, True)
    with pytest.raises(EpisodeOverError):
        env.step("\\boxed{42}")


def test_states_differ_when_the_dialogue_does(new_env):
    one, two = new_env(), new_env()
    assert one._info()["state_key"] == two._info()["state_key"]
    one.step(program("print(1)"))
    two.step(program("print(2)"))
    assert one._info()["state_key"] != two._info()["state_key"]


# ---- the generated problems


def test_the_expert_solves_problems_of_every_family_and_split():
    for split in ("train", "val", "test", "test_ood"):
        env = TIRMathEnv(split=split)
        kinds = set()
        for task_id in env.task_ids()[:20]:
            env.reset(options={"task_id": task_id})
            assert "```python" in env.expert_action()
            env.step(env.expert_action())
            _, reward, terminated, _, info = env.step(env.expert_action())
            assert (reward, terminated) == (1.0, True), (
                task_id,
                info["task"],
                info["answer"],
                info["graded"],
            )
            kinds.add(info["task_type"])
        assert len(kinds) > 2


def test_the_expert_of_a_file_gives_the_reference_answer(new_env):
    env = new_env()
    assert env.expert_action() == "\\boxed{42}"
    assert env.step(env.expert_action())[1] == 1.0


def test_a_chat_is_append_only_and_takes_whole_turns():
    env = arl_gym.make_chat_env("ARL/TIRMath-v0", families=["tiny_mod"], levels=[1])
    messages, info = env.reset(seed=0)
    assert info["task"] in messages[0]["content"]
    assert "```python" in messages[0]["content"]
    messages, *_, info = env.step(program("print(40 + 2)"))
    assert messages == [{"role": "user", "content": "Code execution result: 42"}]
    assert info["append"]
    env.close()


class Characters:
    """A policy with one token a character, which says what it is told and keeps its requests."""

    def __init__(self, *responses: str):
        self.responses, self.requests = list(responses), list[Request]()

    def submit(self, requests: Sequence[Request]) -> None:
        self.requests += requests

    def poll(self) -> list[Reply]:
        response = self.responses.pop(0)
        ids = [ord(c) for c in response]
        return [
            Reply(
                key=self.requests[-1].key,
                response=response,
                finish="stop",
                prompt_ids=[*(self.requests[-1].context_ids or []), 1],
                completion_ids=ids,
                logprobs=[0.0] * len(ids),
                n_tokens=lambda n_chars: n_chars,
            )
        ]


def test_tokens_after_the_program_are_not_consumed():
    block = program("print(6 * 7)")
    policy = Characters(block + "\nCode execution result: 41", "\\boxed{1}")
    with closing(arl_gym.make_chat_vec("ARL/TIRMath-v0", 1)) as vec:
        episode = Episode(task_id="train-000000", group=0)
        (played,) = rollout(vec, policy, [episode], env_id="ARL/TIRMath-v0", seed=0)
    first, last = played.turns
    assert first.n_kept == first.n_chars == len(block)
    assert last.n_kept == len("\\boxed{1}")
    assert policy.requests[1].context_ids == [1, *map(ord, block)]


def test_wrong_arguments_say_what_was_expected(problems, tmp_path):
    with pytest.raises(UnknownNameError, match="on_void"):
        TIRMathEnv(on_void="stop")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="data goes with dataset='original'"):
        TIRMathEnv(data=problems)
    with pytest.raises(ConfigError, match="families and levels go with dataset='generated'"):
        TIRMathEnv(dataset="original", data=problems, levels=[1])
    with pytest.raises(ConfigError, match="needs data=, or the file in ARL_TIRMATH_DATA"):
        TIRMathEnv(dataset="original")
    with pytest.raises(UnknownNameError, match="which is one split"):
        TIRMathEnv(dataset="original", data=problems, split="test").task_ids("train")
    with pytest.raises(ConfigError, match="num_tasks"):
        TIRMathEnv(num_tasks=0)


def test_the_file_of_the_variable_is_read(problems, monkeypatch):
    monkeypatch.setenv("ARL_TIRMATH_DATA", problems)
    assert len(TIRMathEnv(dataset="original", split="val").task_ids()) == 2
    assert GRADER_VERSION in TIRMathEnv(dataset="original").reset(seed=0)[1]["grader"]


def test_programs_can_run_in_a_sandbox_elsewhere(new_env):
    with serve(timeout_s=20.0) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        env = new_env(sandbox=server.url)
        seen, *_, info = env.step(program("print(6 * 7)"))
        assert seen == "Code execution result: 42"
        assert info["sandbox"] == server.sandbox.tier
        server.shutdown()
        thread.join()
    with pytest.raises(SandboxError):
        env.step(program("print(6 * 7)"))
