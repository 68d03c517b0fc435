"""The judge's own cases for lab 02. A budget that names no case is taken from the last one."""

from __future__ import annotations

from gpulab.checks.spec import Case


def _kinds(*names: str) -> tuple[Case, ...]:
    """Cases with names of their own: the questions of a case are seeded by its name."""
    return tuple(Case(f"{name}, others", {"kind": name}) for name in names)


def _warps(*counts: int) -> tuple[Case, ...]:
    return tuple(Case(f"{n} warp{'s' * (n != 1)}", {"warps": n}) for n in counts)


def _matrices(*sizes: tuple[int, int]) -> tuple[Case, ...]:
    return tuple(Case(f"{rows} × {cols}", {"rows": rows, "cols": cols}) for rows, cols in sizes)


CASES: dict[str, tuple[Case, ...]] = {
    "arch.peak": _kinds("plain", "data sheets", "made up"),
    "arch.bound": _kinds("square", "matrix times vector", "thin", "on the ridge"),
    "arch.warps_needed": _kinds("data sheets", "made up", "exact fit"),
    "arch.processors": _kinds("mixed", "the ends"),
    "arch.break_even": _kinds("copied", "resident", "never", "free start", "a tie"),
    "arch.split": _kinds("fits", "larger than the GPU's memory", "a small host", "full", "too large"),
    "arch.cheapest": _kinds("medium", "small", "large", "many at once", "exact fit"),
    "arch.active_blocks": _kinds(
        "warps and blocks", "registers", "shared memory", "cannot run", "all together"
    ),
    "arch.issue": _warps(4, 1, 3, 24, 20),
    "arch.jumps": _matrices((2, 257), (3, 130), (1, 127), (5, 1), (1, 2), (2, 3001), (6, 12288)),
}
