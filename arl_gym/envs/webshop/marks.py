"""Set of marks: numbered boxes on a screenshot, so that an element can be named by what is seen.

References:
    Yang et al., "Set-of-Mark Prompting", arXiv:2310.11441.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw, ImageFont

_COLOURS = ("#c2185b", "#1565c0", "#2e7d32", "#6a1b9a", "#b23c00", "#00697a")
_LABEL_PX = 13
_PAD = 2


def draw_marks(
    image: npt.NDArray[np.uint8], marks: Sequence[tuple[str, tuple[float, float, float, float]]]
) -> npt.NDArray[np.uint8]:
    """Return an image with a labelled frame around each box that is at least partly inside.

    Args:
        image: uint8 of shape (H, W, 3).
        marks: Labels, and boxes as left, top, right, bottom in pixels.
    """
    picture = Image.fromarray(image)
    draw, font = ImageDraw.Draw(picture), ImageFont.load_default(_LABEL_PX)
    width, height = picture.size
    for k, (label, (left, top, right, bottom)) in enumerate(marks):
        if right <= 0 or bottom <= 0 or left >= width or top >= height or right <= left or bottom <= top:
            continue
        colour = _COLOURS[k % len(_COLOURS)]
        draw.rectangle((left, top, right - 1, bottom - 1), outline=colour, width=2)
        x0, y0, x1, y1 = draw.textbbox((0, 0), label, font=font)
        w, h = x1 - x0 + 2 * _PAD, y1 - y0 + 2 * _PAD
        # On the left of its box where there is room, so that it hides nothing of it.
        x = left - w if left >= w else max(left, 0)
        y = min(max(top, 0), height - h)
        draw.rectangle((x, y, x + w, y + h), fill=colour)
        draw.text((x + _PAD - x0, y + _PAD - y0), label, fill="white", font=font)
    return np.asarray(picture)
