import dataclasses
import json

import pytest
import torch
from transformers import Qwen3Config, Qwen3ForCausalLM, Qwen3VLConfig, Qwen3VLForConditionalGeneration

from arl_gym.errors import ConfigError, UnknownNameError
from arl_gym.train.config import ModelConfig
from arl_gym.train.memory import (
    GIB,
    KNOWN,
    Part,
    activation_bytes,
    adapter_parameters,
    cache_bytes,
    estimate,
    peak_gib,
    shape_from,
    shape_of,
)
from arl_gym.train.methods import resolve
from arl_gym.train.model import load_model, tiny_model, tiny_tokenizer
from tests.train.pictures import qwen25

QWEN = KNOWN["Qwen3-4B"]


def run(**sections):
    model = {"path": "Qwen/Qwen3-4B", "dtype": "bfloat16", "max_context": 2560}
    return resolve({**sections, "model": {**model, **sections.get("model", {})}})


def gib(cfg, gpus=1, shape=QWEN):
    return {part.what: part.gib for part in estimate(cfg, shape, gpus=gpus)}


@pytest.mark.parametrize(
    ("name", "millions"),
    [("Qwen3-0.6B", 596.05), ("Qwen3-1.7B", 1720.57), ("Qwen3-4B", 4022.47), ("Qwen3-8B", 8190.74)],
)
def test_known_shapes_have_the_published_numbers_of_parameters(name, millions):
    # 0.6B, 1.7B, 4.0B and 8.2B on the model cards.
    assert KNOWN[name].parameters / 1e6 == pytest.approx(millions, abs=0.01)


def test_the_4b_models_state_is_that_of_the_arithmetic_by_hand():
    # 4.022e9 parameters: 2 bytes each 7.49 GiB, 4 bytes 14.99, 8 bytes 29.97.
    sizes = gib(run())
    assert sizes["weights"] == pytest.approx(7.49, abs=0.01)
    assert sizes["float32 copy of what is trained"] == pytest.approx(14.99, abs=0.01)
    assert sizes["Adam's two moments"] == pytest.approx(29.97, abs=0.01)
    assert sizes["gradients"] == pytest.approx(14.99, abs=0.01)
    assert sizes["reference model"] == pytest.approx(7.49, abs=0.01)


@pytest.mark.parametrize(
    ("stage", "weights", "gradients", "moments"),
    [(0, 7.49, 14.99, 29.97), (1, 7.49, 14.99, 7.49), (2, 7.49, 3.75, 7.49), (3, 1.87, 3.75, 7.49)],
)
def test_every_zero_stage_shares_one_thing_more(stage, weights, gradients, moments):
    sizes = gib(run(optim={"zero_stage": stage}), gpus=4)
    found = (sizes["weights"], sizes["gradients"], sizes["Adam's two moments"])
    assert found == pytest.approx((weights, gradients, moments), abs=0.01)


def test_shared_weights_need_a_whole_copy_to_play():
    assert gib(run(optim={"zero_stage": 3}), gpus=4)["whole copy that plays"] == pytest.approx(7.49, abs=0.01)
    assert "whole copy that plays" not in gib(run(), gpus=4)


def test_float32_weights_are_their_own_copy_only_without_zero():
    without = gib(run(model={"dtype": "float32"}, optim={"zero_stage": 0}))
    assert "float32 copy of what is trained" not in without
    assert without["weights"] == pytest.approx(14.99, abs=0.01)
    assert "float32 copy of what is trained" in gib(run(model={"dtype": "float32"}))


def test_a_token_of_the_4b_model_leaves_144_kib_in_the_cache():
    # 2 (keys, values) x 36 layers x 8 heads x 128 x 2 bytes
    assert cache_bytes(QWEN, "bfloat16") == 144 * 1024
    # 64 rows x 2,560 tokens x 144 KiB = 22.5 GiB; on four GPUs each plays 32 of the 128 episodes.
    assert gib(run())["cache of 64 rows"] == 22.5
    assert gib(run(), gpus=4)["cache of 32 rows"] == 11.25


def test_checkpointing_keeps_the_input_of_every_layer_and_one_whole_layer():
    # A layer: 6 x 2560 + 4 x 4096 + 6 x 1024 + 4 x 9728 = 76,800 numbers of 2 bytes.
    assert activation_bytes(QWEN, "bfloat16", checkpointing=False) == 36 * 76_800 * 2
    assert activation_bytes(QWEN, "bfloat16", checkpointing=True) == (36 * 2560 + 76_800) * 2
    # 16,384 tokens x 337,920 bytes
    sizes = gib(run(model={"gradient_checkpointing": True}))
    assert sizes["activations of 16,384 tokens"] == pytest.approx(5.16, abs=0.01)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_activations_are_about_what_autograd_keeps(dtype):
    def kept(layers: int) -> int:
        config = Qwen3Config(
            vocab_size=8,
            hidden_size=512,
            intermediate_size=1536,
            num_hidden_layers=layers,
            num_attention_heads=8,
            num_key_value_heads=4,
            head_dim=128,
        )
        model = Qwen3ForCausalLM(config).to(getattr(torch, dtype))
        weights = {p.untyped_storage().data_ptr() for p in model.parameters()}
        stored: dict[int, torch.UntypedStorage] = {}

        def note(tensor: torch.Tensor) -> torch.Tensor:
            storage = tensor.untyped_storage()
            if storage.data_ptr() not in weights:
                stored[storage.data_ptr()] = storage
            return tensor

        with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
            model.model(input_ids=torch.zeros((1, 128), dtype=torch.long), use_cache=False)
        return sum(storage.nbytes() for storage in stored.values())

    shape = dataclasses.replace(QWEN, hidden=512, intermediate=1536, heads=8, kv_heads=4, layers=1)
    a_layer = (kept(2) - kept(1)) / 128
    assert activation_bytes(shape, dtype, checkpointing=False) == pytest.approx(a_layer, rel=0.12)


def test_a_row_longer_than_a_micro_batch_counts_whole():
    cfg = run(optim={"micro_tokens": 1024})
    assert "activations of 2,560 tokens" in gib(cfg)


def test_logits_are_those_of_a_piece():
    # 67,108,864 / 151,936 = 441 positions of 151,936 numbers: in 8 bytes 0.499 GiB, in 10 0.624 GiB.
    assert gib(run(model={"dtype": "float32"}))["logits of 441 tokens"] == pytest.approx(0.499, abs=0.001)
    assert gib(run())["logits of 441 tokens"] == pytest.approx(0.624, abs=0.001)


def test_an_adapter_is_what_is_trained_and_needs_no_reference():
    # 0.6B, a layer: q 1024+2048, k and v 1024+1024 each, o 2048+1024, three of 1024+3072 = 22,528; x 28 x 32.
    shape, model = KNOWN["Qwen3-0.6B"], {"lora_rank": 32}
    assert adapter_parameters(shape, ModelConfig(lora_rank=32)) == 20_185_088
    sizes = gib(run(model=model), shape=shape)
    assert sizes["Adam's two moments"] * GIB == 20_185_088 * 8
    assert sizes["weights"] == pytest.approx(1.11, abs=0.01)
    assert "reference model" not in sizes


def test_an_adapter_on_some_maps_is_smaller():
    # q 3,072 and v 2,048
    model = ModelConfig(lora_rank=1, lora_targets="q_proj, v_proj")
    assert adapter_parameters(KNOWN["Qwen3-0.6B"], model) == 28 * 5120
    with pytest.raises(UnknownNameError, match="did you mean 'q_proj'"):
        adapter_parameters(KNOWN["Qwen3-0.6B"], ModelConfig(lora_rank=1, lora_targets="q_pro"))


def test_without_a_divergence_there_is_no_reference():
    assert "reference model" not in gib(run(loss={"kl_coef": 0.0}))


def test_what_is_offloaded_is_on_the_host():
    cfg = run(optim={"offload_reference": True, "zero": {"offload_optimizer": {"device": "cpu"}}})
    on_host = {part.what for part in estimate(cfg, QWEN, gpus=1) if part.on_host}
    assert on_host == {"float32 copy of what is trained", "Adam's two moments", "reference model"}


def test_the_peak_is_the_larger_of_rollout_and_update():
    parts = [
        Part(what="weights", gib=4),
        Part(what="cache", gib=3, phase="rollout"),
        Part(what="activations", gib=1, phase="update"),
        Part(what="logits", gib=1, phase="update"),
        Part(what="reference", gib=9, on_host=True),
    ]
    assert peak_gib(parts) == 7


def test_names_of_derived_models_are_recognised():
    for path in ("UCLA-SCAI/Qwen3-4B-rft-alfworld", "Qwen/Qwen3-4B-Base", "Qwen/Qwen3-4B"):
        assert shape_of(ModelConfig(path=path)) == QWEN
    with pytest.raises(ConfigError, match="'Qwen/Qwen3-40B' is not known"):
        shape_of(ModelConfig(path="Qwen/Qwen3-40B"))


def test_the_shape_of_a_folder_is_that_of_its_model(tmp_path):
    model = tiny_model(tiny_tokenizer(), seed=0)
    (tmp_path / "config.json").write_text(json.dumps(model.config.to_dict()))
    shape = shape_of(ModelConfig(path=str(tmp_path)))
    assert shape.parameters == sum(p.numel() for p in model.parameters())
    assert dataclasses.replace(shape, vocab=0) == dataclasses.replace(shape_of(ModelConfig()), vocab=0)


@pytest.mark.parametrize("words", ["", "red green"])
def test_the_shape_of_tiny_vl_is_exact(tmp_path, words):
    loaded = load_model("tiny-vl", dtype="float32", seed=0, words=words.split())
    n = sum(p.numel() for p in loaded.model.parameters())
    (tmp_path / "config.json").write_text(json.dumps(loaded.model.config.to_dict()))
    for path in ("tiny-vl", str(tmp_path)):
        shape = shape_of(ModelConfig(path=path, words=words))
        assert (shape.parameters, shape.tower) == (n, 213_280)


def test_the_shape_of_a_large_vision_model_is_exact():
    config = Qwen3VLConfig(
        text_config={"hidden_size": 512, "num_hidden_layers": 3, "intermediate_size": 1024, "head_dim": 64},
        vision_config={"depth": 5, "hidden_size": 256, "intermediate_size": 640, "out_hidden_size": 512},
        tie_word_embeddings=False,
    )
    with torch.device("meta"):
        model = Qwen3VLForConditionalGeneration(config)
    content = config.to_dict()
    content["text_config"].pop("tie_word_embeddings", None)  # files of the hub say it once, outside
    assert shape_from(content).parameters == sum(p.numel() for p in model.parameters())


def test_the_tower_of_qwen25_is_counted_closely():
    model = qwen25().model
    content = model.config.to_dict()
    n = sum(p.numel() for p in model.model.visual.parameters())
    # Three norms of 32 without a bias too many in each of 2 blocks and the merger, and a bias in the patches.
    assert shape_from(content).tower == n + (2 * 2 + 1) * 32 + 32


def test_the_table_knows_the_tower_of_qwen3_vl():
    # The language model, and 24 blocks of 12.6 million, 4 mergers of 27.3, patches and places.
    tower = 24 * 12.6e6 + 4 * 27.3e6 + 4e6
    assert KNOWN["Qwen3-VL-4B"].parameters == pytest.approx(QWEN.parameters + tower, rel=1e-3)


def test_a_tower_of_unknown_sizes_is_one_clear_error():
    with pytest.raises(ConfigError, match="expected 'spatial_merge_size' in vision_config"):
        shape_from({"vision_config": {"hidden_size": 99}})


@pytest.mark.parametrize(
    ("content", "message"),
    [("{}", "whole numbers for hidden_size"), ("[", "cannot read"), ('{"num_experts": 8}', "mixture")],
)
def test_a_folder_without_a_shape_is_one_clear_error(tmp_path, content, message):
    (tmp_path / "config.json").write_text(content)
    with pytest.raises(ConfigError, match=message):
        shape_of(ModelConfig(path=str(tmp_path)))


def test_the_vocabulary_of_the_tiny_model_is_about_right():
    words = "red green blue up"
    assert shape_of(ModelConfig(words=words)).vocab == pytest.approx(
        len(tiny_tokenizer(words.split())), abs=8
    )
