"""The judge's own cases for lab 09. A budget that names no case is taken from the last one."""

from __future__ import annotations

from gpulab.checks.spec import Case


def _formats(*names: str) -> tuple[Case, ...]:
    return tuple(Case(name, {"format": name}) for name in names)


def _what(*names: str) -> tuple[Case, ...]:
    return tuple(Case(name, {"what": name}) for name in names)


def _n(*sizes: int) -> tuple[Case, ...]:
    return tuple(Case(f"{n:,}" if n else "empty", {"n": n}) for n in sizes)


CASES: dict[str, tuple[Case, ...]] = {
    "formats.fields": _formats("TF32", "BF16", "E5M2", "FP16"),
    "formats.decode": _formats("BF16", "TF32", "FP16", "E5M2"),
    "formats.encode": _formats("TF32", "E5M2", "FP16", "BF16"),
    "formats.decode8": _what("E5M2FNUZ", "E4M3", "E4M3FNUZ", "E5M2"),
    "formats.adopt": _what("small ones", "all codes"),
    "formats.stochastic": _what("carries", "numbers", "already short"),
    "formats.order": _n(1, 2, 5, 33, 999, 6000),
    "formats.block": _what("numbers", "powers of two", "ties", "largest between 6 and 8", "outlier", "zeros"),
    "formats.dequantize": _n(32, 160, 2048, 0, 12_320, 32_768),
}
