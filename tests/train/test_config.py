import tomllib

import pytest
import tomli_w

from arl_gym.errors import ConfigError, UnknownNameError
from arl_gym.train.config import (
    AdvantageConfig,
    EnvConfig,
    LossConfig,
    RunConfig,
    from_mapping,
    load_toml,
    to_mapping,
)


def test_an_unknown_key_names_the_nearest_and_its_section():
    with pytest.raises(
        UnknownNameError, match=r"unknown config key 'clip_hi' in run\.toml\.loss: did you mean 'clip_high'"
    ):
        from_mapping(RunConfig, {"loss": {"clip_hi": 0.1}}, "run.toml")


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"steps": "many"}, "steps: expected int, got str 'many'"),
        ({"steps": 1.5}, "steps: expected int, got float"),
        ({"steps": True}, "steps: expected int, got bool"),
        ({"loss": {"clip_low": "0.1"}}, r"loss\.clip_low: expected float, got str"),
        ({"filter": {"enable": 1}}, r"filter\.enable: expected bool, got int"),
        ({"loss": {"ratio_level": "word"}}, r"loss\.ratio_level: expected Literal\['token', 'turn', 'traj"),
        ({"optim": {"zero_stage": True}}, r"optim\.zero_stage"),
        ({"env": {"window": 2.0}}, r"env\.window"),
        ({"loss": {"dual_clip_c": "off"}}, r"loss\.dual_clip_c: expected float \| None, got str"),
        ({"loss": 3}, "loss is a section: expected a table, got 3"),
    ],
)
def test_a_value_of_the_wrong_type_is_named(values, message):
    with pytest.raises(ConfigError, match=message):
        from_mapping(RunConfig, values, "")


def test_an_integer_where_a_float_belongs_becomes_one():
    cfg = from_mapping(AdvantageConfig, {"gamma": 1}, "")
    assert isinstance(cfg.gamma, float)


@pytest.mark.parametrize("window", [4, "dialogue"])
def test_a_value_may_fit_any_member_of_a_union(window):
    assert from_mapping(EnvConfig, {"window": window}, "").window == window


def test_values_change_only_what_they_name():
    base = LossConfig(clip_low=0.5, kl_coef=0.2)
    assert from_mapping(LossConfig, {"kl_coef": 0.3}, "", base) == LossConfig(clip_low=0.5, kl_coef=0.3)


@pytest.mark.parametrize("none", [None, "none"])
def test_none_replaces_a_value(none):
    cfg = from_mapping(LossConfig, {"dual_clip_c": none}, "", LossConfig(dual_clip_c=3.0))
    assert cfg.dual_clip_c is None


def test_none_is_written_as_text():
    assert to_mapping(LossConfig())["dual_clip_c"] == "none"


def test_none_is_no_value_of_a_dial_that_needs_one():
    with pytest.raises(ConfigError, match=r"clip_low: expected float, got str 'none'"):
        from_mapping(LossConfig, {"clip_low": "none"}, "")


def test_a_configuration_survives_toml():
    cfg = from_mapping(
        RunConfig,
        {
            "seed": 7,
            "env": {"kwargs": {"dim_room": [6, 6]}, "window": "dialogue"},
            "loss": {"dual_clip_c": 3.0, "ratio_level": "token"},
        },
        "",
    )
    assert from_mapping(RunConfig, tomllib.loads(tomli_w.dumps(to_mapping(cfg))), "") == cfg


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    broken = tmp_path / "run.toml"
    broken.write_text("steps = = 3")
    with pytest.raises(ConfigError, match=r"cannot read the configuration .*run\.toml"):
        load_toml(broken)
    with pytest.raises(ConfigError, match=r"missing\.toml"):
        load_toml(tmp_path / "missing.toml")
