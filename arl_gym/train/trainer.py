"""The training loop: rollout, filter, score, advantages, update, metrics.

>>> train(resolve({"steps": 2, "run_dir": "runs/try"}))  # doctest: +SKIP
"""

import dataclasses
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from arl_gym.agents.evaluate import EvalResult, evaluate
from arl_gym.agents.records import write_trajectories
from arl_gym.agents.rollout import RolloutStats, rollout
from arl_gym.agents.tasks import task_ids
from arl_gym.agents.types import Policy, Trajectory
from arl_gym.train.advantages import turn_advantages
from arl_gym.train.batch import Batch, pack
from arl_gym.train.chat import ChatCodec
from arl_gym.train.config import RunConfig
from arl_gym.train.engine import Engine
from arl_gym.train.envs import (
    chat_kwargs,
    check_step_advantage,
    groups_per_try,
    make_vec,
    training_episodes,
)
from arl_gym.train.filtering import CollectStats, collect_groups, silence_invalid
from arl_gym.train.loss import check_loss
from arl_gym.train.metrics import MetricsWriter, Progress, summarise
from arl_gym.train.model import initial_model, save_model
from arl_gym.train.policies.hf import HFPolicy
from arl_gym.train.run_dir import check_run_dir, open_run_dir


@dataclass(slots=True)
class Stopwatch:
    """Seconds spent, by name."""

    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        """Add the time of the block to `name`."""
        start = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - start


def make_policy(cfg: RunConfig, model: Any, codec: ChatCodec, *, temperature: float) -> HFPolicy:
    """Return a policy that samples from `model` as the configuration says."""
    return HFPolicy(
        model,
        codec,
        max_tokens=cfg.rollout.max_tokens,
        temperature=temperature,
        batch_size=cfg.rollout.batch_size,
        max_context=cfg.model.max_context,
    )


class Trainer:
    """One run: its model, engine, environments and folder. Use as a context manager."""

    def __init__(self, cfg: RunConfig):
        check_loss(cfg.loss)
        check_step_advantage(cfg)
        check_run_dir(cfg)
        self.cfg = cfg
        self.model, self.tokenizer = initial_model(cfg)
        self.codec = ChatCodec(self.tokenizer, enable_thinking=cfg.model.enable_thinking)
        temperature = cfg.rollout.temperature
        self.engine = Engine(self.model, cfg.optim, temperature=temperature, reference=cfg.loss.kl_coef > 0)
        self.policy = make_policy(cfg, self.model, self.codec, temperature=temperature)
        groups = groups_per_try(cfg, step=cfg.steps)
        self.vec = make_vec(cfg, split="train", num_envs=groups * cfg.rollout.group_size)
        self.task_ids = task_ids(self.vec, "train")
        self.folder = open_run_dir(cfg)  # last: a bad setting leaves nothing behind

    def __enter__(self) -> "Trainer":
        return self

    def __exit__(self, *exc: object) -> None:
        self.vec.close()

    def run(self, progress: Progress | None = None) -> Path:
        """Train to the last step and return the folder of the trained model."""
        cfg, start = self.cfg, time.monotonic()
        with MetricsWriter(self.folder / "metrics.jsonl") as metrics:
            for step in range(1, cfg.steps + 1):
                watch = Stopwatch()
                with watch("time/step_s"):
                    trajectories, row = self.collect(step, watch)
                    row |= self.learn(trajectories, watch)
                is_last = step == cfg.steps or 0 < cfg.max_train_s <= time.monotonic() - start
                row |= self._evaluate(step, is_last=is_last)
                self._record(step, trajectories, is_last=is_last)
                metrics.write(step, row | watch.seconds)
                if progress is not None:
                    progress(step, cfg.steps, row)
                if is_last:
                    break
        save_model(self.folder / "model", self.model, self.tokenizer)
        return self.folder / "model"

    def collect(self, step: int, watch: Stopwatch) -> tuple[list[Trajectory], dict[str, float]]:
        """Play groups until enough of them carry signal."""
        cfg, stats = self.cfg, RolloutStats()
        played: list[Trajectory] = []

        def play(attempt: int) -> list[Trajectory]:
            episodes = training_episodes(cfg, self.task_ids, step=step, attempt=attempt)
            got = rollout(
                self.vec, self.policy, episodes, env_id=cfg.env.id, seed=cfg.seed, step=step, stats=stats
            )
            played.extend(got)
            return got

        with watch("time/rollout_s"):
            kept = collect_groups(play, cfg.filter, n_groups=cfg.rollout.groups, step=step)
        watch.seconds["time/env_us_per_turn"] = stats.env_us_per_turn
        trajectories = [t for group in kept.groups for t in group]
        # The filter prefers some tasks to others: what was kept does not say how good the policy is.
        raw = {key: summarise(played)[key] for key in ("rollout/success_rate", "rollout/return_mean")}
        row = summarise(trajectories) | {k.replace("/", "/played_"): v for k, v in raw.items()}
        return trajectories, row | _filter_metrics(kept.stats)

    def learn(self, trajectories: Sequence[Trajectory], watch: Stopwatch) -> dict[str, float]:
        """Update the model on trajectories; a batch without a trainable token is skipped and counted."""
        taught = silence_invalid(trajectories) if self.cfg.filter.mask_invalid else trajectories
        batch = pack(taught, pad_id=self.codec.pad_id) if trajectories else None
        if batch is None or not batch.action_mask.any():
            return {"optim/skipped_batches": 1.0}
        with watch("time/score_s"):
            batch = self.engine.score(batch)
        batch = batch.with_advantages(turn_advantages(trajectories, self.cfg.advantage))
        with watch("time/update_s"):
            stats = self.engine.update(batch, self.cfg.loss, total_steps=self.cfg.steps)
        skipped = {"optim/skipped_batches": 0.0, "optim/skipped_steps": float(self.engine.n_skipped)}
        return stats | token_metrics(batch) | skipped

    def _evaluate(self, step: int, *, is_last: bool) -> dict[str, float]:
        """Look at the validation split every `eval.every` steps and at the end."""
        every = self.cfg.eval.every
        if not every or (step % every and not is_last):
            return {}
        policy = make_policy(self.cfg, self.model, self.codec, temperature=self.cfg.eval.temperature)
        result = evaluate_policy(self.cfg, policy, split="val", episodes=self.cfg.eval.episodes)
        row = {"eval/success_rate": result.success_rate, "eval/return_mean": result.return_mean}
        for kind, (k, n) in result.success_by_type.items():
            row[f"eval/episodes_{kind}"] = n
            if n:
                row[f"eval/success_rate_{kind}"] = k / n
        return row

    def _record(self, step: int, trajectories: Sequence[Trajectory], *, is_last: bool) -> None:
        every = self.cfg.trajectories_every
        if every and (step % every == 0 or is_last):
            write_trajectories(self.folder / "trajectories" / f"step-{step:06d}.jsonl.gz", trajectories)


def train(cfg: RunConfig, *, progress: Progress | None = None) -> Path:
    """Train the model of `cfg` and return the folder of the trained one.

    Raises:
        ConfigError: If the configuration cannot be run.
    """
    with Trainer(cfg) as trainer:
        return trainer.run(progress)


def evaluate_policy(cfg: RunConfig, policy: Policy | str, *, split: str, episodes: int) -> EvalResult:
    """Play the first tasks of a split, once each, as the configuration shows the environment."""
    return evaluate(
        policy,
        cfg.env.id,
        split=split,
        episodes=episodes,
        seed=cfg.seed,
        num_envs=min(episodes, 64),
        workers=cfg.env.workers,
        **chat_kwargs(cfg),
    )


def _filter_metrics(stats: CollectStats) -> dict[str, float]:
    return {f"rollout/{name}": float(value) for name, value in dataclasses.asdict(stats).items()}


def token_metrics(batch: Batch) -> dict[str, float]:
    """Compare the log-probs of sampling with those of the trainer, token by token; and give its entropy."""
    assert batch.old_logprobs is not None
    assert batch.entropies is not None
    gap = np.abs(batch.old_logprobs - batch.rollout_logprobs)[batch.action_mask]
    return {
        "rollout/logprob_diff_mean": float(gap.mean()),
        "rollout/logprob_diff_max": float(gap.max()),
        "rollout/entropy_mean": float(batch.entropies[batch.action_mask].mean()),
    }
