"""Lab 00: the judge's own cases."""

from gpulab.checks.spec import Case

CASES: dict[str, tuple[Case, ...]] = {
    "start.double": tuple(
        Case(f"n = {n} in blocks of {threads}", {"n": n, "threads": threads})
        for n, threads in ((517, 256), (1, 256), (768, 64), (2049, 256))
    ),
    "start.worst_line": (
        Case("two lines", {"reports": 12, "lines": 2}),
        Case("six lines", {"reports": 12, "lines": 6}),
    ),
    "start.honest_time": (Case("28 logs", {"logs": 28}),),
}
