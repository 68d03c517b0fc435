"""The judge's own cases for lab 27, part A. A budget that names no case is taken from the last one."""

from __future__ import annotations

from gpulab.checks.cases import of_kinds
from gpulab.checks.spec import Case
from gpulab.content.lab_27_low_precision_training.formats import four_case, rotate_case, tiles_case

CASES: dict[str, tuple[Case, ...]] = {
    "bits.cast": of_kinds("steady", "zeros", "falling", "one large step", "a jump that stays", "current"),
    "bits.tiles": (
        tiles_case(5, 96, 1, 32, 1),
        tiles_case(130, 150, 128, 128, 0),
        tiles_case(32, 300, 1, 128, 0),
        tiles_case(48, 320, 1, 32, 1),
    ),
    "bits.stored": of_kinds("1 × 32", "128 × 128", "16 × 16 of four bits", "1 × 128", "1 × 16 of four bits"),
    "bits.four": (
        four_case("normal", 3.0, 3, 48),
        four_case("normal", 1e-7),
        four_case("normal", 1e5),
        four_case("equal", 0.02),
    ),
    "bits.rotate": (rotate_case(32, 5, 3), rotate_case(16, 1, 1), rotate_case(240, 48, 40)),
}
