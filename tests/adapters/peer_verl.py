"""What the adapter uses of verl, on tokens that are letters; `real/test_verl.py` compares it with verl."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import ModuleType, SimpleNamespace
from typing import Any

from arl_gym.core import Message
from tests.adapters.letters import END, Letters, ids_of

REGISTERED: dict[str, type] = {}


def register(agent_name: str) -> Any:
    def decorator(subclass: type) -> type:
        REGISTERED[agent_name] = subclass
        return subclass

    return decorator


class AgentLoopOutput(SimpleNamespace):
    """Keeps what it is given."""


class AgentLoopBase:
    def __init__(
        self,
        trainer_config: Any,
        server_manager: Any,
        tokenizer: Any,
        processor: Any,
        dataset_cls: Any,
        data_config: Any,
        hf_model_type: str | None = None,
        **kwargs: Any,
    ):
        self.config = trainer_config.config
        self.rollout_config = self.config.actor_rollout_ref.rollout
        self.server_manager, self.tokenizer, self.processor = server_manager, tokenizer, processor
        self.apply_chat_template_kwargs = data_config.config.get("apply_chat_template_kwargs", {})
        self.codec = Letters(tokenizer)

    def _assert_mm_supported(self, has_multi_modal: bool) -> None:
        if has_multi_modal and self.processor is None:
            raise ValueError("Use a VL base model")

    async def ct_build_initial_tokens(
        self,
        messages: list[Message],
        tools: Any = None,
        images: Any = None,
        videos: Any = None,
        audios: Any = None,
        mm_inputs_out: Any = None,
    ) -> list[int]:
        return self.codec.encode_prompt(messages)[-self.rollout_config.prompt_length :]

    async def ct_merge_context_msg(
        self,
        previous_messages: list[Message],
        updated_messages: list[Message],
        runtime_token_ids: list[int],
        response_mask: list[int],
        response_logprobs: list[float] | None = None,
        tools: Any = None,
    ) -> Any:
        assert updated_messages[: len(previous_messages)] == previous_messages
        assert previous_messages[-1]["role"] == "assistant"
        new = self.codec.encode_bridge(runtime_token_ids, updated_messages[len(previous_messages) :])
        logprobs = None if response_logprobs is None else response_logprobs + [0.0] * len(new)
        merged = SimpleNamespace(token_ids=runtime_token_ids + new)
        return merged, response_mask + [0] * len(new), logprobs

    async def ct_merge_assistant_token(
        self,
        runtime_token_ids: list[int],
        assistant_token_ids: list[int],
        response_mask: list[int],
        response_logprobs: list[float] | None = None,
        assistant_logprobs: list[float] | None = None,
    ) -> Any:
        assert (response_logprobs is None) == (assistant_logprobs is None)
        logprobs = None
        if response_logprobs is not None and assistant_logprobs is not None:
            assert len(assistant_logprobs) == len(assistant_token_ids)
            logprobs = response_logprobs + assistant_logprobs
        merged = SimpleNamespace(token_ids=runtime_token_ids + assistant_token_ids)
        return merged, response_mask + [1] * len(assistant_token_ids), logprobs


@contextmanager
def simple_timer(name: str, timing_raw: dict[str, float]) -> Iterator[None]:
    yield
    timing_raw[name] = timing_raw.get(name, 0.0) + 1.0


class Server:
    """Says the k-th text to the k-th request."""

    def __init__(self, texts: Sequence[str], *, logprobs: bool = True):
        self._texts = iter(texts)
        self._logprobs = logprobs
        self.asked: list[dict[str, Any]] = []

    async def generate(
        self,
        request_id: str,
        *,
        prompt_ids: list[int],
        sampling_params: dict[str, Any],
        image_data: list[Any] | None = None,
    ) -> Any:
        images = None if image_data is None else list(image_data)
        asked = {"request_id": request_id, "prompt_ids": list(prompt_ids), "images": images}
        self.asked.append({**asked, **sampling_params})
        ids = [*ids_of(next(self._texts)), END][: sampling_params["max_tokens"]]
        told = {"min_global_steps": len(self.asked), "max_global_steps": len(self.asked)}
        logprobs = [-0.5] * len(ids) if self._logprobs else None
        return SimpleNamespace(token_ids=ids, log_probs=logprobs, extra_fields=told)


def modules() -> dict[str, ModuleType]:
    """Return verl, as far as it goes, by the names of its modules."""
    names = ("verl", "verl.experimental", "verl.experimental.agent_loop", "verl.utils")
    made = {name: ModuleType(name) for name in names}
    made["verl.utils.profiler"] = ModuleType("verl.utils.profiler")
    vars(made["verl.utils.profiler"]).update(simple_timer=simple_timer)
    loops = ModuleType("verl.experimental.agent_loop.agent_loop")
    for thing in (AgentLoopBase, AgentLoopOutput, register):
        setattr(loops, thing.__name__, thing)
    return {**made, loops.__name__: loops}
