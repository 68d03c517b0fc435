"""The judge's own sizes for lab 22's project A. Budgets name their cases: names are public."""

from __future__ import annotations

from gpulab.checks.spec import Case
from gpulab.content.lab_22_capstones.attention import heads_case

CASES: dict[str, tuple[Case, ...]] = {
    "attention_project.forward": (
        heads_case(2, 1, 10, 17, True),
        heads_case(6, 3, 67, 45, False),
        heads_case(2, 2, 1, 33, True),
        heads_case(8, 1, 5, 150, True, name="few queries", scale=100),
        heads_case(2, 1, 128, 192, True, name="causal"),
    ),
    "attention_project.backward": (
        heads_case(2, 1, 10, 17, True),
        heads_case(6, 3, 70, 45, False, scale=20),
        heads_case(2, 2, 1, 33, True),
        heads_case(2, 1, 192, 256, True, name="causal"),
    ),
}
