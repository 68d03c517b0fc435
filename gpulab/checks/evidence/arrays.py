"""Arguments as the sandbox gets them where it needs no contents."""

from __future__ import annotations

from typing import Any

from gpulab.checks.spec import Array, Case, OnArrays


def without_contents(evidence: OnArrays, case: Case) -> list[dict[str, Any]]:
    """The arguments at a case, fit for JSON: names, shapes, types and roles; of scalars the values, too."""
    return [
        {"array": a.name, "shape": a.shape, "dtype": a.dtype, "role": a.role, "grad": a.grad}
        if isinstance(a, Array)
        else {"scalar": a.name, "value": a.value, "dtype": a.dtype}
        for a in evidence.arguments(case.sizes)
    ]
