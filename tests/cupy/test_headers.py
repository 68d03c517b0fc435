"""Headers that nvcc finds with the host's compiler, CUDA's C++ libraries, and advice where one is missing."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gpulab import cupy as cp
from gpulab.simulator.compile import CompileError
from gpulab.simulator.compile.standard_headers import standard_headers


def result(source: str, body: str, threads: int = 1, options: tuple[str, ...] = ()) -> list[float]:
    """The first four elements of x, which holds 1, 2, 3 … until the kernel with this body has run."""
    text = f'{source}\nextern "C" __global__ void f(float *x) {{\n{body}\n}}'
    x = cp.arange(1, 65, dtype=np.float32)
    cp.RawKernel(text, "f", options)((1,), (threads,), (x,))
    return [float(value) for value in cp.asnumpy(x)[:4]]


# What a header must bring: header → statements, and the first elements of x after them.
BRINGS = {
    "stdint.h": ("uint8_t a = 255; int64_t b = INT64_MAX; x[0] = a + (b > UINT32_MAX);", [256]),
    "cstdint": ("std::uint16_t a = 65535; uint32_t b = a; x[0] = b;", [65535]),
    "stddef.h": ("ptrdiff_t d = -1; size_t s = 3; x[0] = d + (long long)s;", [2]),
    "float.h": ("x[0] = FLT_MAX > 3e38f; x[1] = DBL_DIG;", [1, 15]),
    "cfloat": ("x[0] = FLT_EPSILON * 8388608;", [1]),
    "limits.h": ("x[0] = CHAR_BIT; x[1] = INT_MAX == 2147483647;", [8, 1]),
    "climits": ("x[0] = UINT_MAX == 4294967295u;", [1]),
    "limits": ("x[0] = std::numeric_limits<short>::max();", [32767]),
    "math.h": ("x[0] = sinf(M_PI / 2); x[1] = isinf(INFINITY) + isnan(NAN);", [1, 2]),
    "cmath": ("x[0] = std::sqrt(4.f) + std::abs(-2.f); x[1] = std::pow(2.f, 3.f);", [4, 8]),
    "stdlib.h": ("x[0] = abs(-3);", [3]),
    "string.h": ("float y = 7; memcpy(x, &y, sizeof y);", [7]),
    "cstring": ("float y = 7; std::memcpy(x, &y, sizeof y);", [7]),
    "assert.h": ("assert(x[0] == 1); x[0] = 2;", [2]),
    "stdbool.h": ("bool b = true; x[0] = b + 1;", [2]),
    "new": ("char place[4]; float *y = new (place) float(5); x[0] = *y;", [5]),
    "type_traits": ("x[0] = std::is_same<int, float>::value; x[1] = std::is_integral_v<int>;", [0, 1]),
    "utility": (
        "std::pair<int, float> p{3, 4}; std::swap(x[0], x[1]); x[2] = p.first + p.second;",
        [2, 1, 7],
    ),
    "algorithm": ("x[0] = std::max(x[1], x[2]); x[1] = std::min(4, 5);", [3, 4]),
    "array": ("std::array<int, 3> a{4, 5, 6}; x[0] = a[1] + a.size();", [8]),
    "tuple": ("x[0] = std::get<1>(std::make_tuple(1, 2.5f));", [2.5]),
    "complex": ("std::complex<float> z(3, 4); x[0] = abs(z);", [5]),
    "cuda.h": ("CUdeviceptr p = 0; x[0] = p + sizeof(CUtensorMap);", [128]),
    "thrust/complex.h": (
        "thrust::complex<float> z(3, 4); x[0] = (z * z).real(); x[1] = thrust::abs(z);",
        [-7, 5],
    ),
}


@pytest.mark.parametrize("header", BRINGS)
def test_a_header_of_the_host_brings_what_kernels_use_of_it(header: str) -> None:
    body, expected = BRINGS[header]
    assert result(f"#include <{header}>", body)[: len(expected)] == expected


def test_printf_is_there_with_its_headers(capsys: pytest.CaptureFixture[str]) -> None:
    result("#include <stdio.h>\n#include <cstdio>", 'printf("%d ", 3); std::printf("%d", 4);')
    assert capsys.readouterr().out == "3 4"


def test_several_headers_may_be_missed_at_once_and_std_be_used_without_its_name() -> None:
    source = "#include <cstdint>\n#include <cmath>\n#include <limits>\nusing namespace std;"
    assert result(source, "uint32_t n = 4; x[0] = sqrt(float(n)) + exp(0.f) + max(1, 2);")[0] == 5


# Algorithms of a block: 64 threads with 1, 2 … 64.
CUB = {
    "block/block_reduce.cuh": (
        "using Sum = cub::BlockReduce<float, 64>; __shared__ Sum::TempStorage s;"
        "float v = Sum(s).Sum(x[t]); if (t == 0) x[0] = v;",
        [2080, 2, 3, 4],
    ),
    "block/block_scan.cuh": (
        "using Scan = cub::BlockScan<float, 64>; __shared__ Scan::TempStorage s;"
        "float v; Scan(s).InclusiveSum(x[t], v); x[t] = v;",
        [1, 3, 6, 10],
    ),
    "block/block_radix_sort.cuh": (
        "using Sort = cub::BlockRadixSort<float, 64, 1>; __shared__ Sort::TempStorage s;"
        "float v[1] = {-x[t]}; Sort(s).Sort(v); x[t] = v[0];",
        [-64, -63, -62, -61],
    ),
    "warp/warp_reduce.cuh": (
        "using Sum = cub::WarpReduce<float>; __shared__ Sum::TempStorage s[2];"
        "float v = Sum(s[t / 32]).Sum(x[t]); __syncthreads(); if (t % 32 == 0) x[t / 32] = v;",
        [528, 1552, 3, 4],
    ),
}


@pytest.mark.parametrize("name", CUB)
def test_algorithms_of_cub_for_blocks_and_warps_run(name: str) -> None:
    body, expected = CUB[name]
    assert result(f"#include <cub/{name}>", f"int t = threadIdx.x; {body}", 64) == expected


def test_the_header_of_all_of_cub_brings_its_blocks_and_warps() -> None:
    body, expected = CUB["block/block_reduce.cuh"]
    assert result("#include <cub/cub.cuh>", f"int t = threadIdx.x; {body}", 64) == expected


def test_a_header_of_the_users_own_comes_first(tmp_path: Path) -> None:
    (tmp_path / "limits").write_text("#define MINE 42\n")
    assert result("#include <limits>", "x[0] = MINE;", options=(f"-I{tmp_path}",))[0] == 42


def test_every_header_of_cudas_library_has_its_name_of_the_host() -> None:
    assert {
        "cstdint",
        "limits",
        "type_traits",
        "atomic",
        "stdint.h",
        "cub/cub.cuh",
    } <= standard_headers().keys()


@pytest.mark.parametrize(
    ("source", "advice"),
    [
        ("#include <iostream>", "for host code, which NVRTC does not compile"),
        ("#include <cublas_v2.h>", "for host code, which NVRTC does not compile"),
        ("#include <thrust/sort.h>", "within one, use <cub/block/…> and <cub/warp/…>"),
        ("#include <curand_of_no_release.h>", "in the package nvidia-curand"),
        ("#include <cub/no_such.cuh>", "in the package nvidia-cuda-cccl"),
        ("#include <my_own.h>", "Give the folder of the file as an option"),
        ("__device__ uint32_t n;", "Add #include <cstdint>."),
        ("__device__ float n = FLT_MAX;", "Add #include <cfloat>."),
        ("__device__ int n = INT_MAX;", "Add #include <climits>."),
        ("__device__ double n = M_PI;", "Add #include <cmath>."),
    ],
)
def test_advice_for_a_missing_header_can_be_followed(source: str, advice: str) -> None:
    with pytest.raises(CompileError) as caught:
        result(source, "")
    assert advice in str(caught.value)
    if "Add #include" in advice:
        result(f"{advice.removeprefix('Add ').removesuffix('.')}\n{source}", "")
