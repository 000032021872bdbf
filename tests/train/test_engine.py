import dataclasses

import numpy as np
import pytest
import torch

from arl_gym.train.advantages import turn_advantages
from arl_gym.train.batch import pack, pad_rows
from arl_gym.train.config import AdvantageConfig, LossConfig, OptimConfig
from arl_gym.train.engine import Engine, GuardedAdamW, TokenLogProbs, deepspeed_config, learning_rate
from arl_gym.train.model import load_model
from tests.train.trajectories import trajectory, turn

OPTIM = OptimConfig(lr=1e-3, weight_decay=0.0, micro_tokens=1 << 20)
LOSS = LossConfig(clip_low=0.03, clip_high=0.04, kl_coef=0.1)


def trajectories(n_groups=3, size=4):
    """Random token rows with returns that differ inside each group."""
    rng = np.random.default_rng(0)

    def random_turn(k, reward):
        prompt = rng.integers(0, 256, int(rng.integers(3, 12))).tolist()
        answer = rng.integers(0, 256, int(rng.integers(1, 6))).tolist()
        return turn(prompt, answer, reward=reward, penalty=0.1 * (k == 1), anchor="same" if k == 0 else "")

    return [
        trajectory(*(random_turn(k, float(c * (k + 1))) for k in range(1 + c % 3)), group=g, copy=c)
        for g in range(n_groups)
        for c in range(size)
    ]


def engine(optim=OPTIM, *, reference=True):
    model, _ = load_model("tiny", dtype="float32", seed=1)
    return Engine(model, optim, temperature=1.0, reference=reference)


def scored(e, played, *, padding=0):
    batch = pack(played, pad_id=0)
    if padding:
        batch = pad_rows(batch, padding)
    return e.score(batch).with_advantages(turn_advantages(played, AdvantageConfig()))


def weights(e):
    return torch.cat([p.detach().flatten() for p in e._engine.module.parameters()])


def after_update(optim=OPTIM, *, padding=0, loss=LOSS):
    e = engine(optim)
    before = weights(e)
    stats = e.update(scored(e, trajectories(), padding=padding), loss, total_steps=1)
    return weights(e) - before, stats


def gradient(micro_tokens, *, padding=0, zero_stage=2):
    """The gradient through DeepSpeed: one SGD-like step is read back from Adam's first moment."""
    e = engine(dataclasses.replace(OPTIM, micro_tokens=micro_tokens, zero_stage=zero_stage, grad_clip=0.0))
    e.update(scored(e, trajectories(), padding=padding), LOSS, total_steps=1)
    moments = [s["exp_avg"].flatten() for s in e._adamw.state.values()]
    return torch.cat(moments)[: weights(e).numel()] / 0.1  # exp_avg = (1 - beta1) * gradient after one step


@pytest.fixture(scope="module")
def whole_gradient():
    return gradient(1 << 20)


@pytest.mark.parametrize("micro_tokens", [1, 40, 130])
def test_micro_batch_size_does_not_change_the_gradient(whole_gradient, micro_tokens):
    change = gradient(micro_tokens) - whole_gradient
    assert float(change.norm() / whole_gradient.norm()) < 1e-5


def test_zero_weight_rows_do_not_change_the_gradient(whole_gradient):
    change = gradient(1 << 20, padding=5) - whole_gradient
    assert float(change.norm() / whole_gradient.norm()) < 1e-5


def test_gradient_norm_is_the_norm_of_the_gradient(whole_gradient):
    _, stats = after_update()
    assert stats["optim/grad_norm"] == pytest.approx(float(whole_gradient.norm()), rel=1e-4)
    _, stage0 = after_update(dataclasses.replace(OPTIM, zero_stage=0))
    assert stage0["optim/grad_norm"] == pytest.approx(float(whole_gradient.norm()), rel=1e-4)


def test_every_zero_stage_takes_the_same_step():
    steps = [after_update(dataclasses.replace(OPTIM, zero_stage=s))[0] for s in (0, 1, 2)]
    for step in steps[1:]:
        assert float((step - steps[0]).norm() / steps[0].norm()) < 1e-4


def test_scores_are_the_models_own_log_probs():
    e = engine()
    batch = scored(e, trajectories())
    model = e._engine.module.model
    for n in (0, len(batch.ids) - 1):
        ids = torch.from_numpy(batch.ids[n : n + 1, : batch.lengths[n]])
        with torch.no_grad():
            logp = torch.log_softmax(model(ids).logits[0], -1)
        for t in np.flatnonzero(batch.action_mask[n]):
            assert batch.old_logprobs[n, t] == pytest.approx(float(logp[t - 1, ids[0, t]]), abs=1e-5)
            entropy = float(-(logp[t - 1].exp() * logp[t - 1]).sum())
            assert batch.entropies[n, t] == pytest.approx(entropy, abs=1e-4)
    assert np.array_equal(batch.old_logprobs, batch.ref_logprobs)
    assert not batch.old_logprobs[~batch.action_mask].any()


def test_chunking_changes_neither_log_probs_nor_gradient(monkeypatch):
    model, _ = load_model("tiny", dtype="float32", seed=1)
    scorer = TokenLogProbs(model)
    ids = torch.randint(0, 256, (5, 20), generator=torch.Generator().manual_seed(0))
    mask = torch.rand(5, 20, generator=torch.Generator().manual_seed(1)) < 0.5
    mask[:, 0] = False

    def run():
        model.zero_grad()
        logp, entropy = scorer(ids, mask, 0.7, True)
        (logp.sum() + 0.1 * entropy.sum()).backward()
        return logp.detach(), torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None])

    whole = run()
    monkeypatch.setattr("arl_gym.train.engine._CHUNK", 7)
    for a, b in zip(whole, run(), strict=True):
        assert torch.allclose(a, b, atol=1e-5)


@pytest.mark.parametrize("stage", [0, 2])
def test_a_gradient_that_is_not_finite_is_skipped_and_counted(stage):
    e = engine(dataclasses.replace(OPTIM, zero_stage=stage), reference=False)
    before = weights(e)
    bad = e.log_probs(pack(trajectories(), pad_id=0)).sum() * float("nan")
    e.step([(bad, {})], 1, lr=1e-3)
    assert e.n_skipped == 1
    assert torch.equal(weights(e), before)
    good = -e.log_probs(pack(trajectories(), pad_id=0)).mean()
    e.step([(good, {})], 1, lr=1e-3)
    assert e.n_skipped == 1
    assert torch.isfinite(weights(e)).all()
    assert not torch.equal(weights(e), before)


def test_minibatches_are_separate_optimiser_steps():
    e = engine(dataclasses.replace(OPTIM, minibatches=3))
    stats = e.update(scored(e, trajectories()), LOSS, total_steps=1)
    assert stats["optim/updates"] == 3
    assert e.n_updates == 3


def test_learning_rate_warms_up_then_falls_to_its_final_factor():
    cfg = OptimConfig(lr=1.0, warmup_steps=4, lr_final=0.5)
    assert [learning_rate(cfg, s, 14) for s in (0, 3, 4, 9, 14, 99)] == [0.25, 1.0, 1.0, 0.75, 0.5, 0.5]
    assert learning_rate(OptimConfig(lr=1.0), 5, 10) == 1.0


def test_gradient_clipping_is_always_said():
    assert deepspeed_config(OptimConfig(grad_clip=0.0), torch.float32)["gradient_clipping"] == 0.0


def test_guarded_adamw_equals_adamw_on_finite_gradients():
    a, b = torch.nn.Parameter(torch.ones(3)), torch.nn.Parameter(torch.ones(3))
    for p, make in ((a, GuardedAdamW), (b, torch.optim.AdamW)):
        p.grad = torch.tensor([1.0, -2.0, 0.0])
        make([p], lr=0.1).step()
    assert torch.equal(a, b)
