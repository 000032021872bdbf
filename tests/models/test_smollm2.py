"""A real model end to end: SmolLM2-135M-Instruct, whose padding is its end token and whose head is tied.

It plays Sokoban badly. What counts is that sampler and trainer agree, that it can be trained, that what it
learns is what was meant, and that the result loads again.
"""

import json

import numpy as np
import pytest
import torch

from arl_gym.agents.records import read_trajectories
from arl_gym.cli import main
from arl_gym.core import Message
from arl_gym.train.batch import Batch, pack
from arl_gym.train.chat import ChatCodec
from arl_gym.train.config import LossConfig, OptimConfig
from arl_gym.train.engine import Engine
from arl_gym.train.methods import resolve
from arl_gym.train.metrics import read_metrics
from arl_gym.train.model import load_model
from arl_gym.train.trainer import train
from tests.train.trajectories import trajectory, turn

# The whole file takes 45 s of one core; the limit of a test counts the wall clock of busy machines.
pytestmark = pytest.mark.timeout(600)

END = 2  # <|im_end|>, and the padding as well


def values(path, run_dir, **changes):
    base = {
        "run_dir": str(run_dir),
        "steps": 1,
        "trajectories_every": 1,
        "env": {"prompt": "compact", "window": 0, "kwargs": {"text_format": "inner", "max_steps": 2}},
        "model": {"path": str(path), "max_context": 512},
        "rollout": {"groups": 2, "group_size": 2, "max_tokens": 12},
        "filter": {"enable": False},
        "optim": {"lr": 1e-5},
        "checkpoint": {"every": 0},
    }
    return {**base, **changes}


def opened(path):
    loaded = load_model(str(path), dtype="float32", seed=0)
    return loaded.model, ChatCodec(loaded.tokenizer)


def weights(path):
    return opened(path)[0].state_dict()


def test_it_is_evaluated_on_the_command_line(smollm2, tmp_path):
    result = tmp_path / "result.json"
    play = ["eval", "ARL/Sokoban-v0", "--model", str(smollm2), "--backend", "hf", "--json", str(result)]
    short = ["--prompt", "compact", "--window", "0", "--env", "text_format=inner", "--env", "max_steps=2"]
    assert main([*play, *short, "--episodes", "3", "--max-tokens", "12"]) == 0
    found = json.loads(result.read_text())
    assert found["n"] == 3
    assert found["n_env_errors"] == 0
    assert found["length_mean"] == 2


@pytest.fixture(scope="module")
def sampo(smollm2, tmp_path_factory):
    """Return the folder of one training step of SAMPO."""
    folder = tmp_path_factory.mktemp("sampo") / "run"
    train(resolve(values(smollm2, folder)))
    return folder


def test_a_step_of_sampo_trains_the_tokens_that_were_sampled(sampo):
    (row,) = read_metrics(sampo / "metrics.jsonl")
    turns = [t for p in read_trajectories(sampo / "trajectories" / "step-000001.jsonl.gz") for t in p.turns]
    assert len(turns) == 2 * 2 * 2  # groups, copies, steps
    assert row["optim/tokens"] == sum(len(t.completion_ids or ()) for t in turns)
    assert row["rollout/logprob_diff_max"] is not None
    assert 0 < row["rollout/logprob_diff_max"] < 1e-4
    assert row["optim/skipped_steps"] == row["optim/skipped_batches"] == 0
    assert row["optim/grad_norm"] is not None
    assert row["optim/grad_norm"] > 0


def test_a_step_of_sampo_changes_the_weights_and_the_result_is_an_ordinary_folder(smollm2, sampo):
    before, after = weights(smollm2), weights(sampo / "model")
    assert before.keys() == after.keys()
    changed = [k for k in before if not torch.equal(before[k], after[k])]
    assert "model.layers.29.mlp.down_proj.weight" in changed
    assert "model.embed_tokens.weight" in changed
    assert torch.equal(after["model.embed_tokens.weight"], after["lm_head.weight"])
    largest = max(float((after[k] - before[k]).abs().max()) for k in changed)
    assert 0.9e-5 < largest < 1.5e-5  # AdamW's first step is the learning rate, 1e-5, beside a little decay


@pytest.fixture(scope="module")
def engine(smollm2):
    """Return an engine with the model, and its codec."""
    model, codec = opened(smollm2)
    return Engine(model, OptimConfig(lr=1e-5), temperature=1.0, reference=False), codec


def demonstrations(codec: ChatCodec) -> Batch:
    """Return two responses of unequal lengths, each ended, as if they had been sampled."""
    ask: list[Message] = [{"role": "user", "content": "Say up."}]
    prompt = codec.encode_prompt(ask)
    answers = [codec.encode_response(text) for text in ("up", "<think>left or up</think>up")]
    played = [trajectory(turn(prompt, a, reward=1.0), group=g) for g, a in enumerate(answers)]
    return pack(played, pad_id=codec.pad_id)


def test_the_end_token_is_trained_and_equal_padding_is_not(engine):
    _, codec = engine
    assert codec.pad_id == codec.end_id == END
    batch = demonstrations(codec)
    assert batch.n_rows == 2
    for n in range(2):
        length, sampled = int(batch.lengths[n]), int(batch.action_mask[n].sum())
        assert batch.ids[n, length - 1] == END
        assert batch.action_mask[n].nonzero()[0].tolist() == list(range(length - sampled, length))
    short = int(batch.lengths[0])
    assert short < batch.ids.shape[1]
    assert (batch.ids[0, short:] == END).all()
    assert not batch.action_mask[0, short:].any()
    # The prompt's own end tokens (of the system's and the user's message) carry none either.
    assert (batch.ids[0] == END).sum() - (batch.ids[0, short:] == END).sum() == 3
    assert batch.action_mask[0][batch.ids[0] == END].sum() == 1


def test_it_learns_to_stop_and_the_export_scores_the_same(engine, tmp_path):
    trainer, codec = engine
    batch = trainer.score(demonstrations(codec))
    assert batch.old_logprobs is not None
    ends = (np.arange(2), batch.lengths - 1)
    before = batch.old_logprobs[ends]
    good = batch.with_advantages([np.ones(1, np.float32)] * 2)
    trainer.update(good, LossConfig(kl_coef=0.0), total_steps=1)
    after = trainer.score(batch).old_logprobs
    assert (after[ends] > before).all()
    trainer.export(tmp_path / "model", codec.tokenizer)
    model, again = opened(tmp_path / "model")
    assert again.fingerprint() == codec.fingerprint()
    with torch.no_grad():
        logits = model(torch.tensor(batch.ids[1:, :-1])).logits
    scores = torch.log_softmax(logits[0], -1).gather(1, torch.tensor(batch.ids[1, 1:, None]))[:, 0].numpy()
    own = batch.action_mask[1, 1:]
    assert np.abs(scores[own] - after[1, 1:][own]).max() < 1e-4


def test_a_step_with_an_adapter_changes_what_it_adapts(smollm2, tmp_path):
    lora = {"lora_rank": 4, "lora_targets": "q_proj,v_proj"}
    model = {"path": str(smollm2), "max_context": 512, **lora}
    rollout = {"groups": 1, "group_size": 2, "max_tokens": 8}
    folder = tmp_path / "run"
    train(resolve(values(smollm2, folder, model=model, rollout=rollout, optim={"lr": 1e-3})))
    (row,) = read_metrics(folder / "metrics.jsonl")
    assert row["rollout/logprob_diff_max"] is not None
    assert row["rollout/logprob_diff_max"] < 1e-4
    assert (folder / "model" / "adapter" / "adapter_model.safetensors").is_file()
    before, after = weights(smollm2), weights(folder / "model")
    changed = {k.split(".")[-2] for k in before if not torch.equal(before[k], after[k])}
    assert changed == {"q_proj", "v_proj"}
