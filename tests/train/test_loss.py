import dataclasses
from itertools import product

import numpy as np
import pytest
import torch
from torch import Tensor

from arl_gym.errors import ConfigError, DataError
from arl_gym.train.batch import Batch, micro_batches, pack, pad_rows
from arl_gym.train.config import LossConfig, from_mapping
from arl_gym.train.loss import denominators, loss_inputs, policy_loss
from tests.train.trajectories import trajectory, turn

TOKEN = LossConfig(ratio_level="token", clip_low=0.2, clip_high=0.2, kl_coef=0.0)
TURN = LossConfig(ratio_level="turn", clip_low=0.1, clip_high=0.1, kl_coef=0.0)
TRAJECTORY = LossConfig(ratio_level="trajectory", clip_low=0.2, clip_high=0.2, kl_coef=0.0)
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
    denom = denominators(batch, range(batch.n_rows), cfg)
    return policy_loss(logp, entropy, loss_inputs(batch, "cpu"), cfg, denom)


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
    ],
)
def test_token_ratios_are_clipped_token_by_token(aggregation, expected):
    cfg = dataclasses.replace(TOKEN, aggregation=aggregation)
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


@pytest.mark.parametrize("aggregation", AGGREGATIONS)
def test_at_the_old_policy_the_gradient_is_the_policy_gradient(aggregation):
    cfg = dataclasses.replace(TURN, aggregation=aggregation)
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
    with pytest.raises(DataError, match="needs advantages"):
        loss_inputs(pack([trajectory(turn())], pad_id=0), "cpu")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"clip_low": -0.1}, r"clip bounds must not be negative, got clip_low=-0\.1"),
        ({"dual_clip_c": 1.0}, "dual_clip_c must be above 1"),
        ({"dual_clip_c": 3.0, "ratio_level": "turn"}, "needs ratio_level='token'"),
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


OTHERS = LossConfig(clip_low=0.1, clip_high=0.1, kl_coef=0.1, entropy_coef=0.1)
EVERYTHING = [
    from_mapping(LossConfig, {"ratio_level": level, "aggregation": aggregation}, "", OTHERS)
    for level, aggregation in product(("token", "turn", "trajectory"), AGGREGATIONS)
]


@pytest.fixture(scope="module")
def random_batch() -> tuple[Batch, Tensor, Tensor]:
    """Six trajectories of one to three turns, with random scores around the clip bounds."""
    rng = np.random.default_rng(0)
    turns_of = [rng.integers(1, 6, rng.integers(1, 4)).tolist() for _ in range(6)]
    batch = scored(turns_of, [rng.normal(size=len(t)).tolist() for t in turns_of])
    shape = batch.ids.shape
    batch = batch.with_ref(rng.normal(-1.0, 0.2, shape).astype(np.float32))
    logp = torch.tensor(rng.normal(-1.0, 0.2, shape), requires_grad=True)
    return batch, logp, torch.tensor(rng.uniform(0.0, 2.0, shape), requires_grad=True)


@pytest.mark.parametrize("cfg", EVERYTHING, ids=lambda c: f"{c.ratio_level}, {c.aggregation}")
@pytest.mark.parametrize("max_tokens", [1, 20, 10_000])
def test_the_split_into_micro_batches_changes_nothing(random_batch, cfg, max_tokens):
    batch, logp, entropy = random_batch
    whole, stats = run(batch, logp, cfg, entropy)
    denom = denominators(batch, range(batch.n_rows), cfg)
    parts = micro_batches(
        batch,
        range(batch.n_rows),
        max_tokens=max_tokens,
        keep_trajectories=cfg.ratio_level == "trajectory",
    )
    assert len(parts) > 1 or max_tokens == 10_000
    grad = torch.zeros_like(logp)
    sums = dict.fromkeys(stats, 0.0)
    for rows in parts:
        part = batch.select(rows)
        width = part.ids.shape[1]
        shares = logp[rows, :width], entropy[rows, :width]
        loss, part_stats = policy_loss(*shares, loss_inputs(part, "cpu"), cfg, denom)
        grad += gradient(loss, logp)
        for key, value in part_stats.items():
            sums[key] += value.item()
    torch.testing.assert_close(grad, gradient(whole, logp), rtol=1e-10, atol=1e-16)
    assert sums == pytest.approx({key: value.item() for key, value in stats.items()}, rel=1e-10)


@pytest.mark.parametrize("cfg", EVERYTHING, ids=lambda c: f"{c.ratio_level}, {c.aggregation}")
def test_the_order_of_rows_changes_nothing(random_batch, cfg):
    batch, logp, entropy = random_batch
    order = np.random.default_rng(1).permutation(batch.n_rows)
    whole, _ = run(batch, logp, cfg, entropy)
    mixed, _ = run(batch.select(order), logp[order], cfg, entropy[order])
    assert mixed.item() == pytest.approx(whole.item(), rel=1e-12)
    torch.testing.assert_close(gradient(mixed, logp), gradient(whole, logp), rtol=1e-10, atol=1e-16)


@pytest.mark.parametrize("cfg", EVERYTHING, ids=lambda c: f"{c.ratio_level}, {c.aggregation}")
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
    cfg = EVERYTHING[4]
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
    )
    more, _ = policy_loss(wide(logp, torch.nan), wide(entropy, torch.nan), wider, cfg, denom)
    assert more.item() == whole.item()


@pytest.mark.parametrize("cfg", EVERYTHING[::3], ids=lambda c: c.ratio_level)
@pytest.mark.parametrize("n_dummies", [0, 2])
def test_rows_without_loss_give_a_zero_that_can_be_backpropagated(random_batch, cfg, n_dummies):
    batch = pad_rows(random_batch[0].select([]), n_dummies)
    logp = torch.zeros(batch.ids.shape, requires_grad=True)
    denom = denominators(random_batch[0], range(random_batch[0].n_rows), cfg)
    loss, stats = policy_loss(logp, torch.zeros_like(logp), loss_inputs(batch, "cpu"), cfg, denom)
    loss.backward()
    assert loss.item() == 0.0
    assert logp.grad is not None
    assert logp.grad.abs().sum().item() == 0.0
    assert all(value.item() == 0.0 for value in stats.values())


def test_half_precision_scores_are_summed_in_single_precision():
    logp = logp_of(PAIR, PAIR_LOGP).detach().to(torch.bfloat16).requires_grad_()
    loss, _ = run(PAIR, logp, TOKEN)
    assert loss.dtype == torch.float32
    assert gradient(loss, logp).dtype == torch.bfloat16
