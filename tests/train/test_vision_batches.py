"""Placeholders and features agree, over 1,000 episodes of random play."""

from collections.abc import Sequence

import numpy as np
import pytest

from arl_gym.agents.records import read_trajectories, write_trajectories
from arl_gym.agents.rollout import rollout
from arl_gym.agents.tasks import task_ids
from arl_gym.agents.types import Episode, Reply, Request
from arl_gym.make import make_chat_vec
from arl_gym.rng import Rng
from arl_gym.train.batch import pack
from arl_gym.train.chat import ChatCodec
from arl_gym.train.config import OptimConfig
from arl_gym.train.engine import Engine
from arl_gym.train.model import load_model
from arl_gym.train.pictures import view

pytestmark = pytest.mark.timeout(180)


class RandomPlay:
    """Says a random move, or the name of a special token, in tokens; looks at no picture."""

    def __init__(self, codec: ChatCodec):
        self.codec = codec
        self.queue: list[Request] = []

    def submit(self, requests: Sequence[Request]) -> None:
        self.queue += requests

    def poll(self) -> list[Reply]:
        queue, self.queue = self.queue, []
        return [self.reply(request) for request in queue]

    def reply(self, request: Request) -> Reply:
        rng = Rng(request.stream)
        action = ("up", "down", "left", "right", "<|image_pad|>")[rng.below(5)]
        text = f"<think></think><action>{action}</action>"
        context = request.context_ids
        if context is None:
            prompt = self.codec.encode_prompt(request.messages)
        else:
            prompt = context + self.codec.encode_bridge(context, request.messages)
        ids = self.codec.encode_response(text)
        return Reply(
            key=request.key,
            response=text,
            finish="stop",
            prompt_ids=prompt,
            completion_ids=ids,
            logprobs=[-1.0] * len(ids),
        )


@pytest.fixture(scope="module")
def loaded():
    return load_model("tiny-vl", dtype="float32", seed=1)


def random_play(codec, *, window, obs_mode, episodes):
    vec = make_chat_vec(
        "ARL/Sokoban-v0",
        16,
        window=window,
        prompt="compact",
        split="train",
        obs_mode=obs_mode,
        tile_size=16,
        dim_room=(5, 6),
        max_steps=4,
    )
    try:
        ids = task_ids(vec, "train")
        tasks = [Episode(task_id=ids[i // 4], group=i // 4, copy=i % 4) for i in range(episodes)]
        return rollout(vec, RandomPlay(codec), tasks, env_id="ARL/Sokoban-v0", seed=0)
    finally:
        vec.close()


CASES = [(window, mode) for window in (0, 1, 2, None) for mode in ("image", "both")]


@pytest.mark.parametrize(("window", "obs_mode"), CASES)
def test_image_features_and_placeholders_agree_on_125_episodes_of_each_kind(loaded, window, obs_mode):
    codec = ChatCodec(loaded.tokenizer, loaded.vision)
    played = random_play(codec, window=window, obs_mode=obs_mode, episodes=125)
    batch = pack(played, pad_id=codec.pad_id)
    # Of the tower of "tiny-vl" every patch of 16 x 16 pixels is a feature, here a cell.
    features = loaded.vision.pixels(batch.pictures)["image_grid_thw"].prod(dim=1).numpy()
    assert set(features.tolist()) == {5 * 6}
    expected = [sum(int(features[k]) for k in shown) for shown in batch.row_pictures]
    assert (batch.ids == loaded.vision.image_id).sum(axis=1).tolist() == expected
    assert not (batch.ids[batch.action_mask] == loaded.vision.image_id).any()
    n_turns = [len(t.turns) for t in played]
    if window is None:
        assert [len(shown) for shown in batch.row_pictures] == n_turns
    else:
        turns = [k for n in n_turns for k in range(n)]
        assert [len(shown) for shown in batch.row_pictures] == [min(k, window) + 1 for k in turns]
    assert len(batch.pictures) < 0.9 * sum(n_turns)  # copies begin with one board
    seen = view(batch, loaded.vision)
    assert sorted(set(seen.features[seen.features >= 0].tolist())) == list(range(features.sum()))


@pytest.mark.parametrize("window", [2, None])
def test_recorded_episodes_have_the_same_pictures_in_the_same_rows(loaded, window, tmp_path):
    codec = ChatCodec(loaded.tokenizer, loaded.vision)
    played = random_play(codec, window=window, obs_mode="both", episodes=20)
    write_trajectories(tmp_path / "played.jsonl.gz", played)
    before, after = (
        pack(t, pad_id=codec.pad_id) for t in (played, read_trajectories(tmp_path / "played.jsonl.gz"))
    )
    assert after.row_pictures == before.row_pictures
    assert after.pictures == before.pictures
    assert np.array_equal(after.ids, before.ids)


@pytest.mark.parametrize(("window", "obs_mode"), [(2, "image"), (None, "both")])
def test_a_model_scores_random_play(loaded, window, obs_mode):
    codec = ChatCodec(loaded.tokenizer, loaded.vision)
    played = random_play(codec, window=window, obs_mode=obs_mode, episodes=8)
    engine = Engine(
        loaded.model, OptimConfig(zero_stage=0), temperature=1.0, reference=False, vision=loaded.vision
    )
    batch = pack(played, pad_id=codec.pad_id)
    # An untrained model expects the token it read last again: worse than any token alike.
    guess = np.log(len(loaded.tokenizer))
    assert guess - 1 < engine.nll(batch) < 2 * guess
