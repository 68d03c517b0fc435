"""Lab 00: the judge's own cases."""

from gpulab.exercises.spec import Case

CASES: dict[str, tuple[Case, ...]] = {
    "start.double": tuple(Case(f"n = {n}", {"n": n}) for n in (517, 1, 768, 2049)),
    "start.worst_line": (
        Case("two lines", {"reports": 12, "lines": 2}),
        Case("six lines", {"reports": 12, "lines": 6}),
    ),
    "start.honest_time": (Case("28 logs", {"logs": 28}),),
}
