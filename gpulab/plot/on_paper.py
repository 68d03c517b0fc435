"""A figure as an image whose paper is light or dark as the page is, in one file of about the PNG's size.

Everything that a figure draws in one of the colours of `SHADES` is taken out of the picture as a mask,
through which the SVG around it paints the shade that its paper needs. No grey has 4.5 : 1 on white and on a
dark notebook as well, and a blue that is deep on white is lost on the dark.
"""

from __future__ import annotations

import base64
import io
from typing import Any

import numpy as np
from matplotlib.colors import to_rgb

INK = "#6a7683"  # the key: no colour map has it; in a file of its own (`Picture.save`) it is 4.6 : 1 on white
BLUE = "#0064a4"
HEAVY = 60_000  # bytes of an image from which on it is kept in fewer shades
_FAST_OCTREE, _NO_DITHER = 2, 0  # PIL's; it is imported when it is needed
LIGHT, LIGHT_INK = "#ffffff", "#4d5661"
DARK, DARK_INK = "#1b1f24", "#b7c0c9"
# The colour that a text is drawn in, by the colour that its figure asked for. Black is what matplotlib takes
# where nothing was asked for.
TEXTS = {
    "black": INK,
    BLUE: "#07609f",
    "#e69f00": "#a36b0a",
    "#009e73": "#087c5c",
    "#dd9fc4": "#a8588c",
    "#d55e00": "#c4560c",
}
# What is painted on light and on dark paper, by the colour that was drawn. White reads on both blues.
SHADES = {
    INK: (LIGHT_INK, DARK_INK),
    BLUE: (BLUE, "#1577bd"),
    TEXTS[BLUE]: (BLUE, "#5aa9e6"),
    TEXTS["#e69f00"]: ("#8a5a00", "#f0b429"),
    TEXTS["#009e73"]: ("#006f51", "#35c49a"),
    TEXTS["#dd9fc4"]: ("#9c4a7c", "#e0a6c8"),
    TEXTS["#d55e00"]: ("#b34f00", "#ff8a3d"),
}


def svg(png: bytes, density: int = 1) -> str:
    """The SVG around a PNG with a transparent background; `density` of its dots are a pixel of the page."""
    from PIL import Image

    rest = np.array(Image.open(io.BytesIO(png)).convert("RGBA"))
    height, width = rest.shape[:2]
    size = f'width="{width}" height="{height}"'
    light, dark, masks, painted = [f".paper{{fill:{LIGHT}}}"], [f".paper{{fill:{DARK}}}"], "", ""
    for index, (key, (by_day, by_night)) in enumerate(SHADES.items()):
        drawn = (np.abs(rest[..., :3].astype(int) - _channels(key)) <= 2).all(axis=-1) & (rest[..., 3] > 0)
        if not drawn.any():
            continue
        mask = np.where(drawn, rest[..., 3], 0).astype(np.uint8)
        rest[drawn] = 0
        light.append(f".s{index}{{fill:{by_day}}}")
        dark.append(f".s{index}{{fill:{by_night}}}")
        masks += f'<mask id="m{index}">{_image(Image.fromarray(mask, "L"), size)}</mask>'
        painted += f'<rect class="s{index}" {size} mask="url(#m{index})"/>'
    style = f"{''.join(light)}@media(prefers-color-scheme:dark){{{''.join(dark)}}}"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width / density:g}" height="{height / density:g}"'
        f' viewBox="0 0 {width} {height}">'
        f"<style>{style}</style>"
        f'{masks}<rect class="paper" {size}/>{_image(Image.fromarray(rest, "RGBA"), size)}{painted}</svg>'
    )


def _channels(colour: str) -> np.ndarray:
    return np.array([round(255 * channel) for channel in to_rgb(colour)])


def _image(image: Any, size: str) -> str:
    data = _png(image)
    if len(data) > HEAVY and image.mode == "RGBA":  # edges of many letters: 256 shades are as good
        data = min(data, _png(image.quantize(256, _FAST_OCTREE, dither=_NO_DITHER)), key=len)
    return f'<image {size} href="data:image/png;base64,{base64.b64encode(data).decode()}"/>'


def _png(image: Any) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, "png", optimize=True)
    return buffer.getvalue()
