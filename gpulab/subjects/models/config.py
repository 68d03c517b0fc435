"""The size and form of a decoder-only transformer, as data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Config:
    """What a `gpt.GPT` is made of. The defaults are GPT-2's form at a size that trains in seconds.

    `context` is the longest sequence in tokens. `kv_heads` fewer than `heads` share keys and values among
    groups of queries (grouped-query attention); 0 becomes as many as `heads`. `hidden` is the width inside
    the feed-forward block; 0 becomes 4 · `width`. `gated` ones multiply by a third matrix (SwiGLU).
    `tied` uses the embedding as the output layer, too. Raises ValueError for sizes that do not divide.
    """

    vocabulary: int
    context: int = 128
    width: int = 64
    layers: int = 2
    heads: int = 4
    kv_heads: int = 0
    hidden: int = 0
    positions: Literal["learned", "rotary"] = "learned"
    norm: Literal["layer", "rms"] = "layer"
    gated: bool = False
    bias: bool = True
    tied: bool = True

    def __post_init__(self) -> None:
        if self.width % self.heads:
            raise ValueError(f"a width of {self.width} does not divide among {self.heads} heads")
        object.__setattr__(self, "kv_heads", self.kv_heads or self.heads)
        object.__setattr__(self, "hidden", self.hidden or 4 * self.width)
        if self.heads % self.kv_heads:
            raise ValueError(
                f"{self.heads} heads of queries do not divide among {self.kv_heads} of keys and values"
            )
        if self.positions == "rotary" and self.head_width % 2:
            raise ValueError(f"rotary positions turn pairs of numbers: a head is {self.head_width} wide")

    @property
    def head_width(self) -> int:
        return self.width // self.heads
