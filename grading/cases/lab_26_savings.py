"""The judge's own sizes for lab 26, part B. A budget that names no case is taken from the last one."""

from __future__ import annotations

from gpulab.checks.spec import Case
from gpulab.content.lab_26_attention_now.savings import (
    blocks_case,
    cache_case,
    causal_case,
    latent_case,
    tokens_case,
)

CASES: dict[str, tuple[Case, ...]] = {
    "modern.blocks": (blocks_case(64, 1), blocks_case(320, 2), blocks_case(448, 3)),
    "modern.select": (cache_case(3, 192, 8, 2), cache_case(1, 320, 16, 3), cache_case(4, 8192, 64, 6)),
    "modern.absorb": (
        latent_case(4, 8, 12, 4, 9),
        latent_case(1, 4, 8, 2, 17),
        latent_case(8, 64, 96, 32, 768),
    ),
    "modern.chunk": (
        tokens_case(20, 8, 8),
        tokens_case(33, 4, 16, "forgetful"),
        tokens_case(192, 64, 32),
    ),
    "modern.mask": (causal_case(128), causal_case(256), causal_case(320)),
}
