"""The judge's own cases for lab 27, part B. A budget that names no case is taken from the last one."""

from __future__ import annotations

from gpulab.checks.cases import of_kinds
from gpulab.checks.spec import Case
from gpulab.content.lab_27_low_precision_training.scaling import polar_case

CASES: dict[str, tuple[Case, ...]] = {
    "scaling.polar": tuple(polar_case(*each) for each in ((5, 2), (40, 40), (16, 200), (384, 48))),
    "scaling.shard": of_kinds(
        "one matrix is most", "a transformer", "fewer than ranks", "as many elements each"
    ),
    "scaling.forecast": of_kinds("parameters saturate first", "tokens saturate first"),
    "scaling.split": of_kinds("much served", "nothing served", "little served"),
}
