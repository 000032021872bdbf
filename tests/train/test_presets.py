import pytest

from arl_gym.assets import asset, assets_root
from arl_gym.rng import Rng
from arl_gym.train.bc import collect
from arl_gym.train.chat import ChatCodec
from arl_gym.train.config import load_toml
from arl_gym.train.envs import check_step_advantage, make_vec
from arl_gym.train.methods import resolve
from arl_gym.train.model import tiny_tokenizer

PRESETS = sorted(path.stem for path in (assets_root() / "presets").glob("*.toml"))


def preset(name):
    return resolve(load_toml(asset(f"presets/{name}.toml")), name)


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_is_a_configuration(name):
    cfg = preset(name)
    check_step_advantage(cfg)
    assert cfg.run_dir == f"runs/{name}"


def test_the_papers_settings_of_tir_math():
    cfg = preset("tirmath-qwen3-4b-base")
    assert (cfg.method, cfg.loss.ratio_level, cfg.advantage.step_weight) == ("GSPO", "trajectory", 0)
    assert (cfg.loss.clip_low, cfg.loss.clip_high, cfg.loss.kl_coef, cfg.optim.lr) == (3e-4, 4e-4, 0, 1e-6)
    assert cfg.rollout.groups // cfg.optim.minibatches == 128
    assert cfg.filter.mask_invalid


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
    vec = make_vec(cfg, split="train", num_envs=1)
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
