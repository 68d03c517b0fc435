"""The roofline: the least time that a kernel's arithmetic or its traffic allows, whichever is longer.

S. Williams, A. Waterman, D. Patterson, "Roofline: an insightful visual performance model for multicore
architectures", Communications of the ACM 52 (4), 2009: attainable rate = min(peak, intensity × bandwidth).
"""

from __future__ import annotations

from dataclasses import dataclass

from .catalogue import find
from .gpu import GPU


@dataclass(frozen=True)
class Roofline:
    """The roof of one GPU for one dtype: `peak` in FLOP/s, `bandwidth` of the DRAM in B/s."""

    gpu: str
    dtype: str
    peak: float
    bandwidth: float

    @property
    def ridge(self) -> float:
        """The intensity in FLOP/B at which the two roofs meet."""
        return self.peak / self.bandwidth

    def attainable(self, intensity: float) -> float:
        """The highest rate in FLOP/s at this intensity, in FLOP per byte of DRAM traffic."""
        if intensity < 0:
            raise ValueError(f"an arithmetic intensity cannot be negative; got {intensity}")
        return min(self.peak, intensity * self.bandwidth)

    def bound(self, intensity: float) -> str:
        """``memory`` left of the ridge, ``compute`` at the ridge and right of it."""
        return "memory" if intensity < self.ridge else "compute"


def roofline(gpu: GPU | str, dtype: str = "float32", *, tensor: bool | None = None) -> Roofline:
    """The roofline of `gpu` (record or name), from its peak rate for `dtype` and its peak DRAM bandwidth.

    The ordinary lanes compute float32, float64 and int32; the tensor cores compute the other dtypes, dense.
    `tensor` overrides that choice. Raises UnknownGPU, and ValueError where the GPU has no such rate.

    >>> round(roofline("A100").ridge, 1)  # FLOP/B
    9.6
    """
    gpu = find(gpu)
    if tensor is None:
        tensor = dtype not in ("float32", "float64", "int32")
    peak = gpu.peak(dtype, tensor=tensor)
    return Roofline(gpu.name, dtype, float(peak), float(gpu.dram_bandwidth))
