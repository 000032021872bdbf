"""What the adapter uses of TRL: a trainer that samples; `real/test_trl.py` compares it with TRL."""

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

Sample = Callable[[list[list[int]]], tuple[list[list[int]], list[list[float]] | None]]


class GRPOTrainer:
    def __init__(self, sample: Sample, *, max_completion_length: int = 1 << 20, context: int = 1 << 20):
        text = SimpleNamespace(max_position_embeddings=context)
        self.model = SimpleNamespace(config=SimpleNamespace(get_text_config=lambda: text))
        self.processing_class = SimpleNamespace()
        self.chat_template_kwargs: dict[str, Any] = {"enable_thinking": False, "tone": "dry"}
        self.max_completion_length = max_completion_length
        self.use_vllm, self.vllm_mode = False, "server"
        self.accelerator = SimpleNamespace(num_processes=1, device="cpu")
        self.asked: list[list[list[int]]] = []
        self._sample = sample

    def _generate_single_turn(
        self,
        prompt_ids: list[list[int]],
        images: Sequence[Any] | None,
        multimodal_fields: dict[str, Any],
        num_generations: int,
        has_tool_images: bool = False,
    ) -> tuple[list[list[int]], list[list[float]] | None]:
        assert (images, multimodal_fields, num_generations) == (None, {}, 1)
        self.asked.append(prompt_ids)
        return self._sample(prompt_ids)
