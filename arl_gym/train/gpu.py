"""How well a GPU is used: the memory that each phase of a step needs, and the share of its arithmetic.

row = {}
with peak_memory("update", row):
...  # row["memory/update_gib"]
training_flops(shape, lengths, scored=2_000) / (seconds * peak_flops("NVIDIA H200"))  # MFU
"""

from collections.abc import Iterator, MutableMapping, Sequence
from contextlib import contextmanager

import torch

from arl_gym.train.memory import GIB, ModelShape

PEAK_TFLOPS = {"H100 PCIe": 756.0, "H200": 989.0, "H100": 989.0, "A100": 312.0, "L40S": 362.0}
"""Dense bfloat16, as in the makers' data sheets, by a part of the GPU's name; the first that fits counts."""


@contextmanager
def peak_memory(phase: str, row: MutableMapping[str, float]) -> Iterator[None]:
    """Put the most memory that PyTorch had in use during the block into `memory/<phase>_gib`, in GiB.

    Of this process's GPU and PyTorch's own allocator. A block inside another makes the outer one forget what
    came before it. Without a GPU there is no metric.
    """
    if not torch.cuda.is_available():
        yield
        return
    torch.cuda.reset_peak_memory_stats()
    try:
        yield
    finally:
        row[f"memory/{phase}_gib"] = torch.cuda.max_memory_allocated() / GIB


def training_flops(shape: ModelShape, lengths: Sequence[int], *, scored: int) -> float:
    """Count the floating-point operations of one forward and one backward pass in which all weights learn.

    Two for every weight and token, two for every position seen, query and key, as many again for the values;
    twice as many on the way back. The output layer is counted at the scored tokens only, and what is computed
    twice (activation checkpointing) once. Rows that share a prompt count as if they did not: what is saved
    there shows as a higher use.

    Args:
        shape: Of a dense decoder.
        lengths: Tokens of every row, prompt and responses together; each sees itself and all before it.
        scored: Tokens whose log-probs are made, in all rows together.

    References:
        PaLM, arXiv:2204.02311, appendix B: 6 N + 12 L H Q T per token, there with the whole attention matrix
        and with the output layer at every token.
    """
    weights = shape.layers * sum(a * b for a, b in shape.projections.values())
    seen = sum(length * (length + 1) / 2 for length in lengths)
    forward: float = 2 * weights * sum(lengths) + 2 * shape.vocab * shape.hidden * scored
    forward += 4 * shape.layers * shape.queries * seen
    return 3 * forward


def peak_flops(device: str) -> float | None:
    """Return the operations a second that a GPU of this name could do in bfloat16; None if it is unknown."""
    return next((tera * 1e12 for name, tera in PEAK_TFLOPS.items() if name in device), None)
