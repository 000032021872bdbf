"""The agent loop in the real verl: its worker, its continuous tokens, its batches. The server is a script."""

import asyncio
import inspect
import runpy
from collections.abc import Callable
from contextvars import ContextVar
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
import transfer_queue
from datasets import Dataset
from omegaconf import OmegaConf
from tensordict import TensorDict
from torch.utils.data import DataLoader
from verl import DataProto
from verl.experimental.agent_loop.agent_loop import (
    AgentLoopBase,
    AgentLoopOutput,
    AgentLoopWorker,
    DictConfigWrap,
    _agent_loop_registry,
)
from verl.trainer.ppo.v1.agent_loop_tq import AgentLoopWorkerTQ
from verl.utils.dataset.rl_dataset import RLHFDataset, collate_fn
from verl.utils.profiler import simple_timer
from verl.utils.tensordict_utils import assign_non_tensor_data, get_tensordict
from verl.workers.rollout.llm_server import LLMServerClient
from verl.workers.rollout.replica import TokenOutput

from arl_gym.adapters import verl as adapter
from arl_gym.adapters.episode import AsyncTextEpisode, TextEpisode
from arl_gym.adapters.tasks import Row, task_dataset
from arl_gym.agents.types import Trajectory
from arl_gym.core import Message
from arl_gym.errors import ConfigError
from arl_gym.train.model import tiny_tokenizer
from tests.adapters import peer_verl
from tests.adapters.page import run_section
from tests.adapters.real.local_ray import local_ray
from tests.adapters.real.outlines import outline, outline_of
from tests.adapters.scripted import FIRST_TASKS, native_episodes, response_to
from tests.conftest import ROOT

Say = Callable[[TextEpisode], str]

MAX_STEPS = 12
PLAYING: ContextVar[AsyncTextEpisode] = ContextVar("PLAYING")
"""The episode of a task of asyncio."""


class Begun(AsyncTextEpisode):
    async def start(self):
        PLAYING.set(self)
        return await super().start()


class Server:
    """Stands for verl's: says what the script says of the episode that asks."""

    def __init__(self, say: Say, tokenizer: Any):
        self._say, self._tokenizer = say, tokenizer
        self.asked: list[dict[str, Any]] = []

    async def generate(self, request_id, *, prompt_ids, sampling_params, image_data=None, **kwargs):
        self.asked.append(sampling_params)
        text = self._say(PLAYING.get().sync)
        ids = [*self._tokenizer(text)["input_ids"], self._tokenizer.eos_token_id]
        ids = ids[: sampling_params["max_tokens"]]
        told = {"min_global_steps": len(self.asked), "max_global_steps": len(self.asked)}
        return TokenOutput(token_ids=ids, log_probs=[-0.5] * len(ids), extra_fields=told)


@pytest.fixture(autouse=True)
def _episodes_that_the_server_sees(monkeypatch):
    monkeypatch.setattr(adapter, "AsyncTextEpisode", Begun)


@pytest.fixture(scope="module")
def tokenizer():
    return tiny_tokenizer()


def config(
    *, prompt_length: int = 16_000, response_length: int = 60_000, use_v1: bool = True
) -> SimpleNamespace:
    rollout = SimpleNamespace(
        prompt_length=prompt_length,
        response_length=response_length,
        temperature=1.0,
        top_p=1.0,
        top_k=-1,
        calculate_log_probs=True,
        repetition_penalty=1.0,
        n=2,
    )
    return SimpleNamespace(
        actor_rollout_ref=SimpleNamespace(rollout=rollout), data={}, trainer=SimpleNamespace(use_v1=use_v1)
    )


def loop_of(server: Server, tokenizer: Any, **settings: Any) -> adapter.ArlGymAgentLoop:
    return adapter.ArlGymAgentLoop(
        trainer_config=DictConfigWrap(config(**settings)),
        server_manager=server,
        tokenizer=tokenizer,
        processor=None,
        dataset_cls=None,
        data_config=DictConfigWrap({}),
        hf_model_type="qwen3",
    )


def run(row: Row, say: Say | Server, tokenizer: Any, **settings: Any) -> Any:
    """Return what the loop makes of a row: an `AgentLoopOutput`, or several."""

    async def once() -> Any:
        server = say if isinstance(say, Server) else Server(say, tokenizer)
        return await loop_of(server, tokenizer, **settings).run({"top_p": 0.5}, **row)

    return asyncio.run(once())


def worker(server: Server, tokenizer: Any, cls: Any = AgentLoopWorker) -> Any:
    """Return verl's worker without what it makes from a model's folder and the whole configuration."""
    made = cls.__new__(cls)
    made.config = config()
    made.rollout_config = made.config.actor_rollout_ref.rollout
    made.llm_client, made.tokenizer = server, tokenizer
    made.processor = made.dataset_cls = made.reward_loop_worker_handles = None
    made.hf_model_type, made.tools, made.mm_processor_kwargs = "qwen3", [], {}
    made.distillation_enabled = False
    return made


def batch_of(rows: list[Row]) -> DataProto:
    def column(values: list[Any]) -> Any:
        array = np.empty(len(values), dtype=object)
        array[:] = values
        return array

    columns = {key: column([row[key] for row in rows]) for key in rows[0] if key != "prompt"}
    columns["raw_prompt"] = column([row["prompt"] for row in rows])
    dummy = TensorDict({"dummy_tensor": torch.zeros(len(rows), 1)}, batch_size=len(rows))
    return DataProto(batch=dummy, non_tensor_batch=columns)


def dialogue(trajectory: Trajectory) -> list[Message]:
    messages: list[Message] = []
    for turn in trajectory.turns:
        messages += [*turn.messages, {"role": "assistant", "content": turn.response}]
    return messages


@pytest.mark.parametrize("env_id", FIRST_TASKS)
def test_the_workers_batch_has_the_native_rewards_and_dialogues(env_id, tokenizer):
    settings: dict[str, Any] = {"max_episode_steps": MAX_STEPS, "expert": True}
    rows = task_dataset(env_id, n=FIRST_TASKS[env_id], library="verl", **settings)
    server = Server(lambda episode: response_to(env_id, episode.info), tokenizer)

    batch = asyncio.run(worker(server, tokenizer).generate_sequences(batch_of(rows)))

    task_ids = [row["extra_info"]["task_id"] for row in rows]
    native = native_episodes(env_id, task_ids, max_episode_steps=MAX_STEPS)
    assert {True, False} == {trajectory.success for trajectory in native}
    for i, trajectory in enumerate(native):
        told = outline(trajectory)
        prompt, response = batch.batch["prompts"][i], batch.batch["responses"][i]
        attended = batch.batch["attention_mask"][i].bool()
        mask = batch.batch["response_mask"][i].bool()
        assert outline_of(batch.non_tensor_batch["episode"][i]) == told
        assert float(batch.batch["rm_scores"][i].sum()) == pytest.approx(sum(told["rewards"]))
        assert batch.non_tensor_batch["success"][i] == float(trajectory.success)
        assert batch.non_tensor_batch["__num_turns__"][i] == 2 * len(trajectory.turns)
        whole = tokenizer.decode(torch.cat([prompt, response])[attended])
        expected = tokenizer.apply_chat_template(dialogue(trajectory), tokenize=False)
        assert whole == expected.removesuffix("\n")
        said = "".join(f"{turn.response}<|im_end|>" for turn in trajectory.turns)
        assert tokenizer.decode(response[mask]) == said
        first = tokenizer.apply_chat_template(
            trajectory.turns[0].messages, tokenize=False, add_generation_prompt=True
        )
        assert tokenizer.decode(prompt, skip_special_tokens=False).replace(tokenizer.pad_token, "") == first
        logprobs = batch.batch["rollout_log_probs"][i]
        assert set(logprobs[mask].tolist()) == {-0.5}
        assert set(logprobs[~mask].tolist()) == {0.0}


@pytest.fixture(scope="module")
def queue():
    """Start TransferQueue, through which verl's trainer gets what its workers have played."""
    with local_ray(num_cpus=4):  # its three actors take a CPU each
        transfer_queue.init()
        yield
        transfer_queue.close()


def batch_of_dataset(rows: list[Row], folder: Path, tokenizer: Any) -> TensorDict:
    """Return the batch that verl's trainer makes of the file of rows."""
    Dataset.from_list(rows).to_parquet(folder / "train.parquet")
    settings = {"cache_dir": str(folder), "max_prompt_length": 16_000, "filter_overlong_prompts_workers": 1}
    data = RLHFDataset(str(folder / "train.parquet"), tokenizer, OmegaConf.create(settings))
    (columns,) = DataLoader(data, batch_size=len(rows), collate_fn=collate_fn)
    columns["uid"] = np.array([f"prompt{i}" for i in range(len(rows))], dtype=object)
    batch = get_tensordict(columns)
    assign_non_tensor_data(batch, "global_steps", 1)
    return batch


@pytest.mark.timeout(240)
@pytest.mark.parametrize("window", [None, 1])
def test_the_default_trainer_finds_the_native_episodes_in_its_queue(window, queue, tokenizer, tmp_path):
    settings: dict[str, Any] = {"max_episode_steps": MAX_STEPS, "expert": True, "window": window}
    rows = task_dataset("ARL/Sokoban-v0", n=4, library="verl", **settings)
    server = Server(lambda episode: response_to("ARL/Sokoban-v0", episode.info), tokenizer)
    played = worker(server, tokenizer, AgentLoopWorkerTQ.__ray_metadata__.modified_class)
    played.background_tasks = set()

    async def play() -> None:
        await played.generate_sequences(batch_of_dataset(rows, tmp_path, tokenizer))
        await asyncio.gather(*played.background_tasks)

    asyncio.run(play())
    task_ids = [row["extra_info"]["task_id"] for row in rows]
    native = [outline(t) for t in native_episodes("ARL/Sokoban-v0", task_ids, max_episode_steps=MAX_STEPS)]
    assert {episode["success"] for episode in native} == {True, False}
    states = {key: tag["status"] for key, tag in transfer_queue.kv_list("train")["train"].items()}
    for i, episode in enumerate(native):
        n_outputs = len(episode["rewards"]) if window else 1
        assert states.pop(f"prompt{i}") == "finished"
        for session in range(2):
            keys = [f"prompt{i}_{session}_{k}" for k in range(n_outputs)]
            assert [states.pop(key) for key in keys] == ["success"] * n_outputs
            stored = transfer_queue.kv_batch_get(keys=keys, partition_id="train")
            for k in range(n_outputs):
                assert outline_of(stored["extra_fields"][k]["episode"]) == episode
                assert stored["extra_fields"][k]["turn"] == k
                assert float(stored["rm_scores"][k].sum()) == pytest.approx(sum(episode["rewards"]))
                n_prompt = len(stored["prompts"][k])
                assert stored["input_ids"][k][n_prompt:].tolist() == stored["responses"][k].tolist()
    assert states == {}
    transfer_queue.kv_clear(keys=[*transfer_queue.kv_list("train")["train"]], partition_id="train")


def test_members_of_a_group_have_one_prompt(tokenizer):
    (row,) = task_dataset("ARL/Sokoban-v0", n=1, library="verl", max_episode_steps=2)
    left = run(row, lambda _: "a", tokenizer)
    right = run(row, lambda _: "bc", tokenizer)
    assert left.prompt_ids == right.prompt_ids
    assert left.response_ids != right.response_ids


def test_a_memory_window_gives_one_output_a_turn(tokenizer):
    settings: dict[str, Any] = {"max_episode_steps": 4, "window": 1}
    (row,) = task_dataset("ARL/Sokoban-v0", n=1, library="verl", **settings)
    said = ["<think>Up.</think><action>up</action>", "down", "<think></think><action>left</action>", ""]
    prompts = []
    with TextEpisode("ARL/Sokoban-v0", settings, task_id=row["extra_info"]["task_id"]) as episode:
        for text in said:
            prompts.append(episode.messages)
            episode.act(text)
        record = episode.record()
    outputs = run(row, lambda episode: said[len(episode.record()["rewards"])], tokenizer)
    assert len(outputs) == 4
    for k, (output, messages, text) in enumerate(zip(outputs, prompts, said, strict=True)):
        assert isinstance(output, AgentLoopOutput)
        shown = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
        assert tokenizer.decode(output.prompt_ids) == shown
        assert tokenizer.decode(output.response_ids) == f"{text}<|im_end|>"
        assert output.response_mask == [1] * len(output.response_ids)
        assert output.extra_fields["turn"] == k
        assert output.extra_fields["episode"] == record
        # What the TransferQueue does with each.
        assert float(output.as_dict()["rm_scores"].sum()) == pytest.approx(sum(record["rewards"]))
        assert output.extra_fields["reward_extra_info"]["n_turns"] == 4.0
        assert output.metrics.generate_sequences > 0
        assert output.metrics.tool_calls > 0


def test_a_memory_window_is_refused_by_the_old_trainer(tokenizer):
    (row,) = task_dataset("ARL/Sokoban-v0", n=1, library="verl", window=1)
    with pytest.raises(ConfigError, match="use_v1=True"):
        run(row, lambda _: "", tokenizer, use_v1=False)


def test_a_response_never_passes_its_length(tokenizer):
    (row,) = task_dataset("ARL/Sokoban-v0", n=1, library="verl", expert=True)
    server = Server(lambda _: "<think></think><action>up</action>", tokenizer)
    # The response is five tokens and an end, what the env says to it has some 200.
    output = run(row, server, tokenizer, response_length=230)
    n_rooms = [asked["max_tokens"] for asked in server.asked]
    assert n_rooms[0] == 230
    assert n_rooms == sorted(n_rooms, reverse=True)
    assert all(asked["top_p"] == 0.5 for asked in server.asked)
    assert len(output.response_ids) == len(output.response_mask) <= 230
    assert output.response_mask[-1] == 1
    assert output.extra_fields["episode"]["stop"] == "context_full"
    assert output.extra_fields["min_global_steps"] == 1
    assert output.extra_fields["max_global_steps"] == len(n_rooms)


def test_a_prompt_that_does_not_fit_is_refused_instead_of_cut(tokenizer):
    (row,) = task_dataset("ARL/Sokoban-v0", n=1, library="verl")
    with pytest.raises(ConfigError, match=r"rollout\.prompt_length=50"):
        run(row, lambda _: "", tokenizer, prompt_length=50)


def test_images_need_a_model_that_sees(tokenizer):
    (row,) = task_dataset("ARL/Sokoban-v0", n=1, library="verl", obs_mode="image")
    with pytest.raises(ValueError, match="Use a VL base model"):
        run(row, lambda _: "", tokenizer)


def test_the_loop_is_registered_by_the_name_in_the_rows():
    (row,) = task_dataset("ARL/Sokoban-v0", n=1, library="verl")
    assert _agent_loop_registry[row["agent_name"]] == {"_target_": "arl_gym.adapters.verl.ArlGymAgentLoop"}


def test_rows_survive_parquet_together(tmp_path):
    rows = [
        *task_dataset("ARL/Sokoban-v0", n=1, library="verl", max_episode_steps=3),
        *task_dataset("ARL/TIRMath-v0", n=1, library="verl"),
    ]
    path = tmp_path / "train.parquet"
    Dataset.from_list(rows).to_parquet(path)
    assert list(Dataset.from_parquet(str(path), cache_dir=str(tmp_path))) == rows


def test_the_peers_of_the_other_tests_take_what_verl_takes():
    def parameters(function: Any) -> list[str]:
        return list(inspect.signature(function).parameters)

    for name in vars(peer_verl.AgentLoopBase):
        if name == "__init__" or name.startswith(("ct_", "_assert")):
            peer, real = getattr(peer_verl.AgentLoopBase, name), getattr(AgentLoopBase, name)
            assert parameters(peer) == parameters(real)
    assert parameters(peer_verl.simple_timer) == parameters(simple_timer)
    assert set(parameters(peer_verl.Server.generate)) <= set(parameters(LLMServerClient.generate))
    assert {"token_ids", "log_probs", "extra_fields"} <= TokenOutput.model_fields.keys()


def test_the_code_on_the_page_writes_the_rows(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = run_section("verl")["rows"]
    assert list(Dataset.from_parquet("train.parquet", cache_dir="cache")) == rows


def test_the_example_runs(capsys):
    runpy.run_path(str(ROOT / "examples" / "adapters" / "verl_agent_loop.py"))
    printed = capsys.readouterr().out
    assert "4 turns" in printed
