"""Pictures, messages and small random models that read them, for the tests."""

import numpy as np
from PIL import Image
from transformers import PreTrainedModel, PreTrainedTokenizerBase, Qwen2_5_VLConfig
from transformers import Qwen2_5_VLForConditionalGeneration as Qwen25
from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil

from arl_gym.core import Message, Part
from arl_gym.train.model import Loaded, load_model, tiny_tokenizer
from arl_gym.train.vision import Vision


def noise(width: int, height: int, seed: int = 0) -> Image.Image:
    """Return a picture of random pixels."""
    pixels = np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)
    return Image.fromarray(pixels)


def user(*pieces: str | Image.Image) -> list[Message]:
    """Return one user message of texts and pictures."""
    parts: list[Part] = [
        {"type": "text", "text": p} if isinstance(p, str) else {"type": "image", "image": p} for p in pieces
    ]
    return [{"role": "user", "content": parts}]


def qwen3() -> Loaded:
    """Return tiny-vl: patches of 16, each a token."""
    return load_model("tiny-vl", dtype="float32", seed=3)


def qwen25() -> Loaded:
    """Return a random Qwen2.5-VL: patches of 14, four to a token."""
    tokenizer = tiny_tokenizer(vision=True)
    model = _qwen25(tokenizer)
    size = {"shortest_edge": 28 * 28, "longest_edge": 1 << 20}
    processor = Qwen2VLImageProcessorPil(patch_size=14, merge_size=2, temporal_patch_size=2, size=size)
    return Loaded(model=model, tokenizer=tokenizer, vision=Vision(model, processor))


def _qwen25(tokenizer: PreTrainedTokenizerBase) -> PreTrainedModel:
    ids = tokenizer.get_vocab()
    config = Qwen2_5_VLConfig(
        text_config={
            "vocab_size": len(tokenizer),
            "hidden_size": 64,
            "intermediate_size": 128,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "max_position_embeddings": 512,
            "rope_parameters": {"rope_type": "default", "rope_theta": 1e4, "mrope_section": [2, 3, 3]},
            "bos_token_id": None,
            "eos_token_id": tokenizer.eos_token_id,
            "pad_token_id": tokenizer.pad_token_id,
            "tie_word_embeddings": True,
        },
        vision_config={
            "depth": 2,
            "hidden_size": 32,
            "intermediate_size": 64,
            "num_heads": 2,
            "patch_size": 14,
            "spatial_merge_size": 2,
            "temporal_patch_size": 2,
            "out_hidden_size": 64,
            "window_size": 56,
            "fullatt_block_indexes": [1],
        },
        image_token_id=ids["<|image_pad|>"],
        video_token_id=ids["<|video_pad|>"],
        vision_start_token_id=ids["<|vision_start|>"],
        vision_end_token_id=ids["<|vision_end|>"],
        tie_word_embeddings=True,
    )
    return Qwen25(config)
