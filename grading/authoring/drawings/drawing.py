"""What a drawing is."""

from __future__ import annotations

from dataclasses import dataclass

from gpulab.plot.drawing import Part


@dataclass(frozen=True)
class Drawing:
    """A drawing of a lab: the folder's name, the file's without its ending, words for those who do not see it."""

    lab: str
    name: str
    alt: str
    part: Part
