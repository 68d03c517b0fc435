"""cuBLAS as Triton's own programs call it, to compare with: PyTorch multiplies on the CPU instead."""

from __future__ import annotations

from typing import Any

from gpulab.simulator.simt import small_floats


class CublasLt:
    """Takes the place of ``triton._C.libtriton.nvidia.cublas.CublasLt``, which looks for a library that needs
    a GPU."""

    def __init__(self, workspace: Any = None) -> None:
        self.workspace = workspace

    def matmul(self, a: Any, b: Any, c: Any) -> None:
        """C = A·Bᵀ: a (m, k), b (n, k), c (m, n), summed in float32."""
        import torch

        c.copy_(torch.matmul(a.to(torch.float32), b.to(torch.float32).T).to(c.dtype))

    def block_scaled_matmul_mxfp8(self, a: Any, b: Any, c: Any, a_scales: Any, b_scales: Any) -> None:
        """As `matmul`, of FP8; 32 numbers along k share a scale, a power of two as its exponent plus 127."""
        import torch

        left, right = (
            _scaled(x.to(torch.float32), torch.exp2(scales.to(torch.float32) - 127))
            for x, scales in ((a, a_scales), (b, b_scales))
        )
        self.matmul(left, right, c)

    def block_scaled_matmul_nvfp4(self, a: Any, b: Any, c: Any, a_scales: Any, b_scales: Any) -> None:
        """As `matmul`, of FP4: two numbers in a byte, the first in its lower half; 16 share a scale."""
        import torch

        values = torch.from_numpy(small_floats.values("e2m1"))
        codes = [torch.stack([x & 15, x >> 4], dim=-1).reshape(len(x), -1).long() for x in (a, b)]
        left = _scaled(values[codes[0]], a_scales.to(torch.float32))
        right = _scaled(values[codes[1]], b_scales.to(torch.float32))
        self.matmul(left, right, c)


def _scaled(x: Any, scales: Any) -> Any:
    """x (n, k) with the scales of its blocks, which lie as cuBLAS wants them: 128 rows and 4 blocks together;
    in those 32 rows after the other, of each the rows that are 32, 64 and 96 further on beside it."""
    tiles = scales.reshape(len(x) // 128, -1, 32, 4, 4)
    each = tiles.permute(0, 3, 2, 1, 4).reshape(len(x), -1)
    return x * each.repeat_interleave(x.shape[1] // each.shape[1], dim=1)


def install() -> None:
    """Put it there."""
    from triton._C.libtriton import nvidia

    nvidia.cublas.CublasLt = CublasLt
