import dataclasses
import subprocess
import sys
import tomllib

import pytest
import tomli_w

from arl_gym.errors import ConfigError, UnknownNameError
from arl_gym.train.advantages import check_advantage
from arl_gym.train.config import FilterConfig, RunConfig, to_mapping
from arl_gym.train.loss import check_loss
from arl_gym.train.methods import METHODS, VARIANTS, method_settings, resolve, with_method
from tests.conftest import ROOT


def test_sampo_is_the_default():
    assert resolve({}) == RunConfig()


# Filter, step weight, EMPG, policy, ratio, low, high, aggregation and mask, as the paper has them.
PAPER = {
    "GRPO": (False, 0.0, False, "clip", "token", 0.2, 0.2, "token-mean", None),
    "GRPO_ST": (False, 0.0, False, "clip", "token", 0.2, 0.2, "seq-mean-token-mean", None),
    "GRPO_SM": (False, 0.0, False, "clip", "token", 0.2, 0.2, "token-mean", 3e-3),
    "SAPO": (False, 0.0, False, "sapo", "token", 0.2, 0.2, "token-mean", None),
    "SAPO_SM": (False, 0.0, False, "sapo", "token", 0.2, 0.2, "token-mean", 3e-3),
    "CISPO": (False, 0.0, False, "cispo", "token", 1.0, 0.2, "token-mean", None),
    "CISPO_SM": (False, 0.0, False, "cispo", "token", 1.0, 0.2, "token-mean", 3e-3),
    "GSPO": (False, 0.0, False, "clip", "turn", 3e-3, 4e-3, "token-mean", None),
    "GIGPO": (False, 1.0, False, "clip", "token", 0.2, 0.2, "token-mean", None),
    "EMPG": (False, 0.0, True, "clip", "token", 0.2, 0.2, "token-mean", None),
    "DAPO_GRPO": (True, 0.0, False, "clip", "token", 0.2, 0.28, "token-mean", None),
    "DAPO_GIGPO": (True, 1.0, False, "clip", "token", 0.2, 0.28, "token-mean", None),
    "SAMPO": (True, 1.0, False, "clip", "turn", 3e-3, 4e-3, "token-mean", None),
}


def test_the_table_has_the_methods_of_the_paper():
    assert list(METHODS) == list(PAPER)


@pytest.mark.parametrize("method", PAPER)
def test_a_method_sets_its_dials(method):
    cfg = resolve({"method": method})
    policy, ratio, low, high = cfg.loss.policy, cfg.loss.ratio_level, cfg.loss.clip_low, cfg.loss.clip_high
    got = (cfg.filter.enable, cfg.advantage.step_weight, cfg.advantage.empg, policy, ratio, low, high)
    assert (*got, cfg.loss.aggregation, cfg.loss.mask_delta) == PAPER[method]
    assert (cfg.advantage.gamma, cfg.advantage.normalise) == (0.95, "mean_std")
    assert (cfg.advantage.group_stats, cfg.loss.mask_denominator) == ("trajectory", "all")
    assert (cfg.loss.cispo_sides, cfg.loss.dual_clip_c, cfg.loss.entropy_coef) == ("signed", None, 0.0)
    assert (cfg.env.penalise, cfg.advantage.normalise_penalty) == ("format", False)


@pytest.mark.parametrize("method", METHODS)
def test_the_released_variant_differs_in_every_method(method):
    cfg = resolve({"method": method, "variant": "released"})
    assert cfg.variant == "released"
    assert (cfg.env.penalise, cfg.loss.entropy_coef) == ("action", 1e-3)
    assert (cfg.advantage.group_stats, cfg.advantage.normalise_penalty) == ("turn", True)
    clips_tokens = cfg.loss.policy == "clip" and cfg.loss.ratio_level == "token"
    assert cfg.loss.dual_clip_c == (3.0 if clips_tokens else None)


def test_what_the_released_variant_changes_in_single_methods():
    released = {name: resolve({"method": name, "variant": "released"}) for name in METHODS}
    assert released["CISPO"].loss.cispo_sides == released["CISPO_SM"].loss.cispo_sides == "both"
    assert released["SAPO_SM"].loss.mask_denominator == "kept"
    assert released["GRPO"].loss.mask_denominator == "all"
    assert released["SAMPO"].loss.aggregation == released["GSPO"].loss.aggregation == "seq-mean-token-mean"
    assert released["DAPO_GRPO"].loss.clip_high == 0.2
    assert released["DAPO_GRPO"].advantage.overlong_penalty == 0.1
    assert released["DAPO_GIGPO"].loss.clip_high == 0.28


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("method", METHODS)
def test_the_dials_of_a_method_go_together(method, variant):
    cfg = resolve({"method": method, "variant": variant})
    check_loss(cfg.loss)
    check_advantage(cfg.advantage)


def test_explicit_values_win_over_the_method():
    cfg = resolve({"method": "GRPO", "loss": {"clip_high": 0.28}, "filter": {"enable": True}})
    assert (cfg.loss.clip_low, cfg.loss.clip_high) == (0.2, 0.28)
    assert cfg.filter == FilterConfig()


def test_the_name_of_a_method_is_written_in_any_case():
    assert resolve({"method": "gspo"}).method == "GSPO"
    assert method_settings("GiGPO") is METHODS["GIGPO"].settings
    assert resolve({"method": "dapo-grpo"}).method == "DAPO_GRPO"


def test_an_unknown_method_names_the_nearest():
    with pytest.raises(UnknownNameError, match="unknown method 'GRPP': did you mean 'GRPO'"):
        resolve({"method": "grpp"})


def test_a_method_that_is_no_name_is_an_error():
    with pytest.raises(ConfigError, match="method: expected str, got int 3"):
        resolve({"method": 3})


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"variant": "code"}, "unknown variant 'code'"),
        ({"variant": 3}, "variant: expected str, got int 3"),
    ],
)
def test_an_unknown_variant_is_an_error(values, message):
    with pytest.raises(ConfigError, match=message):
        resolve(values)


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("method", METHODS)
def test_a_resolved_configuration_resolves_to_itself(method, variant):
    cfg = resolve({"method": method, "variant": variant, "loss": {"clip_low": 0.5}, "seed": 3})
    assert resolve(to_mapping(cfg)) == cfg


def test_a_dial_that_was_switched_off_stays_off_when_read_again():
    cfg = resolve({"method": "GRPO_SM", "variant": "released"})
    off = dataclasses.replace(cfg, loss=dataclasses.replace(cfg.loss, mask_delta=None, dual_clip_c=None))
    assert resolve(tomllib.loads(tomli_w.dumps(to_mapping(off)))) == off


def test_another_method_takes_the_place_of_a_method():
    cfg = resolve({"method": "CISPO_SM", "variant": "released", "seed": 3})
    assert with_method(cfg, "grpo") == resolve({"method": "GRPO", "variant": "released", "seed": 3})
    # What the row of the paper leaves to the run keeps its value.
    back = with_method(cfg, "GRPO", "paper")
    assert (back.variant, back.loss.dual_clip_c, back.env.penalise) == ("paper", None, "action")


def test_every_method_spells_out_the_same_dials():
    def dials(method):
        return {(section, key) for section, keys in method.settings.items() for key in keys}

    assert all(dials(m) == dials(METHODS["GRPO"]) for m in METHODS.values())


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
def test_the_released_settings_name_only_what_differs(method):
    for section, dials in method.released.items():
        for key, value in dials.items():
            assert method.settings.get(section, {}).get(key) != value


@pytest.mark.parametrize("method", METHODS)
def test_a_page_explains_the_method(method):
    page = (ROOT / "docs" / "methods.md").read_text(encoding="utf-8")
    assert f"\n### {method}\n" in page


def test_the_pure_half_of_the_trainer_does_not_load_torch():
    code = (
        "import sys, arl_gym.train.methods, arl_gym.train.advantages, arl_gym.train.filtering, "
        "arl_gym.train.batch; sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
