"""The judge's own cases for lab 10. A budget that names no case is taken from the last one."""

from __future__ import annotations

from gpulab.checks.spec import Case
from gpulab.content.lab_10_mixed_precision.exercises import CHOICES


def _what(*names: str) -> tuple[Case, ...]:
    return tuple(Case(name, {"what": name}) for name in names)


CASES: dict[str, tuple[Case, ...]] = {
    "mixed.static": _what("zeros", "one large", "exactly at the end", "too large already", "packed"),
    "mixed.recipe": _what("60 iterations"),
    "mixed.scaler": _what("interval 1", "above a limit", "always", "never", "other settings", "now and then"),
    "mixed.clip": _what("short enough", "not finite", "long"),
    "mixed.dtypes": _what("any", "a loss", "mixed inputs"),
    "mixed.master": _what("any", "arrives", "vanishes"),
    "mixed.footprint": _what(*reversed(CHOICES)),
    "mixed.delayed": _what("length 1", "any", "not finite", "zeros"),
}
