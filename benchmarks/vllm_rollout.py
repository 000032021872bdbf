"""What vLLM makes of the trainer's weights and prompts, beside transformers in the same run.

    .venv-vllm/bin/python benchmarks/vllm_rollout.py

Three tables. The first: the largest difference between log-probs of sampling and of the trainer before and
after each of some updates, and the seconds of a transfer; for tied and untied heads, and an adapter. The
second: prompt tokens that the engine read in append-only dialogues, against the bound: the dialogue's length
and a block of its cache a turn. The third: sampled tokens a second of both backends.

On a CPU the model has heads of 32, which vLLM's build for CPUs takes, and random weights.
"""

import argparse
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import torch

from arl_gym.agents.rollout import RolloutStats, rollout
from arl_gym.agents.types import Episode, Policy, Trajectory
from arl_gym.make import make_chat_vec
from arl_gym.train import distributed
from arl_gym.train.batch import pack
from arl_gym.train.chat import ChatCodec
from arl_gym.train.config import ModelConfig, OptimConfig, RunConfig, VLLMConfig
from arl_gym.train.engine import Engine
from arl_gym.train.methods import resolve
from arl_gym.train.model import Loaded, tiny_model, tiny_tokenizer
from arl_gym.train.policies.hf import HFPolicy
from arl_gym.train.policies.vllm import VLLMPolicy, close_engine, give_weights, open_engine
from arl_gym.train.samplers import describe, open_sampler, sampling_weights

BLOCK = 32
"""Tokens of a block of the prefix cache."""
CONTEXT = 1024
ENV = "ARL/Sokoban-v0"


def small(*, tied: bool = True) -> Loaded:
    """Return a random Qwen3 of about half a million parameters."""
    tokenizer = tiny_tokenizer()
    model = tiny_model(tokenizer, seed=1, hidden=128, layers=2)
    if not tied:
        model.config.tie_word_embeddings = False
        head: Any = model.lm_head
        head.weight = torch.nn.Parameter(head.weight.detach().flip(0).clone())
    return Loaded(model=model, tokenizer=tokenizer)


def play(policy: Policy, *, groups: int, copies: int, window: int | None, steps: int) -> list[Trajectory]:
    """Play episodes of Sokoban, all at once."""
    vec = make_chat_vec(
        ENV, groups * copies, window=window, max_steps=steps, prompt="compact", text_format="inner"
    )
    try:
        episodes = [
            Episode(task_id=f"train-{g:06d}", group=g, copy=c) for g in range(groups) for c in range(copies)
        ]
        return rollout(vec, policy, episodes, env_id=ENV, seed=0, stats=RolloutStats())
    finally:
        vec.close()


def config() -> RunConfig:
    """Return the settings of the transfers."""
    return resolve(
        {
            "model": {"max_context": CONTEXT},
            "rollout": {"max_tokens": 16, "backend": "vllm"},
            "vllm": {"kwargs": {"block_size": BLOCK}, "check_tokens": 64},
            "loss": {"kl_coef": 0.0},
        }
    )


def transfers(name: str, loaded: Loaded, model_cfg: ModelConfig, updates: int) -> str:
    """Train on what is sampled, and return a row about every transfer on the way."""
    cfg = config()
    codec = ChatCodec(loaded.tokenizer)
    optim = OptimConfig(lr=1e-3, zero_stage=2)
    engine = Engine(loaded.model, optim, temperature=1.0, reference=False, model_cfg=model_cfg)
    sampler = open_sampler(cfg, engine, loaded, codec)
    differences, seconds = [], []
    for _ in range(updates + 1):
        with sampler.playing(temperature=1.0) as policy:
            played = play(policy, groups=2, copies=2, window=0, steps=2)
        found = sampler.metrics()
        differences.append(found["sync/logprob_diff_max"])
        seconds.append(found["sync/seconds"])
        batch = engine.score(pack(played, pad_id=codec.pad_id))
        advantages = [torch.linspace(-1, 1, len(t.turns)).numpy() for t in played]
        engine.update(batch.with_advantages(advantages), cfg.loss, total_steps=updates + 1)
    sampler.close()
    listed = " ".join(f"{d:.1e}" for d in differences)
    return f"| {name} | {listed} | {statistics.median(seconds):.3f} |"


def prefixes(policy: VLLMPolicy, *, groups: int, copies: int, steps: int) -> str:
    """Return a row about what of the prompts of dialogues was read."""
    played = play(policy, groups=groups, copies=copies, window=None, steps=steps)
    bound, turns = 0, 0
    for trajectory in played:
        last = trajectory.turns[-1]
        bound += len(last.prompt_ids or ()) + len(last.completion_ids or ()) + BLOCK * len(trajectory.turns)
        turns += len(trajectory.turns)
    read = policy.n_prompt_tokens - policy.n_cached_tokens
    return f"| {groups} x {copies} | {turns} | {policy.n_prompt_tokens:,} | {read:,} | {bound:,} |"


def speed(policy: Policy, *, rounds: int) -> float:
    """Return sampled tokens a second, the median of some rounds."""
    rates = []
    for _ in range(rounds):
        start = time.perf_counter()
        played = play(policy, groups=8, copies=8, window=0, steps=4)
        tokens = sum(len(turn.completion_ids or ()) for t in played for turn in t.turns)
        rates.append(tokens / (time.perf_counter() - start))
    return statistics.median(rates)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--updates", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    distributed.start()
    print("| weights | largest difference before and after each update | median seconds |\n|---|---|---|")
    lora = ModelConfig(lora_rank=4, lora_alpha=8.0)
    for name, tied, model_cfg in [
        ("tied head", True, ModelConfig()),
        ("untied head", False, ModelConfig()),
        ("tied head, adapter", True, lora),
    ]:
        print(transfers(name, small(tied=tied), model_cfg, options.updates), flush=True)

    loaded = small()
    codec = ChatCodec(loaded.tokenizer)
    dials = VLLMConfig(kwargs={"block_size": BLOCK})
    with tempfile.TemporaryDirectory() as folder:
        describe(loaded, Path(folder))
        llm = open_engine(folder, dtype="float32", max_context=CONTEXT, seed=0, dials=dials, weights=False)
    give_weights(llm, sampling_weights(loaded.model))
    both: dict[str, Any] = {"max_tokens": 16, "temperature": 1.0, "max_context": CONTEXT}
    print("\n| groups x copies | turns | prompt tokens | read | bound |\n|---|---|---|---|---|")
    for groups, copies in [(16, 1), (4, 8)]:
        print(prefixes(VLLMPolicy(llm, codec, **both), groups=groups, copies=copies, steps=10), flush=True)
        llm.reset_prefix_cache()

    print("\n| backend | sampled tokens/s |\n|---|---|")
    rates = {
        "transformers": speed(HFPolicy(loaded.model, codec, batch_size=64, **both), rounds=options.rounds),
        "vLLM": speed(VLLMPolicy(llm, codec, **both), rounds=options.rounds),
    }
    for name, rate in rates.items():
        print(f"| {name} | {rate:,.0f} |")
    close_engine(llm)


if __name__ == "__main__":
    main()
