"""Two steps of SAMPO on pictures of Sokoban."""

import pytest

from arl_gym.agents.records import read_trajectories
from arl_gym.assets import asset
from arl_gym.core import pictures_of
from arl_gym.train.batch import pack
from arl_gym.train.config import load_toml
from arl_gym.train.demo import run_demo
from arl_gym.train.methods import resolve
from arl_gym.train.metrics import read_metrics
from arl_gym.train.model import load_model
from arl_gym.train.pictures import view
from arl_gym.train.trainer import train


@pytest.fixture(scope="module", params=[1, "dialogue"])
def run(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / str(request.param)
    kwargs = {"obs_mode": "image", "tile_size": 16, "dim_room": [5, 5], "max_steps": 3}
    values = {
        "method": "SAMPO",
        "run_dir": str(folder),
        "steps": 2,
        "trajectories_every": 1,
        "env": {"prompt": "compact", "window": request.param, "kwargs": kwargs},
        "model": {"path": "tiny-vl", "max_context": 512},
        "rollout": {"groups": 2, "group_size": 3, "max_tokens": 4},
        "filter": {"max_tries": 1},
        "optim": {"lr": 1e-3, "minibatches": 2},
    }
    train(resolve(values))
    return folder


def test_rollout_and_trainer_agree_on_what_was_seen(run):
    rows = read_metrics(run / "metrics.jsonl")
    assert len(rows) == 2
    for row in rows:
        difference, norm = row["rollout/logprob_diff_max"], row["optim/grad_norm"]
        assert difference is not None
        assert norm is not None
        assert 0 <= difference < 1e-5
        assert norm > 0


def test_recorded_episodes_can_be_packed_with_their_pictures(run):
    loaded = load_model(str(run / "model"), dtype="float32", seed=0)
    assert loaded.vision is not None
    played = read_trajectories(run / "trajectories" / "step-000002.jsonl.gz")
    batch = pack(played, pad_id=0)
    assert sum(map(len, batch.row_pictures)) == sum(
        len(pictures_of(turn.messages)) for t in played for turn in t.turns
    )
    seen = view(batch, loaded.vision)  # complains of a picture that is not as large as it was
    assert (seen.features >= 0).sum() == 25 * sum(map(len, batch.row_pictures))


def test_the_preset_from_pictures_clones_and_trains_in_the_demo(tmp_path):
    values = load_toml(asset("presets/sokoban-vl-tiny.toml"))
    values |= {"run_dir": str(tmp_path / "run"), "steps": 1}
    values["env"]["kwargs"]["max_steps"] = 6
    values["rollout"] |= {"groups": 2, "group_size": 2}
    values["clone"] |= {"episodes": 4, "val_episodes": 2, "steps": 2, "eval_every": 1}
    arms = run_demo(resolve(values), episodes=2)
    assert [arm.name for arm in arms] == ["random", "BC", "SAMPO", "BC continued"]
    (row,) = read_metrics(tmp_path / "run" / "sampo" / "metrics.jsonl")
    assert row["optim/updates"] == 2
    played = read_trajectories(tmp_path / "run" / "sampo" / "trajectories" / "step-000001.jsonl.gz")
    # Six cells a side, a token of 16 x 16 pixels each.
    assert {p.size for t in played for turn in t.turns for p in pictures_of(turn.messages)} == {(96, 96)}
