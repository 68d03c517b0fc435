"""The judge's own sizes for lab 26, part A. A budget that names no case is taken from the last one."""

from __future__ import annotations

from gpulab.checks.spec import Case
from gpulab.content.lab_26_attention_now.softmax import heads_case, numbers_case, scores_case

CASES: dict[str, tuple[Case, ...]] = {
    "modern.exp2": tuple(numbers_case(n) for n in (127, 1, 2047, 3000)),
    "modern.lazy": (
        scores_case(64, 32, "a leap"),
        scores_case(64, 24, "normal"),
        scores_case(64, 24, "falling"),
        scores_case(32, 320, "rising"),
    ),
    "modern.roles": (
        heads_case(128, 128),
        heads_case(128, 64),
        heads_case(128, 256, 40),
        heads_case(256, 192),
    ),
}
