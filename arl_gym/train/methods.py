"""The method table: each method is a row of settings over independent dials, never a code path.

    cfg = resolve({"method": "GSPO", "variant": "released", "seed": 3})

What every method is, and what it is good for: docs/methods.md.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from arl_gym.errors import ConfigError, UnknownNameError
from arl_gym.train.config import RunConfig, from_mapping

Dials = Mapping[str, bool | float | str | None]
Settings = Mapping[str, Dials]

VARIANTS = ("paper", "released")

_FILTER: Settings = {"filter": {"enable": True}}
_GIGPO: Settings = {"advantage": {"step_weight": 1.0}}
_TURN_RATIO: Settings = {"loss": {"ratio_level": "turn", "clip_low": 3e-3, "clip_high": 4e-3}}
_SAPO: Settings = {"loss": {"policy": "sapo"}}
_CISPO: Settings = {"loss": {"policy": "cispo", "clip_low": 1.0}}
_MASK: Settings = {"loss": {"mask_delta": 3e-3}}
_DAPO_CLIP: Settings = {"loss": {"clip_high": 0.28}}
_SEQUENCE_MEAN: Settings = {"loss": {"aggregation": "seq-mean-token-mean"}}
_KEPT: Settings = {"loss": {"mask_denominator": "kept"}}
_BOTH_SIDES: Settings = {"loss": {"cispo_sides": "both"}}

# GRPO. The other rows differ from it; each of them spells out all of these dials.
_PLAIN: Settings = {
    "filter": {"enable": False},
    "advantage": {
        "group_stats": "trajectory",
        "normalise": "mean_std",
        "normalise_penalty": False,
        "step_weight": 0.0,
        "gamma": 0.95,
        "empg": False,
        "overlong_penalty": 0.0,
    },
    "loss": {
        "policy": "clip",
        "ratio_level": "token",
        "clip_low": 0.2,
        "clip_high": 0.2,
        "dual_clip_c": None,
        "cispo_sides": "signed",
        "mask_delta": None,
        "mask_denominator": "all",
        "aggregation": "token-mean",
    },
}
# Where the released code differs from the paper in every method.
_RELEASED: Settings = {
    "env": {"penalise": "action"},
    "advantage": {"group_stats": "turn", "normalise_penalty": True},
    "loss": {"entropy_coef": 1e-3},
}
_RELEASED_CLIP: Settings = {"loss": {"dual_clip_c": 3.0}}


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    """One row of the table."""

    name: str
    idea: str
    """What it does, in a sentence."""
    formula: str
    """The loss of a token and the advantage of its turn: r is the token's ratio, s the turn's, sg stops the
    gradient."""
    source: str
    """Where the method and its settings come from, and what the released scripts set elsewhere."""
    settings: Settings
    """Section → key → value, for `config.from_mapping`; every dial that methods differ in is spelt out."""
    released: Settings
    """What differs in the released code."""
    trl: str
    """The same in TRL's `GRPOConfig`, or "-"."""
    verl: str
    """The same in verl (`actor` is short for `actor_rollout_ref.actor`), or "-"."""


def _over(*layers: Settings) -> Settings:
    """Lay settings over one another; the last one wins."""
    out: dict[str, dict[str, bool | float | str | None]] = {}
    for layer in layers:
        for section, dials in layer.items():
            out.setdefault(section, {}).update(dials)
    return out


_ARLARENA = "as in ARLArena, arXiv:2602.21534"
_GROUP = "A = (R - mean) / (std + 1e-6) over the group"
_STEP = f"{_GROUP}, plus the same of the discounted return-to-go over equal anchors"
_CLIPPED = "max(-A r, -A clip(r, 1 - low, 1 + high))"
_SEQUENCE_CLIPPED = "max(-A s, -A clip(s, 1 - low, 1 + high)), s the geometric mean of r over the turn"
_GATED = "-A (4 / tau) sigmoid(tau (r - 1)), tau 1.0 where A > 0, else 1.05"
_WEIGHTED = "-sg(w) A log p, w = min(r, 1 + high) where A > 0, else max(r, 1 - low)"
_MASKED = "; none for turns with A < 0 and mean(log p_old - log p) > mask_delta"
_TRL_SAPO = 'loss_type="sapo", sapo_temperature_pos=1.0, sapo_temperature_neg=1.05 (means per sequence)'
_TRL_CISPO = 'loss_type="cispo", epsilon_high=1.2 (the bound itself, for either sign of A)'
_TRL_MASK = "off_policy_mask_threshold=3e-3"
_VERL_GIGPO = "verl-agent: algorithm.adv_estimator=gigpo, algorithm.gamma=0.95, "
_VERL_GIGPO += "algorithm.gigpo.step_advantage_w=1.0, algorithm.gigpo.mode=mean_std_norm"
_VERL_DAPO = "algorithm.filter_groups.enable=True, actor.clip_ratio_low=0.2, actor.clip_ratio_high=0.28"

METHODS: dict[str, Method] = {
    m.name: m
    for m in (
        Method(
            name="GRPO",
            idea="Compares the episodes of a group, and clips the ratio of each token.",
            formula=f"{_CLIPPED}; {_GROUP}",
            source=f"GRPO, arXiv:2402.03300 (outcome supervision); token-mean {_ARLARENA}, Table 3",
            settings=_PLAIN,
            released=_over(_RELEASED, _RELEASED_CLIP),
            trl='loss_type="dapo", epsilon=0.2',
            verl="algorithm.adv_estimator=grpo, actor.loss_agg_mode=token-mean",
        ),
        Method(
            name="GRPO_ST",
            idea="GRPO in which every turn counts the same, however long it is.",
            formula=f"{_CLIPPED}; {_GROUP}; averaged within turns, then over turns",
            source=f"GRPO, arXiv:2402.03300 (its objective's mean over a sequence); {_ARLARENA}, Table 3",
            settings=_over(_PLAIN, _SEQUENCE_MEAN),
            released=_over(_RELEASED, _RELEASED_CLIP),
            trl='loss_type="grpo", epsilon=0.2',
            verl="algorithm.adv_estimator=grpo, actor.loss_agg_mode=seq-mean-token-mean",
        ),
        Method(
            name="GRPO_SM",
            idea="GRPO that drops stale turns with a negative advantage.",
            formula=f"{_CLIPPED}{_MASKED}; {_GROUP}",
            source=f"sequence mask {_ARLARENA}; 3e-3 from its scripts, which have none for GRPO itself",
            settings=_over(_PLAIN, _MASK),
            released=_over(_RELEASED, _RELEASED_CLIP, _KEPT),
            trl=f'loss_type="dapo", epsilon=0.2, {_TRL_MASK}',
            verl="-",
        ),
        Method(
            name="SAPO",
            idea="GRPO with a soft gate instead of a clip: far tokens count less, but never nothing.",
            formula=f"{_GATED}; {_GROUP}",
            source=f"SAPO, arXiv:2511.20347; {_ARLARENA}, Table 3 (its WebShop script also sets the mask)",
            settings=_over(_PLAIN, _SAPO),
            released=_RELEASED,
            trl=_TRL_SAPO,
            verl="actor.policy_loss.loss_mode=sapo, actor.tau_pos=1.0, actor.tau_neg=1.05",
        ),
        Method(
            name="SAPO_SM",
            idea="SAPO that drops stale turns with a negative advantage.",
            formula=f"{_GATED}{_MASKED}; {_GROUP}",
            source=f"SAPO, arXiv:2511.20347, with the sequence mask {_ARLARENA}, Table 4",
            settings=_over(_PLAIN, _SAPO, _MASK),
            released=_over(_RELEASED, _KEPT),
            trl=f"{_TRL_SAPO}, {_TRL_MASK}",
            verl="-",
        ),
        Method(
            name="CISPO",
            idea="A policy gradient with bounded, constant weights: every token keeps its gradient.",
            formula=f"{_WEIGHTED}; {_GROUP}",
            source=f"CISPO, arXiv:2506.13585; {_ARLARENA}, Table 3 (its WebShop script also sets the mask, "
            "TIR-Math has clip_high 0.28)",
            settings=_over(_PLAIN, _CISPO),
            released=_over(_RELEASED, _BOTH_SIDES),
            trl=_TRL_CISPO,
            verl="actor.policy_loss.loss_mode=cispo, actor.clip_ratio_low=1.0, actor.clip_ratio_high=0.2 "
            "(both sides)",
        ),
        Method(
            name="CISPO_SM",
            idea="CISPO that drops stale turns with a negative advantage.",
            formula=f"{_WEIGHTED}{_MASKED}; {_GROUP}",
            source=f"CISPO, arXiv:2506.13585, with the sequence mask {_ARLARENA}, Table 4",
            settings=_over(_PLAIN, _CISPO, _MASK),
            released=_over(_RELEASED, _BOTH_SIDES, _KEPT),
            trl=f"{_TRL_CISPO}, {_TRL_MASK}",
            verl="-",
        ),
        Method(
            name="GSPO",
            idea="GRPO that clips whole turns: one ratio for all tokens of a turn.",
            formula=f"{_SEQUENCE_CLIPPED}; {_GROUP}",
            source=f"GSPO, arXiv:2507.18071 (GSPO-token); {_ARLARENA}, Table 3; bounds from its ALFWorld and "
            "Sokoban scripts (WebShop 3e-2 and 4e-2, TIR-Math 3e-4 and 4e-4)",
            settings=_over(_PLAIN, _TURN_RATIO),
            released=_over(_RELEASED, _SEQUENCE_MEAN),
            trl='importance_sampling_level="sequence", loss_type="dapo", epsilon=3e-3, epsilon_high=4e-3',
            verl="actor.policy_loss.loss_mode=gspo, actor.clip_ratio_low=3e-3, actor.clip_ratio_high=4e-3 "
            "(always seq-mean-token-mean)",
        ),
        Method(
            name="GIGPO",
            idea="GRPO that also compares turns of a group which faced the same observation.",
            formula=f"{_CLIPPED}; {_STEP}",
            source=f"GiGPO, arXiv:2505.10978 (step relative advantage); {_ARLARENA}, Table 3",
            settings=_over(_PLAIN, _GIGPO),
            released=_over(_RELEASED, _RELEASED_CLIP),
            trl="-",
            verl=_VERL_GIGPO,
        ),
        Method(
            name="EMPG",
            idea="GRPO with larger steps where the policy was sure, and a bonus for a clear next turn.",
            formula=f"{_CLIPPED}; {_GROUP}, times exp(-k H) / mean(exp(-k H)), plus zeta exp(-k' H_next), "
            "centred over the batch; H is the turn's entropy, scaled to [0, 1] over the batch",
            source=f"EMPG, arXiv:2509.09265; {_ARLARENA}, Table 3; k, k' and zeta from its code",
            settings=_over(_PLAIN, {"advantage": {"empg": True}}),
            released=_over(_RELEASED, _RELEASED_CLIP),
            trl="-",
            verl="-",
        ),
        Method(
            name="DAPO_GRPO",
            idea="GRPO on groups whose returns differ, with a wider upper clip bound.",
            formula=f"{_CLIPPED}; {_GROUP}; groups of equal returns are played again",
            source=f"DAPO, arXiv:2503.14476; {_ARLARENA}, Table 3; 0.28 from its TIR-Math script (its "
            "ALFWorld script has no overlong penalty)",
            settings=_over(_PLAIN, _FILTER, _DAPO_CLIP),
            released=_over(
                _RELEASED,
                _RELEASED_CLIP,
                {"loss": {"clip_high": 0.2}, "advantage": {"overlong_penalty": 0.1}},
            ),
            trl='loss_type="dapo", epsilon=0.2, epsilon_high=0.28 (without the filter)',
            verl=f"recipe/dapo: {_VERL_DAPO}, actor.loss_agg_mode=token-mean",
        ),
        Method(
            name="DAPO_GIGPO",
            idea="GIGPO on groups whose returns differ, with a wider upper clip bound.",
            formula=f"{_CLIPPED}; {_STEP}; groups of equal returns are played again",
            source=f"DAPO, arXiv:2503.14476, and GiGPO, arXiv:2505.10978; {_ARLARENA}, Table 3, which "
            "releases no script of it",
            settings=_over(_PLAIN, _FILTER, _GIGPO, _DAPO_CLIP),
            released=_over(_RELEASED, _RELEASED_CLIP),
            trl="-",
            verl=f"{_VERL_GIGPO}, {_VERL_DAPO}",
        ),
        Method(
            name="SAMPO",
            idea="GIGPO's advantage, GSPO's loss, and groups whose returns differ.",
            formula=f"{_SEQUENCE_CLIPPED}; {_STEP}; groups of equal returns are played again",
            source=f"SAMPO, {_ARLARENA}; bounds from its ALFWorld and Sokoban scripts (its WebShop script "
            "does not divide by the standard deviation)",
            settings=_over(_PLAIN, _FILTER, _GIGPO, _TURN_RATIO),
            released=_over(_RELEASED, _SEQUENCE_MEAN),
            trl="-",
            verl="-",
        ),
    )
}


def find_method(name: str) -> Method:
    """Return a row of the table; case does not matter, and "-" is as good as "_".

    Raises:
        UnknownNameError: If there is no such method (names the nearest).
    """
    key = name.upper().replace("-", "_")
    if key not in METHODS:
        raise UnknownNameError("method", key, METHODS)
    return METHODS[key]


def method_settings(name: str, variant: str = "paper") -> Settings:
    """Return the settings of a method.

    Raises:
        UnknownNameError: If there is no such method or variant (names the nearest).
    """
    if variant not in VARIANTS:
        raise UnknownNameError("variant", variant, VARIANTS)
    method = find_method(name)
    return method.settings if variant == "paper" else _over(method.settings, method.released)


def with_method(cfg: RunConfig, name: str, variant: str | None = None) -> RunConfig:
    """Return the configuration with a method's dials in place of its own; None keeps its variant.

    Raises:
        UnknownNameError: If there is no such method or variant.
    """
    variant = cfg.variant if variant is None else variant
    method = find_method(name)
    settings = {"method": method.name, "variant": variant, **method_settings(name, variant)}
    return from_mapping(RunConfig, settings, f"method {method.name}", base=cfg)


def resolve(values: Mapping[str, Any], where: str = "") -> RunConfig:
    """Build the configuration of a run: dataclass defaults < method preset < `values`.

    Args:
        values: Nested mappings of what somebody set; `method` and `variant` pick the preset.
        where: What to call their origin in errors, e.g. a file name.

    Raises:
        UnknownNameError: If a key, the method or the variant is unknown.
        ConfigError: If a value has the wrong type.
    """
    name = _text(values, "method", RunConfig.method)
    variant = _text(values, "variant", RunConfig.variant)
    preset = with_method(RunConfig(), name, variant)
    return from_mapping(RunConfig, {**values, "method": preset.method}, where, base=preset)


def _text(values: Mapping[str, Any], key: str, default: str) -> str:
    value = values.get(key, default)
    if not isinstance(value, str):
        raise ConfigError(f"{key}: expected str, got {type(value).__name__} {value!r}")
    return value
