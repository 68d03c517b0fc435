"""The judge's own sizes for lab 24, part B. A budget that names no case is taken from the last one."""

from __future__ import annotations

from gpulab.checks.spec import Case
from gpulab.content.lab_24_tensor_cores.blackwell import grid
from gpulab.content.lab_24_tensor_cores.hopper import shape

CASES: dict[str, tuple[Case, ...]] = {
    "tensor.memory": tuple(shape(*each) for each in ((128, 64, 256), (128, 128, 64), (256, 64, 320))),
    "tensor.pair": tuple(shape(*each) for each in ((256, 64, 192), (256, 128, 64), (512, 64, 128))),
    "tensor.scaled": tuple(shape(*each) for each in ((128, 128, 768), (128, 256, 256), (256, 128, 512))),
    "tensor.order": tuple(grid(*each) for each in ((6, 9, 8), (3, 1, 2), (20, 30, 100), (40, 40, 148))),
}
