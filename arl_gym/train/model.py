"""Models and tokenizers: loading a Hugging Face folder, and making the tiny Qwen3 and Qwen3-VL.

>>> loaded = load_model("tiny", dtype="float32", seed=0)  # doctest: +SKIP
>>> loaded.model, loaded.tokenizer, loaded.vision  # doctest: +SKIP
"""

import logging
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import torch
from safetensors import SafetensorError
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from torch import Tensor
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    AutoModelForImageTextToText,
    AutoTokenizer,
    PreTrainedModel,
    PreTrainedTokenizerBase,
    PreTrainedTokenizerFast,
    Qwen3Config,
    Qwen3ForCausalLM,
    Qwen3VLConfig,
    Qwen3VLForConditionalGeneration,
)
from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil
from transformers.utils.logging import disable_progress_bar

from arl_gym.errors import ArlGymError, ConfigError, DependencyMissing
from arl_gym.train.config import ModelConfig, RunConfig
from arl_gym.train.state import gathered
from arl_gym.train.vision import FAMILIES, Vision, load_vision

if TYPE_CHECKING:
    from peft import PeftModel

# One token each, so that a compact board costs a token a cell and a response six.
_WORDS = ("system", "user", "assistant", "up", "down", "left", "right")
_TAGS = ("<think>", "</think>", "<action>", "</action>", "√")
_SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
_SEEING = ("<|vision_start|>", "<|vision_end|>", "<|image_pad|>", "<|video_pad|>")
_TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
_SEEING_TEMPLATE = _TEMPLATE.replace(
    "{{ m['content'] }}",
    "{% if m['content'] is string %}{{ m['content'] }}{% else %}{% for part in m['content'] %}"
    "{% if part['type'] == 'image' %}<|vision_start|><|image_pad|><|vision_end|>"
    "{% else %}{{ part['text'] }}{% endif %}{% endfor %}{% endif %}",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """A model with what belongs to it."""

    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase
    vision: Vision | None = None
    """How it reads pictures; None for a model of text."""


def tiny_tokenizer(words: Sequence[str] = (), *, vision: bool = False) -> PreTrainedTokenizerFast:
    """Return a byte-level tokenizer (any text is encodable) with the words of an agent as single tokens.

    Args:
        words: More words that are a token, alone and together with a blank before them.
        vision: Whether it has the tokens around pictures, and a template that takes lists of parts.
    """
    special = (*_SPECIAL, *_SEEING) if vision else _SPECIAL
    alphabet = {char: i for i, char in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
    inner = Tokenizer(models.BPE(vocab=alphabet, merges=[]))
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.decoder = decoders.ByteLevel()
    inner.add_special_tokens([AddedToken(t, special=True, normalized=False) for t in special])
    inner.add_tokens([AddedToken(t, normalized=False) for t in _TAGS])
    # single_word: the "up" of "group" stays letters
    more = [word for word in dict.fromkeys(words) if word not in _WORDS]
    inner.add_tokens([AddedToken(t, single_word=True, normalized=False) for t in (*_WORDS, *more)])
    inner.add_tokens([AddedToken(f" {t}", normalized=False) for t in dict.fromkeys(words)])
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=inner,
        eos_token="<|im_end|>",
        pad_token="<|endoftext|>",
        clean_up_tokenization_spaces=False,
    )
    tokenizer.chat_template = _SEEING_TEMPLATE if vision else _TEMPLATE
    return tokenizer


def tiny_model(
    tokenizer: PreTrainedTokenizerBase, *, seed: int, hidden: int = 96, layers: int = 3
) -> PreTrainedModel:
    """Return a random Qwen3 of about 0.36 million parameters."""
    config = Qwen3Config(
        vocab_size=len(tokenizer),
        hidden_size=hidden,
        intermediate_size=3 * hidden,
        num_hidden_layers=layers,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=hidden // 4,
        max_position_embeddings=4096,
        tie_word_embeddings=True,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    return _random(lambda: Qwen3ForCausalLM(config), seed)


def tiny_vision_model(
    tokenizer: PreTrainedTokenizerBase, *, seed: int, hidden: int = 96, layers: int = 3
) -> PreTrainedModel:
    """Return a random Qwen3-VL of about 0.6 million parameters that reads 16 x 16 pixels as a token.

    That is a token a cell of Sokoban with `tile_size=16`, and a quarter of the pixels, patches and time of
    the 32 that a big Qwen3-VL needs for it: the tower joins no patches.

    Args:
        tokenizer: With the tokens around pictures.
        seed: Of the weights.
        hidden: Width of the language model.
        layers: Of the language model; at least 2, that take in what the tower's two saw.
    """
    vocabulary = tokenizer.get_vocab()
    start, end, image, video = (vocabulary[token] for token in _SEEING)
    config = Qwen3VLConfig(
        text_config={
            "vocab_size": len(tokenizer),
            "hidden_size": hidden,
            "intermediate_size": 3 * hidden,
            "num_hidden_layers": layers,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "head_dim": 32,
            "max_position_embeddings": 4096,
            # Of the 16 frequencies of a head: along time, height and width, in turns. Boards are small: with
            # the usual 10,000 neighbours along the width would look alike.
            "rope_parameters": {
                "rope_type": "default",
                "rope_theta": 10.0,
                "mrope_section": [6, 5, 5],
                "mrope_interleaved": True,
            },
            "eos_token_id": tokenizer.eos_token_id,
            "pad_token_id": tokenizer.pad_token_id,
            "tie_word_embeddings": True,
        },
        vision_config={
            "depth": 2,
            "hidden_size": 64,
            "intermediate_size": 128,
            "num_heads": 4,
            "patch_size": 16,
            "spatial_merge_size": 1,
            "temporal_patch_size": 2,
            "out_hidden_size": hidden,
            "num_position_embeddings": 256,
            "deepstack_visual_indexes": [0, 1],
        },
        image_token_id=image,
        video_token_id=video,
        vision_start_token_id=start,
        vision_end_token_id=end,
        tie_word_embeddings=True,
    )
    model = _random(lambda: Qwen3VLForConditionalGeneration(config), seed)
    with torch.no_grad():
        # Transformers draws all weights alike, with a deviation of 0.02. In a model as narrow as this, words
        # are then slow to tell apart, and places drown in what is seen there.
        model.get_parameter("model.language_model.embed_tokens.weight").mul_(5)
        model.get_parameter("model.visual.pos_embed.weight").mul_(20)
    return model


def _random(make: Callable[[], PreTrainedModel], seed: int) -> PreTrainedModel:
    """Return a model whose weights follow the seed; the caller's stream stays as it was."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return make()


def tiny_vision(model: PreTrainedModel, *, min_pixels: int = 0, max_pixels: int = 0) -> Vision:
    """Return how a `tiny_vision_model` reads pictures: as they are, up to a thousand pixels square.

    Args:
        model: Made by that.
        min_pixels: As in `load_vision`; 0 is one patch.
        max_pixels: As in `load_vision`; 0 is a thousand pixels square.
    """
    tower = model.config.vision_config
    processor = Qwen2VLImageProcessorPil(
        patch_size=tower.patch_size,
        merge_size=tower.spatial_merge_size,
        temporal_patch_size=tower.temporal_patch_size,
        size={
            "shortest_edge": min_pixels or tower.patch_size**2,
            "longest_edge": max_pixels or 1 << 20,
        },
        image_mean=[0.5, 0.5, 0.5],
        image_std=[0.5, 0.5, 0.5],
    )
    return Vision(model, processor)


def load_model(
    path: str,
    *,
    dtype: Literal["float32", "bfloat16"],
    seed: int,
    words: Sequence[str] = (),
    attn_implementation: str = "",
    image_min_pixels: int = 0,
    image_max_pixels: int = 0,
) -> Loaded:
    """Load a causal language model, of text or of one of `vision.FAMILIES`, and its tokenizer.

    Args:
        path: "tiny", "tiny-vl", a folder, or a hub id (needs a reachable hub).
        dtype: Type of the parameters.
        seed: Weights of the tiny ones.
        words: Single tokens of the tiny ones; see `tiny_tokenizer`.
        attn_implementation: Attention of transformers; empty is its own choice. The tiny ones have only that.
        image_min_pixels: See `load_vision`.
        image_max_pixels: See `load_vision`.

    Raises:
        ConfigError: If the folder has no config, no weights, no tokenizer or no image processor, or the
            tokenizer has tokens that the model does not know.
    """
    limits = {"min_pixels": image_min_pixels, "max_pixels": image_max_pixels}
    disable_progress_bar()  # two bars for one file, in the middle of our own lines
    if path == "tiny":
        tokenizer = tiny_tokenizer(words)
        return Loaded(model=tiny_model(tokenizer, seed=seed).to(getattr(torch, dtype)), tokenizer=tokenizer)
    if path == "tiny-vl":
        tokenizer = tiny_tokenizer(words, vision=True)
        model = tiny_vision_model(tokenizer, seed=seed).to(getattr(torch, dtype))
        return Loaded(model=model, tokenizer=tokenizer, vision=tiny_vision(model, **limits))
    folder = Path(path)
    if folder.exists() or path.startswith((".", "/", "~")):
        _check_folder(folder.expanduser())
    try:
        loaded = AutoTokenizer.from_pretrained(path)
        sees = AutoConfig.from_pretrained(path).model_type in FAMILIES
        family = AutoModelForImageTextToText if sees else AutoModelForCausalLM
        model = family.from_pretrained(
            path, dtype=getattr(torch, dtype), attn_implementation=attn_implementation or None
        )
    except (OSError, ValueError, KeyError, ImportError) as err:
        reason = str(err).strip().splitlines()[0]
        raise ConfigError(f"cannot load the model {path!r}: {reason}") from err
    rows = int(model.get_input_embeddings().num_embeddings)  # type: ignore[arg-type]  # not a Module's own
    if len(loaded) > rows:
        raise ConfigError(
            f"the tokenizer of {path!r} is another model's: it has {len(loaded)} tokens, the model {rows}"
        )
    return Loaded(model=model, tokenizer=loaded, vision=load_vision(path, model, **limits) if sees else None)


def initial_model(cfg: RunConfig) -> Loaded:
    """Return the model that a run starts from; see `load_model`."""
    m = cfg.model
    return load_model(
        m.path,
        dtype=m.dtype,
        seed=cfg.seed,
        words=m.words.split(),
        attn_implementation=m.attn_implementation,
        image_min_pixels=m.image_min_pixels,
        image_max_pixels=m.image_max_pixels,
    )


def _check_folder(folder: Path) -> None:
    needed = {"config.json": ["config.json"], "tokenizer": ["tokenizer.json"]}
    needed["weights"] = ["*.safetensors", "*.bin"]
    for what, patterns in needed.items():
        if not any(found for p in patterns for found in folder.glob(p)):
            raise ConfigError(f"the model folder {folder} has no {what}: expected {' or '.join(patterns)}")


def add_lora(model: PreTrainedModel, cfg: ModelConfig) -> "PeftModel":
    """Put adapters into a model, in place, and freeze its own weights.

    The adapters begin the same in every process, and begin as no change at all. The tower that reads pictures
    gets some only where `lora_targets` names modules of it, e.g. "visual.merger.linear_fc1".

    Returns:
        peft's handle on the model: switches the adapters off and on, and saves them.

    Raises:
        ConfigError: If peft cannot adapt the modules asked for, or the output layer is among them.
        DependencyMissing: If peft is not installed.
    """
    try:
        from peft import LoraConfig, get_peft_model
    except ImportError as err:
        raise DependencyMissing("model.lora_rank above 0", "lora") from err
    names = [name.strip() for name in cfg.lora_targets.split(",")]
    leaves_tower = hasattr(model.config, "vision_config") and not any("visual." in n for n in names)
    lora = LoraConfig(
        r=cfg.lora_rank,
        lora_alpha=cfg.lora_alpha,  # type: ignore[arg-type]  # a float does as well
        target_modules=cfg.lora_targets if names == ["all-linear"] else names,
        exclude_modules=r"(.*\.)?visual\..*" if leaves_tower else None,
        task_type="CAUSAL_LM",
    )
    head = model.get_output_embeddings()
    try:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            adapted = get_peft_model(model, lora)
    except ValueError as err:
        raise ConfigError(f"model.lora_targets={cfg.lora_targets!r}: {err}") from err
    if model.get_output_embeddings() is not head:
        raise ConfigError(f"model.lora_targets={cfg.lora_targets!r} must leave the output layer out")
    return adapted


def plain_weights(model: PreTrainedModel) -> Iterator[tuple[str, Tensor]]:
    """Yield every parameter under its name in the model, whole, with adapters merged into the weights.

    The files of a folder have the same names, but for Qwen2-VL and Qwen2.5-VL. Tied parameters come once. A
    tensor is good until the next one is asked for, and need not be a copy. All ranks must go through to the
    end: ZeRO-3's parameters are put together on the way.
    """
    seen: set[int] = set()
    for place, module in model.named_modules():
        if "lora_" in place or place.endswith(".base_layer"):
            continue
        merge = getattr(module, "get_delta_weight", None)
        inner = module if merge is None else module.base_layer
        own = [(name, p) for name, p in inner.named_parameters(recurse=False) if id(p) not in seen]
        seen |= {id(p) for _, p in own}
        with gathered(list(module.parameters(recurse=merge is not None)), write=False):
            for name, parameter in own:
                tensor = parameter.detach()
                if merge is not None and name == "weight":
                    tensor = (tensor.float() + merge("default").detach().float()).to(tensor.dtype)
                yield f"{place}.{name}" if place else name, tensor


@contextmanager
def _quietly() -> Iterator[None]:
    """Keep transformers' bar, and what DeepSpeed warns of when transformers imports it, off the terminal."""
    disable_progress_bar()
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        yield
    finally:
        logging.disable(before)


def save_model(
    folder: Path,
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    *,
    vision: Vision | None = None,
    replace: bool = False,
    weights: dict[str, Tensor] | None = None,
    also: Callable[[Path], None] | None = None,
) -> None:
    """Write a Hugging Face folder; it appears under its name only when complete.

    Args:
        folder: Where.
        model: Whose weights and configuration are written.
        tokenizer: Goes with it.
        vision: Goes with it, if it reads pictures.
        replace: Whether the folder may exist.
        weights: Written instead of the model's own.
        also: Writes more into the folder before it gets its name.

    Raises:
        ConfigError: If the folder exists already and is not to be replaced.
        ArlGymError: If it cannot be written.
    """
    if folder.exists() and not replace:
        raise ConfigError(f"{folder} exists already: choose another folder")
    partial, old = folder.with_name(folder.name + ".partial"), folder.with_name(folder.name + ".old")
    try:
        with _quietly():
            model.save_pretrained(partial, state_dict=weights)
        tokenizer.save_pretrained(partial)
        if vision is not None:
            vision.save(partial)
        if also is not None:
            also(partial)
        if folder.exists():
            folder.rename(old)
        partial.rename(folder)
        shutil.rmtree(old, ignore_errors=True)
    except (OSError, SafetensorError) as err:
        raise ArlGymError(f"cannot write the model folder {folder}: {err}") from err
