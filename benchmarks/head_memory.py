"""Peak memory of the log-prob step on the CPU: one forward and backward pass over a row of 4,096 tokens.

    OMP_NUM_THREADS=1 python benchmarks/head_memory.py --hidden 64 1024

A Qwen3 of one layer with the vocabulary of the real ones. Every line is measured in a process of its own: the
highest resident memory (VmHWM) over the two passes, above what there was when the model had been loaded; the
gradients of the parameters are in it. "one piece" is the same code with all logits in one piece, "autograd"
what PyTorch does with `log_softmax` of all logits. Needs Linux.
"""

import argparse
import json
import re
import subprocess
import sys
import time
import warnings
from pathlib import Path

import torch
from torch import Tensor
from transformers import Qwen3Config, Qwen3ForCausalLM

from arl_gym.train import head
from arl_gym.train.engine import TokenLogProbs

WAYS = ("pieces", "one piece", "autograd")


def make_model(hidden: int, vocab: int) -> Qwen3ForCausalLM:
    """Return a random Qwen3 of one layer with tied embeddings."""
    torch.manual_seed(0)
    return Qwen3ForCausalLM(
        Qwen3Config(
            vocab_size=vocab,
            hidden_size=hidden,
            intermediate_size=3 * hidden,
            num_hidden_layers=1,
            num_attention_heads=hidden // 32,
            num_key_value_heads=hidden // 32,
            head_dim=32,
            tie_word_embeddings=True,
        )
    )


def memory_mb(field: str) -> float:
    """Return a field of /proc/self/status in MB: VmRSS is what this process has, VmHWM the most so far."""
    found = re.search(rf"{field}:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found is not None
    return int(found[1]) * 1024 / 1e6


def measure(way: str, hidden: int, tokens: int, vocab: int, entropy: head.Entropy) -> dict[str, float]:
    """Return the peak memory in MB, the seconds, the loss and the norm of its gradient."""
    model = make_model(hidden, vocab)
    scorer = TokenLogProbs(model)
    ids = torch.randint(0, vocab, (1, tokens + 1))
    before, targets = torch.arange(tokens), ids[0, 1:]
    if way == "one piece":
        head.ELEMENTS = tokens * vocab
    Path("/proc/self/clear_refs").write_text("5")  # forget the highest so far
    loaded, start = memory_mb("VmRSS"), time.perf_counter()
    logp: Tensor
    if way == "autograd":
        logits = model(input_ids=ids, use_cache=False).logits[0, :-1]
        every = torch.log_softmax(logits, dim=-1)
        logp = every.gather(1, targets[:, None])
        entropies = -(every.exp() * every).sum(-1) if entropy == "graph" else logp.new_zeros(tokens)
    else:
        logp, entropies = scorer(ids, before, targets, 1.0, entropy)
    loss = -logp.mean() + (0.01 * entropies.mean() if entropy == "graph" else 0.0)
    loss.backward()
    seconds = time.perf_counter() - start
    gradient = model.get_output_embeddings().weight.grad
    return {
        "peak_mb": memory_mb("VmHWM") - loaded,
        "seconds": seconds,
        "loss": float(loss),
        "gradient": float(gradient.norm()),
    }


def main() -> None:
    """Measure every case in a process of its own and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--hidden", type=int, nargs="+", default=[64])
    parser.add_argument("--tokens", type=int, default=4096)
    parser.add_argument("--vocab", type=int, default=151_936)
    parser.add_argument("--ways", choices=WAYS, nargs="+", default=list(WAYS))
    parser.add_argument("--entropy", choices=["none", "value", "graph"], nargs="+", default=["none"])
    parser.add_argument("--one", help=argparse.SUPPRESS)
    args = parser.parse_args()
    warnings.filterwarnings("ignore")
    if args.one:
        way, hidden, entropy = json.loads(args.one)
        print(json.dumps(measure(way, hidden, args.tokens, args.vocab, entropy)))
        return
    print(f"{args.tokens:,} tokens, vocabulary {args.vocab:,}, {torch.get_num_threads()} threads\n")
    columns = ("hidden", "entropy", "logits", "peak MB", "s", "loss", "norm of the gradient")
    print("| " + " | ".join(columns) + " |\n" + "|---" * len(columns) + "|")
    for hidden in args.hidden:
        for entropy in args.entropy:
            for way in args.ways:
                one = json.dumps([way, hidden, entropy])
                command = [sys.executable, __file__, "--one", one]
                command += ["--tokens", str(args.tokens), "--vocab", str(args.vocab)]
                printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
                m = json.loads(printed.splitlines()[-1])
                print(
                    f"| {hidden} | {entropy} | {way} | {m['peak_mb']:,.0f} | {m['seconds']:.1f} "
                    f"| {m['loss']:.7f} | {m['gradient']:.7f} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
