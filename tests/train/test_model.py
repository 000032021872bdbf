import json
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoModelForImageTextToText

from arl_gym.errors import ArlGymError, ConfigError
from arl_gym.train.config import ModelConfig, RunConfig
from arl_gym.train.model import (
    add_lora,
    initial_model,
    load_model,
    plain_weights,
    save_model,
    tiny_model,
    tiny_tokenizer,
)
from tests.train.pictures import noise, qwen3, qwen25


def tiny():
    loaded = load_model("tiny", dtype="float32", seed=5)
    return loaded.model, loaded.tokenizer


def test_tiny_weights_follow_the_seed_and_leave_the_global_stream_alone():
    tokenizer = tiny_tokenizer()
    before = torch.random.get_rng_state()
    a, b, c = (tiny_model(tokenizer, seed=s).state_dict() for s in (1, 1, 2))
    assert torch.equal(before, torch.random.get_rng_state())
    key = "model.embed_tokens.weight"
    assert torch.equal(a[key], b[key])
    assert not torch.equal(a[key], c[key])


def test_any_text_survives_the_tiny_tokenizer():
    tokenizer = tiny_tokenizer()
    text = "группа √ 好 🙂 up<action>\t\n  x"
    assert tokenizer.decode(tokenizer(text)["input_ids"]) == text


def test_words_are_one_token_each_with_their_blank(tmp_path):
    tokenizer = tiny_tokenizer(["mug", "from", "take", "up"])
    text = "take mug 1 from group, smug up"
    ids = tokenizer(text)["input_ids"]
    assert tokenizer.decode(ids) == text
    pieces = [tokenizer.decode([i]) for i in ids]
    assert pieces == [*("take", " mug", " ", "1", " from"), *" group, smug", " up"]
    assert len(tokenizer) == len(tiny_tokenizer()) + 7  # "up" alone was a token already


def test_a_saved_model_reloads_with_equal_weights_and_tokens(tmp_path):
    model, tokenizer = tiny()
    save_model(tmp_path / "m", model, tokenizer)
    again = load_model(str(tmp_path / "m"), dtype="float32", seed=0)
    assert all(torch.equal(v, again.model.state_dict()[k]) for k, v in model.state_dict().items())
    text = "<think></think><action>up</action> cup"
    assert again.tokenizer(text)["input_ids"] == tokenizer(text)["input_ids"]
    assert again.tokenizer.chat_template == tokenizer.chat_template


def test_saving_over_a_model_needs_replace(tmp_path):
    model, tokenizer = tiny()
    save_model(tmp_path / "m", model, tokenizer)
    with pytest.raises(ConfigError, match="exists already"):
        save_model(tmp_path / "m", model, tokenizer)
    other = tiny_model(tokenizer, seed=6)
    save_model(tmp_path / "m", other, tokenizer, replace=True)
    again = load_model(str(tmp_path / "m"), dtype="float32", seed=0).model
    key = "model.embed_tokens.weight"
    assert torch.equal(again.state_dict()[key], other.state_dict()[key])
    assert [p.name for p in tmp_path.iterdir()] == ["m"]


def test_a_folder_that_cannot_be_written_is_one_clear_error(tmp_path):
    model, tokenizer = tiny()
    (tmp_path / "file").write_text("")
    with pytest.raises(ArlGymError, match="cannot write the model folder"):
        save_model(tmp_path / "file" / "m", model, tokenizer)


@pytest.mark.parametrize(
    ("missing", "message"),
    [
        ("tokenizer.json", "no tokenizer"),
        ("config.json", "no config.json"),
        ("model.safetensors", "no weights"),
    ],
)
def test_an_incomplete_model_folder_is_named(tmp_path, missing, message):
    model, tokenizer = tiny()
    save_model(tmp_path / "m", model, tokenizer)
    (tmp_path / "m" / missing).unlink()
    with pytest.raises(ConfigError, match=message):
        load_model(str(tmp_path / "m"), dtype="float32", seed=0)


def test_a_missing_or_damaged_folder_is_one_clear_error(tmp_path):
    with pytest.raises(ConfigError, match=r"no config\.json"):
        load_model(str(tmp_path / "nothing"), dtype="float32", seed=0)
    model, tokenizer = tiny()
    save_model(tmp_path / "m", model, tokenizer)
    (tmp_path / "m" / "config.json").write_text(json.dumps({"model_type": "no-such-model"}))
    with pytest.raises(ConfigError, match="cannot load the model"):
        load_model(str(tmp_path / "m"), dtype="float32", seed=0)


def test_an_adapter_begins_as_no_change_and_alike_everywhere():
    tokenizer = tiny_tokenizer()
    ids = torch.arange(10)[None]
    plain, a, b = (tiny_model(tokenizer, seed=1) for _ in range(3))
    for model in (a, b):
        torch.manual_seed(id(model) % 1000)  # the caller's stream has no say
        add_lora(model, ModelConfig(lora_rank=2, lora_targets="q_proj, v_proj"))
    with torch.no_grad():
        assert torch.equal(a(ids).logits, plain(ids).logits)
    adapters = {name: p for name, p in a.named_parameters() if p.requires_grad}
    # 3 layers, 2 modules, A and B.
    assert len(adapters) == 12
    assert all(torch.equal(p, dict(b.named_parameters())[name]) for name, p in adapters.items())


def test_plain_weights_have_the_names_of_the_model_and_the_adapter_merged_in():
    tokenizer = tiny_tokenizer()
    model = tiny_model(tokenizer, seed=1)
    before = {name: p.detach().clone() for name, p in model.named_parameters()}
    add_lora(model, ModelConfig(lora_rank=2, lora_alpha=6.0, lora_targets="q_proj"))
    layer = model.model.layers[0].self_attn.q_proj
    torch.nn.init.ones_(layer.lora_A["default"].weight)
    torch.nn.init.constant_(layer.lora_B["default"].weight, 0.5)
    after = dict(plain_weights(model))
    assert after.keys() == before.keys()
    changed = "model.layers.0.self_attn.q_proj.weight"
    # alpha / rank = 3, times B A = 2 * 0.5 * 1 at each place.
    assert torch.allclose(after[changed] - before[changed], torch.tensor(3.0))
    assert all(torch.equal(after[name], before[name]) for name in before if name != changed)


def test_the_attention_asked_for_is_used(tmp_path):
    save_model(tmp_path / "m", *tiny())
    model = load_model(str(tmp_path / "m"), dtype="float32", seed=0, attn_implementation="eager").model
    assert model.config._attn_implementation == "eager"
    with pytest.raises(ConfigError, match="cannot load the model"):
        load_model(str(tmp_path / "m"), dtype="float32", seed=0, attn_implementation="no_such_thing")


def test_a_tokenizer_with_tokens_that_the_model_lacks_is_refused(tmp_path):
    small, many = tiny_tokenizer(), tiny_tokenizer([f"word{i}" for i in range(50)])
    save_model(tmp_path / "m", tiny_model(small, seed=0), many)
    with pytest.raises(
        ConfigError, match=rf"another model's: it has {len(many)} tokens, the model {len(small)}"
    ):
        load_model(str(tmp_path / "m"), dtype="float32", seed=0)


@pytest.mark.parametrize("family", [qwen3, qwen25])
def test_a_vision_folder_loads_in_transformers_and_whole_weights_fit_it(tmp_path, family):
    loaded = family()
    save_model(tmp_path / "m", loaded.model, loaded.tokenizer, vision=loaded.vision)
    weights = {name: tensor.clone() for name, tensor in plain_weights(loaded.model)}
    names = set(weights)
    save_model(tmp_path / "n", loaded.model, loaded.tokenizer, vision=loaded.vision, weights=weights)
    a, b = (load_file(tmp_path / name / "model.safetensors") for name in ("m", "n"))
    assert a.keys() == b.keys()
    assert all(torch.equal(a[name], b[name]) for name in a)
    assert names == dict(loaded.model.named_parameters()).keys()
    if family is qwen3:  # transformers keeps the old names of Qwen2.5-VL in its files
        assert names == a.keys()
    again = AutoModelForImageTextToText.from_pretrained(tmp_path / "m")
    assert type(again) is type(loaded.model)
    key = "model.language_model.embed_tokens.weight"
    assert torch.equal(again.state_dict()[key], loaded.model.state_dict()[key])


def test_the_run_of_a_vision_model_sets_the_limits_of_its_pictures():
    model = ModelConfig(path="tiny-vl", words="mug", image_min_pixels=1024, image_max_pixels=4096)
    loaded = initial_model(RunConfig(model=model))
    assert loaded.vision is not None
    assert [loaded.vision.n_tokens(noise(px, px)) for px in (16, 48, 96)] == [4, 9, 16]
    assert len(loaded.tokenizer("mug")["input_ids"]) == 1
    assert 500_000 < sum(p.numel() for p in loaded.model.parameters()) < 900_000


@pytest.mark.parametrize("family", [qwen3, qwen25])
def test_adapters_leave_the_tower_alone_unless_it_is_named(family):
    def adapted(targets: str) -> set[str]:
        model = family().model
        add_lora(model, ModelConfig(lora_rank=2, lora_targets=targets))
        return {name for name, _ in model.named_parameters() if "lora_A" in name}

    everything = adapted("all-linear")
    assert len(everything) in (3 * 7, 2 * 7)  # the seven maps of every layer of the language model
    assert all(".language_model." in name for name in everything)
    assert all(".language_model." in name for name in adapted("gate_proj"))
    assert any(".visual." in name for name in adapted("q_proj,visual.blocks.0.attn.qkv"))


def test_the_tower_learns():
    loaded = qwen3()
    model: Any = loaded.model
    assert loaded.vision is not None
    ids = torch.tensor([[1, *[loaded.vision.image_id] * 4, 2]])
    pixels = loaded.vision.pixels([noise(32, 32)])
    positions = loaded.vision.positions(ids, torch.ones_like(ids), pixels["image_grid_thw"])
    model(input_ids=ids, position_ids=positions, **pixels).logits[0, -1].logsumexp(-1).backward()
    assert float(model.model.visual.patch_embed.proj.weight.grad.abs().max()) > 0
