import math

import pytest
import torch
from torch import nn

from arl_gym.train import head as head_module
from arl_gym.train.head import TokenHead


def make_head(vocab, hidden, *, banned=(), bias=False, seed=0, dtype=torch.float32):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return TokenHead(nn.Linear(hidden, vocab, bias=bias, dtype=dtype), banned)


def inputs(positions, hidden, vocab, dtype=torch.float32):
    noise = torch.Generator().manual_seed(1)
    h = torch.randn(positions, hidden, generator=noise).to(dtype).requires_grad_()
    return h, torch.randint(0, vocab, (positions,), generator=noise)


def written_head(logits):
    """A head whose logits are the ones given, (K, V): one-hot positions pick a column of its weight."""
    linear = nn.Linear(len(logits), logits.shape[1], bias=False)
    linear.weight.data = logits.T.clone()
    return linear, torch.eye(len(logits)).requires_grad_()


def whole(linear, h, targets, temperature):
    """What PyTorch makes of all logits at once."""
    logp = torch.log_softmax(linear(h).float() / temperature, dim=-1)
    return logp.gather(1, targets[:, None]).squeeze(1), -(logp.exp() * logp).sum(-1)


def gradients(loss, h, linear):
    out = torch.autograd.grad(loss, [h, *linear.parameters()])
    return torch.cat([g.flatten() for g in out])


def test_log_probs_and_entropies_are_those_of_a_drawn_distribution():
    # exp(logit / 2) is 1, 2, 5: probabilities 1/8, 2/8, 5/8.
    linear, h = written_head(2 * torch.tensor([[1.0, 2.0, 5.0]]).log())
    logp, entropy = TokenHead(linear)(h, torch.tensor([2]), 2.0, "value")
    assert logp.item() == pytest.approx(math.log(5 / 8))
    # 1/8 ln 8 + 1/4 ln 4 + 5/8 ln 8/5 = 0.2599 + 0.3466 + 0.2938
    assert entropy.item() == pytest.approx(0.9003, abs=1e-4)


def test_banned_tokens_have_no_probability_no_entropy_and_no_gradient():
    # Without the banned token, of any logit, 1 and 3 are left: probabilities 1/4 and 3/4.
    linear, h = written_head(torch.tensor([[0.0, 7.0, math.log(3)]]))
    logp, entropy = TokenHead(linear, banned=[1])(h, torch.tensor([2]), 1.0, "graph")
    assert logp.item() == pytest.approx(math.log(3 / 4))
    assert entropy.item() == pytest.approx(math.log(4) - 3 / 4 * math.log(3))
    # d(log p) = y - p = (-1/4, 1/4); dH = -p (log p + H) = (a, -a), a = -1/4 (ln 1/4 + H)
    a = -(math.log(1 / 4) + entropy.item()) / 4
    (logp + 10 * entropy).sum().backward()
    expected = torch.tensor([-1 / 4 + 10 * a, 0.0, 1 / 4 - 10 * a])
    assert torch.allclose(linear.weight.grad.flatten(), expected, atol=1e-6)
    assert linear.weight.grad[1].item() == 0


@pytest.mark.parametrize("positions", [0, 1, 20, 21, 50])
@pytest.mark.parametrize("bias", [False, True])
def test_pieces_give_the_values_and_gradients_of_one_pass(monkeypatch, positions, bias):
    monkeypatch.setattr(head_module, "ELEMENTS", 20 * 301)
    head = make_head(301, 16, bias=bias)
    h, targets = inputs(positions, 16, 301)
    weights = torch.linspace(-1, 1, positions)  # unequal: a gradient of the wrong position shows
    logp, entropy = head(h, targets, 0.7, "graph")
    expected = whole(head.linear, h, targets, 0.7)
    assert torch.allclose(logp, expected[0], atol=1e-6)
    assert torch.allclose(entropy, expected[1], atol=1e-6)
    ours = gradients((weights * (logp + 0.1 * entropy)).sum(), h, head.linear)
    theirs = gradients((weights * (expected[0] + 0.1 * expected[1])).sum(), h, head.linear)
    assert torch.allclose(ours, theirs, atol=1e-6)


def test_entropies_alone_have_a_gradient():
    head = make_head(30, 8)
    h, targets = inputs(4, 8, 30)
    ours = gradients(head(h, targets, 1.0, "graph")[1].sum(), h, head.linear)
    theirs = gradients(whole(head.linear, h, targets, 1.0)[1].sum(), h, head.linear)
    assert torch.allclose(ours, theirs, atol=1e-6)


def test_entropies_carry_a_graph_only_if_asked():
    head = make_head(30, 8)
    h, targets = inputs(4, 8, 30)
    wanted = {e: head(h, targets, 1.0, e)[1] for e in ("none", "value", "graph")}
    assert [t.requires_grad for t in wanted.values()] == [False, False, True]
    assert not wanted["none"].any()
    assert torch.equal(wanted["value"], wanted["graph"])


def test_the_gradient_agrees_with_finite_differences():
    head = make_head(7, 3, banned=[4], dtype=torch.float64)
    h, targets = inputs(2, 3, 4, torch.float64)

    def loss(weight):
        head.linear.weight.data = weight
        logp, entropy = head(h, targets, 0.8, "graph")
        return float((logp * torch.tensor([1.0, -2.0]) + 0.5 * entropy).sum().detach())

    start = head.linear.weight.detach().clone()
    logp, entropy = head(h, targets, 0.8, "graph")
    (logp * torch.tensor([1.0, -2.0]) + 0.5 * entropy).sum().backward()
    step = 1e-2
    for i, j in ((0, 0), (3, 2), (6, 1)):
        moved = torch.zeros_like(start)
        moved[i, j] = step
        slope = (loss(start + moved) - loss(start - moved)) / (2 * step)
        assert head.linear.weight.grad[i, j].item() == pytest.approx(slope, abs=1e-3)


def test_a_frozen_layer_gets_no_gradient():
    head = make_head(30, 8)
    head.requires_grad_(False)
    h, targets = inputs(4, 8, 30)
    head(h, targets, 1.0, "none")[0].sum().backward()
    assert head.linear.weight.grad is None
    assert h.grad.abs().sum() > 0


def test_half_precision_weights_get_gradients_of_their_own_type(monkeypatch):
    monkeypatch.setattr(head_module, "ELEMENTS", 3 * 301)
    head = make_head(301, 16, dtype=torch.bfloat16)
    h, targets = inputs(10, 16, 301, torch.bfloat16)
    logp, entropy = head(h, targets, 1.0, "graph")
    assert logp.dtype == entropy.dtype == torch.float32
    ours = gradients((logp + entropy).sum(), h, head.linear)
    expected = whole(head.linear, h, targets, 1.0)
    theirs = gradients((expected[0] + expected[1]).sum(), h, head.linear)
    assert ours.dtype == torch.bfloat16
    assert torch.allclose(logp, expected[0], atol=1e-6)
    # Sums of pieces are rounded to 8 bits, and so is every gradient of a logit.
    assert (ours - theirs).norm() <= 0.02 * theirs.norm()


@pytest.mark.parametrize("entropy", ["none", "graph"])
def test_autograd_keeps_no_logits_of_a_large_vocabulary(entropy):
    vocab, positions = 151_936, 512  # two pieces: 2^26 / vocab = 441 positions each
    head = make_head(vocab, 4)
    h, targets = inputs(positions, 4, vocab)
    kept = []

    def pack(tensor):
        kept.append(tensor.numel())
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
        logp, _ = head(h, targets, 1.0, entropy)
    assert max(kept) == vocab * 4  # the weight
    logp.sum().backward()
    assert head.linear.weight.grad.abs().sum() > 0
