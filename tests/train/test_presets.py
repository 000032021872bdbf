import re

import pytest

from arl_gym.assets import asset, assets_root
from arl_gym.rng import Rng
from arl_gym.train.bc import collect
from arl_gym.train.chat import ChatCodec
from arl_gym.train.checks import check_config, missing_data
from arl_gym.train.config import load_toml
from arl_gym.train.envs import make_vec
from arl_gym.train.memory import estimate, peak_gib, shape_of
from arl_gym.train.methods import resolve
from arl_gym.train.model import tiny_tokenizer
from arl_gym.train.notes import config_notes
from arl_gym.train.plan import plan
from tests.conftest import ROOT

PRESETS = sorted(path.stem for path in (assets_root() / "presets").glob("*.toml"))


def preset(name):
    return resolve(load_toml(asset(f"presets/{name}.toml")), name)


PAPER = {
    "alfworld-qwen3-4b",
    "alfworld-qwen3-8b",
    "webshop-qwen3-4b",
    "webshop-qwen3-8b",
    "tirmath-qwen3-4b-base",
}


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_is_a_configuration_that_can_be_run(name):
    cfg = preset(name)
    check_config(cfg)
    assert cfg.run_dir == f"runs/{name}"


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_has_a_plan_that_fits_a_node(name):
    (verdict,) = [line for line in plan(preset(name), gpus=8, gpu_gb=141) if line.startswith("with about")]
    assert verdict.endswith("of 141 GiB: fits")


@pytest.mark.parametrize("name", [name for name in PRESETS if not name.endswith("-tiny")])
def test_the_large_presets_have_nothing_to_note_on_gpus(name):
    # The paper's own limits: a dialogue of 8,192 tokens, a response of 4,096.
    expected = ["a dialogue of ARL/TIRMath-v0"] if name.startswith("tirmath") else []
    notes = config_notes(preset(name), cuda=True)
    assert [note.partition(" may")[0] for note in notes] == expected


@pytest.mark.parametrize("name", PRESETS)
def test_the_papers_presets_play_original_data_only(name, monkeypatch):
    for variable in ("ARL_WEBSHOP_DATA", "ARL_TIRMATH_DATA"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("ALFWORLD_DATA", "nowhere")
    cfg = preset(name)
    assert cfg.paper == (name in PAPER)
    assert len(missing_data(cfg)) == (name in PAPER)


@pytest.mark.parametrize(
    ("name", "gpus", "gpu_gb"),
    [
        ("alfworld-qwen3-4b", 4, 80),
        ("alfworld-qwen3-8b", 4, 80),
        ("webshop-qwen3-4b", 4, 80),
        ("webshop-qwen3-8b", 4, 80),
        ("tirmath-qwen3-4b-base", 8, 80),
        ("sokoban-qwen3-4b", 2, 80),
        ("alfworld-qwen3-0.6b-lora", 1, 24),
        ("webshop-qwen3-1.7b-lora", 1, 24),
        ("sokoban-qwen3-0.6b-lora", 1, 24),
    ],
)
def test_a_preset_fits_where_it_says_it_does(name, gpus, gpu_gb):
    cfg = preset(name)
    # A tenth, and at least 2 GB, for what the arithmetic leaves out.
    assert peak_gib(estimate(cfg, shape_of(cfg.model), gpus=gpus)) <= gpu_gb - max(2, gpu_gb / 10)


@pytest.mark.parametrize(
    ("env", "steps", "context", "groups", "rows", "cold", "temperature", "every", "episodes"),
    [
        ("alfworld", 50, 2048 + 512, 16, 256, 15, 0.6, 5, 128),
        ("webshop", 15, 4096 + 512, 16, 128, 5, 0.6, 10, 256),
        ("sokoban", 15, 1024 + 512, 32, 64, 0, 0.7, 5, 128),
    ],
)
def test_the_papers_settings_of_sampo(env, steps, context, groups, rows, cold, temperature, every, episodes):
    for name in (n for n in PRESETS if n.startswith(f"{env}-qwen3") and not n.endswith("-lora")):
        cfg = preset(name)
        assert (cfg.method, cfg.variant, cfg.steps) == ("SAMPO", "paper", 200)
        assert (cfg.env.kwargs["max_steps"], cfg.env.window, cfg.env.penalty) == (steps, 2, 0.1)
        assert (cfg.rollout.groups, cfg.rollout.group_size, cfg.rollout.temperature) == (groups, 8, 1.0)
        assert (cfg.model.max_context, cfg.rollout.max_tokens) == (context, 512)
        assert (cfg.optim.minibatch_rows, cfg.optim.lr, cfg.optim.weight_decay) == (rows, 1e-6, 0.01)
        assert (cfg.filter.enable, cfg.filter.max_tries, cfg.filter.cold_start_steps) == (True, 3, cold)
        assert (cfg.loss.ratio_level, cfg.loss.clip_low, cfg.loss.clip_high) == ("turn", 3e-3, 4e-3)
        assert (cfg.loss.kl_coef, cfg.loss.kl_gradient, cfg.loss.entropy_coef) == (0.01, True, 0.0)
        assert (cfg.advantage.step_weight, cfg.advantage.gamma) == (1.0, 0.95)
        assert (cfg.eval.temperature, cfg.eval.every, cfg.eval.episodes) == (temperature, every, episodes)


def test_the_papers_settings_of_tir_math():
    cfg = preset("tirmath-qwen3-4b-base")
    assert (cfg.method, cfg.loss.ratio_level, cfg.advantage.step_weight) == ("GSPO", "trajectory", 0)
    assert (cfg.loss.clip_low, cfg.loss.clip_high, cfg.loss.kl_coef, cfg.optim.lr) == (3e-4, 4e-4, 0, 1e-6)
    assert (cfg.rollout.groups, cfg.rollout.group_size) == (512, 5)
    assert cfg.rollout.groups // cfg.optim.minibatches == 128
    assert (cfg.filter.mask_invalid, cfg.filter.max_tries) == (True, 3)


@pytest.mark.parametrize("name", [name for name in PRESETS if name.endswith("-tiny")])
def test_the_expert_solves_the_presets_tasks_within_its_context(name):
    cfg = preset(name)
    codec = ChatCodec(tiny_tokenizer(cfg.model.words.split()))
    turns = [turn for t in collect(cfg, split="train", episodes=20) for turn in t.turns]
    assert len(turns) >= 20
    longest = max(len(codec.encode_prompt(turn.messages)) for turn in turns)
    assert longest + cfg.rollout.max_tokens <= cfg.model.max_context
    # What the expert says fits into a response, its end included.
    assert max(len(codec.encode_response(turn.response)) for turn in turns) <= cfg.rollout.max_tokens


def test_alfworlds_words_cover_its_rooms():
    cfg = preset("alfworld-tiny")
    codec = ChatCodec(tiny_tokenizer(cfg.model.words.split()))
    vec = make_vec(cfg.env, split="train", num_envs=1)
    rng, lengths = Rng("words"), []
    for seed in range(20):
        vec.send_reset(0, seed=seed)
        (result,) = vec.recv()
        while not (result.terminated or result.truncated):
            prompt = codec.encode_prompt(result.observation)
            text = str(codec.tokenizer.decode(prompt))
            lengths.append(len(prompt) / len(text.split()))
            action = rng.choice(result.info["admissible_actions"])
            vec.send(0, f"<think></think><action>{action}</action>")
            (result,) = vec.recv()
    vec.close()
    # A word a token, and its comma or line break: spelled words would give several times as many.
    assert sum(lengths) / len(lengths) < 1.6


def test_the_page_of_presets_names_every_preset():
    page = (ROOT / "docs/presets.md").read_text(encoding="utf-8")
    assert sorted(set(re.findall(r"^\| `([a-z0-9.-]+)`", page, re.MULTILINE))) == PRESETS
