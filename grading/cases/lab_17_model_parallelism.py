"""The judge's own cases for lab 17. A budget that names no case is taken from the last one."""

from __future__ import annotations

from gpulab.checks.spec import Case
from gpulab.content.lab_17_model_parallelism.exercises import (
    CUT_KINDS,
    cut_cases,
    layout_case,
    named_cases,
    pipeline_case,
    ranks_case,
)

CASES: dict[str, tuple[Case, ...]] = {
    "parallel.mlp": (
        ranks_case(2, tokens=3, width=4, hidden=10),
        ranks_case(4, tokens=32, width=24, hidden=96),
    ),
    "parallel.loss": (
        ranks_case(2, tokens=7, width=8, vocabulary=22, times=500),
        ranks_case(4, tokens=48, width=24, vocabulary=512),
    ),
    "parallel.ring": (
        ranks_case(2, tokens=10, width=16, times=12),
        ranks_case(3, tokens=12, width=4),
        ranks_case(4, tokens=48, width=24),
    ),
    "parallel.biased": (
        ranks_case(2, tokens=7, width=4, hidden=6),
        ranks_case(4, tokens=16, width=24, hidden=64),
    ),
    "parallel.dispatch": (
        ranks_case(2, tokens=6, width=8),
        Case(
            "4 ranks, all tokens to the last expert", {"ranks": 4, "tokens": 12, "width": 16, "favourite": 3}
        ),
        ranks_case(4, tokens=48, width=48),
    ),
    "parallel.schedule": tuple(pipeline_case(*pm) for pm in ((1, 1), (2, 3), (5, 2), (3, 8), (4, 8))),
    "parallel.stages": named_cases("any", "one stage", "one layer each", "all alike", "a large head"),
    "parallel.zero_bubble": tuple(pipeline_case(*pm) for pm in ((1, 3), (2, 5), (5, 5), (8, 12), (4, 8))),
    "parallel.layout": (
        layout_case("small", 2, 8, 80, vary=True),
        layout_case("middle", 8, 4, 40, vary=True),
        layout_case("large", 16, 4, 80, vary=True),
        Case("four other clusters", {"clusters": "others"}),
    ),
    "parallel.cut": cut_cases(*CUT_KINDS, suffix=", others"),
}
