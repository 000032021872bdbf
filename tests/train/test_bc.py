import dataclasses

import numpy as np
import pytest

from arl_gym.agents.records import read_trajectories, write_trajectories
from arl_gym.errors import ConfigError, DataError
from arl_gym.train import distributed
from arl_gym.train.batch import pack
from arl_gym.train.bc import clone, clone_run, collect, recorded, tokenise, with_prefill
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
    codec = ChatCodec(load_model("tiny", dtype="float32", seed=0).tokenizer)
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
    codec = ChatCodec(load_model("tiny", dtype="float32", seed=0).tokenizer)
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
    loaded = load_model("tiny", dtype="float32", seed=0)
    model, codec = loaded.model, ChatCodec(loaded.tokenizer)
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


# ---- recorded episodes


def played(tmp_path, *names, **changes):
    """Write an episode for each name, "split/task", and return the configuration that clones them."""
    (demonstration,) = collect(config(), split="train", episodes=1)
    episodes = [
        dataclasses.replace(demonstration, split=split, task_id=task, **changes)
        for split, task in (name.split("/") for name in names)
    ]
    file = tmp_path / "e.jsonl.gz"
    write_trajectories(file, episodes)
    cfg = config(tmp_path / "run")
    return dataclasses.replace(cfg, clone=dataclasses.replace(cfg.clone, data=str(file)))


def tasks(trajectories):
    return [t.task_id for t in trajectories]


def test_recorded_validation_episodes_are_for_validation(tmp_path):
    training, validation = recorded(played(tmp_path, "train/a", "val/b", "train/c", "val/d"))
    assert (tasks(training), tasks(validation)) == (["a", "c"], ["b", "d"])


def test_a_tenth_of_the_tasks_is_held_out_where_no_episode_is_for_validation(tmp_path):
    names = [f"train/t{i}" for i in range(25)]
    training, validation = recorded(played(tmp_path, *names, *names))
    assert (len(training), len(validation)) == (46, 4)
    held = set(tasks(validation))
    assert len(held) == 2
    assert held.isdisjoint(tasks(training))
    again, _ = recorded(played(tmp_path, *reversed(names)))
    assert held.isdisjoint(tasks(again))


def test_two_tasks_are_enough_and_one_is_not(tmp_path):
    training, validation = recorded(played(tmp_path, "train/a", "train/b", "train/b"))
    assert set(tasks(training)) | set(tasks(validation)) == {"a", "b"}
    with pytest.raises(DataError, match="got 2 for training and 0 for validation"):
        recorded(played(tmp_path, "train/a", "train/a"))
    with pytest.raises(DataError, match="got 0 for training and 1 for validation"):
        recorded(played(tmp_path, "val/a"))


def test_episodes_of_test_tasks_are_refused_unless_wanted(tmp_path):
    cfg = played(tmp_path, "train/a", "test/b", "test_ood/c")
    with pytest.raises(ConfigError, match="split test, test_ood: expected train and val only"):
        recorded(cfg)
    allowed = dataclasses.replace(cfg, clone=dataclasses.replace(cfg.clone, allow_test=True))
    assert sum(map(len, recorded(allowed))) == 3


def test_episodes_that_teach_nothing_are_left_out(tmp_path):
    with pytest.raises(DataError, match="got 0 for training and 0 for validation"):
        recorded(played(tmp_path, "train/a", "train/b", stop="env_error"))


def test_recorded_responses_are_prefilled_too(tmp_path):
    training, _ = recorded(played(tmp_path, "train/a", "train/b"), prefill="<think>\n")
    assert all(turn.response.startswith("<think>\n</think>") for t in training for turn in t.turns)


def test_what_the_environment_did_not_read_of_a_recorded_response_is_not_cloned(tmp_path):
    (demonstration,) = collect(config(), split="train", episodes=1)
    say = "print(2)"
    turn = dataclasses.replace(
        demonstration.turns[0], response=say + " and what it might print: 3", n_chars=len(say)
    )
    cfg = played(tmp_path, "train/a", "train/b", turns=(turn, dataclasses.replace(turn, n_chars=None)))
    training, _ = recorded(cfg)
    assert [t.response for t in training[0].turns] == [say, say + " and what it might print: 3"]


def test_cloning_the_recorded_expert_is_cloning_the_expert(tmp_path):
    for name in ("live", "recorded"):
        cfg = config(tmp_path / name)
        if name == "recorded":
            file = tmp_path / "e.jsonl.gz"
            both = [
                t for split, n in (("train", 20), ("val", 5)) for t in collect(cfg, split=split, episodes=n)
            ]
            write_trajectories(file, both)
            cfg = dataclasses.replace(cfg, clone=dataclasses.replace(cfg.clone, data=str(file)))
            assert read_trajectories(file) == both
        clone_run(cfg)
    live, replayed = (read_metrics(tmp_path / name / "clone.jsonl") for name in ("live", "recorded"))
    assert [r["clone/train_loss"] for r in live] == [r["clone/train_loss"] for r in replayed]


def test_episodes_beyond_the_context_are_left_out_and_counted(tmp_path):
    cfg = config(tmp_path / "bc")
    (demonstration,) = collect(cfg, split="train", episodes=1)
    turn = demonstration.turns[0]
    long = dataclasses.replace(turn, messages=[{"role": "user", "content": "#" * 600}])
    episodes = [
        dataclasses.replace(demonstration, task_id=task, split=split, turns=turns)
        for task, split, turns in (
            ("a", "train", (turn,)),
            ("b", "train", (turn, long)),
            ("c", "val", (turn,)),
        )
    ]
    file = tmp_path / "e.jsonl.gz"
    write_trajectories(file, episodes)
    changes = {"clone": dataclasses.replace(cfg.clone, data=str(file), steps=1)}
    model = dataclasses.replace(cfg.model, max_context=512)
    assert clone_run(dataclasses.replace(cfg, model=model, **changes)).n_too_long == 1
    nothing = dataclasses.replace(cfg.model, max_context=8)
    with pytest.raises(ConfigError, match="none of the 2 training episodes fits"):
        clone_run(dataclasses.replace(cfg, run_dir=str(tmp_path / "no"), model=nothing, **changes))


def test_only_the_first_process_writes(tmp_path, monkeypatch):
    monkeypatch.setattr(distributed, "is_main", lambda: False)
    assert clone_run(config(tmp_path / "bc")).steps == 4
    assert not (tmp_path / "bc").exists()


def test_experts_of_several_environments_are_cloned_together():
    sokoban = {"prompt": "compact", "window": 0, "kwargs": {"text_format": "inner"}}
    cfg = config(envs=[{"id": "ARL/Sokoban-v0", "weight": 3, **sokoban}, {"id": "ARL/TIRMath-v0"}])
    played = collect(cfg, split="train", episodes=4)
    assert [t.env_id for t in played] == ["ARL/Sokoban-v0"] * 3 + ["ARL/TIRMath-v0"]
