"""The judge's own cases for lab 14. A budget that names no case is taken from the last one."""

from __future__ import annotations

from gpulab.checks.spec import Case


def _case(name: str = "", **sizes: int | float | str) -> Case:
    return Case(name or ", ".join(f"{key} {value}" for key, value in sizes.items()), sizes)


def _kinds(*names: str) -> tuple[Case, ...]:
    return tuple(_case(name, kind=name) for name in names)


CASES: dict[str, tuple[Case, ...]] = {
    "compress.ticket": _kinds("layers of other sizes", "nothing, everything", "equal layers"),
    "compress.amounts": _kinds("any", "to the end", "one round", "a round that rests", "even steps"),
    "compress.shrink": (
        _case(rows=3, width=5, hidden=7, count=2),
        _case(rows=6, width=2, hidden=5, count=5),
        _case(rows=16, width=48, hidden=200, count=33),
    ),
    "compress.pack24": (
        _case("sparse already", kind="at most two of four", rows=3, columns=16),
        _case("zeros", kind="zeros", rows=1, columns=8),
        _case("all equal", kind="all equal", rows=3, columns=8),
        _case("12 × 72", kind="any", rows=12, columns=72),
    ),
    "compress.sparse24": (
        _case(rows=11, columns=232),  # races are looked for here: 8 warps stage, 3 of them for others as well
        _case(rows=3, columns=16),
        _case(rows=17, columns=72),
        _case(rows=9, columns=520),
        _case(rows=12, columns=1024),
    ),
    "compress.distill": (
        _case("T = 2", rows=5, vocabulary=7, scale=1.0, temperature=2.0, alpha=0.25),
        _case("T = 8", rows=12, vocabulary=40, scale=3.0, temperature=8.0, alpha=0.6),
        _case("only the teacher", rows=4, vocabulary=6, scale=1.0, temperature=3.0, alpha=0.0),
        _case("logits of hundreds", rows=6, vocabulary=13, scale=400.0, temperature=1.25, alpha=0.4),
    ),
    "compress.serve": (
        _case(rows=2, width=5, rank=3, adapters=2),
        _case(rows=7, width=8, rank=1, adapters=1),
        _case(rows=48, width=96, rank=4, adapters=24),
    ),
    "compress.merge": (
        _case(outputs=2, inputs=7, rank=2),
        _case(outputs=9, inputs=3, rank=1),
        _case(outputs=20, inputs=33, rank=5),
    ),
    "compress.workload": tuple(_case(way, way=way) for way in ("QLoRA", "full", "LoRA")),
}
