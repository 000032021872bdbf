"""The method table: each method is a row of settings over independent dials, never a code path.

cfg = resolve({"method": "GSPO", "seed": 3})
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from arl_gym.errors import ConfigError, UnknownNameError
from arl_gym.train.config import RunConfig, from_mapping

Dials = Mapping[str, bool | float | str]
Settings = Mapping[str, Dials]

_GRPO_LOSS: Dials = {"ratio_level": "token", "clip_low": 0.2, "clip_high": 0.2, "aggregation": "token-mean"}
_GSPO_LOSS: Dials = {"ratio_level": "turn", "clip_low": 3e-3, "clip_high": 4e-3, "aggregation": "token-mean"}
_GRPO_ADVANTAGE: Dials = {
    "group_stats": "trajectory",
    "normalise": "mean_std",
    "step_weight": 0.0,
    "gamma": 0.95,
}
_GIGPO_ADVANTAGE: Dials = {**_GRPO_ADVANTAGE, "step_weight": 1.0}
_BOUNDS = "ratio bounds from the ARLArena release"


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    """One row of the table."""

    name: str
    source: str
    """Where the settings come from."""
    settings: Settings
    """Section → key → value, for `config.from_mapping`; every dial that methods differ in is spelt out."""


METHODS: dict[str, Method] = {
    m.name: m
    for m in (
        Method(
            name="SAMPO",
            source=f"ARLArena, arXiv:2602.21534 (SAMPO: GIGPO's advantage, GSPO's loss); {_BOUNDS}",
            settings={"filter": {"enable": True}, "advantage": _GIGPO_ADVANTAGE, "loss": _GSPO_LOSS},
        ),
        Method(
            name="GRPO",
            source="GRPO, arXiv:2402.03300 (outcome supervision); token-mean as GRPO in ARLArena, Table 3",
            settings={"filter": {"enable": False}, "advantage": _GRPO_ADVANTAGE, "loss": _GRPO_LOSS},
        ),
        Method(
            name="GSPO",
            source=f"GSPO, arXiv:2507.18071 (GSPO-token); token-mean as GSPO in ARLArena, Table 3; {_BOUNDS}",
            settings={"filter": {"enable": False}, "advantage": _GRPO_ADVANTAGE, "loss": _GSPO_LOSS},
        ),
        Method(
            name="GIGPO",
            source="GiGPO, arXiv:2505.10978 (step relative advantage); as GIGPO in ARLArena, Table 3",
            settings={"filter": {"enable": False}, "advantage": _GIGPO_ADVANTAGE, "loss": _GRPO_LOSS},
        ),
    )
}


def method_settings(name: str) -> Settings:
    """Return the settings of a method; case does not matter.

    Raises:
        UnknownNameError: If there is no such method (names the nearest).
    """
    return _method(name).settings


def _method(name: str) -> Method:
    if name.upper() not in METHODS:
        raise UnknownNameError("method", name.upper(), METHODS)
    return METHODS[name.upper()]


def resolve(values: Mapping[str, Any], where: str = "") -> RunConfig:
    """Build the configuration of a run: dataclass defaults < method preset < `values`.

    Args:
        values: Nested mappings of what somebody set; `method` picks the preset.
        where: What to call their origin in errors, e.g. a file name.

    Raises:
        UnknownNameError: If a key or the method is unknown.
        ConfigError: If a value has the wrong type.
    """
    name = values.get("method", RunConfig.method)
    if not isinstance(name, str):
        raise ConfigError(f"method: expected str, got {type(name).__name__} {name!r}")
    method = _method(name)
    preset = from_mapping(RunConfig, method.settings, f"method {method.name}")
    return from_mapping(RunConfig, {**values, "method": method.name}, where, base=preset)


def method_table() -> list[dict[str, str]]:
    """Return the table for printing: a dict per method, of column → text, the same columns in every row."""
    return [
        {"method": m.name}
        | {f"{s}.{key}": str(value) for s, keys in m.settings.items() for key, value in keys.items()}
        | {"source": m.source}
        for m in METHODS.values()
    ]
