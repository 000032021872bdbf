import dataclasses

import numpy as np
import pytest

from arl_gym.errors import ConfigError
from arl_gym.train.batch import pack
from arl_gym.train.bc import clone, clone_run, collect, tokenise, with_prefill
from arl_gym.train.chat import ChatCodec
from arl_gym.train.config import CloneConfig, OptimConfig
from arl_gym.train.engine import Engine
from arl_gym.train.methods import resolve
from arl_gym.train.metrics import MetricsWriter, read_metrics
from arl_gym.train.model import load_model


def config(run_dir="unused", **changes):
    return resolve(
        {
            "run_dir": str(run_dir),
            "env": {"prompt": "compact", "window": 0, "kwargs": {"text_format": "inner"}},
            "clone": {"episodes": 20, "val_episodes": 5, "steps": 4, "eval_every": 2, "thoughts": False},
            **changes,
        }
    )


@pytest.mark.parametrize(
    ("prefill", "response", "expected"),
    [
        ("", "<think>a</think><action>up</action>", "<think>a</think><action>up</action>"),
        ("<think>\n", "<think>a</think><action>up</action>", "<think>\na</think><action>up</action>"),
        (
            "<think>\n\n</think>\n\n",
            "<think>a</think><action>up</action>",
            "<think>\n\n</think>\n\n<action>up</action>",
        ),
        ("<think>\n", "<action>up</action>", "<action>up</action>"),
    ],
)
def test_a_prefill_takes_the_place_of_what_it_repeats(prefill, response, expected):
    assert with_prefill(response, prefill) == expected


def test_demonstrations_are_successful_well_formed_and_the_same_every_time():
    first, again = (collect(config(), split="train", episodes=20) for _ in range(2))
    assert first == again
    assert len(first) == 20
    assert all(t.success and t.split == "train" for t in first)
    assert all(turn.response.startswith("<think></think><action>") for t in first for turn in t.turns)
    assert len({t.task_id for t in first}) > 10


def test_thoughts_are_cloned_unless_switched_off():
    cfg = config()
    cfg = dataclasses.replace(cfg, clone=dataclasses.replace(cfg.clone, thoughts=True))
    turn = collect(cfg, split="train", episodes=1)[0].turns[0]
    assert not turn.response.startswith("<think></think>")


def test_loss_falls_on_exactly_the_experts_tokens():
    codec = ChatCodec(load_model("tiny", dtype="float32", seed=0)[1])
    played = tokenise(collect(config(), split="train", episodes=3), codec)
    batch = pack(played, pad_id=codec.pad_id)
    turns = [turn for t in played for turn in t.turns]
    assert batch.n_rows == len(turns)
    for n, turn in enumerate(turns):
        answer = batch.ids[n][batch.action_mask[n]].tolist()
        assert codec.decode(answer) == turn.response
        assert answer[-1] in codec.eos_ids


def test_dialogue_demonstrations_become_one_row_each():
    cfg = config(env={"prompt": "compact", "window": "dialogue", "kwargs": {"text_format": "inner"}})
    codec = ChatCodec(load_model("tiny", dtype="float32", seed=0)[1])
    played = tokenise(collect(cfg, split="train", episodes=4), codec)
    batch = pack(played, pad_id=codec.pad_id)
    assert batch.n_rows == 4
    for n, trajectory in enumerate(played):
        answers = [codec.encode_response(turn.response) for turn in trajectory.turns]
        assert batch.ids[n][batch.action_mask[n]].tolist() == [i for a in answers for i in a]


def test_cloning_lowers_the_validation_loss_and_keeps_the_best_model(tmp_path):
    cfg = config(tmp_path / "bc")
    result = clone_run(cfg)
    rows = read_metrics(tmp_path / "bc" / "clone.jsonl")
    losses = [loss for r in rows if (loss := r.get("clone/val_loss")) is not None]
    assert result.steps == 4
    assert losses[1] < losses[0] < np.log(271)  # better than chance over the vocabulary
    assert result.best_val_loss == losses[1]
    load_model(str(tmp_path / "bc" / "model"), dtype="float32", seed=0)


def test_cloning_stops_when_the_validation_loss_stops_improving(tmp_path):
    model, tokenizer = load_model("tiny", dtype="float32", seed=0)
    codec = ChatCodec(tokenizer)
    batch = pack(tokenise(collect(config(), split="train", episodes=3), codec), pad_id=codec.pad_id)
    engine = Engine(model, OptimConfig(), temperature=1.0, reference=False)
    kept = []
    # A learning rate of zero never improves: the first look is the best one.
    dials = CloneConfig(steps=50, lr=0.0, eval_every=1, patience=3, batch_rows=4)
    with MetricsWriter(tmp_path / "clone.jsonl") as metrics:
        result = clone(
            engine,
            batch,
            batch,
            dials,
            seed=0,
            micro_tokens=4096,
            keep=lambda: kept.append(1),
            metrics=metrics,
        )
    assert (result.steps, result.best_step, len(kept)) == (4, 1, 1)


def test_cloning_stops_at_a_loss_that_is_low_enough(tmp_path):
    cfg = config(tmp_path / "bc")
    dials = dataclasses.replace(cfg.clone, steps=50, eval_every=1, stop_loss=4.0)
    result = clone_run(dataclasses.replace(cfg, clone=dials))
    rows = read_metrics(tmp_path / "bc" / "clone.jsonl")
    losses = [loss for r in rows if (loss := r.get("clone/val_loss")) is not None]
    assert losses[-1] <= 4.0
    assert all(loss > 4.0 for loss in losses[:-1])
    assert 1 < result.steps == result.best_step < 50


def test_every_row_is_seen_once_an_epoch():
    from arl_gym.train.bc import _batches

    batches = _batches(10, 4, seed=1)
    epochs = [[next(batches) for _ in range(3)] for _ in range(2)]
    for epoch in epochs:
        assert sorted(np.concatenate(epoch).tolist()) == list(range(10))
    assert not np.array_equal(np.concatenate(epochs[0]), np.concatenate(epochs[1]))


def test_a_used_run_folder_is_refused(tmp_path):
    (tmp_path / "old.txt").write_text("")
    with pytest.raises(ConfigError, match="not empty"):
        clone_run(config(tmp_path))
