"""Engines of a tiny vision-language model, and what tests let them do on one rank and on two."""

import dataclasses
from collections.abc import Sequence

import numpy as np
import torch
from PIL import Image

from arl_gym.core import Message, Part, pictures_of
from arl_gym.train.advantages import turn_advantages
from arl_gym.train.batch import pack
from arl_gym.train.chat import ChatCodec
from arl_gym.train.config import AdvantageConfig, ModelConfig
from arl_gym.train.engine import Engine
from arl_gym.train.model import load_model
from tests.train.engine_jobs import LOSS, OPTIM, first_gradient, optim
from tests.train.ranks import Arrays, prefixed
from tests.train.trajectories import trajectory, turn


def square(colour, width=32):
    return Image.new("RGB", (width, 32), colour)


def shown(text, *pictures: str | Image.Image) -> list[Message]:
    """A message with pictures, or squares of colours, before its text."""
    images = [square(p) if isinstance(p, str) else p for p in pictures]
    parts: list[Part] = [{"type": "image", "image": image} for image in images]
    return [{"role": "user", "content": [*parts, {"type": "text", "text": text}] if parts else text}]


def answered(codec, messages, answer, *, context: Sequence[int] = (), reward=0.0):
    """A turn in which random play said `answer`; in a dialogue, after `context`."""
    prompt = [*context, *codec.encode_bridge(context, messages)] if context else codec.encode_prompt(messages)
    asked = turn(prompt, answer, reward=reward, append=bool(context))
    return dataclasses.replace(asked, messages=messages)


def trajectories(codec):
    """Two groups of windows, one of dialogues and one without pictures; returns differ inside each."""
    rng = np.random.default_rng(0)
    out = []

    def said():
        return rng.integers(0, 256, int(rng.integers(1, 5))).tolist()

    for group, colour in enumerate(("red", "green", "yellow")):
        for copy, later in enumerate(("red", "blue", "white")):
            first = answered(codec, shown("go", colour), said(), reward=float(copy))
            messages = shown("on", later) if colour == "yellow" else shown("on", colour, later)
            context = (first.prompt_ids + first.completion_ids) if colour == "yellow" else ()
            second = answered(codec, messages, said(), context=context)
            out.append(trajectory(first, second, group=group, copy=copy))
    return out + [
        trajectory(answered(codec, shown("go"), said(), reward=float(copy)), group=3, copy=copy)
        for copy in range(3)
    ]


def vision_engine(cfg=OPTIM, *, reference=True, model_cfg=ModelConfig()):  # noqa: B008  # frozen
    """An engine of "tiny-vl", and its codec."""
    loaded = load_model("tiny-vl", dtype="float32", seed=1)
    engine = Engine(
        loaded.model,
        cfg,
        temperature=1.0,
        reference=reference,
        model_cfg=model_cfg,
        vision=loaded.vision,
    )
    return engine, ChatCodec(loaded.tokenizer, loaded.vision)


def logits(model, codec, messages, *, graph=False):
    """What the model itself says after a prompt, (T, vocabulary), with positions of its own making."""
    ids = torch.tensor([codec.encode_prompt(messages)])
    more: dict[str, torch.Tensor] = {}
    if pictures := pictures_of(messages):
        types = {"mm_token_type_ids": (ids == codec.vision.image_id).int()}
        more = types | codec.vision.pixels(pictures)
    with torch.set_grad_enabled(graph):
        return model(input_ids=ids, **more).logits[0]


def scored(engine, codec, *, old=True):
    played = trajectories(codec)
    batch = engine.score(pack(played, pad_id=codec.pad_id), old=old)
    return batch.with_advantages(turn_advantages(played, AdvantageConfig()))


def old_logprobs(engine, batch):
    return engine.score(batch).old_logprobs


def update_of(cfg, **kwargs):
    engine, codec = vision_engine(cfg, **kwargs)
    batch = scored(engine, codec)
    stats, _, _ = engine.update(batch, LOSS, total_steps=1)
    return {
        "gradient": first_gradient(engine),
        "old": batch.old_logprobs,
        "ref": batch.ref_logprobs,
        "grad_norm": np.array(stats["optim/grad_norm"]),
        "after": logits(engine.rollout_model(), codec, shown("go", "red", "blue")).numpy(),
    }


def gradients(folder):
    """Few tokens a pass: some passes of some ranks have no pictures."""
    out: Arrays = {}
    for stage in (0, 1, 2, 3):
        out |= prefixed(f"{stage}", update_of(optim(stage, micro_tokens=60)))
    return out | prefixed("whole", update_of(optim(2, share_prompts=False)))
