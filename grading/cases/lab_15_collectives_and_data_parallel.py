"""The judge's own cases for lab 15. A budget that names no case is taken from the last one."""

from __future__ import annotations

from gpulab.checks.spec import Case


def _what(*names: str) -> tuple[Case, ...]:
    return tuple(Case(name, {"what": name}) for name in names)


def _ranks(*counts: int) -> tuple[Case, ...]:
    return tuple(Case(f"{n} rank{'s' * (n != 1)}", {"ranks": n}) for n in counts)


def _on(ranks: int, numbers: int) -> Case:
    return Case(f"{ranks} × {numbers}", {"ranks": ranks, "numbers": numbers})


_RINGS = (_on(3, 7), _on(1, 4), _on(4, 3), _on(2, 33), _on(4, 1021))


CASES: dict[str, tuple[Case, ...]] = {
    "collective.broadcast": _ranks(3, 1, 16, 17, 61),
    "collective.reduce_scatter": _RINGS,
    "collective.all_reduce": _RINGS,
    "collective.halving": _ranks(2, 1, 8, 32),
    "parallel.factors": _what("a short last batch", "any", "one has none"),
    "parallel.indices": _what("3 samples, 8 ranks", "10 samples, 4 ranks", "any", "three epochs"),
    "parallel.buckets": (
        Case("two parameters", {"layers": 0, "kind": "plain"}),
        Case("tied, 3 layers", {"layers": 3, "kind": "tied"}),
        Case("unused, 5 layers", {"layers": 5, "kind": "unused"}),
        Case("10 layers", {"layers": 10, "kind": "plain"}),
    ),
    "parallel.exchange": (
        Case("2 ranks", {"ranks": 2, "width": 6, "layers": 1, "rows": 2, "capacity": 100}),
        Case("3 ranks", {"ranks": 3, "width": 12, "layers": 8, "rows": 3, "capacity": 1200}),
    ),
    "parallel.compress": _what("room for all", "memory decides", "no memory yet", "any"),
}
