"""CuPy's tests that say nothing about a simulated device: part of the test's name → the reason."""

from __future__ import annotations

import re

REASONS = {
    r"multigpu|context_switch": "needs two GPUs",
    r"TestCachePayload|TestRawNameExpressionCache": "tests CuPy's cache of machine code in files",
    r"[\[ (]jitify[\])]": "tests Jitify, which CuPy has deprecated; gpulab ignores the argument",
    r"load_cubin|load_hsaco|load_ptx": "loads what nvcc has made",
    r"test_dynamical_parallelism\[": "kernels that launch kernels are not simulated",
    r"32BitBoundary|test_shape5": "arrays of several GB",
    r"_shape4\b": "arrays of 34 million elements, six times: minutes in a simulator",
}


def reason(test: str) -> str:
    """Why a test does not apply; empty if it does."""
    return next((why for pattern, why in REASONS.items() if re.search(pattern, test)), "")
