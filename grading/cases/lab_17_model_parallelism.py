"""The judge's own cases for lab 17. A budget that names no case is taken from the last one."""

from __future__ import annotations

from gpulab.checks.spec import Case
from gpulab.content.lab_17_model_parallelism.exercises import _layout, _pipeline, _ranks, _whats

CASES: dict[str, tuple[Case, ...]] = {
    "parallel.mlp": (
        _ranks(2, tokens=3, width=4, hidden=10),
        _ranks(4, tokens=32, width=24, hidden=96),
    ),
    "parallel.loss": (
        _ranks(2, tokens=7, width=8, vocabulary=22, times=500),
        _ranks(4, tokens=48, width=24, vocabulary=512),
    ),
    "parallel.ring": (
        _ranks(2, tokens=10, width=16, times=12),
        _ranks(3, tokens=12, width=4),
        _ranks(4, tokens=48, width=24),
    ),
    "parallel.biased": (
        _ranks(2, tokens=7, width=4, hidden=6),
        _ranks(4, tokens=16, width=24, hidden=64),
    ),
    "parallel.dispatch": (
        _ranks(2, tokens=6, width=8),
        Case(
            "4 ranks, all tokens to the last expert", {"ranks": 4, "tokens": 12, "width": 16, "favourite": 3}
        ),
        _ranks(4, tokens=48, width=48),
    ),
    "parallel.schedule": tuple(_pipeline(*pm) for pm in ((1, 1), (2, 3), (5, 2), (3, 8), (4, 8))),
    "parallel.stages": _whats("any", "one stage", "one layer each", "all alike", "a large head"),
    "parallel.zero_bubble": tuple(_pipeline(*pm) for pm in ((1, 3), (2, 5), (5, 5), (8, 12), (4, 8))),
    "parallel.layout": (
        _layout("small", 2, 8, 80, vary=True),
        _layout("middle", 8, 4, 40, vary=True),
        _layout("large", 16, 4, 80, vary=True),
        Case("four other clusters", {"clusters": "others"}),
    ),
}
