"""`arl-gym bench`: speed of an environment with its agent layer, played at random.

Times depend on the machine and on what else it does: compare within one run, never with a fixed number.
"""

import json
import os
import platform
import subprocess
import sys
from collections import deque
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from time import perf_counter
from typing import Any

from arl_gym.agents.policies import FALLBACK_ACTIONS, Respond, respond_in
from arl_gym.cli.options import add_env_options, add_workers_option, env_kwargs, parser, positive_int
from arl_gym.errors import WorkerError
from arl_gym.make import make_chat_vec
from arl_gym.rng import Rng
from arl_gym.vector import Result, TextVectorEnv


@dataclass(frozen=True, slots=True, kw_only=True)
class Speed:
    """What the benchmark measures."""

    steps_per_s: float
    """Resets included, as in a rollout."""
    resets_per_s: float
    step_p50_ms: float
    """From sending an action to its result; with workers the wait for the worker is part of it."""
    step_p99_ms: float
    peak_mb: float
    """Resident memory of this process."""
    peak_worker_mb: float
    """That of the largest worker process; 0 without such."""


def run(args: list[str]) -> int:
    """Measure, print, and append one JSON line to `--out`."""
    p = parser("bench", "Play at random and print steps/s, resets/s, step times and memory.")
    add_env_options(p, split="train")
    p.add_argument("--num-envs", "--envs", type=positive_int, default=8, help="environments")
    p.add_argument("--seconds", type=float, default=5.0, help="how long to step; resets get a quarter of it")
    add_workers_option(p)
    p.add_argument("--out", type=Path, metavar="FILE", help="append the result to this file as a JSON line")
    options = p.parse_args(args)
    if not options.seconds > 0:
        p.error(f"--seconds must be above 0, got {options.seconds}")
    vec = make_chat_vec(options.id, options.num_envs, workers=options.workers, **env_kwargs(options))
    try:
        bench = _Bench(
            vec, respond_in("default", options.id), in_flight=options.num_envs if options.workers else 1
        )
        steps_per_s = bench.run(options.seconds, resets_only=False)
        resets_per_s = bench.run(options.seconds / 4, resets_only=True)
    finally:
        vec.close()
    p50, p99 = (1e3 * _quantile(bench.step_s, q) for q in (0.5, 0.99))
    own_mb, worker_mb = _peak_mb()
    processes = isinstance(options.workers, int) and options.workers > 0
    speed = Speed(
        steps_per_s=steps_per_s,
        resets_per_s=resets_per_s,
        step_p50_ms=p50,
        step_p99_ms=p99,
        peak_mb=own_mb,
        peak_worker_mb=worker_mb if processes else 0.0,
    )
    print(f"{options.id}  {options.num_envs} envs, {options.workers} workers, {options.seconds:g} s")
    print(f"steps/s   {steps_per_s:12.1f}\nresets/s  {resets_per_s:12.1f}")
    print(f"step ms   {p50:12.3f} p50  {p99:.3f} p99\npeak MB   {own_mb:12.1f}", end="")
    print(f"  largest worker {worker_mb:.1f}" if processes else "")
    if options.out is not None:
        with options.out.open("a", encoding="utf-8") as out:
            out.write(json.dumps(_provenance(options) | asdict(speed)) + "\n")
    return 0


class _Bench:
    """Keeps `in_flight` slots busy; in this process one, so that a step time is that of one step."""

    def __init__(self, vec: TextVectorEnv, respond: Respond, *, in_flight: int):
        self._vec, self._respond, self._in_flight = vec, respond, in_flight
        self._rng = Rng("bench")
        self._last: dict[int, Result | None] = dict.fromkeys(range(vec.num_envs))
        self.step_s: list[float] = []

    def run(self, seconds: float, *, resets_only: bool) -> float:
        """Step (resetting what is over) or only reset for some time; return how many a second."""
        vec, idle, sent = self._vec, deque(self._last), dict[int, float]()
        n, began = 0, perf_counter()
        while sent or perf_counter() - began < seconds:
            while idle and len(sent) < self._in_flight and perf_counter() - began < seconds:
                i = idle.popleft()
                last = self._last[i]
                sent[i] = perf_counter()
                if resets_only or last is None or last.terminated or last.truncated:
                    self._last[i] = None
                    vec.send_reset(i, seed=self._rng.below(1 << 31))
                else:
                    vec.send(i, self._action(last.info))
            for result in vec.recv():
                took = perf_counter() - sent.pop(result.index)
                if "env_error" in result.info:
                    raise WorkerError(f"environment {result.index} failed: {result.info['env_error']}")
                if self._last[result.index] is not None:
                    self.step_s.append(took)
                n += resets_only or self._last[result.index] is not None
                self._last[result.index] = result
                idle.append(result.index)
        return n / (perf_counter() - began)

    def _action(self, info: dict[str, Any]) -> str:
        return self._respond("", self._rng.choice(info.get("admissible_actions") or FALLBACK_ACTIONS))


def _quantile(values: Iterable[float], q: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(q * len(ordered)))] if ordered else float("nan")


def _peak_mb() -> tuple[float, float]:
    """Return the peak resident memory of this process and of its largest finished child."""
    import resource

    unit = 1 << 20 if sys.platform == "darwin" else 1 << 10
    who = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    own, child = (resource.getrusage(w).ru_maxrss / unit for w in who)
    return own, child


def _provenance(options: Any) -> dict[str, Any]:
    return {
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": _commit(),
        "cpu": _cpu(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "python": platform.python_version(),
        "versions": {name: version(name) for name in ("gymnasium", "numpy")},
        "id": options.id,
        "env": dict(options.env),
        "num_envs": options.num_envs,
        "workers": options.workers,
        "seconds": options.seconds,
    }


def _commit() -> str:
    """Return the commit of the checkout this runs from, or "" for an installed package."""
    here = Path(__file__).parent
    command = ["git", "-C", str(here), "describe", "--always", "--dirty", "--abbrev=12"]
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=10, check=True).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return ""


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    return next(
        (line.partition(":")[2].strip() for line in lines if line.startswith("model name")),
        platform.machine(),
    )
