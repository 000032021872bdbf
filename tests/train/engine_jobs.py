"""Engines of a tiny model, and what tests let them do on one rank and on two (see `tests.train.ranks`)."""

import dataclasses

import numpy as np
import torch

from arl_gym.train.advantages import turn_advantages
from arl_gym.train.batch import pack
from arl_gym.train.config import AdvantageConfig, LossConfig, ModelConfig, OptimConfig
from arl_gym.train.distributed import rank
from arl_gym.train.engine import Engine
from arl_gym.train.model import tiny_model, tiny_tokenizer
from tests.train.ranks import Arrays, prefixed
from tests.train.trajectories import trajectory, turn

# Without a threshold of 0 ZeRO-3 would keep all parameters of so small a model whole.
CUT_ALL = {"stage3_param_persistence_threshold": 0}
OPTIM = OptimConfig(lr=1e-3, weight_decay=0.0, micro_tokens=1 << 20, grad_clip=0.0)
LORA = ModelConfig(lora_rank=4, lora_alpha=8.0)
LOSS = LossConfig(clip_low=0.03, clip_high=0.04, kl_coef=0.1)


def optim(stage, **changes):
    zero = CUT_ALL if stage == 3 else {}
    return dataclasses.replace(OPTIM, zero_stage=stage, zero=zero, **changes)


def trajectories(n_groups=3, size=4):
    """Random token rows with returns that differ inside each group."""
    rng = np.random.default_rng(0)

    def random_turn(k, reward):
        prompt = rng.integers(0, 256, int(rng.integers(3, 12))).tolist()
        answer = rng.integers(0, 256, int(rng.integers(1, 6))).tolist()
        return turn(prompt, answer, reward=reward, penalty=0.1 * (k == 1), anchor="same" if k == 0 else "")

    return [
        trajectory(*(random_turn(k, float(c * (k + 1))) for k in range(1 + c % 3)), group=g, copy=c)
        for g in range(n_groups)
        for c in range(size)
    ]


def make_engine(cfg=OPTIM, *, reference=True, model_cfg=ModelConfig(), dtype=torch.float32):  # noqa: B008  # frozen
    model = tiny_model(tiny_tokenizer(), seed=1, hidden=48, layers=2).to(dtype)
    return Engine(model, cfg, temperature=1.0, reference=reference, model_cfg=model_cfg)


def scored(engine, played=None, *, old=True):
    played = trajectories() if played is None else played
    batch = engine.score(pack(played, pad_id=0), old=old)
    return batch.with_advantages(turn_advantages(played, AdvantageConfig()))


def first_gradient(engine):
    """The gradient of the only step so far: exp_avg = (1 - beta1) * gradient, and beta1 = 0.9."""
    engine._state.begin()
    return np.concatenate(
        [engine._state.read(name)["exp_avg"].flatten().numpy() * 10 for name in engine._state.parameters]
    )


def master_weights(engine):
    engine._state.begin()
    return np.concatenate(
        [engine._state.read(name)["weight"].detach().flatten().numpy() for name in engine._state.parameters]
    )


def update_of(cfg, **kwargs):
    engine = make_engine(cfg, **kwargs)
    batch = scored(engine)
    stats, logprobs, _ = engine.update(batch, LOSS, total_steps=1)
    return {
        "gradient": first_gradient(engine),
        "old": batch.old_logprobs,
        "ref": batch.ref_logprobs,
        "seen": logprobs,
        "grad_norm": np.array(stats["optim/grad_norm"]),
        "loss": np.array(stats["loss/policy"]),
    }


def gradients(folder):
    out: Arrays = {}
    for stage in (0, 1, 2, 3):
        out |= prefixed(f"{stage}", update_of(optim(stage, micro_tokens=25)))
    out |= prefixed("whole", update_of(optim(2)))
    out |= prefixed("lora-0", update_of(optim(0), model_cfg=LORA))
    return out | prefixed("lora-3", update_of(optim(3, micro_tokens=25), model_cfg=LORA))


def checkpoint(folder):
    """Saves after one update at stage 2, and goes on; then loads at stage 3 and goes on from there."""
    first, second = make_engine(optim(2)), make_engine(optim(3))
    first.update(scored(first), LOSS, total_steps=2)
    first.save(folder / "checkpoint")
    second.load(folder / "checkpoint")
    batch = scored(first)
    out = {"before": master_weights(first)}
    for name, engine in (("after-2", first), ("after-3", second)):
        engine.update(batch, LOSS, total_steps=2)
        out[name] = master_weights(engine)
    return out


def skips(folder):
    """The first rank's gradient is finite, the second's is not; then both are."""
    out: Arrays = {}
    part = pack(trajectories(), pad_id=0)
    for stage in (0, 2, 3):
        engine = make_engine(optim(stage), reference=False)
        before = master_weights(engine)
        for factor in (float("nan") if rank() == 1 else 1.0, 1.0):
            engine.step([(engine.log_probs(part).mean() * factor, {})], 1, lr=1e-3)
            moved = np.abs(master_weights(engine) - before).max()
            out[f"{stage}"] = np.append(out.get(f"{stage}", np.zeros(0)), (engine.n_skipped, moved > 0))
    return out


def exports(folder):
    """Trains a step at stage 3, without and with LoRA, writes the model, and says how it talks."""
    out: Arrays = {}
    for name, model_cfg in (("plain", ModelConfig()), ("lora", LORA)):
        engine = make_engine(optim(3), model_cfg=model_cfg)
        engine.update(scored(engine), LOSS, total_steps=1)
        engine.export(folder / name, tiny_tokenizer())
        with torch.no_grad():
            out[name] = engine.rollout_model()(torch.arange(20)[None]).logits.numpy()
    return out
