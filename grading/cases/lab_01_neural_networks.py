"""Lab 01: the judge's own cases."""

from gpulab.checks.spec import Case

CASES: dict[str, tuple[Case, ...]] = {
    "neural.read_off": tuple(
        Case(f"another {kind}", {"kind": kind}) for kind in ("parabola", "line", "plane")
    ),
    "neural.cosine": tuple(Case(f"{n} numbers", {"length": n}) for n in (1, 7, 64)),
    "neural.gate": (
        Case("all 16 gates", {"kind": "gates"}),
        Case("any four numbers", {"kind": "any"}),
    ),
    "neural.gradients": (
        Case("one step", {"kind": "one step"}),
        Case("5 steps", {"kind": "random", "steps": 5, "tapes": 20}),
        Case("14 steps", {"kind": "random", "steps": 14, "tapes": 20}),
    ),
    "neural.backward": (
        Case("14 values", {"kind": "any", "n": 14}),
        Case("100 values", {"kind": "any", "n": 100}),
        Case("10 skips", {"kind": "skips", "n": 10}),
        Case("20 doublings", {"kind": "doublings", "n": 20}),
    ),
    "neural.keep": (
        Case("small tapes", {"kind": "any", "steps": 9}),
        Case("any tapes", {"kind": "any", "steps": 20}),
        Case("all layers learn", {"kind": "all", "layers": 7}),
        Case("the last layer learns", {"kind": "last", "layers": 5}),
    ),
    "neural.accumulate": (
        Case("5 rows, 2 a step", {"kind": "any", "rows": 5, "batch": 2, "room": 30}),
        Case("50 rows, 16 a step", {"kind": "any", "rows": 50, "batch": 16, "room": 200}),
        Case("24 rows of 8 to 192", {"kind": "steps of 8", "rows": 24, "batch": 24, "room": 384}),
    ),
    "neural.labels": (
        Case("2 rows", {"rows": 2, "longest": 3}),
        Case("12 rows", {"rows": 12, "longest": 8}),
    ),
    "neural.parameters": (
        Case("like GPT-2", {"kind": "GPT", "models": 8}),
        Case("with experts", {"kind": "experts", "models": 8}),
        Case("any mixture", {"kind": "mixed", "models": 20}),
    ),
}
