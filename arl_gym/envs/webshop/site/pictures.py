"""Pictures of products."""

import io
from collections.abc import Mapping

from PIL import Image

from arl_gym.envs.webshop.product import Product


def swatch(value: str) -> str | None:
    """Return the colour that a value names."""
    return None


def picture_png(product: Product, selected: Mapping[str, str] | None = None, *, size: int = 256) -> bytes:
    """Return a picture as PNG."""
    file = io.BytesIO()
    Image.new("RGB", (size, size), "#ddd").save(file, "PNG")
    return file.getvalue()
