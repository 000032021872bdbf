"""The output layer: log-probs and entropies of given tokens, without the logits of all positions at once.

Of 4,096 positions and a vocabulary of 152k, logits in float32 are 2.5 GB, and plain autograd keeps them more
than once. Here a piece of them exists at a time, and is made again in the backward pass.

    logp, entropies = TokenHead(model.lm_head)(hidden, targets, temperature=1.0, entropy="value")
"""

from collections.abc import Iterator, Sequence
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from arl_gym.train.memory import ELEMENTS as ELEMENTS

# Not minus infinity: that times a probability of 0 has no value. No logit of a model comes near it.
_BANNED = -1e30

Entropy = Literal["none", "value", "graph"]
"""What is wanted of the entropies; "value" keeps nothing for the backward pass."""


class TokenHead(nn.Module):
    """The output layer, applied to a few positions at a time.

    The layer's weight is used without calling the layer: ZeRO-3 gathers it once for the whole of this module,
    so that ranks with unequal numbers of pieces do not wait for one another.

    Args:
        linear: The layer; its weight is (V, H).
        banned: Tokens that are never sampled: the softmax goes over the others.
    """

    banned: Tensor

    def __init__(self, linear: nn.Linear, banned: Sequence[int] = ()):
        super().__init__()
        self.linear = linear
        self.register_buffer("banned", torch.tensor(banned, dtype=torch.long), persistent=False)

    def forward(
        self, hidden: Tensor, targets: Tensor, temperature: float, entropy: Entropy
    ) -> tuple[Tensor, Tensor]:
        """Score tokens.

        Args:
            hidden: (K, H) what the model says before each token.
            targets: (K,) the tokens, none of them banned.
            temperature: Divides the logits.
            entropy: Whether to return entropies, and with a graph.

        Returns:
            Log-probs (K,) and entropies (K,), both float32; the entropies are zeros if not wanted.
        """
        logp, entropies = _PiecewiseScores.apply(  # type: ignore[no-untyped-call]  # torch's, of our class
            hidden,
            self.linear.weight,
            self.linear.bias,
            targets,
            self.banned,
            temperature,
            entropy != "none",
        )
        return logp, entropies if entropy == "graph" else entropies.detach()


class _PiecewiseScores(torch.autograd.Function):
    """`TokenHead.forward` with a gradient of its own.

    Autograd would keep the logits, or with `checkpoint` make a gradient of the weight for every piece and add
    those up beside one another.
    """

    @staticmethod
    def forward(
        ctx: Any,
        hidden: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        targets: Tensor,
        banned: Tensor,
        temperature: float,
        wants_entropy: bool,
    ) -> tuple[Tensor, Tensor]:
        chosen = torch.empty(len(targets), device=hidden.device)
        entropies = torch.zeros_like(chosen)
        kept = None
        for piece in _pieces(len(targets), len(weight)):
            logp = _all_logprobs(hidden[piece], weight, bias, banned, temperature)
            chosen[piece] = logp.gather(1, targets[piece, None]).squeeze(1)
            if wants_entropy:
                entropies[piece] = -logp.exp().mul_(logp).sum(-1)
            if len(logp) == len(targets):
                kept = logp  # the only piece: keeping it costs no more than making it again
            del logp  # before the next one is made
        ctx.save_for_backward(hidden, weight, bias, targets, banned, entropies, kept)
        ctx.temperature = temperature
        ctx.set_materialize_grads(False)
        return chosen, entropies

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_chosen: Tensor | None, d_entropies: Tensor | None) -> tuple[Tensor | None, ...]:
        # With log-probs l, p = exp(l) and entropy H, at temperature t, and y = 1 at the chosen token:
        #   t d(l[chosen]) / d(logit) = y - p        t dH / d(logit) = -p (l + H)
        hidden, weight, bias, targets, banned, entropies, kept = ctx.saved_tensors
        wants_hidden, wants_weight, wants_bias = ctx.needs_input_grad[:3]
        d_hidden = torch.empty_like(hidden) if wants_hidden else None
        d_weight = torch.zeros_like(weight) if wants_weight else None
        d_bias = torch.zeros_like(bias) if wants_bias else None
        if d_chosen is None:
            d_chosen = torch.zeros_like(entropies)
        for piece in _pieces(len(targets), len(weight)):
            # In place wherever possible: every temporary is as large as the piece.
            if kept is None:
                logp = _all_logprobs(hidden[piece], weight, bias, banned, ctx.temperature)
            else:
                logp = kept.clone()
            d_token = d_chosen[piece, None]
            if d_entropies is None:
                d_logits = logp.exp_().mul_(d_token)
            else:
                d_entropy, p = d_entropies[piece, None], logp.exp()
                d_logits = logp.mul_(d_entropy).add_(d_token + d_entropy * entropies[piece, None]).mul_(p)
                del p
            d_logits.neg_().scatter_add_(1, targets[piece, None], d_token)
            d_logits = d_logits.div_(ctx.temperature).to(weight.dtype)
            if d_hidden is not None:
                torch.mm(d_logits, weight, out=d_hidden[piece])
            if d_weight is not None:
                d_weight.addmm_(d_logits.T, hidden[piece])
            if d_bias is not None:
                d_bias += d_logits.sum(0)
            del logp, d_logits
        return d_hidden, d_weight, d_bias, None, None, None, None


def _pieces(positions: int, vocab: int) -> Iterator[slice]:
    size = max(1, ELEMENTS // vocab)
    return (slice(i, i + size) for i in range(0, positions, size))


def _all_logprobs(
    hidden: Tensor, weight: Tensor, bias: Tensor | None, banned: Tensor, temperature: float
) -> Tensor:
    """Return the log-prob of every token after some positions, (K, V) float32."""
    logits = nn.functional.linear(hidden, weight, bias).float().div_(temperature)
    return torch.log_softmax(logits.index_fill_(1, banned, _BANNED), dim=-1)
