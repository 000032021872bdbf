import dataclasses
from itertools import product

import numpy as np
import pytest
import torch
from torch import Tensor

from arl_gym.errors import ConfigError, DataError
from arl_gym.train.batch import Batch, micro_batches, pack, pad_rows
from arl_gym.train.config import LossConfig, from_mapping
from arl_gym.train.loss import (
    Denominators,
    denominators,
    divergence,
    kept_units,
    loss_inputs,
    needs_kept_units,
    needs_whole_trajectories,
    policy_loss,
)
from arl_gym.train.methods import METHODS, VARIANTS, resolve
from tests.train.trajectories import trajectory, turn

TOKEN = LossConfig(ratio_level="token", clip_low=0.2, clip_high=0.2, kl_coef=0.0)
TURN = LossConfig(ratio_level="turn", clip_low=0.1, clip_high=0.1, kl_coef=0.0)
TRAJECTORY = LossConfig(ratio_level="trajectory", clip_low=0.2, clip_high=0.2, kl_coef=0.0)
SAPO = dataclasses.replace(TOKEN, policy="sapo")
CISPO = dataclasses.replace(TOKEN, policy="cispo", clip_low=0.1)
AGGREGATIONS = ("token-mean", "seq-mean-token-mean", "seq-mean-token-sum")


def scored(turns_of: list[list[int]], advantages: list[list[float]]) -> Batch:
    """Trajectories given as completion lengths per turn; every old log-prob is -1."""
    batch = pack([trajectory(*[turn([1], [2] * n) for n in lengths]) for lengths in turns_of], pad_id=0)
    batch = batch.with_advantages([np.array(a, np.float32) for a in advantages])
    return batch.with_old(np.full(batch.ids.shape, -1.0, np.float32))


def logp_of(batch: Batch, differences: list[list[float]], at: float = -1.0) -> Tensor:
    """Log-probs of each row's sampled tokens as differences from `at`; column 0 is never read: NaN."""
    logp = np.full(batch.ids.shape, np.nan)
    for n, row in enumerate(differences):
        logp[n, 1 : 1 + len(row)] = at + np.array(row)
    return torch.tensor(logp, dtype=torch.float64, requires_grad=True)


def run(batch: Batch, logp: Tensor, cfg: LossConfig, entropy: Tensor | None = None):
    inputs = loss_inputs(batch, "cpu")
    denom = denominators(batch, range(batch.n_rows), cfg)
    kept = kept_units(logp, inputs, cfg) if needs_kept_units(cfg) else None
    return policy_loss(logp, entropy, inputs, cfg, denom, kept)


def gradient(loss: Tensor, logp: Tensor) -> Tensor:
    return torch.autograd.grad(loss, logp)[0]


# Two trajectories of one turn: two tokens with A = 1, one token with A = -2.
# Ratios: exp(0.1) = 1.105171, exp(0.3) = 1.349859; exp(-0.2) = 0.818731.
PAIR = scored([[2], [1]], [[1.0], [-2.0]])
PAIR_LOGP = [[0.1, 0.3], [-0.2]]


@pytest.mark.parametrize(
    ("aggregation", "expected"),
    [
        # Token losses -1.105171, -1.2 (clipped) and 1.637462.
        ("token-mean", (-1.105171 - 1.2 + 1.637462) / 3),
        ("seq-mean-token-mean", ((-1.105171 - 1.2) / 2 + 1.637462) / 2),
        ("seq-mean-token-sum", (-1.105171 - 1.2 + 1.637462) / 2),
        ("seq-mean-token-sum-norm", (-1.105171 - 1.2 + 1.637462) / 2 / 10),
    ],
)
def test_token_ratios_are_clipped_token_by_token(aggregation, expected):
    cfg = dataclasses.replace(TOKEN, aggregation=aggregation, aggregation_tokens=10)
    loss, stats = run(PAIR, logp_of(PAIR, PAIR_LOGP), cfg)
    assert loss.item() == pytest.approx(expected, rel=1e-5)
    assert stats["loss/policy"].item() == loss.item()
    assert stats["loss/clip_frac"].item() == pytest.approx(1 / 3)
    assert stats["loss/approx_kl"].item() == pytest.approx(-0.2 / 3)
    assert stats["loss/ratio_mean"].item() == pytest.approx((1.105171 + 1.349859 + 0.818731) / 3, rel=1e-5)


@pytest.mark.parametrize(
    ("aggregation", "expected"),
    [
        # The turns' ratios are exp(0.2) = 1.2214, clipped to 1.1, and 0.8187, clipped to 0.9.
        ("token-mean", (-1.1 - 1.1 + 1.8) / 3),
        ("seq-mean-token-mean", (-1.1 + 1.8) / 2),
        ("seq-mean-token-sum", (-2.2 + 1.8) / 2),
    ],
)
def test_turn_ratios_are_geometric_means_over_the_turn(aggregation, expected):
    cfg = dataclasses.replace(TURN, aggregation=aggregation)
    loss, stats = run(PAIR, logp_of(PAIR, PAIR_LOGP), cfg)
    assert loss.item() == pytest.approx(expected)
    assert stats["loss/clip_frac"].item() == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("aggregation", "expected"),
    [
        # Three tokens over two rows: exp((0.1 + 0.3 - 0.2) / 3) = 1.068939. The other trajectory: ratio 1.
        ("token-mean", (-2 * 1.068939 + 1.068939 - 3) / 4),
        ("seq-mean-token-mean", (-1.068939 / 3 - 3) / 2),
        ("seq-mean-token-sum", (-1.068939 - 3) / 2),
    ],
)
def test_trajectory_ratios_span_the_rows_of_the_trajectory(aggregation, expected):
    batch = scored([[2, 1], [1]], [[1.0, -1.0], [3.0]])
    cfg = dataclasses.replace(TRAJECTORY, aggregation=aggregation)
    loss, _ = run(batch, logp_of(batch, [[0.1, 0.3], [-0.2], [0.0]]), cfg)
    assert loss.item() == pytest.approx(expected, rel=1e-5)


def test_turns_that_share_a_row_have_their_own_ratios():
    dialogue = trajectory(turn([1], [2, 2]), turn([1, 2, 2, 3], [2]))
    batch = pack([dialogue], pad_id=0).with_advantages([np.array([1.0, 1.0], np.float32)])
    batch = batch.with_old(np.full((1, 5), -1.0, np.float32))
    logp = torch.tensor([[0.0, -1.02, -0.96, 0.0, -0.95]], dtype=torch.float64)
    _, stats = run(batch, logp, TURN)
    # exp((-0.02 + 0.04) / 2) for two tokens, exp(0.05) for one.
    assert stats["loss/ratio_mean"].item() == pytest.approx((2 * 1.010050 + 1.051271) / 3, rel=1e-6)


def test_a_turn_of_one_token_is_treated_as_a_token():
    batch = scored([[1, 1], [1, 1]], [[1.0, -1.0], [1.0, -1.0]])
    logp = logp_of(batch, [[0.5], [0.5], [-0.05], [-0.05]])
    by_token, _ = run(batch, logp, dataclasses.replace(TURN, ratio_level="token"))
    by_turn, _ = run(batch, logp, TURN)
    assert by_turn.item() == pytest.approx(by_token.item(), rel=1e-12)
    assert torch.allclose(gradient(by_turn, logp), gradient(by_token, logp), rtol=1e-12)


@pytest.mark.parametrize("cfg", [TOKEN, dataclasses.replace(TURN, clip_low=0.2, clip_high=0.2)])
@pytest.mark.parametrize(
    ("advantage", "difference", "slope"),
    [
        # Beyond the bound in the direction the advantage pushes: no gradient. Back from there: -A * r.
        (1.0, 0.5, 0.0),
        (1.0, -0.5, -0.606531),
        (-1.0, -0.5, 0.0),
        (-1.0, 0.5, 1.648721),
    ],
)
def test_clipping_stops_the_gradient_only_away_from_the_old_policy(cfg, advantage, difference, slope):
    batch = scored([[2]], [[advantage]])
    logp = logp_of(batch, [[difference, difference]])
    loss, _ = run(batch, logp, cfg)
    assert gradient(loss, logp)[0, 1:].tolist() == pytest.approx([slope / 2, slope / 2], rel=1e-5)


def test_dual_clip_caps_the_loss_of_negative_advantages_only():
    # exp(2) = 7.389 capped at 3; exp(1) = 2.718 below the cap; A = 1: clipped to 1.2 as without the cap.
    batch = scored([[2], [1]], [[-1.0], [1.0]])
    logp = logp_of(batch, [[2.0, 1.0], [2.0]])
    loss, _ = run(batch, logp, dataclasses.replace(TOKEN, dual_clip_c=3.0))
    assert loss.item() == pytest.approx((3.0 + 2.718282 - 1.2) / 3, rel=1e-6)
    assert gradient(loss, logp)[:, 1].tolist() == [0.0, 0.0]


@pytest.mark.parametrize(("cfg", "exponent"), [(TOKEN, 20.0), (TURN, 10.0)])
def test_ratios_stay_finite_however_far_the_policy_moved(cfg, exponent):
    batch = scored([[1]], [[-1.0]])
    logp = logp_of(batch, [[1e4]])
    loss, _ = run(batch, logp, cfg)
    assert loss.item() == pytest.approx(np.exp(exponent))
    assert gradient(loss, logp).abs().sum().item() == 0.0


@pytest.mark.parametrize("policy", ["clip", "sapo", "cispo"])
@pytest.mark.parametrize("aggregation", AGGREGATIONS)
def test_at_the_old_policy_the_gradient_is_the_policy_gradient(aggregation, policy):
    cfg = dataclasses.replace(TURN, aggregation=aggregation, policy=policy)
    logp = logp_of(PAIR, [[0.0, 0.0], [0.0]])
    loss, _ = run(PAIR, logp, cfg)
    weights = {"token-mean": (1 / 3, 1 / 3), "seq-mean-token-mean": (1 / 4, 1 / 2)}
    two, one = weights.get(aggregation, (1 / 2, 1 / 2))
    assert gradient(loss, logp).tolist() == [pytest.approx([0, -two, -two]), pytest.approx([0, 2 * one, 0])]


def test_inside_the_bounds_every_token_gets_the_ratio_of_its_turn():
    logp = logp_of(PAIR, [[-0.02, 0.06], [0.0]])
    loss, _ = run(PAIR, logp, TURN)
    # -A * exp(0.02) / 3 for both tokens, although their own ratios differ.
    assert gradient(loss, logp)[0, 1:].tolist() == pytest.approx([-1.020201 / 3] * 2, rel=1e-6)


def test_without_old_logprobs_all_ratios_are_one():
    batch = dataclasses.replace(PAIR, old_logprobs=None)
    logp = logp_of(batch, PAIR_LOGP)
    loss, stats = run(batch, logp, TOKEN)
    assert loss.item() == pytest.approx(0.0)
    assert stats["loss/ratio_mean"].item() == pytest.approx(1.0)
    assert gradient(loss, logp)[0, 1].item() == pytest.approx(-1 / 3)


@pytest.mark.parametrize(
    ("tau_neg", "last"),
    [
        # 2 * 4 / tau * sigmoid(tau * (0.818731 - 1)): of -0.190332 0.452560, of -0.362538 0.410345.
        (1.05, 7.619048 * 0.452560),
        (2.0, 4 * 0.410345),
    ],
)
def test_sapo_gates_the_ratio_by_a_sigmoid(tau_neg, last):
    # 4 * sigmoid(0.105171) = 2.105075 and 4 * sigmoid(0.349859) = 2.346334 where A = 1.
    loss, _ = run(PAIR, logp_of(PAIR, PAIR_LOGP), dataclasses.replace(SAPO, sapo_tau_neg=tau_neg))
    assert loss.item() == pytest.approx((-2.105075 - 2.346334 + last) / 3, rel=1e-5)


def test_sapo_never_stops_a_gradient_but_lets_it_fade():
    batch = scored([[2]], [[1.0]])
    logp = logp_of(batch, [[0.1, 3.0]])
    loss, _ = run(batch, logp, SAPO)
    # -4 * sigmoid'(r - 1) * r / 2: sigmoid' is 0.249310 at 0.105171, 5.144e-9 at 19.085537 (r = 20.085537).
    near, far = gradient(loss, logp)[0, 1:].tolist()
    assert near == pytest.approx(-4 * 0.249310 * 1.105171 / 2, rel=1e-5)
    assert far == pytest.approx(-4 * 5.144e-9 * 20.085537 / 2, rel=1e-3)


@pytest.mark.parametrize(("sequence", "tau"), [("turn", 2.0), ("trajectory", 1.0)])
def test_the_temperature_of_sapo_goes_by_the_mean_advantage_of_the_sequence(sequence, tau):
    # The mean advantage of the trajectory is (3 - 1) / 2 > 0, that of its second turn negative.
    batch = scored([[1, 1]], [[3.0, -1.0]])
    cfg = dataclasses.replace(SAPO, sequence=sequence, sapo_tau_pos=1.0, sapo_tau_neg=2.0)
    loss, _ = run(batch, logp_of(batch, [[0.0], [0.0]]), cfg)
    # At r = 1 a token's loss is -A * 4 / tau / 2.
    assert loss.item() == pytest.approx((-3 * 2 / 1.0 + 2 / tau) / 2)


def test_cispo_weighs_log_probs_with_bounded_ratios():
    logp = logp_of(PAIR, PAIR_LOGP)
    loss, stats = run(PAIR, logp, CISPO)
    # Weights 1.105171, 1.2 (not 1.349859) and 0.9 (not 0.818731); log-probs -0.9, -0.7 and -1.2.
    assert loss.item() == pytest.approx((1.105171 * 0.9 + 1.2 * 0.7 - 0.9 * 2 * 1.2) / 3, rel=1e-5)
    assert gradient(loss, logp)[:, 1:].flatten().tolist() == pytest.approx(
        [-1.105171 / 3, -1.2 / 3, 0.9 * 2 / 3, 0.0], rel=1e-5
    )
    assert stats["loss/clip_frac"].item() == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    ("sides", "weights"),
    [
        # Ratios exp(-0.5) = 0.606531 where A = 1, and exp(0.5) = 1.648721 where A = -1; bounds 0.9 and 1.2.
        ("signed", (0.606531, 1.648721)),
        ("both", (0.9, 1.2)),
    ],
)
def test_the_sign_of_the_advantage_says_which_side_cispo_bounds(sides, weights):
    batch = scored([[1], [1]], [[1.0], [-1.0]])
    logp = logp_of(batch, [[-0.5], [0.5]])
    loss, stats = run(batch, logp, dataclasses.replace(CISPO, cispo_sides=sides))
    assert gradient(loss, logp)[:, 1].tolist() == pytest.approx([-weights[0] / 2, weights[1] / 2], rel=1e-5)
    assert stats["loss/clip_frac"].item() == (1.0 if sides == "both" else 0.0)


# Ratios 1.3, 0.7, 1.3, 0.7 with A = 1, 1, -1, -1, in turns of one token; bounds 0.8 and 1.2.
BOUNDS = scored([[1], [1], [1], [1]], [[1.0], [1.0], [-1.0], [-1.0]])
BOUNDS_LOGP = np.log([[1.3], [0.7], [1.3], [0.7]]).tolist()


@pytest.mark.parametrize(
    ("cfg", "clipped"),
    # PPO and SAPO: where the advantage would push further (1 and 4); bounded on both sides: everywhere.
    [(TOKEN, 2), (SAPO, 2), (dataclasses.replace(TOKEN, policy="cispo", cispo_sides="both"), 4)],
)
def test_statistics_tell_clipped_tokens_from_those_outside_the_bounds(cfg, clipped):
    _, stats = run(BOUNDS, logp_of(BOUNDS, BOUNDS_LOGP), cfg)
    assert stats["loss/clip_frac"].item() == clipped / 4
    assert stats["loss/clip_frac_pos"].item() == 0.5
    assert stats["loss/clip_frac_neg"].item() == 0.5


def test_tokens_without_an_advantage_are_outside_of_nothing():
    batch = scored([[1], [1], [1]], [[0.0], [1.0], [-1.0]])
    _, stats = run(batch, logp_of(batch, [[0.5], [0.5], [0.0]]), SAPO)
    assert stats["loss/clip_frac_pos"].item() == pytest.approx(1 / 3)
    assert stats["loss/clip_frac_neg"].item() == 0.0


# A stale turn of two tokens with A = -1 (old - new is 0.5 in the mean), a fresh one with A = -1, a stale one
# with A = 1. Token losses 1, 1, 1.105171 and -0.606531: only the first turn is dropped.
STALE = scored([[2], [1], [1]], [[-1.0], [-1.0], [1.0]])
STALE_LOGP = [[-0.9, -0.1], [0.1], [-0.5]]
MASKED = dataclasses.replace(TOKEN, mask_delta=0.3)


@pytest.mark.parametrize(
    ("denominator", "aggregation", "count"),
    [
        ("all", "token-mean", 4),
        ("kept", "token-mean", 2),
        ("all", "seq-mean-token-mean", 3),
        ("kept", "seq-mean-token-mean", 2),
    ],
)
def test_stale_sequences_with_a_negative_advantage_carry_no_policy_loss(denominator, aggregation, count):
    cfg = dataclasses.replace(MASKED, mask_denominator=denominator, aggregation=aggregation)
    logp = logp_of(STALE, STALE_LOGP)
    loss, stats = run(STALE, logp, cfg)
    assert loss.item() == pytest.approx((1.105171 - 0.606531) / count, rel=1e-5)
    assert stats["loss/masked_frac"].item() == pytest.approx(1 / 3)
    assert gradient(loss, logp)[0].tolist() == [0.0, 0.0, 0.0]


def test_the_mask_leaves_divergence_and_entropy_alone():
    batch = with_reference(scored([[2]], [[-1.0]]), -1.0)
    cfg = dataclasses.replace(MASKED, kl_coef=0.1, entropy_coef=0.1, mask_denominator="kept")
    # k3 at ref - new = 0.5: exp(0.5) - 1.5 = 0.148721.
    loss, stats = run(batch, logp_of(batch, [[-0.5, -0.5]]), cfg, torch.full((1, 3), 2.0))
    assert stats["loss/policy"].item() == 0.0
    assert stats["loss/masked_frac"].item() == 1.0
    assert loss.item() == pytest.approx(0.1 * 0.148721 - 0.1 * 2.0, rel=1e-5)


@pytest.mark.parametrize("denominator", ["all", "kept"])
def test_nothing_is_masked_before_the_first_update(denominator):
    batch = dataclasses.replace(STALE, old_logprobs=None)
    cfg = dataclasses.replace(MASKED, mask_delta=0.0, mask_denominator=denominator)
    _, stats = run(batch, logp_of(batch, STALE_LOGP), cfg)
    assert stats["loss/masked_frac"].item() == 0.0


@pytest.mark.parametrize(
    ("sequence", "advantages", "masked"),
    [
        ("turn", [-1.0, -1.0], 1 / 2),
        # The first turn is stale by 0.5, but the trajectory by (0.5 - 0.1) / 2 only, or its mean is positive.
        ("trajectory", [-1.0, -1.0], 0.0),
        ("turn", [-1.0, 2.0], 1 / 2),
        ("trajectory", [-1.0, 2.0], 0.0),
    ],
)
def test_what_is_masked_is_a_whole_sequence(sequence, advantages, masked):
    batch = scored([[1, 1]], [advantages])
    cfg = dataclasses.replace(MASKED, sequence=sequence)
    _, stats = run(batch, logp_of(batch, [[-0.5], [0.1]]), cfg)
    assert stats["loss/masked_frac"].item() == masked


def test_kept_units_add_up():
    kept = kept_units(logp_of(STALE, STALE_LOGP), loss_inputs(STALE, "cpu"), MASKED)
    assert (kept.tokens, kept.units) == (2.0, 2.0)
    two, one = STALE.select([0, 1]), STALE.select([2])
    parts = (
        kept_units(logp_of(two, STALE_LOGP[:2]), loss_inputs(two, "cpu"), MASKED),
        kept_units(logp_of(one, STALE_LOGP[2:]), loss_inputs(one, "cpu"), MASKED),
    )
    assert sum(parts, Denominators()) == kept


@pytest.mark.parametrize(
    ("old_above_rollout", "cap", "weight"),
    # exp(0.5) = 1.648721, bounded; exp(-0.5) = 0.606531.
    [(0.5, 2.0, 1.648721), (0.5, 1.2, 1.2), (-0.5, 1.2, 0.606531)],
)
def test_truncated_importance_sampling_weighs_the_policy_term(old_above_rollout, cap, weight):
    batch = with_reference(scored([[2]], [[1.0]]), -1.0)
    rollout = np.full(batch.ids.shape, -1.0 - old_above_rollout, np.float32)
    batch = dataclasses.replace(batch, rollout_logprobs=rollout)
    logp = logp_of(batch, [[0.0, 0.0]])
    loss, stats = run(batch, logp, dataclasses.replace(TOKEN, tis_cap=cap, kl_coef=0.1))
    assert loss.item() == pytest.approx(-weight, rel=1e-5)
    assert gradient(loss, logp)[0, 1:].tolist() == pytest.approx([-weight / 2] * 2, rel=1e-5)
    assert stats["loss/ratio_mean"].item() == 1.0


@pytest.mark.parametrize(
    ("changes", "whole"),
    [
        ({"ratio_level": "trajectory"}, True),
        ({"ratio_level": "turn", "sequence": "trajectory", "mask_delta": 0.1}, False),
        ({"sequence": "trajectory"}, False),
        ({"sequence": "trajectory", "aggregation": "seq-mean-token-sum"}, False),
        ({"sequence": "trajectory", "aggregation": "seq-mean-token-mean"}, True),
        ({"sequence": "trajectory", "mask_delta": 0.1}, True),
        ({"sequence": "trajectory", "policy": "sapo"}, True),
        ({"sequence": "turn", "policy": "sapo", "mask_delta": 0.1}, False),
    ],
)
def test_trajectories_are_kept_whole_where_something_is_averaged_over_them(changes, whole):
    assert needs_whole_trajectories(dataclasses.replace(TOKEN, **changes)) is whole


# k3 at ref - new = -0.5: exp(-0.5) + 0.5 - 1 = 0.106531, its slope 1 - exp(-0.5) = 0.393469.
def with_reference(batch: Batch, value: float) -> Batch:
    return batch.with_ref(np.full(batch.ids.shape, value, np.float32))


def test_the_divergence_is_k3_with_gradient():
    batch = with_reference(scored([[2]], [[0.0]]), -1.5)
    logp = logp_of(batch, [[0.0, 0.0]])
    loss, stats = run(batch, logp, dataclasses.replace(TURN, kl_coef=0.1))
    assert stats["loss/kl"].item() == pytest.approx(0.106531, rel=1e-5)
    assert loss.item() == pytest.approx(0.0106531, rel=1e-5)
    assert gradient(loss, logp)[0, 1:].tolist() == pytest.approx([0.0393469 / 2] * 2, rel=1e-5)


@pytest.mark.parametrize(
    ("kl_type", "gap", "value", "slope"),
    [
        # gap = new - ref; k3 is exp(-gap) + gap - 1, its slope 1 - exp(-gap).
        ("k1", 0.5, 0.5, 1.0),
        ("k1", -0.5, -0.5, 1.0),
        ("abs", 0.5, 0.5, 1.0),
        ("abs", -0.5, 0.5, -1.0),
        ("k2", 0.5, 0.125, 0.5),
        ("k2", -0.5, 0.125, -0.5),
        ("k3", 0.5, 0.106531, 0.393469),
        ("k3", -0.5, 0.148721, -0.648721),
        ("k3+", 0.5, 0.106531, 0.5),
        ("k3+", -0.5, 0.148721, -0.5),
    ],
)
def test_each_estimator_of_the_divergence_has_its_value_and_slope(kl_type, gap, value, slope):
    new = torch.tensor([-1.0 + gap], dtype=torch.float64, requires_grad=True)
    kl = divergence(new, torch.tensor([-1.0], dtype=torch.float64), kl_type)
    assert kl.item() == pytest.approx(value, rel=1e-5)
    assert gradient(kl.sum(), new).item() == pytest.approx(slope, rel=1e-5)


def test_the_divergence_is_aggregated_like_the_policy_term():
    batch = scored([[2], [1]], [[0.0], [0.0]])
    reference = np.array([[0, -1.5, -1.5], [0, -1.0, 0]], np.float32)
    cfg = dataclasses.replace(TURN, kl_coef=0.1, aggregation="seq-mean-token-mean")
    _, stats = run(batch.with_ref(reference), logp_of(batch, [[0.0, 0.0], [0.0]]), cfg)
    assert stats["loss/kl"].item() == pytest.approx(0.106531 / 2, rel=1e-5)


@pytest.mark.parametrize("changes", [{"kl_coef": 0.1, "kl_gradient": False}, {"kl_coef": 0.0}])
def test_a_monitored_divergence_is_logged_but_not_optimised(changes):
    batch = with_reference(scored([[2]], [[0.0]]), -1.5)
    logp = logp_of(batch, [[0.0, 0.0]])
    loss, stats = run(batch, logp, dataclasses.replace(TURN, **changes))
    assert stats["loss/kl"].item() == pytest.approx(0.106531, rel=1e-5)
    assert loss.item() == 0.0
    assert gradient(loss, logp).abs().sum().item() == 0.0


def test_the_divergence_of_a_token_is_at_most_ten():
    batch = with_reference(scored([[2]], [[0.0]]), 0.0)
    _, stats = run(batch, logp_of(batch, [[-30.0, -1e4]]), dataclasses.replace(TURN, kl_coef=0.1))
    assert stats["loss/kl"].item() == 10.0


def test_entropy_lowers_the_loss():
    batch = scored([[2]], [[0.0]])
    logp = logp_of(batch, [[0.0, 0.0]])
    entropy = torch.tensor([[torch.nan, 1.0, 2.0]], dtype=torch.float64, requires_grad=True)
    loss, stats = run(batch, logp, dataclasses.replace(TURN, entropy_coef=0.01), entropy)
    assert loss.item() == pytest.approx(-0.015)
    assert stats["loss/entropy"].item() == pytest.approx(1.5)
    assert gradient(loss, entropy).tolist() == [pytest.approx([0.0, -0.005, -0.005])]


def test_what_the_settings_ask_for_must_be_given():
    logp = logp_of(PAIR, PAIR_LOGP)
    with pytest.raises(DataError, match=r"kl_coef=0\.1 needs the reference"):
        run(PAIR, logp, dataclasses.replace(TURN, kl_coef=0.1))
    with pytest.raises(DataError, match=r"entropy_coef=0\.1 needs entropies"):
        run(PAIR, logp, dataclasses.replace(TURN, entropy_coef=0.1))
    cfg = dataclasses.replace(MASKED, mask_denominator="kept")
    with pytest.raises(DataError, match="needs the sum of kept_units"):
        policy_loss(logp, None, loss_inputs(PAIR, "cpu"), cfg, denominators(PAIR, [0, 1], cfg))
    with pytest.raises(DataError, match="needs advantages"):
        loss_inputs(pack([trajectory(turn())], pad_id=0), "cpu")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"clip_low": -0.1}, r"clip bounds must not be negative, got clip_low=-0\.1"),
        ({"dual_clip_c": 1.0}, "dual_clip_c must be above 1"),
        ({"dual_clip_c": 3.0, "ratio_level": "turn"}, "needs policy='clip' and ratio_level='token', got"),
        ({"dual_clip_c": 3.0, "policy": "sapo"}, "got dual_clip_c=3.0, policy='sapo'"),
        ({"sapo_tau_neg": 0.0}, "temperatures must be above 0, got sapo_tau_pos=1.0, sapo_tau_neg=0.0"),
        ({"mask_delta": -0.1}, "mask_delta must not be negative, got -0.1"),
        ({"tis_cap": 0.0}, "tis_cap must be above 0, got 0.0"),
        ({"aggregation": "seq-mean-token-sum-norm"}, "needs aggregation_tokens of at least 1, got 0"),
    ],
)
def test_settings_that_make_no_sense_are_errors(changes, message):
    with pytest.raises(ConfigError, match=message):
        run(PAIR, logp_of(PAIR, PAIR_LOGP), dataclasses.replace(TOKEN, **changes))


def test_denominators_count_tokens_and_units_of_the_rows_given():
    batch = pad_rows(scored([[2, 3], [1]], [[0.0, 0.0], [0.0]]), 2)
    by_turn, by_trajectory = (denominators(batch, range(5), cfg) for cfg in (TURN, TRAJECTORY))
    assert (by_turn.tokens, by_turn.units) == (6.0, 3.0)
    assert (by_trajectory.tokens, by_trajectory.units) == (6.0, 2.0)
    assert denominators(batch, [1], TOKEN).tokens == 3.0
    per_trajectory = dataclasses.replace(TOKEN, sequence="trajectory")
    assert denominators(batch, range(5), per_trajectory) == by_trajectory


OTHERS = LossConfig(clip_low=0.1, clip_high=0.1, kl_coef=0.1, entropy_coef=0.1)
LEVELS = {
    f"{level}, {aggregation}": from_mapping(
        LossConfig, {"ratio_level": level, "aggregation": aggregation}, "", OTHERS
    )
    for level, aggregation in product(("token", "turn", "trajectory"), AGGREGATIONS)
}
OF_METHODS = {
    f"{name}, {variant}": resolve({"method": name, "variant": variant}).loss
    for name, variant in product(METHODS, VARIANTS)
}
RARE = {
    "masked trajectories": dataclasses.replace(
        OF_METHODS["SAPO_SM, released"], sequence="trajectory", aggregation="seq-mean-token-mean"
    ),
    "truncated": dataclasses.replace(
        OTHERS, tis_cap=1.0, aggregation="seq-mean-token-sum-norm", aggregation_tokens=7
    ),
}
EVERYTHING = LEVELS | OF_METHODS | RARE
every_loss = pytest.mark.parametrize("cfg", EVERYTHING.values(), ids=EVERYTHING)


@pytest.fixture(scope="module")
def random_batch() -> tuple[Batch, Tensor, Tensor]:
    """Six trajectories of one to three turns, with random scores around the clip bounds."""
    rng = np.random.default_rng(0)
    turns_of = [rng.integers(1, 6, rng.integers(1, 4)).tolist() for _ in range(6)]
    batch = scored(turns_of, [rng.normal(size=len(t)).tolist() for t in turns_of])
    shape = batch.ids.shape
    batch = dataclasses.replace(batch, rollout_logprobs=rng.normal(-1.0, 0.2, shape).astype(np.float32))
    batch = batch.with_ref(rng.normal(-1.0, 0.2, shape).astype(np.float32))
    logp = torch.tensor(rng.normal(-1.0, 0.2, shape), requires_grad=True)
    return batch, logp, torch.tensor(rng.uniform(0.0, 2.0, shape), requires_grad=True)


@every_loss
@pytest.mark.parametrize("max_tokens", [1, 20, 10_000])
def test_the_split_into_micro_batches_changes_nothing(random_batch, cfg, max_tokens):
    batch, logp, entropy = random_batch
    whole, stats = run(batch, logp, cfg, entropy)
    denom = denominators(batch, range(batch.n_rows), cfg)
    keep = needs_whole_trajectories(cfg)
    parts = micro_batches(batch, range(batch.n_rows), max_tokens=max_tokens, keep_trajectories=keep)
    assert len(parts) > 1 or max_tokens == 10_000
    grad = torch.zeros_like(logp)
    sums = dict.fromkeys(stats, 0.0)
    shares = []
    for rows in parts:
        part = batch.select(rows)
        width = part.ids.shape[1]
        shares.append((logp[rows, :width], entropy[rows, :width], loss_inputs(part, "cpu")))
    kept = (
        sum((kept_units(a, c, cfg) for a, _, c in shares), Denominators()) if needs_kept_units(cfg) else None
    )
    for share in shares:
        loss, part_stats = policy_loss(*share, cfg, denom, kept)
        grad += gradient(loss, logp)
        for key, value in part_stats.items():
            sums[key] += value.item()
    torch.testing.assert_close(grad, gradient(whole, logp), rtol=1e-10, atol=1e-16)
    assert sums == pytest.approx({key: value.item() for key, value in stats.items()}, rel=1e-10)


@every_loss
def test_the_order_of_rows_changes_nothing(random_batch, cfg):
    batch, logp, entropy = random_batch
    order = np.random.default_rng(1).permutation(batch.n_rows)
    whole, _ = run(batch, logp, cfg, entropy)
    mixed, _ = run(batch.select(order), logp[order], cfg, entropy[order])
    assert mixed.item() == pytest.approx(whole.item(), rel=1e-12)
    torch.testing.assert_close(gradient(mixed, logp), gradient(whole, logp), rtol=1e-10, atol=1e-16)


@every_loss
def test_padding_and_dummy_rows_change_nothing(random_batch, cfg):
    batch, logp, entropy = random_batch
    padded = pad_rows(batch, 3)
    junk = torch.full((3, logp.shape[1]), torch.nan, dtype=logp.dtype)
    whole, _ = run(batch, logp, cfg, entropy)
    more, _ = run(padded, torch.cat([logp, junk]), cfg, torch.cat([entropy, junk]))
    assert more.item() == whole.item()
    assert torch.equal(gradient(more, logp), gradient(whole, logp))


def test_extra_columns_change_nothing(random_batch):
    batch, logp, entropy = random_batch
    cfg = EVERYTHING["turn, seq-mean-token-mean"]
    inputs = loss_inputs(batch, "cpu")
    denom = denominators(batch, range(batch.n_rows), cfg)
    whole, _ = policy_loss(logp, entropy, inputs, cfg, denom)

    def wide(grid: Tensor | None, fill: float) -> Tensor:
        assert grid is not None
        return torch.nn.functional.pad(grid, (0, 7), value=fill)

    wider = dataclasses.replace(
        inputs,
        mask=wide(inputs.mask, False),
        segment=wide(inputs.segment, -1),
        advantages=wide(inputs.advantages, 0.0),
        old_logp=wide(inputs.old_logp, torch.nan),
        ref_logp=wide(inputs.ref_logp, torch.nan),
        rollout_logp=wide(inputs.rollout_logp, torch.nan),
    )
    more, _ = policy_loss(wide(logp, torch.nan), wide(entropy, torch.nan), wider, cfg, denom)
    assert more.item() == whole.item()


@every_loss
@pytest.mark.parametrize("n_dummies", [0, 2])
def test_rows_without_loss_give_a_zero_that_can_be_backpropagated(random_batch, cfg, n_dummies):
    batch = pad_rows(random_batch[0].select([]), n_dummies)
    logp = torch.zeros(batch.ids.shape, requires_grad=True)
    denom = denominators(random_batch[0], range(random_batch[0].n_rows), cfg)
    kept = Denominators(tokens=3.0, units=2.0)
    loss, stats = policy_loss(logp, torch.zeros_like(logp), loss_inputs(batch, "cpu"), cfg, denom, kept)
    loss.backward()
    assert loss.item() == 0.0
    assert logp.grad is not None
    assert logp.grad.abs().sum().item() == 0.0
    assert all(value.item() == 0.0 for value in stats.values())


@pytest.fixture
def frozen(monkeypatch):
    """Make stopped gradients constants: what is detached at the first call is what later calls get."""
    detach = Tensor.detach
    tape: list[Tensor] = []

    def call(function, at):
        is_first, played = not tape, iter(list(tape))

        def constant(tensor):
            if not is_first:
                return next(played)
            tape.append(detach(tensor))
            return tape[-1]

        with monkeypatch.context() as patch:
            patch.setattr(Tensor, "detach", constant)
            return function(at)

    return call


FEW_TOKENS = scored([[2, 1], [3], [1, 1]], [[1.5, -0.5], [-1.0], [-0.7, 0.4]])
SLOPES = EVERYTHING | {
    f"GRPO, {kind}": from_mapping(
        LossConfig, {"kl_type": kind, "kl_coef": 0.5}, "", OF_METHODS["GRPO, paper"]
    )
    for kind in ("k1", "abs", "k2", "k3", "k3+")
}


@pytest.mark.parametrize("cfg", SLOPES.values(), ids=SLOPES)
def test_the_gradient_is_the_slope_of_the_loss_with_stopped_gradients_held(cfg, frozen):
    rng = np.random.default_rng(3)
    batch = FEW_TOKENS.with_ref(rng.normal(-1.0, 0.3, FEW_TOKENS.ids.shape).astype(np.float32))
    logp = torch.tensor(rng.normal(-1.0, 0.2, batch.ids.shape), requires_grad=True)
    entropy = torch.ones(batch.ids.shape, dtype=logp.dtype)
    inputs = loss_inputs(batch, "cpu")
    denom = denominators(batch, range(batch.n_rows), cfg)
    kept = kept_units(logp, inputs, cfg) if needs_kept_units(cfg) else None

    def loss(at: Tensor) -> Tensor:
        return policy_loss(at, entropy, inputs, cfg, denom, kept)[0]

    grad = gradient(frozen(loss, logp), logp)
    assert grad.abs().sum() > 0.0
    step = 1e-6
    for n, k in inputs.mask.nonzero().tolist():
        nudge = torch.zeros_like(grad)
        nudge[n, k] = step
        start = logp.data
        slope = (frozen(loss, start + nudge) - frozen(loss, start - nudge)) / (2 * step)
        assert grad[n, k].item() == pytest.approx(slope.item(), rel=1e-6, abs=1e-8)


def test_half_precision_scores_are_summed_in_single_precision():
    logp = logp_of(PAIR, PAIR_LOGP).detach().to(torch.bfloat16).requires_grad_()
    loss, _ = run(PAIR, logp, TOKEN)
    assert loss.dtype == torch.float32
    assert gradient(loss, logp).dtype == torch.bfloat16
