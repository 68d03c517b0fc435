"""The judge's own sizes for lab 24, part A."""

from __future__ import annotations

from gpulab.checks.spec import Case
from gpulab.content.lab_24_tensor_cores.hopper import SPANS, shape

CASES: dict[str, tuple[Case, ...]] = {
    "tensor.describe": tuple(Case(f"swizzle {span}", {"swizzle": span}) for span in SPANS),
    "tensor.tile": tuple(shape(*each) for each in ((128, 64, 128), (64, 128, 64), (64, 64, 320))),
    "tensor.overlap": tuple(shape(*each) for each in ((64, 64, 256), (64, 128, 64), (128, 64, 448))),
    "tensor.pingpong": tuple(shape(*each) for each in ((64, 192, 256), (64, 192, 64), (128, 128, 192))),
    "tensor.promote": tuple(shape(*each) for each in ((64, 64, 1152), (64, 64, 1920), (64, 128, 256))),
    "tensor.fence": tuple(Case(f"{m} rows", {"m": m}) for m in (64, 192, 320)),
}
