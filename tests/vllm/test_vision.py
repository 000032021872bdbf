"""vLLM reads pictures as the trainer does: the same tokens, pixels and log-probs, with the present weights.

One engine a family, of a small random model whose tower joins 2 x 2 patches, as those of real models do.
"""

import importlib.util
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from PIL import Image
from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil

from arl_gym.agents.rollout import rollout
from arl_gym.agents.types import Episode, Request
from arl_gym.core import Message, Part
from arl_gym.make import make_chat_vec
from arl_gym.rng import derive
from arl_gym.train import distributed
from arl_gym.train.chat import ChatCodec
from arl_gym.train.config import VLLMConfig
from arl_gym.train.model import Loaded, tiny_tokenizer
from arl_gym.train.policies.hf import HFPolicy
from arl_gym.train.policies.vllm import VLLMPolicy, close_engine, give_weights, open_engine
from arl_gym.train.samplers import describe, sampling_weights
from arl_gym.train.vision import Vision
from tests.conftest import require
from tests.vllm.conftest import BLOCK
from tests.vllm.test_policy import answers

MAX_CONTEXT = 512
FAMILIES = ["Qwen3VL", "Qwen2_5_VL", "Qwen2VL"]
# Patches a side in a picture token, pixels a side in a patch: a token reads a Sokoban cell of 32 or 28.
MERGE = 2
PATCH = {"Qwen3VL": 16, "Qwen2_5_VL": 14, "Qwen2VL": 14}
LEAST, MOST = 1, 64
"""Tokens of a picture: others are enlarged or made smaller."""

TEXT: dict[str, Any] = {
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "tie_word_embeddings": True,
}
ROPE: dict[str, Any] = {"rope_type": "default", "rope_theta": 10_000.0, "mrope_section": [6, 5, 5]}
TEXTS: dict[str, dict[str, Any]] = {
    "Qwen3VL": {"head_dim": 32, "rope_parameters": {**ROPE, "mrope_interleaved": True}},
    "Qwen2_5_VL": {"rope_parameters": ROPE},
    "Qwen2VL": {"rope_parameters": ROPE},
}
TOWER: dict[str, Any] = {
    "depth": 2,
    "intermediate_size": 128,
    "num_heads": 2,
    "hidden_size": 64,
    "out_hidden_size": 64,
}
TOWERS: dict[str, dict[str, Any]] = {
    "Qwen3VL": {**TOWER, "num_position_embeddings": 256, "deepstack_visual_indexes": [0, 1]},
    "Qwen2_5_VL": {**TOWER, "window_size": 56, "fullatt_block_indexes": [1]},
    "Qwen2VL": {"depth": 2, "embed_dim": 64, "hidden_size": 64, "num_heads": 2, "mlp_ratio": 2},
}


@pytest.fixture(scope="module", autouse=True)
def _torchvision():
    require(importlib.util.find_spec("torchvision") is not None, "torchvision is not installed")


def seeing_model(family, seed=1):
    tokenizer = tiny_tokenizer(vision=True)
    token = tokenizer.convert_tokens_to_ids
    config = getattr(transformers, f"{family}Config")(
        text_config={**TEXT, **TEXTS[family], "vocab_size": len(tokenizer)},
        vision_config={**TOWERS[family], "patch_size": PATCH[family]},
        image_token_id=token("<|image_pad|>"),
        video_token_id=token("<|video_pad|>"),
        vision_start_token_id=token("<|vision_start|>"),
        vision_end_token_id=token("<|vision_end|>"),
        tie_word_embeddings=True,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = getattr(transformers, f"{family}ForConditionalGeneration")(config).eval()
        for parameter in model.parameters():  # else nearly all tokens are equally likely
            parameter.requires_grad_(False).add_(torch.randn_like(parameter) * 0.05)
    area = (MERGE * PATCH[family]) ** 2
    size = {"shortest_edge": LEAST * area, "longest_edge": MOST * area}
    processor = Qwen2VLImageProcessorPil(patch_size=PATCH[family], merge_size=MERGE, size=size)
    return Loaded(model=model, tokenizer=tokenizer, vision=Vision(model, processor))


@pytest.fixture(scope="module", params=FAMILIES)
def family(request):
    return request.param


@pytest.fixture(scope="module")
def llm(family, tmp_path_factory):
    distributed.start()
    folder = tmp_path_factory.mktemp("model")
    describe(seeing_model(family), folder)
    dials = VLLMConfig(kwargs={"block_size": BLOCK, "max_num_seqs": 64})
    opened = open_engine(folder, dtype="float32", max_context=MAX_CONTEXT, seed=0, dials=dials, weights=False)
    yield opened
    close_engine(opened)


@pytest.fixture
def loaded(llm, family):
    """The model whose weights the engine has."""
    fresh = seeing_model(family)
    give_weights(llm, sampling_weights(fresh.model))
    return fresh


@pytest.fixture
def codec(loaded):
    return ChatCodec(loaded.tokenizer, loaded.vision)


def both(llm, loaded, codec, **changes):
    dials = {"max_tokens": 6, "temperature": 0.0, "max_context": MAX_CONTEXT} | changes
    return VLLMPolicy(llm, codec, **dials), HFPolicy(loaded.model, codec, batch_size=8, **dials)


def noise(width, height, *, seed=0, mode="RGB"):
    shape = (height, width, {"RGB": 3, "RGBA": 4, "L": 1}[mode])
    pixels = np.random.default_rng(seed).integers(0, 256, shape, dtype=np.uint8)
    return Image.fromarray(pixels.squeeze())


def request(*pictures, key=0, before="You see "):
    parts: list[Part] = [{"type": "text", "text": before}]
    for picture in pictures:
        parts += [{"type": "image", "image": picture}, {"type": "text", "text": " and "}]
    messages: list[Message] = [{"role": "user", "content": parts}]
    stream = derive("test", key)
    return Request(
        key=key, messages=messages, info={}, context_ids=None, stream=stream, pictures=list(pictures)
    )


def check_equal(ours, theirs):
    assert ours.prompt_ids == theirs.prompt_ids
    assert ours.completion_ids == theirs.completion_ids
    assert ours.logprobs == pytest.approx(theirs.logprobs, abs=1e-5)


def n_placeholders(codec, reply):
    return reply.prompt_ids.count(codec.vision.image_id)


def test_a_board_of_six_by_six_cells_is_read_cell_by_cell_as_it_is(llm, loaded, codec, family):
    side = 6 * MERGE * PATCH[family]  # 192 or 168 pixels
    board = noise(side, side)
    assert codec.vision.fitted(board).tobytes() == board.tobytes()
    ours, theirs = (answers(policy, [request(board)])[0] for policy in both(llm, loaded, codec))
    assert n_placeholders(codec, ours) == 36
    check_equal(ours, theirs)


# In widths of a picture token, 32 or 28 pixels; what is not a whole number of them is resized.
@pytest.mark.parametrize(
    ("sizes", "mode", "n_tokens"),
    [
        ([(3, 5)], "RGB", [15]),
        ([(2.9, 5.2)], "RGB", [15]),
        ([(0.5, 0.5)], "RGB", [1]),
        # 200 tokens are more than 64: both sides through sqrt(200 / 64) = 1.77, rounded down: 11 x 5
        ([(20, 10)], "RGB", [55]),
        ([(2, 2), (3, 1.2)], "RGBA", [4, 3]),
        ([(1, 4), (4, 1), (3.3, 3.3)], "L", [4, 4, 9]),
        ([], "RGB", []),
    ],
)
def test_pictures_are_read_as_transformers_reads_them(llm, loaded, codec, family, sizes, mode, n_tokens):
    width = MERGE * PATCH[family]
    pictures = [noise(int(x * width), int(y * width), seed=n, mode=mode) for n, (x, y) in enumerate(sizes)]
    ours, theirs = (answers(policy, [request(*pictures)])[0] for policy in both(llm, loaded, codec))
    assert n_placeholders(codec, ours) == sum(n_tokens)
    check_equal(ours, theirs)


def test_sampled_log_probs_are_those_without_placeholders(llm, loaded, codec):
    picture = noise(64, 64)
    ours, _ = both(llm, loaded, codec, temperature=0.7)
    for reply in answers(ours, [request(picture, key=k) for k in range(3)]):
        ids = torch.tensor([reply.prompt_ids + reply.completion_ids])
        seen = codec.vision.pixels([picture])
        positions = codec.vision.positions(ids, torch.ones_like(ids), seen["image_grid_thw"])
        types = (ids == codec.vision.image_id).int()
        with torch.no_grad():
            out = loaded.model(input_ids=ids, position_ids=positions, mm_token_type_ids=types, **seen)
        logits = out.logits[0]
        logits[:, list(codec.banned)] = -torch.inf
        logp = torch.log_softmax(logits / 0.7, -1)
        n = len(reply.prompt_ids)
        expected = [float(logp[n - 1 + i, t]) for i, t in enumerate(reply.completion_ids)]
        assert reply.logprobs == pytest.approx(expected, abs=1e-5)


def test_equal_ids_with_other_pictures_share_only_the_text_before(llm, loaded, codec, family):
    side = 6 * MERGE * PATCH[family]
    before = "Look at the board. " * 4
    first, second = (request(noise(side, side, seed=s), before=before) for s in (0, 1))
    ours, theirs = both(llm, loaded, codec)
    expected = [answers(theirs, [r])[0] for r in (first, second)]
    assert expected[0].prompt_ids == expected[1].prompt_ids
    assert abs(expected[0].logprobs[0] - expected[1].logprobs[0]) > 1e-3
    n_text, n = expected[0].prompt_ids.index(codec.vision.image_id), len(expected[0].prompt_ids)
    assert n_text // BLOCK < (n - 1) // BLOCK
    for asked, reply, n_shared in (
        (first, expected[0], 0),
        (second, expected[1], n_text // BLOCK * BLOCK),
        (first, expected[0], (n - 1) // BLOCK * BLOCK),
    ):
        cached = ours.n_cached_tokens
        check_equal(answers(ours, [asked])[0], reply)
        assert ours.n_cached_tokens - cached == n_shared


@pytest.mark.parametrize("part", ["visual", "language_model"])
def test_new_weights_are_sampled_with_at_once(llm, loaded, codec, part):
    asked = request(noise(192, 192), before="Look at the board. " * 4)
    ours, theirs = both(llm, loaded, codec)
    old = answers(ours, [asked])[0]
    check_equal(old, answers(theirs, [asked])[0])
    changed = [p for name, p in loaded.model.named_parameters() if part in name]
    assert changed
    for parameter in changed:
        parameter.add_(torch.randn_like(parameter) * 0.05)
    give_weights(llm, sampling_weights(loaded.model))
    new = answers(ours, [asked])[0]
    check_equal(new, answers(theirs, [asked])[0])
    assert abs(new.logprobs[0] - old.logprobs[0]) > 1e-3


def played(policy, *, window, tile_size):
    vec = make_chat_vec(
        "ARL/Sokoban-v0",
        4,
        window=window,
        max_steps=4,
        prompt="compact",
        obs_mode="image",
        tile_size=tile_size,
        dim_room=(6, 6),
    )
    try:
        ids = vec.call(0, "get_wrapper_attr", "task_ids")("train")
        todo = [Episode(task_id=ids[i // 2], group=i // 2, copy=i % 2) for i in range(4)]
        return rollout(vec, policy, todo, env_id="ARL/Sokoban-v0", seed=0)
    finally:
        vec.close()


@pytest.mark.parametrize("window", [2, None], ids=["window of 2", "dialogue"])
def test_episodes_on_pictures_equal_those_of_transformers(llm, loaded, codec, family, window):
    tile_size = MERGE * PATCH[family]
    ours, theirs = (
        [
            turn
            for trajectory in played(policy, window=window, tile_size=tile_size)
            for turn in trajectory.turns
        ]
        for policy in both(llm, loaded, codec)
    )
    assert len(ours) == len(theirs) == 16
    for mine, other in zip(ours, theirs, strict=True):
        check_equal(mine, other)
    # Boards shown by the four turns: a window of 2 keeps 2 earlier ones, a dialogue all.
    n_boards = [1, 2, 3, 3] if window == 2 else [1, 2, 3, 4]
    assert [n_placeholders(codec, turn) for turn in ours[:4]] == [36 * n for n in n_boards]
