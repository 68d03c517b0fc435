"""The judge's own sizes for lab 12, part A."""

from __future__ import annotations

from gpulab.checks.spec import Case
from gpulab.content.lab_12_flash_attention.attention import (
    heads_case,
    merge_case,
    others_case,
    pairs_case,
    window_case,
)

CASES: dict[str, tuple[Case, ...]] = {
    "attention.merge": (
        merge_case(3, 2, 8),
        merge_case(1, 7, 4),
        merge_case(4, 8, 4, "±1,000"),
        merge_case(5, 13, 4, "some without keys"),
        merge_case(8, 192, 128),
    ),
    "attention.tiled": (
        pairs_case(6, 4, 4, 4),
        pairs_case(1, 1, 8, 2),
        pairs_case(19, 30, 4, 8),
        pairs_case(16, 50, 8, 16, 1000),
        pairs_case(5, 0, 8, 4),
        pairs_case(16, 6144, 4, 16),
        pairs_case(384, 128, 32, 64),
    ),
    "attention.steady": (
        others_case(3, 5, 4),
        others_case(6, 10, 4, "one outweighs"),
        others_case(5, 7, 8, "±1,000"),
        others_case(8, 24, 128),
    ),
    "attention.causal": (
        window_case(8, 8, 4, 4),
        window_case(5, 14, 4, 4),
        window_case(13, 4, 4, 4),
        window_case(30, 21, 8, 8, 7),
        window_case(9, 33, 8, 8, 1),
        window_case(96, 96, 32, 32),
        window_case(96, 96, 32, 32, 20),
    ),
    "attention.grouped": (
        heads_case(6, 3, 2, 9, 4),
        heads_case(5, 1, 3, 6, 8),
        heads_case(2, 2, 5, 3, 4),
        heads_case(24, 4, 1, 384, 64),
    ),
}
