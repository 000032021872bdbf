"""Trained tokens per second, side by side with TRL's GRPOTrainer: one model, one set of prompts, one process.

    python -m venv .venv-trl && .venv-trl/bin/pip install torch==2.13.0 trl datasets '.[train]'
    OMP_NUM_THREADS=1 .venv-trl/bin/python benchmarks/trainer.py --steps 20 --rounds 3

Both train the tiny Qwen3 with GRPO on the first observation of 6x6 Sokoban rooms: a step is 8 prompts x 8
responses of at most 8 tokens, sampled at temperature 1, and one AdamW update in fp32, without a reference
model. Ours plays the move in its environment; TRL gets a reward function that costs nothing. A round runs
both, each in a process of its own, in turn going first; the first `WARM_UP` steps of each are left out.
`--profile` shows where the time went.
"""

import argparse
import cProfile
import importlib
import json
import logging
import pstats
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

from arl_gym.make import make_chat_env
from arl_gym.train.config import RunConfig
from arl_gym.train.methods import resolve
from arl_gym.train.model import load_model
from arl_gym.train.trainer import train

GROUPS, SIZE, MAX_TOKENS = 8, 8, 8
WARM_UP = 3
LR = 1e-5

Step = tuple[float, int]
"""Seconds, and tokens that carried loss."""


def configuration(folder: Path, steps: int, seed: int) -> RunConfig:
    """Return our side's run."""
    return resolve(
        {
            "method": "GRPO",
            "steps": steps,
            "seed": seed,
            "run_dir": str(folder),
            "trajectories_every": 0,
            "env": {
                "prompt": "compact",
                "window": 0,
                "kwargs": {"text_format": "inner", "max_steps": 1},
            },
            "model": {"max_context": 256},
            "rollout": {"groups": GROUPS, "group_size": SIZE, "max_tokens": MAX_TOKENS},
            "loss": {"kl_coef": 0.0},
            "optim": {"lr": LR, "micro_tokens": 1 << 20, "zero_stage": 0},
            "checkpoint": {"every": 0},
        }
    )


def ours(steps: int, seed: int) -> list[Step]:
    """Train with our trainer and return its steps."""
    out: list[Step] = []
    with tempfile.TemporaryDirectory() as folder:
        train(
            configuration(Path(folder) / "run", steps, seed),
            progress=lambda step, total, row: out.append((row["time/step_s"], int(row["optim/tokens"]))),
        )
    return out


def prompts(n: int, seed: int) -> list[list[dict[str, str]]]:
    """Return the chat prompts of n training rooms, as our side shows them."""
    env = make_chat_env("ARL/Sokoban-v0", prompt="compact", window=0, text_format="inner", max_steps=1)
    ids = env.get_wrapper_attr("task_ids")("train")
    shown = []
    for i in range(n):
        messages, _ = env.reset(seed=0, options={"task_id": ids[seed * 100_000 + i]})
        shown.append([{"role": m["role"], "content": str(m["content"])} for m in messages])
    env.close()
    return shown


def theirs(steps: int, seed: int) -> list[Step]:
    """Train with TRL and return its steps."""
    trl, datasets = importlib.import_module("trl"), importlib.import_module("datasets")
    transformers = importlib.import_module("transformers")
    loaded = load_model("tiny", dtype="float32", seed=seed)
    model, tokenizer = loaded.model, loaded.tokenizer
    tokens: list[int] = []
    ends: list[float] = []

    def reward(completion_ids: Sequence[Sequence[int]], **rest: object) -> list[float]:
        tokens.append(sum(map(len, completion_ids)))
        return [float(ids[0] % 7) for ids in completion_ids]  # differs within a group, costs nothing

    class Clock(transformers.TrainerCallback):  # type: ignore[name-defined, misc]
        def on_step_begin(self, *args: object, **rest: object) -> None:
            if not ends:
                ends.append(time.perf_counter())

        def on_step_end(self, *args: object, **rest: object) -> None:
            ends.append(time.perf_counter())

    with tempfile.TemporaryDirectory() as folder:
        config = trl.GRPOConfig(
            output_dir=folder,
            max_steps=steps,
            per_device_train_batch_size=GROUPS * SIZE,
            gradient_accumulation_steps=1,
            num_generations=SIZE,
            max_completion_length=MAX_TOKENS,
            temperature=1.0,
            beta=0.0,
            loss_type="dapo",  # a mean over all tokens of the step, as in our GRPO
            scale_rewards="group",
            learning_rate=LR,
            lr_scheduler_type="constant",
            max_grad_norm=1.0,
            use_cpu=True,
            bf16=False,
            gradient_checkpointing=False,
            report_to=[],
            logging_strategy="no",
            save_strategy="no",
            disable_tqdm=True,
            dataloader_pin_memory=False,
            seed=seed,
        )
        trainer = trl.GRPOTrainer(
            model=model,
            processing_class=tokenizer,
            args=config,
            reward_funcs=reward,
            train_dataset=datasets.Dataset.from_dict({"prompt": prompts(GROUPS * steps, seed)}),
            callbacks=[Clock()],
        )
        trainer.train()
    return [(after - before, n) for before, after, n in zip(ends, ends[1:], tokens, strict=False)]


def speed(steps: Sequence[Step]) -> float:
    """Return trained tokens per second after the warm-up."""
    warm = steps[WARM_UP:]
    return sum(n for _, n in warm) / sum(s for s, _ in warm)


def in_a_process(side: str, steps: int, seed: int) -> list[Step]:
    """Return the steps of one side, run by itself: neither finds what the other has set up."""
    command = [sys.executable, __file__, "--side", side, "--steps", str(steps), "--seed", str(seed)]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return [(float(s), int(n)) for s, n in json.loads(printed.splitlines()[-1])]


def profiled(name: str, run: Callable[[int, int], list[Step]], steps: int) -> None:
    """Print the functions that most of the time went to."""
    profile = cProfile.Profile()
    profile.runcall(run, steps, 0)
    print(f"## {name}")
    pstats.Stats(profile).sort_stats("tottime").print_stats(25)


def main() -> None:
    """Run both sides and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--profile", action="store_true")
    parser.add_argument("--side", choices=["arl_gym", "TRL"], help=argparse.SUPPRESS)
    parser.add_argument("--seed", type=int, default=0, help=argparse.SUPPRESS)
    args = parser.parse_args()
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    sides: dict[str, Callable[[int, int], list[Step]]] = {"arl_gym": ours, "TRL": theirs}
    if args.side:
        print(json.dumps(sides[args.side](args.steps, args.seed)))
        return
    if args.profile:
        for name, run in sides.items():
            profiled(name, run, args.steps)
        return
    speeds: dict[str, list[float]] = {name: [] for name in sides}
    means: dict[str, Any] = {}
    for r in range(args.rounds):
        for name in list(sides) if r % 2 == 0 else list(sides)[::-1]:
            steps = in_a_process(name, args.steps + WARM_UP, r)
            speeds[name].append(speed(steps))
            means[name] = statistics.fmean(n for _, n in steps)
    print(f"{torch.get_num_threads()} threads, {args.rounds} rounds of {args.steps} steps\n")
    print("| trainer | tokens a step | tokens/s, median | of each round |\n|---|---|---|---|")
    for name, values in speeds.items():
        each = ", ".join(f"{v:.0f}" for v in values)
        print(f"| {name} | {means[name]:.0f} | {statistics.median(values):.0f} | {each} |")
    ratios = [a / b for a, b in zip(speeds["arl_gym"], speeds["TRL"], strict=True)]
    print(f"\narl_gym / TRL: {statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})")


if __name__ == "__main__":
    main()
