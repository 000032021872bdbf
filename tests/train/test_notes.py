import pytest

from arl_gym.train.config import EnvConfig
from arl_gym.train.methods import resolve
from arl_gym.train.notes import config_notes, is_dialogue

UPDATES = {"minibatches": 2}


def notes(cuda=True, **values):
    return config_notes(resolve({"optim": UPDATES, **values}), cuda=cuda)


def test_a_usual_run_has_nothing_to_note():
    assert notes() == []


NOTES = [
    ({"loss": {"cispo_sides": "both"}}, "loss.cispo_sides='both' has no effect: CISPO is off"),
    ({"loss": {"sapo_tau_neg": 2.0}}, "loss.sapo_tau_neg=2.0 has no effect"),
    ({"loss": {"mask_denominator": "kept"}}, "loss.mask_denominator='kept' has no effect"),
    ({"loss": {"sequence": "trajectory"}}, "loss.sequence='trajectory' has no effect"),
    ({"loss": {"kl_coef": 0.0, "kl_type": "k2"}}, "loss.kl_type='k2' has no effect"),
    ({"advantage": {"empg_zeta": 0.1}}, "advantage.empg_zeta=0.1 has no effect"),
    ({"filter": {"enable": False, "oversample": 2.0}}, "filter.oversample=2.0 has no effect"),
    ({"filter": {"cold_start_steps": 200}}, "filter.cold_start_steps=200 of steps=200: it never filters"),
    ({"optim": {"minibatches": 2, "minibatch_rows": 64}}, "optim.minibatches=2 has no effect"),
    ({"optim": {"minibatches": 1}}, "all its ratios are 1"),
    ({"optim": {**UPDATES, "micro_tokens": 1024}}, "long rows go through alone"),
    ({"model": {"path": "some/folder", "words": "up"}}, "model.words='up' has no effect"),
    ({"model": {"attn_implementation": "flash_attention_2"}}, "optim.share_prompts=True has no effect"),
    ({"loss": {"policy": "cispo"}}, "with ratios per turn is no published method"),
    ({"loss": {"ratio_level": "trajectory"}}, "with windowed prompts"),
    (
        {"method": "GSPO", "env": {"id": "ARL/TIRMath-v0", "kwargs": {"max_steps": 5}}},
        "may have 5 turns of rollout.max_tokens=512",  # 2,560 tokens in a context of 2,048
    ),
    (
        {"method": "GSPO", "env": {"id": "ARL/TIRMath-v0", "penalty": 0.2}},
        "env.penalty=0.2 has no effect",
    ),
]


@pytest.mark.parametrize(("values", "text"), NOTES, ids=[text for _, text in NOTES])
def test_a_dial_that_does_not_do_what_it_says_is_noted(values, text):
    (line,) = notes(**values)
    assert text in line


def test_the_mask_never_acts_on_a_single_update():
    found = notes(optim={"minibatches": 1}, loss={"mask_delta": 0.003})
    assert any(line.startswith("loss.mask_delta=0.003 acts after the first update") for line in found)
    assert notes(loss={"mask_delta": 0.003}) == []


def test_what_needs_a_gpu_is_noted_without_one():
    values = {
        "model": {"dtype": "bfloat16"},
        "optim": {**UPDATES, "zero": {"offload_optimizer": {"device": "cpu"}}, "offload_reference": True},
    }
    assert notes(**values) == []
    keys = [line.partition("=")[0].partition(" ")[0] for line in notes(cuda=False, **values)]
    assert keys == ["model.dtype", "optim.zero.offload_optimizer", "optim.offload_reference"]


def test_an_environment_with_less_than_a_group_is_noted():
    # 16 groups x 1 / 20 = 0.8
    (line,) = notes(envs=[{"weight": 19.0}, {"id": "ARL/WebShop-v0", "weight": 1.0}])
    assert line.startswith("envs.1.weight=1.0 of 20 is 0.80 of the 16 groups")


@pytest.mark.parametrize(
    ("env", "dialogue"),
    [
        (EnvConfig(id="ARL/TIRMath-v0"), True),
        (EnvConfig(id="ARL/TIRMath-v0", window=2), False),
        (EnvConfig(id="ARL/WebShop-v0"), False),
        (EnvConfig(id="ARL/WebShop-v0", window="dialogue"), True),
    ],
)
def test_dialogues_are_known_by_their_window(env, dialogue):
    assert is_dialogue(env) == dialogue
