"""Speed and memory of training on this machine: tokens a second, share of the arithmetic used, peak memory.

    python benchmarks/gpu.py --model Qwen3-0.6B
    torchrun --nproc-per-node 4 benchmarks/gpu.py --model Qwen3-4B --backend vllm --zero-stage 2
    python benchmarks/gpu.py --model tiny --groups 2 --max-tokens 8    # on the CPU: does it run?

Trains on Sokoban with GRPO, without a filter and without a reference model, one optimiser step a training
step; the first step is left out. `--model` is a folder, "tiny", or a published shape that gets random
weights: these hardly ever end a response, so that all have `--max-tokens` tokens. torchrun starts ranks.

- rollout tokens/s: sampled tokens by the seconds that the policy took.
- training tokens/s: tokens of all rows, prompts included, by the seconds of the update.
- MFU: the work that a plain forward and backward pass over these rows would be, by what the GPUs could have
  done in the seconds of the update; see `arl_gym.train.gpu`.
"""

import argparse
import json
import statistics
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from importlib.metadata import version
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, Qwen3Config

from arl_gym.train import distributed
from arl_gym.train.config import RunConfig
from arl_gym.train.gpu import peak_flops, training_flops
from arl_gym.train.memory import KNOWN, ModelShape, shape_of
from arl_gym.train.methods import resolve
from arl_gym.train.model import save_model, tiny_tokenizer
from arl_gym.train.trainer import train

WARM_UP = 1
Row = Mapping[str, float]


def write_random_model(folder: Path, shape: ModelShape, dtype: torch.dtype) -> None:
    """Write a Qwen3 of a shape with random weights, and a tokenizer of few tokens."""
    tokenizer = tiny_tokenizer()
    config = Qwen3Config(
        vocab_size=shape.vocab,
        hidden_size=shape.hidden,
        intermediate_size=shape.intermediate,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        num_key_value_heads=shape.kv_heads,
        head_dim=shape.head_dim,
        tie_word_embeddings=shape.tied,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    model = AutoModelForCausalLM.from_config(config, dtype=dtype)
    save_model(folder, model, tokenizer)


def configuration(args: argparse.Namespace, model: str, run_dir: str) -> RunConfig:
    """Return the run that is measured."""
    return resolve(
        {
            "method": "GRPO",
            "steps": args.steps + WARM_UP,
            "run_dir": run_dir,
            "trajectories_every": 0,
            "env": {"kwargs": {"max_steps": args.turns}},
            "model": {
                "path": model,
                "dtype": args.dtype,
                "max_context": args.context,
                "gradient_checkpointing": args.gradient_checkpointing,
            },
            "rollout": {
                "groups": args.groups,
                "group_size": args.group_size,
                "max_tokens": args.max_tokens,
                "batch_size": args.batch_size,
                "backend": args.backend,
            },
            "filter": {"enable": False},
            "loss": {"kl_coef": 0.0},
            "optim": {"micro_tokens": args.micro_tokens, "zero_stage": args.zero_stage},
            "checkpoint": {"every": 0},
        }
    )


def measures(
    rows: Sequence[Row], shape: ModelShape, *, episodes: int, peak: float | None
) -> dict[str, float | None]:
    """Return what a run's metrics say of speed and memory.

    Args:
        rows: The metrics of every step, without the warm-up.
        shape: Of the model.
        episodes: Episodes of a step.
        peak: Operations a second that all GPUs together could do; None if unknown.

    Returns:
        Medians over the steps; the peaks of memory are the highest. None is what was not measured.
    """
    sampled, trained, used = [], [], []
    for row in rows:
        turns = round(episodes * row["rollout/turns_mean"])
        length = round(row["rollout/prompt_tokens_mean"] + row["rollout/completion_tokens_mean"])
        scored = int(row["optim/tokens"])
        sampled.append(scored / row["time/generate_s"])
        trained.append(turns * length / row["time/update_s"])
        if peak is not None:
            work = training_flops(shape, [length] * turns, scored=scored)
            used.append(work / row["time/update_s"] / peak)
    return {
        "rollout_tokens_per_s": statistics.median(sampled),
        "training_tokens_per_s": statistics.median(trained),
        "mfu": statistics.median(used) if used else None,
        "sync_s": _median(rows, "sync/seconds"),
        "step_s": _median(rows, "time/step_s"),
        "row_tokens": statistics.median(
            row["rollout/prompt_tokens_mean"] + row["rollout/completion_tokens_mean"] for row in rows
        ),
    } | {
        f"{phase}_gib": max((row[key] for row in rows if (key := f"memory/{phase}_gib") in row), default=None)
        for phase in ("rollout", "score", "update", "sync")
    }


def _median(rows: Sequence[Row], key: str) -> float | None:
    found = [row[key] for row in rows if key in row]
    return statistics.median(found) if found else None


def main(argv: Sequence[str] | None = None) -> None:
    """Measure, and print a table and a line of JSON."""
    cuda = torch.cuda.is_available()
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", default="tiny", help=f"a folder, tiny, or one of {', '.join(KNOWN)}")
    parser.add_argument("--backend", choices=["hf", "vllm", "server"], default="hf")
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--groups", type=int, default=8)
    parser.add_argument("--group-size", type=int, default=8)
    parser.add_argument("--turns", type=int, default=4)
    parser.add_argument("--max-tokens", type=int, default=256)
    parser.add_argument("--context", type=int, default=4096)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--micro-tokens", type=int, default=16384)
    parser.add_argument("--zero-stage", type=int, choices=[0, 1, 2, 3], default=2)
    parser.add_argument("--gradient-checkpointing", action="store_true")
    parser.add_argument("--dtype", default="bfloat16" if cuda else "float32")
    args = parser.parse_args(argv)
    distributed.start()
    rows: list[Row] = []
    with ExitStack() as stack:
        folder = distributed.on_main(lambda: stack.enter_context(tempfile.TemporaryDirectory()))
        model = args.model
        if model in KNOWN:
            model = f"{folder}/model"
            distributed.on_main(
                lambda: write_random_model(Path(model), KNOWN[args.model], getattr(torch, args.dtype))
            )
        cfg = configuration(args, model, f"{folder}/run")
        shape = shape_of(cfg.model)
        train(cfg, progress=lambda step, total, row: rows.append(row))
        distributed.barrier()
    if not distributed.is_main():
        return
    device = torch.cuda.get_device_name() if cuda else "cpu"
    ranks = distributed.world_size()
    of_one = peak_flops(device) if cuda else None
    measured = measures(
        rows[WARM_UP:],
        shape,
        episodes=args.groups * args.group_size,
        peak=None if of_one is None else of_one * ranks,
    )
    print(f"{args.model}, {args.backend}, {ranks} x {device}, {args.dtype}, ZeRO {args.zero_stage}\n")
    print("| what | measured |\n|---|---|")
    for name, value in measured.items():
        print(f"| {name} | {'not measured' if value is None else f'{value:,.4g}'} |")
    versions = {name: version(name) for name in ("torch", "transformers", "deepspeed")}
    settings = vars(args) | {"device": device, "ranks": ranks, "command": sys.argv, **versions}
    print(json.dumps(settings | measured))


if __name__ == "__main__":
    main()
