"""Conversions to and from 8, 6 and 4 bits are those that NVIDIA's headers work out in integers.

For an H100 the headers have no instructions for most of these formats and compute with integers; for a B200 they
use the instructions. Both run here and have to agree, bit for bit.
"""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings

from gpulab import cupy as cp
from gpulab.checks.run import reference_device
from gpulab.simulator import device
from tests.simt.drawing import seeds

KERNEL = r"""
#include <cuda_fp8.h>
#include <cuda_fp6.h>
#include <cuda_fp4.h>

__device__ unsigned bits(__half2_raw x) { return x.x | x.y << 16; }
__device__ unsigned bits(__nv_bfloat162_raw x) { return x.x | x.y << 16; }

extern "C" __global__ void convert(const float2* x, unsigned* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float2 v = x[i];
    __half2_raw h;
    h.x = __half_raw(__float2half_rn(v.x)).x, h.y = __half_raw(__float2half_rn(v.y)).x;
    __nv_bfloat162_raw b = __nv_bfloat162_raw(__floats2bfloat162_rn(v.x, v.y));
    unsigned* to = out + 20 * i;
    *to++ = __nv_cvt_float2_to_fp8x2(v, __NV_SATFINITE, __NV_E4M3);
    *to++ = __nv_cvt_float2_to_fp8x2(v, __NV_SATFINITE, __NV_E5M2);
    *to++ = __nv_cvt_halfraw2_to_fp8x2(h, __NV_SATFINITE, __NV_E4M3);
    *to++ = __nv_cvt_bfloat16raw2_to_fp8x2(b, __NV_SATFINITE, __NV_E5M2);
    unsigned small = __nv_cvt_float2_to_fp6x2(v, __NV_E2M3, cudaRoundNearest);
    *to++ = small;
    *to++ = bits(__nv_cvt_fp6x2_to_halfraw2(small, __NV_E2M3));
    small = __nv_cvt_float2_to_fp6x2(v, __NV_E3M2, cudaRoundNearest);
    *to++ = small;
    *to++ = bits(__nv_cvt_fp6x2_to_halfraw2(small, __NV_E3M2));
    *to++ = __nv_cvt_halfraw2_to_fp6x2(h, __NV_E2M3, cudaRoundNearest);
    *to++ = __nv_cvt_bfloat16raw2_to_fp6x2(b, __NV_E3M2, cudaRoundNearest);
    small = __nv_cvt_float2_to_fp4x2(v, __NV_E2M1, cudaRoundNearest);
    *to++ = small;
    *to++ = bits(__nv_cvt_fp4x2_to_halfraw2(small, __NV_E2M1));
    *to++ = __nv_cvt_halfraw2_to_fp4x2(h, __NV_E2M1, cudaRoundNearest);
    *to++ = __nv_cvt_bfloat16raw2_to_fp4x2(b, __NV_E2M1, cudaRoundNearest);
    unsigned scale = __nv_cvt_float2_to_e8m0x2(v, __NV_NOSAT, cudaRoundPosInf);
    *to++ = scale;
    *to++ = bits(__nv_cvt_e8m0x2_to_bf162raw(scale));
    *to++ = __nv_cvt_float2_to_e8m0x2(v, __NV_SATFINITE, cudaRoundPosInf);
    *to++ = __nv_cvt_float2_to_e8m0x2(v, __NV_SATFINITE, cudaRoundZero);
    *to++ = __nv_cvt_float2_to_e8m0x2(v, __NV_NOSAT, cudaRoundZero);
    *to++ = __nv_cvt_bfloat162raw_to_e8m0x2(b, __NV_SATFINITE, cudaRoundPosInf);
}
"""
EDGES = [0.0, -0.0, np.inf, -np.inf, np.nan, -np.nan, 1e-40, -1e-42, 2.0**-127, 2.0**-126, 3e38, -3e38]
TIES = [0.25, 0.75, 1.25, 2.5, 3.5, 5.0, 6.5, 7.25, 7.75, 26.0, 30.0, 448.0, 464.0]


def converted(gpu: str, pairs: np.ndarray) -> tuple[np.ndarray, set[str]]:
    """What every conversion makes of each pair, and the opcodes that were used."""
    used: set[str] = set()
    out = cp.zeros((len(pairs), 20), cp.uint32)

    def look(launch: device.Launch) -> None:
        used.update(i.opcode for i in device.current().program(launch.kernel).instructions)

    with reference_device(gpu), device.current().observed(look):
        blocks = -(-len(pairs) // 128)
        cp.RawKernel(KERNEL, "convert")((blocks,), (128,), (cp.asarray(pairs), out, cp.int32(len(pairs))))
    return out.get(), used


@settings(max_examples=5, deadline=None)
@given(seeds)
def test_instructions_of_a_b200_agree_with_the_integers_of_an_h100(seed: int) -> None:
    generator = np.random.default_rng(seed)
    spread = generator.standard_normal((300, 2)) * np.exp(generator.uniform(-6, 6, (300, 2)))
    anything = generator.integers(0, 1 << 32, (100, 2), np.uint64).astype(np.uint32).view(np.float32)
    edges = generator.choice([*EDGES, *TIES, *np.negative(TIES)], (100, 2))
    pairs = np.concatenate([spread.astype(np.float32), anything, edges.astype(np.float32)])
    by_integers, _ = converted("H100", pairs)
    by_instructions, used = converted("B200", pairs)
    for form in ("e2m3x2", "e3m2x2", "e2m1x2", "ue8m0x2"):
        assert any(opcode.startswith("cvt") and form in opcode for opcode in used)
    np.testing.assert_array_equal(by_instructions, by_integers)
