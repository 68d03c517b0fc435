"""`torch._scaled_mm` of 4-bit numbers with block scales, which PyTorch has for GPUs only."""

from __future__ import annotations

from typing import Any

import torch

from gpulab.subjects import numerics


def is_of_4_bits(args: tuple[Any, ...]) -> bool:
    """Whether a call of `torch._scaled_mm` multiplies packed e2m1 numbers."""
    return bool(args) and getattr(args[0], "dtype", None) == torch.float4_e2m1fn_x2


def scaled_mm(
    mat_a: torch.Tensor,
    mat_b: torch.Tensor,
    scale_a: torch.Tensor,
    scale_b: torch.Tensor,
    bias: torch.Tensor | None = None,
    scale_result: torch.Tensor | None = None,
    out_dtype: torch.dtype | None = None,
    use_fast_accum: bool = False,
) -> torch.Tensor:
    """A·B for A (m, k / 2) and B (k / 2, n), two numbers in each byte, as `torch._scaled_mm` defines it.

    Scales are ue8m0 (one for 32 numbers along k) or e4m3 (one for 16), in the order that cuBLAS wants.
    """
    a = _unpacked(mat_a) * _scales(scale_a, mat_a.shape[0], 2 * mat_a.shape[1])
    b = _unpacked(mat_b.T) * _scales(scale_b, mat_b.shape[1], 2 * mat_b.shape[0])
    product = a @ b.T
    if bias is not None:
        product = product + bias.float()
    return product.to(out_dtype or torch.bfloat16)


def _unpacked(packed: torch.Tensor) -> torch.Tensor:
    """(rows, k / 2) bytes → (rows, k) float32, the lower four bits of a byte first."""
    octets = packed.contiguous().view(torch.uint8)
    codes = torch.stack([octets & 15, octets >> 4], dim=-1).reshape(octets.shape[0], -1)
    return torch.from_numpy(numerics.decode(codes.numpy(), "E2M1"))


def _scales(scales: torch.Tensor, rows: int, k: int) -> torch.Tensor:
    """One factor for each element (rows, k). Tiles of 128 rows × 4 scales are stored one after the other; in
    them rows 32 apart are neighbours (cuBLAS, "1D block scaling factors layout")."""
    step = 16 if scales.dtype == torch.float8_e4m3fn else 32
    count = -(-k // step)
    down, across = -(-rows // 128), -(-count // 4)
    tiles = scales.reshape(-1).float().reshape(down, across, 32, 4, 4)
    plain = tiles.permute(0, 3, 2, 1, 4).reshape(128 * down, 4 * across)
    return plain[:rows, :count].repeat_interleave(step, dim=1)[:, :k]
