"""Finished or running runs as they lie on disk, and groups of them.

lines = group_runs(load_runs([Path("runs/a"), Path("runs/b")]), "method")
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from arl_gym.errors import ConfigError, DataError, UnknownNameError
from arl_gym.train.alarms import Alarm, alarms_of
from arl_gym.train.analysis import clip_shares
from arl_gym.train.config import load_toml
from arl_gym.train.metrics import Row, read_metrics
from arl_gym.train.recordings import RecordedStep, recorded_steps

_NOT_A_SETTING = ("run_dir", "seed")
"""What runs of one group may differ in."""


@dataclass(frozen=True, kw_only=True)
class Run:
    """One run folder; what is read is read once."""

    label: str
    folder: Path

    @cached_property
    def config(self) -> dict[str, Any]:
        """`config.toml`.

        Raises:
            DataError: If there is none.
            ConfigError: If it cannot be read.
        """
        if not (self.folder / "config.toml").exists():
            raise DataError(f"{self.folder.name} has no config.toml")
        return load_toml(self.folder / "config.toml")

    @cached_property
    def settings(self) -> dict[str, object]:
        """`config`, by dotted key."""
        return flatten(self.config)

    @cached_property
    def steps(self) -> list[Row]:
        """The rows of `metrics.jsonl`, with the shares of tokens outside the clip range.

        Where the trainer did not write those, they are of the recorded steps that have scores of tokens.

        Raises:
            DataError: If there is no such file, or it cannot be read.
        """
        rows = read_metrics(self.folder / "metrics.jsonl")
        if any("loss/clip_frac_pos" in row for row in rows):
            return rows
        shares = self._recorded_shares()
        return [{**row, **shares.get(int(row["step"] or 0), {})} for row in rows]

    @cached_property
    def rows(self) -> list[Row]:
        """The rows of training and, where there is one, of cloning; their keys differ.

        Raises:
            DataError: If there is neither, or one cannot be read.
        """
        clone = self.folder / "clone.jsonl"
        has_steps = (self.folder / "metrics.jsonl").exists()
        if not has_steps and not clone.exists():
            raise DataError(f"{self.folder.name} has no metrics.jsonl")
        return [*(self.steps if has_steps else ()), *(read_metrics(clone) if clone.exists() else ())]

    @cached_property
    def alarms(self) -> list[tuple[int, Alarm]]:
        """What was out of its limits, and from which step.

        Raises:
            DataError: If there are no metrics or no configuration, or the metrics cannot be read.
            ConfigError: If the configuration cannot be read.
        """
        return alarms_of(self.rows, self.config)

    @cached_property
    def recorded(self) -> list[RecordedStep]:
        """The recorded steps.

        Raises:
            DataError: If there are none, or one cannot be read.
        """
        return recorded_steps(self.folder)

    def _recorded_shares(self) -> dict[int, Row]:
        try:
            loss = self.config["loss"]
            bounds = {key: loss[key] for key in ("ratio_level", "clip_low", "clip_high")}
            scored = [s for s in self.recorded if s.turns]
        except (DataError, ConfigError, KeyError):
            return {}  # the sections about recorded steps say what is missing
        shares = {s.step: clip_shares(s.turns, **bounds) for s in scored}
        return {
            step: {"loss/clip_frac_pos": pos, "loss/clip_frac_neg": neg}
            for step, (pos, neg) in shares.items()
        }


def load_runs(folders: Sequence[Path]) -> list[Run]:
    """Return the runs of folders, called by the shortest end of their paths that tells them apart.

    Raises:
        ConfigError: If there is no folder.
        DataError: If one of them is none.
    """
    if not folders:
        raise ConfigError("expected at least one run folder, got none")
    for folder in folders:
        if not folder.is_dir():
            raise DataError(f"expected a run folder, got {folder}")
    paths = list(dict.fromkeys(d.resolve() for d in folders))
    for depth in range(1, max(len(p.parts) for p in paths) + 1):
        labels = ["/".join(p.parts[-depth:]) for p in paths]
        if len(set(labels)) == len(paths):
            break
    return [Run(label=label, folder=path) for label, path in zip(labels, paths, strict=True)]


def group_runs(runs: Sequence[Run], key: str) -> dict[str, list[Run]]:
    """Return the runs by their value of a setting, in the order in which the values first occur.

    Args:
        runs: At least one.
        key: Dotted, as in "loss.clip_low"; the method is called by its name, any other value "KEY=VALUE".

    Raises:
        UnknownNameError: If no run has the setting (names the nearest).
        DataError: If a run has no configuration.
    """
    known = {name for run in runs for name in run.settings}
    if key not in known:
        raise UnknownNameError("setting", key, known, "the configurations of the runs")
    groups: dict[str, list[Run]] = {}
    for run in runs:
        value = run.settings.get(key, "not set")
        groups.setdefault(str(value) if key == "method" else f"{key}={value}", []).append(run)
    return groups


def differing_settings(runs: Iterable[Run]) -> list[str]:
    """Return the dotted keys, beside seed and folder, in which runs of one group differ."""
    settings = [run.settings for run in runs]
    keys = dict.fromkeys(key for each in settings for key in each)
    return [k for k in keys if k not in _NOT_A_SETTING and len({repr(each.get(k)) for each in settings}) > 1]


def flatten(config: Mapping[str, Any], prefix: str = "") -> dict[str, object]:
    """Return nested tables as one, by dotted key; those of a list by their number, as in "envs.0.id"."""
    out: dict[str, object] = {}
    for key, value in config.items():
        if isinstance(value, list) and any(isinstance(v, Mapping) for v in value):
            out |= flatten({str(i): v for i, v in enumerate(value)}, f"{prefix}{key}.")
        elif isinstance(value, Mapping):
            out |= flatten(value, f"{prefix}{key}.")
        else:
            out[prefix + key] = value
    return out


def env_ids(config: Mapping[str, Any]) -> list[str]:
    """Return the ids of the environments of a run, as its `config.toml` has them."""
    return [str(env.get("id", "?")) for env in config.get("envs") or [config.get("env", {})]]
