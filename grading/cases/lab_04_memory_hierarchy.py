"""The judge's own sizes for lab 04. A budget that names no case is taken from the last one."""

from __future__ import annotations

from gpulab.checks.spec import Case


def _sizes(*sizes: int) -> tuple[Case, ...]:
    return tuple(Case(f"{n:,}", {"n": n}) for n in sizes)


def _matrices(*sizes: tuple[int, int]) -> tuple[Case, ...]:
    return tuple(Case(f"{rows} × {cols}", {"rows": rows, "cols": cols}) for rows, cols in sizes)


def _patterns(*names: str) -> tuple[Case, ...]:
    return tuple(Case(name, {"pattern": name}) for name in names)


TRANSPOSED = _matrices((32, 32), (1031, 517), (1, 1), (95, 161), (0, 3), (3, 0), (128, 192))

CASES: dict[str, tuple[Case, ...]] = {
    "memory.sectors": _patterns(
        "in order", "strided", "shifted", "same and shuffled", "some lanes", "across sectors"
    ),
    "memory.copy": _sizes(2048, 31, 1025, 0, 98_765, 131_072),
    "memory.transpose": TRANSPOSED,
    "memory.centre": _sizes(1024, 65, 127, 1, 0, 3001, 3072),
    "memory.unpack": _sizes(512, 2, 257, 2047, 0, 3072),
    "memory.ways": _patterns("strided", "same word", "shuffled", "some lanes", "wide"),
    "memory.compressed": tuple(
        Case(f"{name}, others", {"pattern": name})
        for name in ("equal", "close", "on the edge", "ramp", "any")
    ),
    "memory.padded": TRANSPOSED,
    "memory.blur": _matrices((24, 96), (9, 33), (1, 200), (517, 41), (0, 3), (64, 320)),
    "memory.smooth": _matrices((12, 256), (4, 129), (5, 1), (41, 300), (0, 3), (48, 384)),
}
