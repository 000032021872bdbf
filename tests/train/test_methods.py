import subprocess
import sys

import pytest

from arl_gym.errors import ConfigError, UnknownNameError
from arl_gym.train.config import FilterConfig, RunConfig, to_mapping
from arl_gym.train.methods import METHODS, method_settings, method_table, resolve


def test_sampo_is_the_default():
    assert resolve({}) == RunConfig()


@pytest.mark.parametrize(
    ("method", "filtered", "step_weight", "level", "clip_low", "clip_high"),
    [
        ("SAMPO", True, 1.0, "turn", 3e-3, 4e-3),
        ("GRPO", False, 0.0, "token", 0.2, 0.2),
        ("GSPO", False, 0.0, "turn", 3e-3, 4e-3),
        ("GIGPO", False, 1.0, "token", 0.2, 0.2),
    ],
)
def test_a_method_sets_its_dials(method, filtered, step_weight, level, clip_low, clip_high):
    cfg = resolve({"method": method})
    assert cfg.filter.enable is filtered
    assert cfg.advantage.step_weight == step_weight
    assert (cfg.loss.ratio_level, cfg.loss.clip_low, cfg.loss.clip_high) == (level, clip_low, clip_high)
    assert cfg.loss.aggregation == "token-mean"
    assert (cfg.advantage.gamma, cfg.advantage.normalise) == (0.95, "mean_std")


def test_explicit_values_win_over_the_method():
    cfg = resolve({"method": "GRPO", "loss": {"clip_high": 0.28}, "filter": {"enable": True}})
    assert (cfg.loss.clip_low, cfg.loss.clip_high) == (0.2, 0.28)
    assert cfg.filter == FilterConfig()


def test_the_name_of_a_method_is_written_in_any_case():
    assert resolve({"method": "gspo"}).method == "GSPO"
    assert method_settings("GiGPO") is METHODS["GIGPO"].settings


def test_an_unknown_method_names_the_nearest():
    with pytest.raises(UnknownNameError, match="unknown method 'GRPP': did you mean 'GRPO'"):
        resolve({"method": "grpp"})


def test_a_method_that_is_no_name_is_an_error():
    with pytest.raises(ConfigError, match="method: expected str, got int 3"):
        resolve({"method": 3})


@pytest.mark.parametrize("method", METHODS)
def test_a_resolved_configuration_resolves_to_itself(method):
    cfg = resolve({"method": method, "loss": {"clip_low": 0.5}, "seed": 3})
    assert resolve(to_mapping(cfg)) == cfg


def test_every_method_spells_out_the_same_dials():
    columns = [list(row) for row in method_table()]
    assert all(c == columns[0] for c in columns)


def test_the_table_shows_values_as_text():
    rows = {row["method"]: row for row in method_table()}
    assert rows["SAMPO"]["loss.clip_low"] == "0.003"
    assert rows["GRPO"]["filter.enable"] == "False"
    assert "2402.03300" in rows["GRPO"]["source"]


def test_the_pure_half_of_the_trainer_does_not_load_torch():
    code = (
        "import sys, arl_gym.train.methods, arl_gym.train.advantages, arl_gym.train.filtering, "
        "arl_gym.train.batch; sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
