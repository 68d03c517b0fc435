"""cuBLAS as Triton's own programs call it, to compare with: PyTorch multiplies on the CPU instead."""

from __future__ import annotations

from typing import Any


class CublasLt:
    """Takes the place of ``triton._C.libtriton.nvidia.cublas.CublasLt``, which looks for a library that needs
    a GPU."""

    def __init__(self, workspace: Any = None) -> None:
        self.workspace = workspace

    def matmul(self, a: Any, b: Any, c: Any) -> None:
        """C = A·Bᵀ: a (m, k), b (n, k), c (m, n), summed in float32."""
        import torch

        c.copy_(torch.matmul(a.to(torch.float32), b.to(torch.float32).T).to(c.dtype))


def install() -> None:
    """Put it there."""
    from triton._C.libtriton import nvidia

    nvidia.cublas.CublasLt = CublasLt
