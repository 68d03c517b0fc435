"""The judge's own cases for lab 13. A budget that names no case is taken from the last one."""

from __future__ import annotations

from gpulab.checks.spec import Case
from gpulab.content.lab_13_quantization.exercises import gptq_case


def _what(*names: str) -> tuple[Case, ...]:
    return tuple(Case(name, {"what": name}) for name in names)


def _matrices(*shapes: tuple[int, int]) -> tuple[Case, ...]:
    return tuple(Case(f"{r} × {c:,}", {"rows": r, "columns": c}) for r, c in shapes)


CASES: dict[str, tuple[Case, ...]] = {
    "quant.affine": _what("one number", "zeros", "numbers", "one sign", "easy numbers"),
    "quant.grouped": _what("groups of 8", "a scale per row", "groups of 16", "one scale for 4 × 32"),
    "quant.clip": _what("a few far out", "one magnitude", "normal", "all shapes"),
    "quant.fake": _what("the edges", "numbers inside the range", "numbers beyond the range"),
    "quant.smooth": _what("a silent channel", "no outliers", "weights made up for it", "outliers"),
    "quant.gptq": (gptq_case(3, 12, 3), gptq_case(5, 48, 2, dead=1), gptq_case(8, 128, 3)),
    "quant.awq": _what("a silent channel", "no outliers", "outliers"),
    "quant.multiply": _matrices((33, 256), (0, 512), (7, 1536), (64, 1024)),
    "quant.allocate": tuple(Case(f"{n} layers", {"layers": n}) for n in (3, 5, 17, 40)),
    "quant.size": _what("nothing", "tied weights", "a quantised model", "a plain model"),
}
