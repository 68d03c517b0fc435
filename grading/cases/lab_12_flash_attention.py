"""The judge's own sizes for lab 12, part B."""

from __future__ import annotations

from gpulab.checks.spec import Case
from gpulab.content.lab_12_flash_attention.flash_attention import backward_case, kernel_case

CASES: dict[str, tuple[Case, ...]] = {
    "attention.flash": (
        kernel_case(12, 20),
        kernel_case(135, 18),
        kernel_case(1, 1),
        kernel_case(7, 21, 1000),
        kernel_case(7, 0),
        kernel_case(384, 16),
    ),
    "attention.cores": (
        kernel_case(48, 16),
        kernel_case(16, 32),
        kernel_case(16, 80, 100),
        kernel_case(16, 192),
    ),
    "attention.blocks": (
        kernel_case(10, 50),
        kernel_case(90, 90, 100),
        kernel_case(128, 192),
    ),
    "attention.backward": (
        backward_case(6, 4, 4, 4),
        backward_case(9, 21, 8, 8),
        backward_case(128, 192, 32, 64),
    ),
}
