import importlib
import inspect
import json
import pickle
import subprocess
import sys
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import arl_gym.adapters
from arl_gym.adapters.episode import EPISODE_OVER, TextEpisode
from arl_gym.adapters.tasks import task_dataset
from arl_gym.errors import ConfigError, DependencyMissing, EpisodeOverError, UnknownNameError
from arl_gym.make import tools_of
from arl_gym.tools import schema
from tests.adapters import letters
from tests.adapters.letters import END, Letters, ids_of, rendered, text_of_ids
from tests.adapters.peer_trl import GRPOTrainer

SOKOBAN = "ARL/Sokoban-v0"


@pytest.fixture
def adapter(monkeypatch):
    monkeypatch.setitem(sys.modules, "trl", ModuleType("trl"))
    monkeypatch.setitem(sys.modules, "arl_gym.train.chat", letters.module())
    monkeypatch.delitem(sys.modules, "arl_gym.adapters.trl", raising=False)
    yield importlib.import_module("arl_gym.adapters.trl")
    del sys.modules["arl_gym.adapters.trl"], vars(arl_gym.adapters)["trl"]


def test_without_trl_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "trl", None)
    with pytest.raises(DependencyMissing, match=r"TRL needs: pip install 'arl-gym\[trl\]'"):
        importlib.import_module("arl_gym.adapters.trl")


def test_the_environments_need_no_torch():
    code = (
        "import sys, types; sys.modules['trl'] = types.ModuleType('trl')\n"
        "from arl_gym.adapters.trl import environment_factory\n"
        f"environment_factory('{SOKOBAN}')().reset(seed=1)\n"
        "assert 'torch' not in sys.modules and 'transformers' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


# The environment with tools.


@pytest.mark.parametrize(
    ("env_id", "tools"),
    [
        (SOKOBAN, {"move"}),
        ("ARL/ALFWorld-v0", {"do"}),
        ("ARL/WebShop-v0", {"search", "click"}),
        ("ARL/TIRMath-v0", {"run_python", "answer"}),
        ("CartPole-v1", {"act"}),
    ],
)
def test_an_environment_has_nothing_public_but_reset_reward_and_tools(adapter, env_id, tools):
    environment = adapter.environment_factory(env_id)()
    functions = inspect.getmembers(type(environment), inspect.isfunction)
    public = {name for name, _ in functions if not name.startswith("_")}
    assert public == {"reset", "get_reward", *tools}
    for tool in tools_of(env_id):
        method = getattr(environment, tool.__name__)
        assert schema(method) == schema(tool)
        assert not inspect.iscoroutinefunction(method)


def test_an_environment_plays_one_episode_after_another(adapter):
    rows = task_dataset(SOKOBAN, n=2, library="trl", tools=True)
    environment = adapter.environment_factory(SOKOBAN, max_episode_steps=2)()
    for row in rows:
        shown = environment.reset(**row)
        with TextEpisode(SOKOBAN, task_id=row["task_id"], tools=True) as episode:
            assert shown == episode.messages[0]["content"]
            after = episode.call("move", {"direction": "up"})
        assert environment.move(direction="up") == after.messages[0]["content"]
        assert environment.get_reward() == pytest.approx(-0.1)
        last = environment.move(direction="up")
        assert last.endswith(EPISODE_OVER)
        assert last.count(EPISODE_OVER) == 1
        assert environment.move(direction="up") == EPISODE_OVER
        record = environment.episode.record()
        assert (record["task_id"], record["stop"]) == (row["task_id"], "truncated")
        assert record["rewards"] == [pytest.approx(-0.1)] * 2
        assert environment.get_reward() == pytest.approx(-0.2)


def test_a_call_that_makes_no_sense_costs_a_step(adapter):
    environment = adapter.environment_factory(SOKOBAN)()
    environment.reset(seed=3)
    assert environment.move(direction="sideways").startswith("direction of tool move must be one of")
    assert environment.move(way="up").startswith("tool move needs the argument 'direction'")
    assert environment.episode.record()["action_valid"] == [False, False]
    assert environment.get_reward() == pytest.approx(-0.2)


def test_a_row_overrules_the_keyword_arguments_of_the_factory(adapter):
    (row,) = task_dataset(SOKOBAN, n=1, library="trl", tools=True, max_episode_steps=1)
    environment = adapter.environment_factory(SOKOBAN, max_episode_steps=9)()
    environment.reset(**row)
    environment.move(direction="up")
    assert environment.episode.done


def test_an_image_is_a_part_of_what_a_tool_answers(adapter):
    (row,) = task_dataset(SOKOBAN, n=1, library="trl", tools=True, obs_mode="image")
    environment = adapter.environment_factory(SOKOBAN)()
    for content in (environment.reset(**row), environment.move(direction="up")):
        assert {part["type"] for part in content} == {"text", "image"}
        (image,) = [part["image"] for part in content if part["type"] == "image"]
        assert image.mode == "RGB"


def test_factories_travel_to_other_processes_and_make_one_class(adapter):
    factory = adapter.environment_factory(SOKOBAN, max_episode_steps=1)
    copy = pickle.loads(pickle.dumps(factory))
    assert type(copy()) is type(factory()) is type(adapter.environment_factory(SOKOBAN)())
    assert type(factory()).__name__ == "Sokoban"


def test_an_unknown_environment_is_named_when_the_factory_is_made(adapter):
    with pytest.raises(UnknownNameError, match="did you mean 'ARL/Sokoban-v0'"):
        adapter.environment_factory("ARL/Sokobane-v0")


def test_before_a_reset_there_is_no_episode(adapter):
    with pytest.raises(EpisodeOverError, match="no episode before its reset"):
        adapter.environment_factory(SOKOBAN)().get_reward()


def test_a_row_without_a_task_is_refused(adapter):
    with pytest.raises(ConfigError, match="needs a task_id or a seed"):
        adapter.environment_factory(SOKOBAN)().reset(prompt=[{"role": "user", "content": ""}])


def test_rows_say_the_task_in_columns_and_in_the_message():
    (row,) = task_dataset(SOKOBAN, n=1, library="trl", max_episode_steps=3)
    (message,) = row["prompt"]
    assert (message["role"], message["content"]) == ("user", "")
    kwargs = {"max_episode_steps": 3, "split": "train"}
    task_id = row["task_id"]
    assert json.loads(message["task"]) == {"env_id": SOKOBAN, "task_id": task_id, "env_kwargs": kwargs}
    assert json.loads(row["env_kwargs"]) == kwargs
    assert row["environment"] == row["env_id"] == SOKOBAN


# The rollout function.


def says(*texts: str):
    """Sample the k-th text in the k-th round, for all; with log-probs."""
    rounds = iter(texts)

    def sample(contexts):
        ids = [*ids_of(next(rounds)), END]
        return [list(ids) for _ in contexts], [[-0.5] * len(ids) for _ in contexts]

    return sample


def prompts(n: int, **kwargs: Any) -> list[Any]:
    return [row["prompt"] for row in task_dataset(SOKOBAN, n=n, library="trl", **kwargs)]


def test_a_rollout_is_one_sequence_of_what_was_sampled_and_what_was_answered(adapter):
    asked = prompts(1, max_episode_steps=2)
    task_id = json.loads(asked[0][0]["task"])["task_id"]
    said = ["<think></think><action>up</action>", "left"]
    with TextEpisode(SOKOBAN, {"max_episode_steps": 2}, task_id=task_id) as episode:
        first = rendered(episode.messages)
        answer = rendered(episode.act(said[0]).messages)
        episode.act(said[1])
        record = episode.record()
    trainer = GRPOTrainer(says(*said))
    out = adapter.rollout_func(asked, trainer)
    assert text_of_ids(out["prompt_ids"][0]) == first
    assert text_of_ids(out["completion_ids"][0]) == f"{said[0]}${answer}{said[1]}$"
    n_said, n_answer = len(said[0]) + 1, len(answer)
    assert out["env_mask"] == [[1] * n_said + [0] * n_answer + [1] * 5]
    assert out["logprobs"] == [[-0.5] * n_said + [0.0] * n_answer + [-0.5] * 5]
    assert out["episode"] == [record]
    assert record["rewards"] == [pytest.approx(-0.1), pytest.approx(-0.2)]
    assert adapter.episode_reward(episode=out["episode"], prompts=[], completions=[]) == [pytest.approx(-0.3)]
    assert [text_of_ids(ids) for (ids,) in trainer.asked] == [first, f"{first}{said[0]}${answer}"]


def test_episodes_that_are_over_are_sampled_no_more(adapter):
    asked = [*prompts(1, max_episode_steps=1), *prompts(1, max_episode_steps=3)]
    trainer = GRPOTrainer(says("a", "b", "c"))
    out = adapter.rollout_func(asked, trainer)
    assert [len(contexts) for contexts in trainer.asked] == [2, 1, 1]
    assert [len(record["rewards"]) for record in out["episode"]] == [1, 3]


def test_without_log_probs_there_are_none(adapter):
    trainer = GRPOTrainer(lambda contexts: ([[ord("a"), END] for _ in contexts], None))
    out = adapter.rollout_func(prompts(2, max_episode_steps=2), trainer)
    assert out["logprobs"] is None


def test_a_completion_never_passes_its_length(adapter):
    said = "<think></think><action>up</action>"
    asked = prompts(1)
    whole = adapter.rollout_func(asked, GRPOTrainer(says(said, "x" * 60, *["-"] * 20)))
    n_answered = whole["env_mask"][0].index(1, len(said) + 1)
    for room, n_turns in [(5, 1), (n_answered, 1), (n_answered + 1, 2), (n_answered + 60, 2)]:
        trainer = GRPOTrainer(says(said, "x" * 60), max_completion_length=room)
        out = adapter.rollout_func(asked, trainer)
        assert len(out["completion_ids"][0]) == len(out["env_mask"][0]) == len(out["logprobs"][0]) <= room
        assert out["completion_ids"][0] == whole["completion_ids"][0][: len(out["completion_ids"][0])]
        assert out["env_mask"][0][-1] == 1
        assert out["episode"][0]["stop"] == "context_full"
        assert len(out["episode"][0]["rewards"]) == n_turns


def test_the_context_of_the_model_counts_as_well(adapter):
    asked = prompts(1)
    (prompt_ids,) = adapter.rollout_func(asked, GRPOTrainer(says(*["-"] * 20)))["prompt_ids"]
    trainer = GRPOTrainer(says("y" * 60), context=len(prompt_ids) + 30)
    assert adapter.rollout_func(asked, trainer)["completion_ids"] == [ids_of("y" * 30)]
    with pytest.raises(ConfigError, match=f"less than the {len(prompt_ids)} tokens that the model reads"):
        adapter.rollout_func(asked, GRPOTrainer(says(), context=len(prompt_ids)))


def test_what_the_environment_does_not_read_is_not_in_the_completion(adapter):
    (row,) = task_dataset("ARL/TIRMath-v0", n=1, library="trl")
    program = "```python\nprint(6 * 7)\n```"
    trainer = GRPOTrainer(says(f"{program}\nIt prints 41, so \\boxed{{41}}.", "\\boxed{41}"))
    out = adapter.rollout_func([row["prompt"]], trainer)
    shown = text_of_ids(out["completion_ids"][0])
    assert shown.startswith(f"{program}$(user) ")
    assert shown.endswith("(assistant) \\boxed{41}$")
    assert "42" in shown
    assert "It prints 41" not in shown
    assert len(out["logprobs"][0]) == len(out["completion_ids"][0])


def test_processes_that_sample_together_ask_equally_often(adapter, monkeypatch):
    torch = ModuleType("torch")
    vars(torch).update(tensor=lambda data, device: np.array(data))
    others = iter([2, 1, 0])
    trainer = GRPOTrainer(says("a", "b"))
    trainer.accelerator.num_processes = 2
    trainer.accelerator.gather = lambda count: np.stack([count, np.array(next(others))])
    asked = prompts(2, max_episode_steps=1)
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "torch", torch)
        out = adapter.rollout_func(asked, trainer)
    # One turn each here, but another process has an episode of two.
    assert [len(contexts) for contexts in trainer.asked] == [2, 2]
    assert trainer.asked[1] == out["prompt_ids"]
    assert [text_of_ids(ids) for ids in out["completion_ids"]] == ["a$", "a$"]


def test_the_template_gets_the_trainers_arguments(adapter, monkeypatch):
    made: list[Letters] = []

    class Kept(Letters):
        def __init__(self, *args: Any, **kwargs: Any):
            super().__init__(*args, **kwargs)
            made.append(self)

    monkeypatch.setattr(sys.modules["arl_gym.train.chat"], "ChatCodec", Kept)
    trainer = GRPOTrainer(says("a"))
    adapter.rollout_func(prompts(1, max_episode_steps=1), trainer)
    assert [codec.settings for codec in made] == [(trainer.processing_class, False, {"tone": "dry"})]


def test_prompts_of_another_kind_are_refused(adapter):
    with pytest.raises(ConfigError, match=r"expected a prompt of task_dataset\(..., library='trl'\)"):
        adapter.rollout_func([[{"role": "user", "content": "Play."}]], GRPOTrainer(says()))
    with pytest.raises(ConfigError, match=r"expected a prompt of task_dataset\(..., library='trl'\)"):
        adapter.rollout_func(["Play."], GRPOTrainer(says()))


def test_a_memory_window_is_refused(adapter):
    with pytest.raises(ConfigError, match="needs window=None"):
        adapter.rollout_func(prompts(1, window=2), GRPOTrainer(says("a", "b")))
