"""The demo: random play, cloning, reinforcement learning, and cloning continued for the same time.

All are tested on the same unseen tasks. Writes `bc/`, one folder a method, `bc_continued/`, `result.json` and
`report.html` under the run folder.
"""

import dataclasses
import json
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from arl_gym.agents.evaluate import EvalResult, paired_difference
from arl_gym.agents.types import Policy
from arl_gym.train.bc import clone_run
from arl_gym.train.config import RunConfig
from arl_gym.train.files import write_atomically
from arl_gym.train.methods import with_method
from arl_gym.train.metrics import Progress
from arl_gym.train.policies.hf import load_policy
from arl_gym.train.report import write_report
from arl_gym.train.run_dir import open_run_dir
from arl_gym.train.trainer import evaluate_policy, train

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Arm:
    """One agent of the comparison."""

    name: str
    greedy: EvalResult | None
    """At temperature 0; None for random play."""
    sampled: EvalResult
    """At the training temperature."""
    seconds: float
    """Wall time of its training, without the start it shares with others."""

    @property
    def main(self) -> EvalResult:
        """The result that is compared: greedy where there is one."""
        return self.greedy or self.sampled


def run_demo(
    cfg: RunConfig,
    *,
    episodes: int = 256,
    compare: Sequence[str] = (),
    say: Say = lambda text: None,
    progress: Progress | None = None,
) -> list[Arm]:
    """Clone, train with `cfg.method` from there, and test everything on the first tasks of the test split.

    Args:
        cfg: The run; its folder must be new or empty.
        episodes: Test tasks.
        compare: Further methods, each trained from the same start for the same time.
        say: Gets a line per stage.
        progress: Of the cloning and training loops.
    """
    with open_run_dir(cfg) as run:
        return _play(cfg, run.folder, episodes=episodes, compare=compare, say=say, progress=progress)


def _play(
    cfg: RunConfig,
    root: Path,
    *,
    episodes: int,
    compare: Sequence[str],
    say: Say,
    progress: Progress | None,
) -> list[Arm]:
    start = str(root / "bc" / "model")

    def tested(name: str, model: str, seconds: float) -> Arm:
        say(f"testing {name} on {episodes} unseen tasks")
        greedy = _evaluated(cfg, load(cfg, model, temperature=0.0), episodes)
        sampled = _evaluated(cfg, load(cfg, model, temperature=cfg.rollout.temperature), episodes)
        return Arm(name=name, greedy=greedy, sampled=sampled, seconds=seconds)

    say(f"random play on {episodes} unseen tasks")
    arms = [Arm(name="random", greedy=None, sampled=_evaluated(cfg, "random", episodes), seconds=0.0)]

    say(f"cloning {cfg.clone.episodes} expert episodes")
    cloned = clone_run(_in(cfg, root / "bc"), progress=progress)
    arms.append(tested("BC", start, cloned.seconds))

    began = time.monotonic()
    say(f"{cfg.method}: {cfg.steps} steps")
    trained = train(_in(cfg, root / cfg.method.lower(), model=start), progress=progress)
    seconds = time.monotonic() - began
    arms.append(tested(cfg.method, str(trained), seconds))

    say(f"cloning continued for the same {seconds:.0f} s")
    longer = clone_run(_in(cfg, root / "bc_continued", model=start), max_s=seconds, progress=progress)
    arms.append(tested("BC continued", str(root / "bc_continued" / "model"), longer.seconds))

    for method in compare:
        say(f"{method} for the same {seconds:.0f} s")
        other = with_method(cfg, method)
        other = dataclasses.replace(other, steps=1_000_000, max_train_s=seconds)
        began = time.monotonic()
        trained = train(_in(other, root / method.lower(), model=start), progress=progress)
        arms.append(tested(method, str(trained), time.monotonic() - began))

    # The report is that of the method's run, with the comparison and the curve of its start beside it.
    run = root / cfg.method.lower()
    for folder in (root, run):
        write_result(folder / "result.json", cfg, arms)
    shutil.copyfile(root / "bc" / "clone.jsonl", run / "clone.jsonl")
    write_report(run, root / "report.html")
    return arms


def load(cfg: RunConfig, model: str, *, temperature: float) -> Policy:
    """Return the policy of a saved model, played as the configuration says."""
    return load_policy(
        model,
        temperature=temperature,
        max_tokens=cfg.rollout.max_tokens,
        batch_size=cfg.rollout.batch_size,
        max_context=cfg.model.max_context,
        enable_thinking=cfg.model.enable_thinking,
        chat_template_kwargs=cfg.model.chat_template_kwargs,
        dtype=cfg.model.dtype,
    )


def _in(cfg: RunConfig, folder: Path, model: str | None = None) -> RunConfig:
    changed = dataclasses.replace(cfg, run_dir=str(folder))
    return (
        changed
        if model is None
        else dataclasses.replace(changed, model=dataclasses.replace(cfg.model, path=model))
    )


def _evaluated(cfg: RunConfig, policy: Policy | str, episodes: int) -> EvalResult:
    return evaluate_policy(cfg, policy, split="test", episodes=episodes)


def differences(arms: Sequence[Arm]) -> list[dict[str, Any]]:
    """Return the paired differences in success of every later arm to BC."""
    start = next(a for a in arms if a.name == "BC")
    later = arms[list(arms).index(start) + 1 :]
    rows = []
    for arm in later:
        mean, low, high = paired_difference(arm.main, start.main)
        rows.append({"a": arm.name, "b": start.name, "mean": mean, "low": low, "high": high})
    return rows


def write_result(path: Path, cfg: RunConfig, arms: Sequence[Arm]) -> None:
    """Write `result.json`: a row per arm, the paired differences, and every episode's outcome."""

    def rate(r: EvalResult) -> dict[str, float]:
        return {"success_rate": r.success_rate, "low": r.success_interval[0], "high": r.success_interval[1]}

    first = arms[0].main
    rows = [
        {
            "name": a.name,
            "n": a.main.n,
            "greedy": rate(a.main),
            "sampled": rate(a.sampled) if a.greedy else None,  # random play has no temperature
            "return_mean": a.main.return_mean,
            "turns_mean": a.main.length_mean,
            "valid_format": a.main.format_valid_share,
            "seconds": a.seconds,
            "successes": [int(s) for s in a.main.successes],
        }
        for a in arms
    ]
    head: dict[str, Any] = {"env_id": first.env_id, "dataset": first.dataset, "split": first.split}
    head |= {"content_hash": first.content_hash, "method": cfg.method, "seed": cfg.seed}
    text = json.dumps({**head, "rows": rows, "differences": differences(arms)}, indent=1)
    write_atomically(path, text.encode())
