"""The judge's own cases for lab 25, part A. A budget that names no case is taken from the last one."""

from __future__ import annotations

from gpulab.checks.cases import of_kinds
from gpulab.checks.spec import Case
from gpulab.content.lab_25_layouts_and_tiles.algebra import ROWS, floats_case, matrix_case

CASES: dict[str, tuple[Case, ...]] = {
    "layout.coalesce": of_kinds("many modes", "strides of 0", "few modes", "sizes of 1"),
    "layout.compose": of_kinds("across modes", "whole modes skipped", "from the start", "within a mode"),
    "layout.complement": of_kinds("in any order", "with gaps", "no gaps", "one mode"),
    "layout.divide": of_kinds("every 2ᵠ-th", "neighbours", "one mode"),
    "layout.swizzle": of_kinds(*reversed(ROWS)),
    "layout.copy": tuple(floats_case(n) for n in (512, 1536, 8192)),
    "layout.transpose": (matrix_case(32, 160), matrix_case(64, 32), matrix_case(64, 128)),
    "layout.slow": (matrix_case(32, 160), matrix_case(64, 32), matrix_case(96, 128)),
}
