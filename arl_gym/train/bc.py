"""Behaviour cloning: the model learns to answer as the env's expert does, or as recorded episodes did.

One training row per turn, with the same prompts as in reinforcement learning, or per append-only dialogue;
only the responses carry loss. The best model by validation loss is what stays.
"""

import dataclasses
import os
import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from arl_gym.agents.policies import ExpertPolicy
from arl_gym.agents.records import read_trajectories
from arl_gym.agents.tasks import task_ids
from arl_gym.agents.types import Episode, Trajectory, Turn
from arl_gym.errors import ConfigError, DataError
from arl_gym.rng import Rng, digest
from arl_gym.train import distributed
from arl_gym.train.batch import Batch, pack
from arl_gym.train.chat import ChatCodec
from arl_gym.train.collecting import expert_response, runs_by_env
from arl_gym.train.config import CloneConfig, RunConfig
from arl_gym.train.engine import Engine
from arl_gym.train.envs import make_vec
from arl_gym.train.metrics import MetricsWriter, Progress
from arl_gym.train.model import initial_model
from arl_gym.train.run_dir import RunDir, check_run_dir, open_run_dir

# What `read_trajectories` leaves of a picture whose file is gone.
_LOST_PICTURE = re.compile(r"\[image ([0-9a-f]{16})\]")


@dataclass(frozen=True, slots=True, kw_only=True)
class CloneResult:
    """How cloning went."""

    steps: int
    """Optimiser steps taken."""
    best_step: int
    """Step of the model that was kept."""
    best_val_loss: float
    """Its mean negative log-likelihood per response token, in nats."""
    seconds: float
    """Wall time of the loop."""
    n_too_long: int = 0
    """Episodes left out because a row is longer than `model.max_context`."""


def collect(
    cfg: RunConfig,
    *,
    split: str,
    episodes: int,
    prefill: str = "",
    check: Callable[[], None] | None = None,
) -> list[Trajectory]:
    """Let the experts of the run's environments play tasks of a split, chosen by the run's seed.

    Args:
        cfg: Names the environments, their weights and how they are shown.
        split: Where the tasks come from.
        episodes: How many are played.
        prefill: What the chat template already writes of every response.
        check: Called between turns; what it raises ends collecting.

    Returns:
        The successful episodes with a valid format in every turn.

    Raises:
        ConfigError: If an expert solves none.
    """
    shares = runs_by_env(cfg, episodes)
    return [t for run, n in shares for t in _demonstrated(run, split, n, prefill, check)]


def _demonstrated(
    cfg: RunConfig, split: str, episodes: int, prefill: str, check: Callable[[], None] | None
) -> list[Trajectory]:
    answer = expert_response(cfg)

    def respond(thought: str, action: str) -> str:
        return with_prefill(answer(thought, action), prefill)

    vec = make_vec(cfg.env, split=split, num_envs=min(64, episodes), expert=True)
    try:
        ids = task_ids(vec, split)
        rng = Rng("demonstrations", cfg.seed, split)
        tasks = [Episode(task_id=ids[rng.below(len(ids))], group=i) for i in range(episodes)]
        played = distributed.shared_rollout(
            vec, ExpertPolicy(respond), tasks, env_id=cfg.env.id, seed=cfg.seed, check=check
        )
    finally:
        vec.close()
    kept = [t for t in played if t.success and all(turn.format_valid for turn in t.turns)]
    if not kept:
        raise ConfigError(f"the expert of {cfg.env.id} solved none of {episodes} tasks of split {split!r}")
    return kept


def recorded(cfg: RunConfig, *, prefill: str = "") -> tuple[list[Trajectory], list[Trajectory]]:
    """Read the recorded episodes of `cfg.clone.data`, for training and for validation.

    Episodes of the split "val" are for validation. If there are none, all episodes of a tenth of the tasks
    are, at least of one: which tasks depends on their names only. Episodes without turns, and those that the
    environment's failure ended, are left out, and of every response what the environment did not read: it
    brought nothing about.

    Args:
        cfg: Names the file.
        prefill: What the chat template already writes of every response.

    Raises:
        DataError: If the file cannot be read, lacks the file of a picture, or holds too little for both.
        ConfigError: If episodes are of test tasks and `cfg.clone.allow_test` is off.
    """
    path = Path(cfg.clone.data)
    played = [t for t in read_trajectories(path) if t.is_valid]
    for trajectory in played:
        _check_pictures_kept(trajectory, path)
    foreign = sorted({t.split for t in played} - {"", "train", "val"})
    if foreign and not cfg.clone.allow_test:
        raise ConfigError(
            f"{path} holds episodes of split {', '.join(foreign)}: expected train and val only; "
            "clone.allow_test=true clones them too"
        )
    validation = [t for t in played if t.split == "val"] or _held_out(played)
    chosen = {id(t) for t in validation}
    training = [t for t in played if id(t) not in chosen]
    if not training or not validation:
        raise DataError(
            f"{path}: expected episodes of split train and val, or of two tasks at least, got "
            f"{len(training)} for training and {len(validation)} for validation"
        )
    return [_shown(t, prefill) for t in training], [_shown(t, prefill) for t in validation]


def _check_pictures_kept(trajectory: Trajectory, path: Path) -> None:
    for k, turn in enumerate(trajectory.turns):
        for part in (p for m in turn.messages if not isinstance(m["content"], str) for p in m["content"]):
            if part["type"] == "text" and (lost := _LOST_PICTURE.fullmatch(part["text"])):
                raise DataError(
                    f"{path}, task {trajectory.task_id!r} turn {k}: expected a picture in "
                    f"{path.parent / 'images' / lost[1]}.png, found none"
                )


def _held_out(played: Sequence[Trajectory]) -> list[Trajectory]:
    """Return all episodes of a tenth of the tasks; none if there is one task only."""
    names = {(t.env_id, t.task_id) for t in played}
    tasks = sorted(names, key=lambda name: digest("\n".join(name)))
    held = set(tasks[: max(1, len(tasks) // 10)]) if len(tasks) > 1 else set()
    return [t for t in played if (t.env_id, t.task_id) in held]


def _shown(trajectory: Trajectory, prefill: str) -> Trajectory:
    """Return the episode with responses as they are to be learnt."""
    turns = (
        dataclasses.replace(t, response=with_prefill(t.response[: t.n_chars], prefill), n_chars=None)
        for t in trajectory.turns
    )
    return dataclasses.replace(trajectory, turns=tuple(turns))


def with_prefill(response: str, prefill: str) -> str:
    """Return the response as it reads when the chat template has already written `prefill` of it.

    A prefilled `<think>` replaces the response's own; a prefilled empty thought replaces the whole thought.
    """
    tag = "</think>" if "</think>" in prefill else "<think>"
    return prefill + response.partition(tag)[2] if tag in prefill and tag in response else response


def tokenise(trajectories: Sequence[Trajectory], codec: ChatCodec) -> list[Trajectory]:
    """Return the demonstrations with token ids, as if the model had sampled the expert's responses."""

    def turns(trajectory: Trajectory) -> tuple[Turn, ...]:
        out: list[Turn] = []
        for turn in trajectory.turns:
            if turn.append:
                last = out[-1]
                context = [*(last.prompt_ids or []), *(last.completion_ids or [])]
                prompt = context + codec.encode_bridge(context, turn.messages)
            else:
                prompt = codec.encode_prompt(turn.messages)
            answer = codec.encode_response(turn.response)
            zeros = [0.0] * len(answer)
            out.append(
                dataclasses.replace(
                    turn, prompt_ids=prompt, completion_ids=answer, logprobs=zeros, n_kept=len(answer)
                )
            )
        return tuple(out)

    return [dataclasses.replace(t, turns=turns(t)) for t in trajectories]


def clone(
    engine: Engine,
    demonstrations: Batch,
    validation: Batch,
    cfg: CloneConfig,
    *,
    seed: int,
    keep: Callable[[], None],
    metrics: MetricsWriter,
    max_s: float | None = None,
    progress: Progress | None = None,
    check: Callable[[], None] | None = None,
) -> CloneResult:
    """Fit the demonstrations until the validation loss is low enough or stops improving, or `cfg.steps`.

    Args:
        engine: Whose weights are fitted.
        demonstrations: Packed rows of the training split.
        validation: Packed rows of the validation split.
        cfg: The dials.
        seed: Order of the rows.
        keep: Called whenever the validation loss is the best so far.
        metrics: Gets a row per optimiser step.
        max_s: Wall time limit in seconds, instead of the ends that `cfg` names.
        progress: Called after every step; with `max_s` it counts seconds instead of steps.
        check: Called before every step; what it raises ends cloning.

    Returns:
        What happened; the weights in `engine` are the last ones, not the best.
    """
    start, best, best_step, stale, step = time.monotonic(), float("inf"), 0, 0, 0
    for rows in _batches(len(demonstrations.ids), cfg.batch_rows, seed):
        if max_s is not None and distributed.any_rank(time.monotonic() - start >= max_s):
            break
        if max_s is None and (step >= cfg.steps or stale >= cfg.patience or best <= cfg.stop_loss):
            break
        step += 1
        if check is not None:
            distributed.check_together(check)
        stats = engine.fit(demonstrations, rows, lr=cfg.lr)
        row = {"clone/train_loss": stats["loss"], "clone/grad_norm": stats["optim/grad_norm"]}
        if step % cfg.eval_every == 0 or (max_s is None and step == cfg.steps):
            row["clone/val_loss"] = engine.nll(validation)
            if row["clone/val_loss"] < best:
                best, best_step, stale = row["clone/val_loss"], step, 0
                keep()
            else:
                stale += 1
        metrics.write(step, row)
        if progress is not None:
            done = (step, cfg.steps) if max_s is None else (int(time.monotonic() - start), int(max_s))
            progress(*done, row)
    return CloneResult(steps=step, best_step=best_step, best_val_loss=best, seconds=time.monotonic() - start)


def _batches(n_rows: int, size: int, seed: int) -> Iterator[np.ndarray]:
    """Yield row indices for ever, each epoch in a new order."""
    epoch = 0
    while True:
        order = list(range(n_rows))
        Rng("clone", seed, epoch).shuffle(order)
        for i in range(0, n_rows, size):
            yield np.array(order[i : i + size])
        epoch += 1


def clone_run(
    cfg: RunConfig,
    *,
    max_s: float | None = None,
    progress: Progress | None = None,
    check: Callable[[], None] | None = None,
) -> CloneResult:
    """Collect or read demonstrations, clone them into the model of `cfg`, and save the best model.

    Several processes may call it together, each with the same arguments; the first one writes.

    Args:
        cfg: The run; `cfg.run_dir` gets `config.toml`, `clone.jsonl` and `model/`.
        max_s: See `clone`.
        progress: See `clone`.
        check: See `clone`.

    Raises:
        ConfigError: If the configuration cannot be run.
        DataError: If the recorded episodes cannot be used.
    """
    distributed.start()
    if not distributed.is_main():
        progress = None
    distributed.on_main(lambda: check_run_dir(cfg))
    loaded = initial_model(cfg)
    codec = ChatCodec(
        loaded.tokenizer,
        loaded.vision,
        enable_thinking=cfg.model.enable_thinking,
        chat_template_kwargs=cfg.model.chat_template_kwargs,
    )
    training, validation, n_too_long = _demonstrations(cfg, codec, check)
    engine = Engine(
        loaded.model,
        cfg.optim,
        temperature=1.0,
        reference=False,
        model_cfg=cfg.model,
        vision=loaded.vision,
    )
    opened: list[RunDir] = []
    distributed.on_main(lambda: opened.append(open_run_dir(cfg)))
    folder = Path(cfg.run_dir)
    try:
        with MetricsWriter(folder / "clone.jsonl" if distributed.is_main() else Path(os.devnull)) as metrics:
            result = clone(
                engine,
                training,
                validation,
                cfg.clone,
                seed=cfg.seed,
                keep=lambda: engine.export(folder / "model", loaded.tokenizer),
                metrics=metrics,
                max_s=max_s,
                progress=progress,
                check=check,
            )
    finally:
        for run in opened:
            run.close()
    return dataclasses.replace(result, n_too_long=n_too_long)


def _demonstrations(
    cfg: RunConfig, codec: ChatCodec, check: Callable[[], None] | None
) -> tuple[Batch, Batch, int]:
    """Return the rows for training and for validation, and how many episodes were too long for them."""
    if cfg.clone.data:
        sets = recorded(cfg, prefill=codec.prefill)
    else:
        sets = (
            collect(cfg, split="train", episodes=cfg.clone.episodes, prefill=codec.prefill, check=check),
            collect(cfg, split="val", episodes=cfg.clone.val_episodes, prefill=codec.prefill, check=check),
        )
    n_too_long, batches = 0, []
    for name, played in zip(("training", "validation"), sets, strict=True):
        tokenised = tokenise(played, codec)
        fitting = [t for t in tokenised if _longest_row(t) <= cfg.model.max_context]
        if not fitting:
            raise ConfigError(
                f"none of the {len(played)} {name} episodes fits model.max_context={cfg.model.max_context}"
            )
        n_too_long += len(tokenised) - len(fitting)
        batches.append(pack(fitting, pad_id=codec.pad_id))
    return batches[0], batches[1], n_too_long


def _longest_row(trajectory: Trajectory) -> int:
    return max(len(turn.prompt_ids or ()) + len(turn.completion_ids or ()) for turn in trajectory.turns)
