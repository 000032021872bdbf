import re

import pytest

from arl_gym.envs import ENVS
from arl_gym.errors import ConfigError, DataError
from arl_gym.train.checks import check_config, check_data, conflicts
from arl_gym.train.methods import METHODS, resolve

# Their step part compares turns that faced the same observation: TIR-Math has none.
STEP_METHODS = {"SAMPO", "GIGPO", "DAPO_GIGPO"}


def one(**values):
    """Return the only conflict of a configuration."""
    (line,) = conflicts(resolve(values))
    return line


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("env_id", ENVS)
def test_every_method_goes_with_every_environment_but_the_step_part_with_tir_math(method, env_id):
    found = conflicts(resolve({"method": method, "env": {"id": env_id}}))
    if env_id == "ARL/TIRMath-v0" and method in STEP_METHODS:
        assert len(found) == 1
        assert "advantage.step_weight=0" in found[0]
    else:
        assert found == []


def test_all_conflicts_come_in_one_error():
    cfg = resolve(
        {
            "method": "GRPO",
            "env": {"kwargs": {"num_boxxes": 2}},
            "rollout": {"group_size": 1, "temperature": 0.0},
            "loss": {"policy": "sapo", "dual_clip_c": 3.0},
        }
    )
    with pytest.raises(ConfigError) as caught:
        check_config(cfg)
    first, *rest = str(caught.value).splitlines()
    assert first == "the configuration has 4 conflicts:"
    assert [re.split(r"[=:]", line)[0] for line in rest] == [
        "(1) rollout.temperature",
        "(2) unknown keyword argument 'num_boxxes' in env.kwargs of ARL/Sokoban-v0",
        "(3) rollout.group_size",
        "(4) loss.dual_clip_c",
    ]


def test_a_single_conflict_is_a_single_line():
    with pytest.raises(ConfigError, match=r"^checkpoint\.keep=0: expected at least 1$"):
        check_config(resolve({"checkpoint": {"keep": 0}}))


TOKENS = {"method": "GRPO"}
CONFLICTS = [
    ({"rollout": {"temperature": 0.0}}, "rollout.temperature=0.0: expected more than 0"),
    ({"rollout": {"group_size": 1}}, "rollout.group_size=1: expected at least 2"),
    ({"rollout": {"max_tokens": 2048}}, "leaves no room for a prompt in model.max_context=2048"),
    ({"filter": {"oversample": 0.5}}, "filter.oversample must be at least 1, got 0.5"),
    ({"filter": {"max_tries": 0}}, "filter.max_tries=0: expected at least 1"),
    ({"optim": {"minibatches": 17}}, "optim.minibatches=17, but rollout.groups=16"),
    ({"optim": {"zero": {"stage": 3}}}, "set optim.zero_stage instead"),
    ({"optim": {"zero": {"offload_param": {}}}}, "offload_param needs optim.zero_stage=3, got 2"),
    ({"advantage": {"gamma": 0.0}}, "advantage.gamma=0.0: expected more than 0, at most 1"),
    ({"advantage": {"anchor_similarity": 1.5}}, "advantage.anchor_similarity=1.5: expected"),
    ({"advantage": {"overlong_buffer": 512}}, "covers the whole response (rollout.max_tokens=512)"),
    ({"loss": {"clip_low": -0.1}}, "loss.clip_low=-0.1: expected at least 0"),
    ({"loss": {"dual_clip_c": 3.0}}, "ratio_level='token' (got 'clip' and 'turn')"),
    (TOKENS | {"loss": {"dual_clip_c": 1.0}}, "loss.dual_clip_c=1.0: expected more than 1"),
    ({"loss": {"aggregation": "seq-mean-token-sum-norm"}}, "such as rollout.max_tokens=512, got 0"),
    ({"loss": {"kl_coef": 0.0, "kl_gradient": False}}, "loss.kl_coef=0 loads no reference model"),
    ({"loss": {"tis_cap": 0.0}}, "loss.tis_cap=0.0: expected more than 0"),
    ({"eval": {"samples": 4}}, "eval.samples=4 are all alike"),
    ({"model": {"lora_rank": 8, "lora_alpha": 0.0}}, "model.lora_alpha=0.0: expected more than 0"),
    ({"env": {"id": "ARL/Sokobann-v0"}}, "env.id: unknown environment 'ARL/Sokobann-v0'"),
    ({"env": {"prompt": "compakt"}}, "did you mean 'compact'"),
    ({"env": {"window": -1}}, "env.window=-1: expected at least 0"),
    ({"env": {"weight": 0.0}}, "env.weight=0.0: expected more than 0"),
    ({"env": {"penalty": -0.1}}, "env.penalty=-0.1: expected at least 0"),
    ({"env": {"workers": -1}}, "env: workers must be 0 (in-process), a number of processes, 'ray'"),
    ({"env": {"workers": "ray:none"}}, "or 'ray:N' (N actors), got 'ray:none'"),
    ({"env": {"kwargs": {"split": "test"}}}, "env.kwargs.split='test': leave it out"),
    ({"env": {"kwargs": {"window": 3}}}, "env.kwargs.window=3: set env.window instead"),
    (
        {"env": {"kwargs": {"obs_mode": "grid"}}},
        "obs_mode='grid': a language model reads no arrays",
    ),
    ({"env": {"kwargs": {"obs_mode": "image"}}}, "obs_mode='image': the model 'tiny' reads text only"),
    (
        {"model": {"image_min_pixels": 65, "image_max_pixels": 64}},
        "model.image_min_pixels=65: expected at most model.image_max_pixels=64",
    ),
    ({"model": {"image_max_pixels": -1}}, "model.image_max_pixels=-1: expected at least 0"),
    ({"env": {"kwargs": {"action_mode": "discrete"}}}, "an agent that speaks needs action_mode='text'"),
]


@pytest.mark.parametrize(("values", "message"), CONFLICTS, ids=[message for _, message in CONFLICTS])
def test_a_conflict_names_the_dial_and_the_way_out(values, message):
    assert message in one(**values)


@pytest.mark.parametrize("mode", ["image", "both"])
def test_pictures_are_for_models_that_may_read_them(tmp_path, mode):
    env = {"kwargs": {"obs_mode": mode}}
    text, seeing = tmp_path / "text", tmp_path / "seeing"
    for folder, content in ((text, "{}"), (seeing, '{"vision_config": {}}')):
        folder.mkdir()
        (folder / "config.json").write_text(content)
    assert f"the model '{text}' reads text only" in one(env=env, model={"path": str(text)})
    for path in ("tiny-vl", str(seeing), "Somebody/A-model-of-the-hub"):
        assert conflicts(resolve({"env": env, "model": {"path": path}})) == []


def test_similar_anchors_need_anchors_of_text():
    values = {"env": {"anchor": "state"}, "advantage": {"anchor_similarity": 0.9}}
    assert "set anchor='observation'" in one(**values)
    assert conflicts(resolve({"method": "GRPO", **values})) == []  # it has no step part


def test_minibatches_by_rows_may_be_as_many_as_they_like():
    assert conflicts(resolve({"optim": {"minibatches": 17, "minibatch_rows": 256}})) == []


def test_several_environments_are_checked_each_under_its_own_name():
    envs = [{"id": "ARL/TIRMath-v0"}, {"id": "ARL/WebShop-v0", "kwargs": {"boxes": 1}}]
    first, second = conflicts(resolve({"envs": envs}))
    assert "ARL/TIRMath-v0" in first
    assert "envs.1.kwargs of ARL/WebShop-v0" in second


def test_env_and_envs_together_would_leave_env_out():
    values = {"env": {"window": 3}, "envs": [{"id": "ARL/WebShop-v0"}]}
    assert "move it into envs" in one(**values)


# ---- data


@pytest.mark.parametrize("env_id", ["ARL/ALFWorld-v0", "ARL/WebShop-v0", "ARL/TIRMath-v0"])
def test_a_run_beside_the_papers_figures_refuses_generated_data(env_id):
    values = {"method": "GRPO", "paper": True, "env": {"id": env_id}}
    assert "env.kwargs.dataset='generated'" in one(**values)
    values["env"] = {"id": env_id, "kwargs": {"dataset": "original"}}
    assert conflicts(resolve(values)) == []


def test_sokobans_rooms_are_always_drawn_and_pass():
    assert conflicts(resolve({"paper": True})) == []


def test_validation_never_plays_the_training_file():
    values = {"method": "GRPO", "env": {"id": "ARL/TIRMath-v0", "kwargs": {"dataset": "original"}}}
    assert "set eval.every=0" in one(**values, eval={"every": 10})
    assert "no expert" in one(**values, clone={"before": True})


@pytest.fixture
def bare(tmp_path, monkeypatch):
    """Set a home without data, and no variable that names any."""
    for name in ("ALFWORLD_DATA", "ARL_WEBSHOP_DATA", "ARL_TIRMATH_DATA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def original(env_id, **kwargs):
    return resolve({"env": {"id": env_id, "kwargs": {"dataset": "original", **kwargs}}})


@pytest.mark.parametrize(
    ("env_id", "hint"),
    [
        ("ARL/ALFWorld-v0", "alfworld-download"),
        ("ARL/WebShop-v0", "arl-gym data import webshop"),
        ("ARL/TIRMath-v0", "ARL_TIRMATH_DATA"),
    ],
)
def test_missing_data_is_one_line_that_says_how_to_get_it(env_id, hint, bare):
    with pytest.raises(DataError, match=hint) as caught:
        check_data(original(env_id))
    assert "\n" not in str(caught.value)


def test_data_is_found_by_its_argument_its_variable_and_in_its_usual_place(bare, monkeypatch):
    shop = bare / "shop"
    shop.mkdir()
    cfg = original("ARL/WebShop-v0", data_dir=str(shop))
    with pytest.raises(DataError, match=r"expected items_shuffle\.json or items_shuffle_1000\.json in"):
        check_data(cfg)
    (shop / "items_shuffle_1000.json").write_text("[]")
    check_data(cfg)
    monkeypatch.setenv("ARL_WEBSHOP_DATA", str(shop))
    check_data(original("ARL/WebShop-v0"))
    (bare / ".cache/alfworld/json_2.1.1").mkdir(parents=True)
    check_data(original("ARL/ALFWorld-v0"))


def test_generated_data_is_never_missing(bare):
    check_data(resolve({"env": {"id": "ARL/ALFWorld-v0"}}))
