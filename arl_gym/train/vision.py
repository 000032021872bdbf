"""What a vision-language model makes of pictures: how many tokens each takes, which, and the pixels.

For the Qwen2-VL, Qwen2.5-VL and Qwen3-VL families of transformers. Needs pillow only, no torchvision.

    vision = load_vision("models/qwen3-vl", model)
    vision.n_tokens(picture)  # so many copies of vision.image_id stand for it in the prompt
"""

import json
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import torch
from PIL import Image
from torch import Tensor
from transformers import PreTrainedModel
from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil, smart_resize
from transformers.utils.hub import cached_file

from arl_gym.errors import ConfigError, DataError

FAMILIES = ("qwen2_vl", "qwen2_5_vl", "qwen3_vl")
"""Values of `model_type` in a `config.json` that are read with their pictures."""

PictureKey = tuple[str, tuple[int, int], bytes]
"""What tells pictures apart: mode, size and pixels."""

_CACHE_BYTES = 256 << 20
_VIDEO_FILE = "video_preprocessor_config.json"
_VIDEO_CLASS = {"qwen3_vl": "Qwen3VLVideoProcessor"}


class Vision:
    """How one model reads pictures.

    Args:
        model: Of one of the `FAMILIES`; only its configuration is read.
        processor: Cuts pictures into patches.
        video: What the model's folder says about videos, kept for `save`; None is the family's default.

    Raises:
        ConfigError: If the processor is another model's.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        processor: Qwen2VLImageProcessorPil,
        *,
        video: Mapping[str, Any] | None = None,
    ):
        config = model.config
        tower = config.vision_config
        sizes = {
            "patch_size": tower.patch_size,
            "merge_size": tower.spatial_merge_size,
            "temporal_patch_size": tower.temporal_patch_size,
        }
        self._processor: Any = processor
        for name, expected in sizes.items():
            if (found := getattr(processor, name)) != expected:
                raise ConfigError(f"the image processor's {name} is {found}, the model's {expected}")
        least, most = self._limits
        if least > most:
            raise ConfigError(f"pictures need at least {least} and at most {most} pixels: nothing fits")
        self.image_id = int(config.image_token_id)
        """The token whose embedding a picture's features replace."""
        self.banned = tuple(sorted({self.image_id, int(config.video_token_id)}))
        """Tokens that no response may hold."""
        self._backbone = cast(Any, model).model
        family = _VIDEO_CLASS.get(config.model_type, "Qwen2VLVideoProcessor")
        self._video = dict({"video_processor_type": family} | sizes if video is None else video)
        self._seen: OrderedDict[PictureKey, dict[str, Tensor]] = OrderedDict()
        self._seen_bytes = 0

    @property
    def _limits(self) -> tuple[int, int]:
        size = self._processor.size
        return int(size["shortest_edge"]), int(size["longest_edge"])

    @property
    def settings(self) -> str:
        """What decides how many tokens a picture takes."""
        p, (least, most) = self._processor, self._limits
        return f"patches of {p.patch_size}, {p.merge_size} a side in a token, {least} to {most} pixels"

    def n_tokens(self, picture: Image.Image) -> int:
        """Return how many tokens stand for a picture.

        Raises:
            DataError: If it is more than 200 times as long as wide.
        """
        width, height = picture.size
        try:
            patches = self._processor.get_number_of_image_patches(height, width)
        except ValueError as err:
            raise DataError(f"a picture of {width} x {height} pixels cannot be read: {err}") from err
        return int(patches) // int(self._processor.merge_size) ** 2

    def fitted(self, picture: Image.Image) -> Image.Image:
        """Return a picture in the size and the colours that the model sees, which is itself if it has them.

        Raises:
            DataError: As in `n_tokens`.
        """
        p, (least, most) = self._processor, self._limits
        self.n_tokens(picture)  # complains of what cannot be cut
        width, height = picture.size
        rows, columns = smart_resize(
            height, width, factor=p.patch_size * p.merge_size, min_pixels=least, max_pixels=most
        )
        seen = picture.convert("RGB")
        return seen if (columns, rows) == seen.size else seen.resize((columns, rows), p.resample)

    def pixels(self, pictures: Sequence[Image.Image]) -> dict[str, Tensor]:
        """Cut pictures into patches, in order, on the CPU.

        Pictures seen lately are not cut again: the same board is met many times.

        Returns:
            `pixel_values` (P, D) float32, a patch a row, and `image_grid_thw` (K, 3) int64, the patches of
            each of the K pictures along time, height and width.
        """
        p = self._processor
        rows = [self._patches(picture) for picture in pictures]
        width = 3 * p.temporal_patch_size * p.patch_size**2
        return {
            "pixel_values": torch.cat([torch.empty(0, width), *(r["pixel_values"] for r in rows)]),
            "image_grid_thw": torch.cat(
                [torch.empty(0, 3, dtype=torch.long), *(r["image_grid_thw"] for r in rows)]
            ),
        }

    def _patches(self, picture: Image.Image) -> dict[str, Tensor]:
        key = picture_key(picture)
        found = self._seen.get(key)
        if found is not None:
            self._seen.move_to_end(key)
            return found
        out = self._processor([self.fitted(picture)], return_tensors="pt")
        made = {name: out[name] for name in ("pixel_values", "image_grid_thw")}
        self._seen[key] = made
        self._seen_bytes += _n_bytes(key, made)
        while self._seen_bytes > _CACHE_BYTES:
            self._seen_bytes -= _n_bytes(*self._seen.popitem(last=False))
        return made

    def positions(self, ids: Tensor, mask: Tensor, grid: Tensor) -> Tensor:
        """Return the multimodal rotary positions, by the model's own rule.

        Args:
            ids: (N, T) with every picture's placeholders.
            mask: (N, T), 0 on padding; every row has a token.
            grid: (K, 3), `image_grid_thw` of all pictures, in order.

        Returns:
            (3, N, T) int64 along time, height and width, on the device of `ids`; 0 on padding.

        References:
            M-RoPE: Qwen2-VL, arXiv:2409.12191, section 2.1.
        """
        on_cpu = ids.cpu()  # the rule reads number by number
        out, _ = self._backbone.get_rope_index(
            input_ids=on_cpu,
            mm_token_type_ids=(on_cpu == self.image_id).int(),
            image_grid_thw=grid.cpu(),
            attention_mask=mask.cpu(),
        )
        return cast(Tensor, out).to(ids.device)

    def save(self, folder: Path) -> None:
        """Write into a model's folder what `AutoProcessor` and vLLM need beside the model and tokenizer."""
        self._processor.save_pretrained(folder)
        (folder / _VIDEO_FILE).write_text(json.dumps(self._video, indent=2) + "\n", encoding="utf-8")


def picture_key(picture: Image.Image) -> PictureKey:
    """Return a key that is equal for equal pixels."""
    return picture.mode, picture.size, picture.tobytes()


def _n_bytes(key: PictureKey, made: Mapping[str, Tensor]) -> int:
    return len(key[2]) + made["pixel_values"].nbytes


def load_vision(path: str, model: PreTrainedModel, *, min_pixels: int = 0, max_pixels: int = 0) -> Vision:
    """Return how the model of a folder or hub id reads pictures.

    Args:
        path: Holds `preprocessor_config.json`, or `processor_config.json`.
        model: Loaded from there.
        min_pixels: Pictures with fewer are enlarged; 0 is the folder's own setting.
        max_pixels: Pictures with more are made smaller; 0 is the folder's own setting.

    Raises:
        ConfigError: If the image processor is missing, damaged, or another model's.
    """
    limits = {"min_pixels": min_pixels, "max_pixels": max_pixels}
    changes: dict[str, Any] = {name: value for name, value in limits.items() if value}
    try:
        processor = Qwen2VLImageProcessorPil.from_pretrained(path, **changes)
        video = _video_config(path)
    except (OSError, ValueError, TypeError) as err:
        reason = str(err).strip().splitlines()[0]
        raise ConfigError(f"cannot load the image processor of {path!r}: {reason}") from err
    return Vision(model, processor, video=video)


def _video_config(path: str) -> dict[str, Any] | None:
    """Return what a model says of videos, if it does in a file of its own."""
    for name, section in ((_VIDEO_FILE, None), ("processor_config.json", "video_processor")):
        found = cached_file(path, name, _raise_exceptions_for_missing_entries=False)
        if found is not None:
            content = json.loads(Path(found).read_text(encoding="utf-8"))
            content = content if section is None else content.get(section)
            if content is not None:
                return dict(content)
    return None


def check_pictures(
    vision: Vision, ids: Sequence[int] | npt.NDArray[np.int64], pictures: Sequence[Image.Image], where: str
) -> None:
    """Check that ids hold as many placeholders as their pictures take.

    Raises:
        DataError: If they do not; says both counts, and `where`.
    """
    found = int((np.asarray(ids) == vision.image_id).sum())
    expected = sum(vision.n_tokens(picture) for picture in pictures)
    if found != expected:
        raise DataError(
            f"{where}: {len(pictures)} pictures take {expected} tokens, but the ids hold {found} placeholders"
        )
