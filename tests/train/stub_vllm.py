"""A server on loopback that speaks vLLM's interface with a transformers model behind it."""

from collections.abc import Iterator
from threading import Lock
from typing import Any

import torch
from transformers import PreTrainedModel

from arl_gym.train.model import load_model, plain_weights
from arl_gym.train.state import gathered
from tests.agents.stub_server import Answer, StubServer

# Of all servers: transformers replaces functions of its classes while it loads a model and puts them back
# afterwards; two loads at once leave the replacements, and no later model has its weights tied.
_LOADING = Lock()


def sampled(ids: list[int] | None, logprobs: list[float] | None, finish: str = "length") -> Answer:
    """What vLLM says to a request for a completion."""
    choice = {"token_ids": ids, "logprobs": {"token_logprobs": logprobs}, "finish_reason": finish}
    details = {"cached_tokens": 2}
    return 200, {"choices": [choice], "usage": {"prompt_tokens_details": details}}, {}


def weights_with_head(model: PreTrainedModel) -> Iterator[tuple[str, torch.Tensor]]:
    """All parameters of a tiny model, the tied head under its own name too."""
    yield from plain_weights(model)
    head = model.get_output_embeddings().weight
    with gathered([head], write=False):
        yield "lm_head.weight", head


class StubVLLM(StubServer):
    """Samples with the model of the folder it was last told to load; `stale` makes it stay with its first."""

    def __init__(self, *, stale: bool = False, max_model_len: int | None = 700, resets: bool = True):
        self.loaded: list[str] = []
        self._stale = stale
        self._model: PreTrainedModel | None = None
        models = {"data": [{"id": "m", "max_model_len": max_model_len}]}
        routes = {
            "/v1/models": lambda body: (200, models, {}),
            "/collective_rpc": self._reload,
            "/reset_prefix_cache": lambda body: (200, {"success": resets}, {}),
        }
        super().__init__(self._complete, routes)

    def _reload(self, body: dict[str, Any]) -> Answer:
        self.loaded.append(body["kwargs"]["weights_path"])
        if self._model is None or not self._stale:
            with _LOADING:
                self._model = load_model(self.loaded[-1], dtype="float32", seed=0).model
        return 200, {"results": [None]}, {}

    @torch.no_grad()
    def _complete(self, body: dict[str, Any]) -> Answer:
        assert self._model is not None, "asked before the first weights came"
        ids, logprobs = list(body["prompt"]), list[float]()
        draws = torch.Generator().manual_seed(body["seed"] % 2**31)
        while len(logprobs) < body["max_tokens"]:
            with _LOADING:
                logits = self._model(torch.tensor([ids])).logits[0, -1]
            logp = torch.log_softmax(logits / body["temperature"], -1)
            ids.append(int(torch.multinomial(logp.exp(), 1, generator=draws)))
            logprobs.append(float(logp[ids[-1]]))
            if ids[-1] in body["stop_token_ids"]:
                break
        new = ids[len(body["prompt"]) :]
        return sampled(new, logprobs, "stop" if new[-1] in body["stop_token_ids"] else "length")
