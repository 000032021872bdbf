"""The adapter in the real TRL: its trainer, its tool loop and its rewards, on a tiny random model."""

import inspect
import json
import re
import runpy
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import trl
from datasets import Dataset
from transformers.utils.chat_template_utils import get_json_schema
from trl import GRPOConfig, GRPOTrainer

from arl_gym.adapters import trl as adapter
from arl_gym.adapters.episode import EPISODE_OVER, TextEpisode
from arl_gym.adapters.tasks import Row, task_dataset
from arl_gym.adapters.trl import environment_factory, episode_reward, rollout_func
from arl_gym.agents.policies import ScriptedPolicy
from arl_gym.agents.rollout import rollout
from arl_gym.agents.types import Episode, Trajectory
from arl_gym.envs import ENVS
from arl_gym.errors import ConfigError
from arl_gym.make import make_chat_vec, tools_of
from arl_gym.tools import schema
from arl_gym.train.chat import ChatCodec
from arl_gym.train.model import tiny_model, tiny_tokenizer
from tests.adapters import peer_trl
from tests.adapters.letters import Letters
from tests.adapters.page import run_section
from tests.adapters.real.outlines import outline, outline_of
from tests.adapters.scripted import FIRST_TASKS, native_episodes, response_to
from tests.conftest import ROOT
from tests.train.ranks import run_ranks

MAX_STEPS = 12


@pytest.fixture(autouse=True)
def _no_warning_of_experiments(monkeypatch):
    monkeypatch.setenv("TRL_EXPERIMENTAL_SILENCE", "1")


def trainer(folder: Path, rows: list[Row], n: int = 4, **kwargs: Any) -> GRPOTrainer:
    tokenizer = tiny_tokenizer()
    template = Path(trl.__file__).parent / "chat_templates" / "qwen3_instruct_2507.jinja"
    tokenizer.chat_template = template.read_text()
    model = tiny_model(tokenizer, seed=0, hidden=16, layers=1)
    model.config.max_position_embeddings = 1 << 17
    settings: dict[str, Any] = {
        "max_steps": 1,
        "per_device_train_batch_size": n,
        "num_generations": 2,
        "max_completion_length": 1 << 16,
        "report_to": [],
        "use_cpu": True,
        "bf16": False,
        "logging_steps": 1,
        "save_strategy": "no",
        "disable_tqdm": True,
        **kwargs.pop("settings", {}),
    }
    return GRPOTrainer(
        model=model,
        args=GRPOConfig(str(folder), **settings),
        train_dataset=Dataset.from_list(rows),
        processing_class=tokenizer,
        **kwargs,
    )


def action_of(env_id: str, info: Mapping[str, Any]) -> str:
    """Return what the player does, without its words; nothing where its format is broken."""
    said = response_to(env_id, info)
    kinds = [r"(?<=<action>).*(?=</action>)"]
    if env_id == "ARL/TIRMath-v0":
        kinds = [r"```python\n.*?\n```", r"\\boxed\{.*\}"]
    found = [match[0] for kind in kinds if (match := re.search(kind, said, re.DOTALL))]
    return found[0] if found else ""


def tool_call(env_id: str, action: str) -> dict[str, Any]:
    """Return the call of a tool that stands for an action, and one that makes no sense for none."""
    (first, *_) = tools_of(env_id)
    if found := re.fullmatch(r"(search|click)\[(.*)\]", action, re.DOTALL):
        return {"name": found[1], "arguments": {"words" if found[1] == "search" else "name": found[2]}}
    if found := re.fullmatch(r"```python\n(.*)\n```", action, re.DOTALL):
        return {"name": "run_python", "arguments": {"code": found[1]}}
    if found := re.fullmatch(r"\\boxed\{(.*)\}", action, re.DOTALL):
        return {"name": "answer", "arguments": {"value": found[1]}}
    (parameter,) = inspect.signature(first).parameters
    return {"name": first.__name__, "arguments": {parameter if action else "nothing": action}}


def native_actions(env_id: str, task_ids: list[str]) -> list[Trajectory]:
    """Return the episodes of the player's actions as this package's own loop plays them."""
    player = ScriptedPolicy(lambda request: action_of(env_id, request.info))
    episodes = [Episode(task_id=task_id, group=i) for i, task_id in enumerate(task_ids)]
    settings: dict[str, Any] = {"window": None, "prompt": "tools", "format": "none", "expert": True}
    with closing(make_chat_vec(env_id, 4, max_episode_steps=MAX_STEPS, **settings)) as vec:
        return rollout(vec, player, episodes, env_id=env_id, seed=0)


class Actor:
    """Answers in the place of the model: calls a tool until the episode is over, then says so."""

    def __init__(self, trainer: GRPOTrainer):
        self._trainer = trainer
        self._live: list[int] = []
        self.contexts: list[str] = []

    def generate(self, prompt_ids, images, fields, num_generations, has_tool_images=False):
        tokenizer = self._trainer.processing_class
        if not self._live:
            self._live = list(range(len(self._trainer.environments)))
        assert len(prompt_ids) == len(self._live)
        self.contexts += tokenizer.batch_decode(prompt_ids)
        said = [self._say(self._trainer.environments[i].episode) for i in self._live]
        self._live = [i for i, text in zip(self._live, said, strict=True) if "<tool_call>" in text]
        return [[*tokenizer(text)["input_ids"], tokenizer.eos_token_id] for text in said], None

    def _say(self, episode: TextEpisode) -> str:
        if episode.done:
            return "That was it."
        call = json.dumps(tool_call(episode.env_id, action_of(episode.env_id, episode.info)))
        return f"<tool_call>\n{call}\n</tool_call>"


@pytest.mark.parametrize("env_id", FIRST_TASKS)
def test_tools_played_by_the_trainer_bring_the_native_rewards(env_id, tmp_path, monkeypatch):
    settings: dict[str, Any] = {"max_episode_steps": MAX_STEPS, "expert": True}
    rows = task_dataset(env_id, n=FIRST_TASKS[env_id], library="trl", tools=True, **settings)
    played = trainer(tmp_path, rows, n=len(rows), environment_factory=environment_factory(env_id))
    actor = Actor(played)
    monkeypatch.setattr(played, "_generate_single_turn", actor.generate)

    played._generate_and_score_completions(list(played.train_dataset))

    task_ids = [row["task_id"] for row in rows]
    native = [outline(t) for t in native_actions(env_id, task_ids)]
    records = [environment.episode.record() for environment in played.environments]
    assert [outline_of(record) for record in records] == native
    assert {True, False} == {
        flag for episode in native for flag in (episode["success"], *episode["action_valid"])
    }
    (name,) = played.reward_func_names
    assert list(played._logs["rewards"][name]) == pytest.approx(
        [sum(episode["rewards"]) for episode in native]
    )
    first = TextEpisode(env_id, settings, task_id=task_ids[0], tools=True)
    assert actor.contexts[0].count(str(first.messages[0]["content"])) == 1
    first.close()
    assert actor.contexts[-1].count(EPISODE_OVER) == 1


def test_the_trainer_takes_a_step_on_tool_calls_and_masks_what_they_answer(tmp_path, monkeypatch):
    settings: dict[str, Any] = {"max_episode_steps": 3, "expert": True}
    rows = task_dataset("ARL/Sokoban-v0", n=4, library="trl", tools=True, **settings)
    played = trainer(tmp_path, rows, environment_factory=environment_factory("ARL/Sokoban-v0"))
    actor = Actor(played)
    monkeypatch.setattr(played, "_generate_single_turn", actor.generate)
    scored: list[dict[str, Any]] = []
    score = played._generate_and_score_completions

    def score_and_keep(inputs):
        scored.append(score(inputs))
        return scored[-1]

    monkeypatch.setattr(played, "_generate_and_score_completions", score_and_keep)
    played.train()
    (batch,) = scored
    tokenizer = played.processing_class
    for ids, mask in zip(batch["completion_ids"], batch["tool_mask"], strict=True):
        said, told = tokenizer.decode(ids[mask.bool()]), tokenizer.decode(ids[~mask.bool()])
        assert said.count("<tool_call>") == 3
        assert "<tool_response>" not in said
        assert told.count("<tool_response>") == 3
    assert played.state.log_history[0]["rewards/Sokoban/mean"] == pytest.approx(-0.3)
    assert played.state.log_history[0]["tools/failure_frequency"] == 0


@pytest.mark.parametrize("env_id", FIRST_TASKS)
def test_the_rollout_function_in_the_trainer_brings_the_native_rewards(env_id, tmp_path, monkeypatch):
    settings: dict[str, Any] = {"max_episode_steps": MAX_STEPS, "expert": True}
    rows = task_dataset(env_id, n=FIRST_TASKS[env_id], library="trl", **settings)
    begun: list[TextEpisode] = []

    class Begun(TextEpisode):
        def __init__(self, *args, **kwargs):
            super().__init__(*args, **kwargs)
            begun.append(self)

    monkeypatch.setattr(adapter, "TextEpisode", Begun)
    seen: dict[str, Any] = {}

    def reward(**columns):
        seen.update(columns)
        return episode_reward(**columns)

    played = trainer(tmp_path, rows, n=len(rows), rollout_func=rollout_func, reward_funcs=reward)
    tokenizer = played.processing_class

    def generate(prompt_ids, images, fields, num_generations, has_tool_images=False):
        live = [episode for episode in begun if not episode.done]
        assert len(prompt_ids) == len(live)
        texts = [response_to(env_id, episode.info) for episode in live]
        return [[*tokenizer(text)["input_ids"], tokenizer.eos_token_id] for text in texts], None

    monkeypatch.setattr(played, "_generate_single_turn", generate)
    batch = played._generate_and_score_completions(list(played.train_dataset))

    task_ids = [row["task_id"] for row in rows]
    trajectories = native_episodes(env_id, task_ids, max_episode_steps=MAX_STEPS)
    native = [outline(t) for t in trajectories]
    records = seen["episode"]
    assert [outline_of(record) for record in records] == native
    assert list(played._logs["rewards"]["reward"]) == pytest.approx(
        [sum(episode["rewards"]) for episode in native]
    )
    for ids, mask, trajectory in zip(batch["completion_ids"], batch["tool_mask"], trajectories, strict=True):
        said = tokenizer.decode(ids[mask.bool()], skip_special_tokens=True)
        assert said == "".join(turn.response for turn in trajectory.turns)


def test_ranks_that_sample_together_ask_equally_often(tmp_path):
    first, second = run_ranks("tests.adapters.real.trl_job", ["groups_of_unequal_episodes"], tmp_path)
    name = "groups_of_unequal_episodes/"
    for rank in (first, second):
        assert rank[name + "asked"].tolist() == [2] * 5
        assert rank[name + "step"] == 1
        assert rank[name + "mean_reward"] == pytest.approx(-0.35)
    short, long = sorted((first, second), key=lambda rank: rank[name + "turns"].sum())
    assert (short[name + "turns"].tolist(), long[name + "turns"].tolist()) == ([2, 2], [5, 5])
    assert short[name + "rewards"] == pytest.approx([-0.2, -0.2])
    assert long[name + "rewards"] == pytest.approx([-0.5, -0.5])


def test_a_special_token_that_an_environment_spells_is_text(tmp_path, monkeypatch):
    rows = task_dataset("ARL/TIRMath-v0", n=2, library="trl", max_episode_steps=2)
    played = trainer(tmp_path, rows, rollout_func=rollout_func, reward_funcs=episode_reward)
    tokenizer = played.processing_class
    text = "```python\nprint('<|im_' + 'end|>')\n```"
    ids = [*tokenizer(text)["input_ids"], tokenizer.eos_token_id]
    monkeypatch.setattr(
        played, "_generate_single_turn", lambda contexts, *rest: ([list(ids) for _ in contexts], None)
    )
    out = rollout_func([row["prompt"] for row in rows], played)
    for completion, mask in zip(out["completion_ids"], out["env_mask"], strict=True):
        told = [i for i, m in zip(completion, mask, strict=True) if not m]
        assert "<|im_end|>" in tokenizer.decode(told).removesuffix("<|im_end|>\n<|im_start|>assistant\n")
        assert told.count(tokenizer.eos_token_id) == 1


def test_a_rollout_function_is_for_models_of_text(tmp_path):
    rows = task_dataset("ARL/Sokoban-v0", n=2, library="trl", obs_mode="image")
    played = trainer(tmp_path, rows, rollout_func=rollout_func, reward_funcs=episode_reward)
    with pytest.raises(ConfigError, match="this model reads text only"):
        rollout_func([row["prompt"] for row in rows], played)


@pytest.mark.parametrize("env_id", ENVS)
def test_transformers_reads_the_tools_as_this_package_does(env_id):
    environment = environment_factory(env_id)()
    for tool in tools_of(env_id):
        told = schema(tool)
        del told["parameters"]["additionalProperties"]
        assert get_json_schema(getattr(environment, tool.__name__)) == {"type": "function", "function": told}


@pytest.mark.parametrize(
    "hook",
    [
        lambda: {"environment_factory": environment_factory("ARL/Sokoban-v0")},
        lambda: {"environment_factory": {"ARL/Sokoban-v0": environment_factory("ARL/Sokoban-v0")}},
        lambda: {"rollout_func": rollout_func, "reward_funcs": episode_reward},
    ],
    ids=["environment", "several environments", "rollout function"],
)
def test_a_random_model_trains(hook: Callable[[], dict[str, Any]], tmp_path):
    rows = task_dataset("ARL/Sokoban-v0", n=4, library="trl")
    settings: dict[str, Any] = {"max_steps": 2, "max_completion_length": 64}
    played = trainer(tmp_path, rows, settings=settings, **hook())
    played.train()
    assert played.state.global_step == 2
    assert played.state.log_history[0]["completions/max_length"] <= 64


def test_the_peers_of_the_other_tests_are_like_the_real_ones(tmp_path):
    rows = task_dataset("ARL/Sokoban-v0", n=2, library="trl")
    real = trainer(tmp_path, rows, rollout_func=rollout_func, reward_funcs=episode_reward)
    peer = peer_trl.GRPOTrainer(lambda contexts: ([], None))
    for name in vars(peer).keys() - {"asked", "_sample"}:
        assert hasattr(real, name)
    assert type(real.chat_template_kwargs) is dict
    assert inspect.signature(real._generate_single_turn).parameters.keys() == (
        inspect.signature(peer._generate_single_turn).parameters.keys()
    )
    for name in ("__init__", "encode_prompt", "encode_bridge", "decode", "count_tokens"):
        letters, codec = (inspect.signature(getattr(of, name)) for of in (Letters, ChatCodec))
        assert letters.parameters.keys() == codec.parameters.keys()


def test_rows_survive_parquet_together(tmp_path):
    rows = [
        *task_dataset("ARL/Sokoban-v0", n=1, library="trl", obs_mode="image"),
        *task_dataset("ARL/TIRMath-v0", n=1, library="trl"),
    ]
    path = tmp_path / "train.parquet"
    Dataset.from_list(rows).to_parquet(path)
    assert list(Dataset.from_parquet(str(path), cache_dir=str(tmp_path))) == rows


def test_the_code_on_the_page_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    given = trainer(tmp_path, task_dataset("ARL/Sokoban-v0", n=1, library="trl"), reward_funcs=episode_reward)
    given.model.save_pretrained("model")
    given.processing_class.save_pretrained("model")
    # No model of that name is here, nor a GPU.
    replaced = {"Qwen/Qwen3-4B-Instruct-2507": "model", "use_vllm=True": "use_cpu=True, bf16=False"}
    made = run_section("TRL", replaced)["trainer"]
    assert len(made.train_dataset) == 1000
    assert [tool.__name__ for tool in made.tools] == ["move"]


def test_the_example_runs(capsys):
    runpy.run_path(str(ROOT / "examples" / "adapters" / "trl_grpo.py"))
    printed = capsys.readouterr().out
    assert "'success': 0.0" in printed
    assert "'rewards/episode_reward/mean'" in printed
