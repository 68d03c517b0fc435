"""The judge's own cases for lab 19, part A. A budget that names no case is taken from the last one."""

from __future__ import annotations

from gpulab.checks.spec import Case
from gpulab.content.lab_19_llm_inference.kv_cache import (
    ALLOCATED,
    COUNTED,
    LAID_OUT,
    PER_GPU,
    branches_case,
    cache_case,
    kinds,
    paged_case,
    rolled_case,
    split_case,
    step_case,
)

CASES: dict[str, tuple[Case, ...]] = {
    "kv.count": kinds(*COUNTED, suffix=", others"),
    "kv.step": (
        step_case(3, 3, 8, 4, 0),
        step_case(6, 3, 8, 1, 11),
        step_case(4, 2, 8, 5, 6),
        step_case(4, 2, 8, 1, 18, 7),
        step_case(6, 2, 8, 8, 9, 4),
        step_case(2, 2, 8, 2, 3, 1),
        step_case(16, 2, 64, 1, 1300, 600),
    ),
    "kv.per_gpu": kinds(*PER_GPU, suffix=", others"),
    "kv.quantise": (
        cache_case("few tokens", 4, 8),
        cache_case("zeros", 10, 12, "zeros"),
        cache_case("96 tokens", 96, 32),
    ),
    "kv.split": (
        split_case(1, 36, 3),
        split_case(2, 47, 1),
        split_case(1, 90, 4, 30),
        split_case(2, 3, 5),
        split_case(1, 1280, 20),
    ),
    "kv.allocate": (*kinds(*ALLOCATED, suffix=", others"), branches_case(75, 5, 20, 8)),
    "kv.paged": (
        paged_case(7, 32),
        paged_case(15),
        paged_case(2, 50, 1, scale=30),
        paged_case(90, 9, 20, 4, 35),
    ),
    "kv.runs": kinds(*LAID_OUT, suffix=", others"),
    "kv.rolled": (
        rolled_case(2, 2, 8, 6, 0),
        rolled_case(4, 2, 8, 9, 4),
        rolled_case(4, 2, 8, 9, 9),
        rolled_case(2, 1, 16, 5, 33),
        rolled_case(4, 1, 8, 10, 104),
    ),
}
