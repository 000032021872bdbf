import dataclasses

import numpy as np
import pytest

from arl_gym.agents.records import write_trajectories
from arl_gym.core import pictures_of
from arl_gym.errors import ConfigError, DataError
from arl_gym.train.batch import pack
from arl_gym.train.bc import clone_run, collect, recorded, tokenise
from arl_gym.train.chat import ChatCodec
from arl_gym.train.config import OptimConfig
from arl_gym.train.engine import Engine
from arl_gym.train.methods import resolve
from arl_gym.train.metrics import read_metrics
from arl_gym.train.model import load_model
from arl_gym.wrappers.record_episode import image_hash


def config(run_dir="unused", *, window=0, obs_mode="image", **clone):
    kwargs = {"obs_mode": obs_mode, "tile_size": 16, "text_format": "inner"}
    return resolve(
        {
            "run_dir": str(run_dir),
            "env": {"prompt": "compact", "window": window, "kwargs": kwargs},
            "model": {"path": "tiny-vl", "max_context": 1024},
            "clone": {
                "episodes": 4,
                "val_episodes": 2,
                "steps": 3,
                "eval_every": 3,
                "batch_rows": 8,
                "thoughts": False,
                **clone,
            },
        }
    )


def vision_codec():
    loaded = load_model("tiny-vl", dtype="float32", seed=1)
    return loaded, ChatCodec(loaded.tokenizer, loaded.vision)


@pytest.mark.parametrize(
    ("window", "obs_mode"), [(0, "image"), (2, "both"), ("dialogue", "image"), ("dialogue", "both")]
)
def test_experts_are_cloned_from_what_they_saw(window, obs_mode):
    loaded, codec = vision_codec()
    shown = config(window=window, obs_mode=obs_mode)
    played = tokenise(collect(shown, split="train", episodes=2), codec)
    batch = pack(played, pad_id=codec.pad_id)
    n_turns = [len(t.turns) for t in played]
    if window == "dialogue":
        assert [len(p) for p in batch.row_pictures] == n_turns
    else:
        assert [len(p) for p in batch.row_pictures] == [min(k, window) + 1 for n in n_turns for k in range(n)]
    engine = Engine(
        loaded.model, OptimConfig(zero_stage=0), temperature=1.0, reference=False, vision=loaded.vision
    )
    before = engine.nll(batch)
    for _ in range(8):
        engine.fit(batch, np.arange(batch.n_rows), lr=1e-3)
    assert engine.nll(batch) < before - 0.5


def test_cloning_recordings_is_cloning_what_was_seen(tmp_path):
    file = tmp_path / "e.jsonl.gz"
    live = config(tmp_path / "live")
    shares = (("train", live.clone.episodes), ("val", live.clone.val_episodes))
    write_trajectories(file, [t for split, n in shares for t in collect(live, split=split, episodes=n)])
    clone_run(live)
    clone_run(config(tmp_path / "recorded", data=str(file)))
    first, again = (read_metrics(tmp_path / name / "clone.jsonl") for name in ("live", "recorded"))
    assert [r["clone/train_loss"] for r in first] == [r["clone/train_loss"] for r in again]
    kept = load_model(str(tmp_path / "recorded" / "model"), dtype="float32", seed=0)
    assert kept.vision is not None


def test_recordings_without_their_pictures_are_not_cloned(tmp_path):
    file = tmp_path / "e.jsonl.gz"
    cfg = config(data=str(file))
    (demonstration,) = collect(cfg, split="train", episodes=1)
    write_trajectories(file, [dataclasses.replace(demonstration, split=s) for s in ("train", "val")])
    assert len(recorded(cfg)[0]) == 1
    (picture,) = pictures_of(demonstration.turns[1].messages)
    lost = tmp_path / "images" / f"{image_hash(picture)}.png"
    lost.unlink()
    with pytest.raises(DataError, match=rf"turn 1: expected a picture in .*{lost.name}, found none"):
        recorded(cfg)


def test_models_of_text_do_not_clone_pictures(tmp_path):
    cfg = config(tmp_path / "run")
    text = dataclasses.replace(cfg, model=dataclasses.replace(cfg.model, path="tiny"))
    with pytest.raises(ConfigError, match="text"):
        clone_run(text)
