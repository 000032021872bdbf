import dataclasses

import numpy as np
import pytest
import torch
import transformers
from PIL import Image
from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil

from arl_gym.errors import DataError
from arl_gym.train.batch import pack
from arl_gym.train.chat import ChatCodec
from arl_gym.train.config import ModelConfig
from arl_gym.train.engine import Engine
from arl_gym.train.model import load_model
from arl_gym.train.packing import layout
from arl_gym.train.pictures import view
from arl_gym.train.vision import Vision
from tests.train.engine_jobs import LORA, LOSS, OPTIM, master_weights
from tests.train.ranks import run_ranks
from tests.train.trajectories import trajectory
from tests.train.vision_jobs import (
    answered,
    gradients,
    logits,
    old_logprobs,
    scored,
    shown,
    square,
    trajectories,
    update_of,
    vision_engine,
)

pytestmark = pytest.mark.timeout(300)


def distance(a, b):
    """Relative to the second."""
    return float(np.linalg.norm(a - b) / np.linalg.norm(b))


@pytest.fixture(scope="module")
def whole():
    """One pass over all rows, each with a prompt of its own."""
    return update_of(dataclasses.replace(OPTIM, share_prompts=False))


@pytest.fixture(scope="module")
def two(tmp_path_factory):
    """What two ranks compute."""
    return run_ranks("tests.train.vision_jobs", ["gradients"], tmp_path_factory.mktemp("two"))


@pytest.fixture(scope="module")
def one(tmp_path_factory):
    """What one rank computes."""
    return gradients(tmp_path_factory.mktemp("one"))


@pytest.mark.parametrize("stage", [0, 1, 2, 3])
@pytest.mark.slow
def test_neither_stage_nor_ranks_nor_passes_without_pictures_change_the_gradient(one, two, stage):
    expected = one["whole/gradient"]
    for results in (one, *({k.removeprefix("gradients/"): v for k, v in r.items()} for r in two)):
        assert distance(results[f"{stage}/gradient"], expected) < 1e-6
        assert np.allclose(results[f"{stage}/old"], one["whole/old"], atol=1e-5)
        assert np.allclose(results[f"{stage}/ref"], one["whole/old"], atol=1e-5)


@pytest.mark.slow
def test_all_ranks_play_with_the_trained_weights_at_every_stage(one, two):
    for results in two:
        for stage in range(4):
            assert np.allclose(results[f"gradients/{stage}/after"], one["whole/after"], atol=1e-4)


def test_scores_are_the_models_own_log_probs_after_its_pictures():
    engine, codec = vision_engine(reference=False)
    messages = [shown("go", "red"), shown("go", "blue", square("green", 48)), shown("go")]
    played = [trajectory(answered(codec, m, [7])) for m in messages]
    batch = engine.score(pack(played, pad_id=codec.pad_id))
    for n, m in enumerate(messages):
        said = logits(engine.rollout_model(), codec, m)[-1]
        said[list(codec.banned)] = -torch.inf
        expected = float(torch.log_softmax(said, -1)[7])
        assert batch.old_logprobs[n, batch.lengths[n] - 1] == pytest.approx(expected, abs=1e-6)


def test_sharing_prompts_and_small_passes_change_neither_scores_nor_gradient(whole):
    engine, codec = vision_engine()
    batch = pack(trajectories(codec), pad_id=codec.pad_id)
    plan = layout(batch, share=engine._can_share, seen=view(batch, codec.vision).features)
    assert plan.ids.size < 0.6 * batch.ids.size
    for cfg in (OPTIM, dataclasses.replace(OPTIM, micro_tokens=60)):
        shared = update_of(cfg)
        assert np.allclose(shared["old"], whole["old"], rtol=1e-6, atol=1e-6)  # log-probs of -10
        assert np.abs(shared["gradient"] - whole["gradient"]).max() < 1e-6
        assert distance(shared["gradient"], whole["gradient"]) < 1e-5


def test_the_gradient_is_the_models_own_with_every_row_on_its_own():
    engine, codec = vision_engine(reference=False)
    prompts = [shown("go", "red"), shown("go", "red"), shown("go", "red", "blue"), shown("go")]
    played = [trajectory(answered(codec, m, [7 + i])) for i, m in enumerate(prompts)]
    engine.fit(pack(played, pad_id=codec.pad_id), np.arange(4), lr=1e-3)

    model = load_model("tiny-vl", dtype="float32", seed=1).model
    for i, messages in enumerate(prompts):
        said = logits(model, codec, messages, graph=True)[-1]
        allowed = [t for t in range(len(said)) if t not in codec.banned]
        (said[allowed].logsumexp(0) - said[7 + i]).div(4).backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert torch.allclose(gradient_of(engine, name).view_as(parameter), parameter.grad, atol=1e-6), name


def gradient_of(engine, name):
    engine._state.begin()
    return engine._state.read(name)["exp_avg"] * 10  # 1 - beta1 is 0.1


def test_the_gradient_reaches_the_vision_tower_and_depends_on_the_pixels():
    found = []
    for colour in ("red", "blue"):
        engine, codec = vision_engine(reference=False)
        batch = pack([trajectory(answered(codec, shown("go", colour), [7]))], pad_id=codec.pad_id)
        engine.fit(batch, np.array([0]), lr=1e-3)
        (name,) = (n for n in engine._state.parameters if n.endswith("patch_embed.proj.weight"))
        found.append(gradient_of(engine, name))
    assert all(float(g.norm()) > 1e-4 for g in found)
    assert distance(found[0].numpy(), found[1].numpy()) > 0.1


def test_without_pictures_the_vision_tower_gets_a_gradient_of_zero():
    engine, codec = vision_engine(reference=False)
    batch = pack([trajectory(answered(codec, shown("go"), [7]))], pad_id=codec.pad_id)
    engine.fit(batch, np.array([0]), lr=1e-3)
    towers = [n for n in engine._state.parameters if "visual" in n]
    assert len(towers) > 10
    assert all(not gradient_of(engine, n).any() for n in towers)


def test_what_only_a_picture_tells_is_learnt():
    engine, codec = vision_engine(reference=False)
    answers = {"red": codec.encode_response("up"), "green": codec.encode_response("down")}
    played = [trajectory(answered(codec, shown("go", c), a)) for c, a in answers.items()]
    batch = pack(played, pad_id=codec.pad_id)
    assert len({len(a) for a in answers.values()}) == 1
    for _ in range(40):
        engine.fit(batch, np.arange(2), lr=3e-3)
    # Without looking, one token of each answer costs ln 2 at least.
    assert engine.nll(batch) < 0.1 * np.log(2) / len(answers["red"])


def test_the_reference_model_sees_pictures_and_stays_as_it_was():
    engine, codec = vision_engine()
    before = scored(engine, codec)
    assert np.array_equal(before.old_logprobs, before.ref_logprobs)
    engine.update(before, LOSS, total_steps=1)
    after = scored(engine, codec)
    assert np.array_equal(after.ref_logprobs, before.ref_logprobs)
    assert np.abs(after.old_logprobs - before.old_logprobs).max() > 1e-3


def test_adapters_are_trained_and_exported_with_pictures(tmp_path):
    engine, codec = vision_engine(model_cfg=LORA)
    before = scored(engine, codec)
    for _ in range(2):  # an adapter's first half begins as zero, and the other's gradient with it
        engine.update(before, LOSS, total_steps=2)
    after = scored(engine, codec)
    assert np.array_equal(after.ref_logprobs, before.old_logprobs)
    assert np.abs(after.old_logprobs - before.old_logprobs).max() > 1e-3
    engine.export(tmp_path / "model", codec.tokenizer)
    loaded = load_model(str(tmp_path / "model"), dtype="float32", seed=0)
    messages = shown("go", "red", "blue")
    mine, theirs = (logits(m, codec, messages) for m in (engine.rollout_model(), loaded.model))
    assert torch.allclose(mine, theirs, atol=1e-5)
    assert loaded.vision is not None
    assert (tmp_path / "model" / "adapter").is_dir()


def test_recomputing_activations_changes_no_gradient(whole):
    recomputed = update_of(OPTIM, model_cfg=ModelConfig(gradient_checkpointing=True))
    assert distance(recomputed["gradient"], whole["gradient"]) < 1e-5


def test_an_exported_model_sees_what_the_trained_one_sees(tmp_path):
    engine, codec = vision_engine(reference=False)
    start = master_weights(engine)
    engine.update(scored(engine, codec), dataclasses.replace(LOSS, kl_coef=0.0), total_steps=1)
    assert np.abs(master_weights(engine) - start).max() > 1e-4
    engine.export(tmp_path / "model", codec.tokenizer)
    loaded = load_model(str(tmp_path / "model"), dtype="float32", seed=0)
    again = Engine(loaded.model, OPTIM, temperature=1.0, reference=False, vision=loaded.vision)
    played = trajectories(codec)
    first, second = (old_logprobs(e, pack(played, pad_id=codec.pad_id)) for e in (engine, again))
    assert np.allclose(first, second, atol=1e-6)


TEXT = {
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
}
TOWER = {"depth": 2, "hidden_size": 32, "intermediate_size": 64, "num_heads": 2, "patch_size": 16}


@pytest.mark.parametrize(
    ("name", "tower"),
    [
        ("Qwen2VL", {"depth": 2, "embed_dim": 32, "hidden_size": 64, "num_heads": 2}),
        ("Qwen2_5_VL", {**TOWER, "patch_size": 14, "out_hidden_size": 64}),
        ("Qwen3VL", {**TOWER, "out_hidden_size": 64, "deepstack_visual_indexes": [0]}),
    ],
)
def test_every_family_scores_alike_with_and_without_shared_prompts(name, tower):
    _, codec = vision_engine(reference=False)
    ids = {
        "image_token_id": codec.vision.image_id,
        "video_token_id": next(i for i in codec.banned if i != codec.vision.image_id),
    }
    rope = {"rope_type": "default", "rope_theta": 10_000.0, "mrope_section": [4, 2, 2]}
    text = {**TEXT, "vocab_size": len(codec.tokenizer), "rope_parameters": rope}
    config = getattr(transformers, f"{name}Config")(text_config=text, vision_config=tower, **ids)
    torch.manual_seed(0)
    model = getattr(transformers, f"{name}ForConditionalGeneration")(config)
    patch = config.vision_config.patch_size
    processor = Qwen2VLImageProcessorPil(
        patch_size=patch, merge_size=2, size={"shortest_edge": 1, "longest_edge": 1 << 20}
    )
    own = ChatCodec(codec.tokenizer, Vision(model, processor))
    side = 4 * patch  # 2 x 2 features
    pictures = [Image.new("RGB", (side, side), c) for c in ("red", "blue")]
    played = [
        trajectory(answered(own, shown("go", p), [7 + c, 9], reward=float(c)), group=g, copy=c)
        for g, p in enumerate(pictures)
        for c in range(3)
    ]
    batch = pack(played, pad_id=own.pad_id)
    scores = []
    for share in (False, True):
        engine = Engine(
            model,
            dataclasses.replace(OPTIM, zero_stage=0, share_prompts=share),
            temperature=1.0,
            reference=False,
            vision=own.vision,
        )
        assert engine._can_share == share
        scores.append(old_logprobs(engine, batch))
    assert np.abs(scores[0] - scores[1]).max() < 1e-6
    for n in range(6):
        said = logits(model, own, shown("go", pictures[n // 3]))[-1]
        said[list(own.banned)] = -torch.inf
        expected = float(torch.log_softmax(said, -1)[7 + n % 3])
        assert scores[0][n, batch.lengths[n] - 2] == pytest.approx(expected, abs=1e-6)


def test_a_model_that_reads_text_only_refuses_pictures():
    _, codec = vision_engine(reference=False)
    model = load_model("tiny", dtype="float32", seed=0).model
    engine = Engine(model, OPTIM, temperature=1.0, reference=False)
    batch = pack([trajectory(answered(codec, shown("go", "red"), [7]))], pad_id=codec.pad_id)
    with pytest.raises(DataError, match="has pictures, but the model reads text only"):
        engine.score(batch)
