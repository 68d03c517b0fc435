"""A figure as an image whose paper is light or dark as the page is, in one file of about the PNG's size.

Everything that a figure draws in `INK` is taken out of the picture as a mask, through which the SVG around it
paints the ink that its paper needs. No grey has 4.5 : 1 on white and on a dark notebook as well.
"""

from __future__ import annotations

import base64
import io
from typing import Any

import numpy as np
from matplotlib.colors import to_rgb

INK = "#6a7683"  # the key: no colour map has it; in a file of its own (`Picture.save`) it is 4.6 : 1 on white
LIGHT, LIGHT_INK = "#ffffff", "#4d5661"
DARK, DARK_INK = "#1b1f24", "#b7c0c9"
STYLE = (
    f".paper{{fill:{LIGHT}}}.ink{{fill:{LIGHT_INK}}}"
    f"@media(prefers-color-scheme:dark){{.paper{{fill:{DARK}}}.ink{{fill:{DARK_INK}}}}}"
)


def svg(png: bytes) -> str:
    """The SVG around a PNG with a transparent background."""
    from PIL import Image

    pixels = np.asarray(Image.open(io.BytesIO(png)).convert("RGBA"))
    key = np.array([round(255 * channel) for channel in to_rgb(INK)])
    inked = (np.abs(pixels[..., :3].astype(int) - key) <= 2).all(axis=-1)
    rest = pixels.copy()
    rest[inked] = 0
    mask = np.where(inked, pixels[..., 3], 0).astype(np.uint8)
    height, width = mask.shape
    size = f'width="{width}" height="{height}"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} viewBox="0 0 {width}'
        f' {height}"><style>{STYLE}</style>'
        f'<mask id="m">{_image(Image.fromarray(mask, "L"), size)}</mask>'
        f'<rect class="paper" {size}/>{_image(Image.fromarray(rest, "RGBA"), size)}'
        f'<rect class="ink" {size} mask="url(#m)"/></svg>'
    )


def _image(image: Any, size: str) -> str:
    buffer = io.BytesIO()
    image.save(buffer, "png", optimize=True)
    return f'<image {size} href="data:image/png;base64,{base64.b64encode(buffer.getvalue()).decode()}"/>'
