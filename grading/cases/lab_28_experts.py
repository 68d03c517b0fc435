"""The judge's own cases for lab 28, part A. A budget that names no case is taken from the last one."""

from __future__ import annotations

from functools import partial

from gpulab.checks.cases import of_kinds
from gpulab.checks.spec import Case
from gpulab.content.lab_28_experts_and_disaggregation.experts import dispatch_case, reduce_case

_kinds = partial(of_kinds, suffix=", others")

CASES: dict[str, tuple[Case, ...]] = {
    "experts.limited": _kinds(
        "as many as there are", "one node is enough", "two of four", "as in DeepSeek-V3"
    ),
    "experts.dispatch": (
        dispatch_case("any", 2, 2, 4, 16),
        dispatch_case("at home", 4, 2, 6, 16),
        dispatch_case("any", 6, 2, 5, 8),
        dispatch_case("two nodes", 6, 2, 18, 72),
    ),
    "experts.place": _kinds(
        "one is popular",
        "no room for copies",
        "of all sizes",
        "several are popular",
        "few slots left",
        "as in text",
    ),
    "experts.overlap": _kinds(
        "any", "equal times", "computing takes longer", "sending takes longer", "long attention"
    ),
    "experts.one_shot": (reduce_case(1, 3), reduce_case(2, 9), reduce_case(3, 8), reduce_case(4, 131)),
    "experts.two_shot": (reduce_case(1, 3), reduce_case(2, 9), reduce_case(3, 8), reduce_case(4, 515)),
    "experts.fastest": _kinds("a switch that adds", "no switch"),
}
