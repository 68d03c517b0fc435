"""The judge's own cases for lab 25, part B. A budget that names no case is taken from the last one."""

from __future__ import annotations

from gpulab.checks.spec import Case
from gpulab.content.lab_25_layouts_and_tiles.tiles import matrix_case, product_case, tokens_case

CASES: dict[str, tuple[Case, ...]] = {
    "tiles.gemm": tuple(product_case(*each) for each in ((64, 64, 192), (64, 128, 64), (128, 128, 128))),
    "tiles.hopper": tuple(product_case(*each) for each in ((64, 64, 192), (64, 128, 64), (128, 64, 128))),
    "tiles.softmax": tuple(matrix_case(*each) for each in ((5, 257), (1, 129), (4, 700), (3, 2048))),
    "tiles.attention": tuple(tokens_case(n) for n in (192, 64, 256)),
    "tiles.convert": tuple(matrix_case(*each) for each in ((128, 64), (256, 32), (512, 64))),
}
