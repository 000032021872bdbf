"""The conformance test for environments: what everything above them relies on.

For authors of environments, ours and anybody's. Needs `task_id` and `success` in the info; everything else of
the contract is checked where the environment offers it. A rule that could not be tried is reported as such.

    >>> def test_my_env():
    ...     check_text_env(MyEnv)

    >>> print(conformance(lambda: gym.make("ARL/Sokoban-v0")))  # doctest: +SKIP
"""

import inspect
import traceback
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import gymnasium as gym

from arl_gym.checker import episodes as _episodes
from arl_gym.checker import surroundings, tasks, values
from arl_gym.checker.probe import Mismatch, NotApplicable, Probe
from arl_gym.errors import ConfigError, ConformanceError
from arl_gym.worker import one_line

__all__ = ["RULES", "Finding", "Report", "check_text_env", "conformance"]

Env = gym.Env[Any, Any]
Rule = Callable[[Probe], None]
Outcome = Literal["holds", "broken", "not tried"]

RULES: tuple[Rule, ...] = (*values.RULES, *_episodes.RULES, *tasks.RULES, *surroundings.RULES)
"""The rules in the order of the report: functions whose docstring is the title and, below, a hint."""

_MARKS: dict[Outcome, str] = {"holds": "ok", "broken": "FAIL", "not tried": "-"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What became of one rule."""

    title: str
    outcome: Outcome
    detail: str = ""
    """Of a broken rule what was expected, what came, and where; of one that was not tried why."""
    hint: str = ""
    """Of a broken rule what to do, where that is not obvious."""


@dataclass(frozen=True, slots=True)
class Report:
    """What became of all rules; `str` of it is a table to read."""

    name: str
    """The environment."""
    findings: tuple[Finding, ...]

    @property
    def broken(self) -> list[Finding]:
        """The rules that do not hold."""
        return self._with("broken")

    @property
    def not_tried(self) -> list[Finding]:
        """The rules that could not be tried on this environment."""
        return self._with("not tried")

    @property
    def holding(self) -> list[Finding]:
        """The rules that hold."""
        return self._with("holds")

    def _with(self, outcome: Outcome) -> list[Finding]:
        return [finding for finding in self.findings if finding.outcome == outcome]

    def __str__(self) -> str:
        lines = [self.summary()]
        for finding in self.findings:
            lines.append(f"{_MARKS[finding.outcome]:>6}  {finding.title}")
            lines += [f"        {line}" for line in (finding.detail, finding.hint) if line]
        return "\n".join(lines)

    def summary(self) -> str:
        """Return one line with the counts."""
        counts = f"{len(self.holding)} rules hold, {len(self.broken)} broken, {len(self.not_tried)} not tried"
        return f"{self.name}: {counts}"


def check_text_env(make_env: Callable[..., Env], *, episodes: int = 3, seed: int = 0) -> None:
    """Check an environment against the contract of this package.

    Args:
        make_env: Makes the environment: its class, or a function. Where it takes `split` or `render_mode`,
            or the environment comes from `gym.make`, the rules about these are tried too. It travels to a
            worker process by cloudpickle.
        episodes: How many seeds most rules are tried on.
        seed: The first of them.

    Raises:
        ConformanceError: If rules are broken, with what was expected, what came and where for each.
        ConfigError: If `make_env` makes no Gymnasium environment.
        Exception: What `make_env` raises.
    """
    report = conformance(make_env, episodes=episodes, seed=seed)
    if report.broken:
        lines = [f"{f.title}: {f.detail}" + (f"\n  {f.hint}" if f.hint else "") for f in report.broken]
        raise ConformanceError("\n- ".join([report.summary(), *lines]))


def conformance(make_env: Callable[..., Env], *, episodes: int = 3, seed: int = 0) -> Report:
    """Try all rules of `check_text_env`, and report those that hold, are broken, or could not be tried.

    Args:
        make_env: As in `check_text_env`.
        episodes: How many seeds most rules are tried on.
        seed: The first of them.

    Raises:
        ConfigError: If `make_env` makes no Gymnasium environment.
        Exception: What `make_env` raises.
    """
    if not callable(make_env):
        raise ConfigError(f"make_env must be a class or function that makes an environment, got {make_env!r}")
    env = make_env()
    if not isinstance(env, gym.Env):
        raise ConfigError(f"make_env must make a gymnasium.Env, got {type(env).__name__}")
    name = env.spec.id if env.spec else type(env.unwrapped).__name__
    env.close()
    probe = Probe(make_env, episodes, seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what Gymnasium warns of is among the rules
        return Report(name, tuple(_try(rule, probe) for rule in RULES))


def _try(rule: Rule, probe: Probe) -> Finding:
    title, _, hint = (inspect.getdoc(rule) or rule.__name__).partition("\n")
    title, hint = title.removesuffix("."), " ".join(hint.split())
    try:
        rule(probe)
    except NotApplicable as why:
        return Finding(title=title, outcome="not tried", detail=str(why))
    except Mismatch as err:
        return Finding(title=title, outcome="broken", detail=str(err), hint=hint)
    except Exception as err:  # an environment of others may raise anything
        frame = traceback.extract_tb(err.__traceback__)[-1]
        place = f"{Path(frame.filename).name}, line {frame.lineno}"
        detail = f"expected no exception, got {one_line(err)} ({place})"
        return Finding(title=title, outcome="broken", detail=detail, hint=hint)
    return Finding(title=title, outcome="holds")
