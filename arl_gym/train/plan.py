"""What a run would do, in words, before it does it.

    for line in plan(cfg, gpus=4, gpu_gb=80):
        print(line)

Batches, memory, DeepSpeed's settings, what looks odd, and what this machine lacks.
"""

import json
import math

import torch

from arl_gym.errors import ConfigError
from arl_gym.train.checks import missing_data
from arl_gym.train.config import RunConfig
from arl_gym.train.engine import deepspeed_config
from arl_gym.train.envs import groups_per_try
from arl_gym.train.memory import ALLOWANCE_GIB, Phase, estimate, peak_gib, shape_of
from arl_gym.train.notes import config_notes, is_dialogue


def plan(cfg: RunConfig, *, gpus: int | None, gpu_gb: float) -> list[str]:
    """Return the plan of a run, line by line.

    Args:
        cfg: A configuration without conflicts.
        gpus: How many GPUs it would run on; None takes those of this machine, which may be none.
        gpu_gb: Memory of each, in GiB.
    """
    n_gpus = torch.cuda.device_count() if gpus is None else gpus
    deepspeed = deepspeed_config(cfg.optim, getattr(torch, cfg.model.dtype))
    sections = {
        "a training step": _batch(cfg),
        f"memory {'of each GPU' if n_gpus else 'on the CPU'}, by arithmetic": _memory(cfg, n_gpus, gpu_gb),
        "what DeepSpeed gets": json.dumps(deepspeed, indent=2).splitlines(),
        "notes": [f"- {line}" for line in config_notes(cfg, cuda=n_gpus > 0)],
        "missing on this machine": [f"- {line}" for line in missing_data(cfg)],
    }
    return [line for title, lines in sections.items() if lines for line in ("", f"== {title}", *lines)]


def _batch(cfg: RunConfig) -> list[str]:
    groups, size, wanted = groups_per_try(cfg, step=cfg.steps), cfg.rollout.group_size, cfg.rollout.groups
    tries = cfg.filter.max_tries if cfg.filter.enable else 1
    turns = _most_turns(cfg)
    kinds = {"episode" if is_dialogue(env) else "turn" for env in cfg.all_envs}
    rows = wanted * size * turns if "turn" in kinds else wanted * size
    updates = f"{cfg.optim.minibatches} a step"
    if cfg.optim.minibatch_rows:
        most = max(1, math.ceil(rows / cfg.optim.minibatch_rows))
        updates = f"rows / {cfg.optim.minibatch_rows}, about" + (f", {most:,} a step at most" if rows else "")
    sampled = groups * size * turns * cfg.rollout.max_tokens
    return [
        f"a try plays {groups} groups x {size} = {groups * size} episodes; a step trains on {wanted} groups",
        f"tries: {'1' if tries == 1 else f'1 to {tries}'} a step; {cfg.steps:,} steps",
        f"rows: one for every {' or '.join(sorted(kinds))}" + (f", {rows:,} a step at most" if rows else ""),
        f"tokens: {cfg.model.max_context:,} a row at most, {cfg.rollout.max_tokens:,} a response"
        + (f", {sampled:,} sampled a try" if sampled else ""),
        f"optimiser steps: {updates}",
    ]


def _most_turns(cfg: RunConfig) -> int:
    """Return the most turns of an episode, 0 if an environment's own limit decides."""
    limits = [int(env.kwargs.get("max_steps") or 0) for env in cfg.all_envs]
    return max(limits) if all(limits) else 0


def _memory(cfg: RunConfig, n_gpus: int, gpu_gb: float) -> list[str]:
    try:
        parts = estimate(cfg, shape_of(cfg.model), gpus=max(1, n_gpus))
    except ConfigError as err:
        return [f"not estimated: {err}"]
    here = [part for part in parts if not part.on_host or not n_gpus]
    lines = [_line(f"{part.what}{_WHEN[part.phase]}", part.gib) for part in here]
    lines.append(_line("at most at once", peak_gib(here)))
    lines += [_line(f"{part.what} (on the host)", part.gib) for part in parts if part not in here]
    if n_gpus:
        needed = peak_gib(here) + ALLOWANCE_GIB
        verdict = "fits" if needed <= gpu_gb else f"DOES NOT FIT: {_REMEDY}"
        lines.append(
            f"with about {ALLOWANCE_GIB:g} GiB for CUDA and buffers {needed:.1f} of {gpu_gb:g} GiB: {verdict}"
        )
    return lines


_WHEN: dict[Phase, str] = {"always": "", "rollout": " (rollout)", "update": " (update)"}
_REMEDY = (
    "more GPUs, a smaller rollout.batch_size or optim.micro_tokens, model.gradient_checkpointing, "
    "optim.offload_reference, optim.zero.offload_optimizer or model.lora_rank make it smaller"
)


def _line(what: str, gib: float) -> str:
    size = f"{gib:8.2f} GiB" if gib >= 0.1 else f"{gib * 1024:8.2f} MiB"
    return f"{what:<44}{size}"
