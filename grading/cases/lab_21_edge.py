"""The judge's own cases for lab 21. A budget names its case: other questions under the same name."""

from __future__ import annotations

from gpulab.checks.spec import Case
from gpulab.content.lab_21_edge.exercises import network_case


def _kinds(*names: str) -> tuple[Case, ...]:
    """Cases with names of their own: the questions of a case are seeded by its name."""
    return tuple(Case(f"{name}, others", {"kind": name}) for name in names)


CASES: dict[str, tuple[Case, ...]] = {
    "edge.launch": _kinds("groups", "items", "order", "volumes", "too large"),
    "edge.plan": _kinds(
        "enough room", "eight gigabytes", "long context", "a deadline", "a large table", "nothing fits"
    ),
    "edge.energy": _kinds("race", "slow and steady", "between", "rarely", "in time"),
    "edge.deadline": _kinds(
        "one frame", "fast", "slow", "much too slow", "spikes", "jitter", "to the millisecond"
    ),
    "edge.matmul": _kinds("no zero points", "zero points", "all codes", "ties"),
    "edge.compress": (
        network_case("narrow, others", 18, 72, 4),
        network_case("middle, others", 26, 104, 8),
        network_case("wide, others", 32, 168, 10),
    ),
    "edge.place": (
        *_kinds("equal layers", "all fits", "not worth it", "mixed"),
        Case("experts", {"kind": "experts"}),
        Case("costly link", {"kind": "costly link"}),
    ),
    "edge.federated": _kinds("equal", "skewed", "some silent", "nothing seen", "few bits", "all silent"),
}
