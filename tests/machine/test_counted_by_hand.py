"""Machine instructions, counted once more from nvdisasm's own text by rules that fit on a page: code without branches
runs once, the body of a loop as often as the loop goes round."""

from __future__ import annotations

import re
import subprocess
import tempfile

import pytest

from gpulab import cupy as cp
from gpulab.analysis.machine import sass
from gpulab.simulator.compile import ptxas
from gpulab.simulator.compile.cuda_c import cuda_c_module
from gpulab.simulator.compile.machine_code import disassembler

STRAIGHT = r"""
extern "C" __global__ void kernel(const float* x, const float* y, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = x[i] * y[i] + (float)n;
}"""
LOOP = r"""
extern "C" __global__ void kernel(const float* x, const float* y, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = y[i];
    int k = 0;
    #pragma unroll 1
    do { sum = sum * x[k * 64] + 0.5f; } while (++k < n);
    out[i] = sum;
}"""
NESTED = r"""
extern "C" __global__ void kernel(const float* x, const float* y, float* out, int n) {
    __shared__ float tile[64];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = y[i];
    int k = 0;
    #pragma unroll 1
    do {
        tile[threadIdx.x] = x[k * 64] * sum;
        __syncthreads();
        int j = 0;
        #pragma unroll 1
        do { sum += tile[(threadIdx.x + j) % 64]; } while (++j < 7);
        __syncthreads();
    } while (++k < n);
    out[i] = sum;
}"""


def listing(source: str, cc: tuple[int, int]) -> list[tuple[str, str]]:
    """(label before it, text) of each instruction of the kernel, straight from nvdisasm, without the filling.
    The PTX is the simulated A100's, as in `sass`."""
    ptx = cuda_c_module(source, (8, 0)).ptx
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(ptxas.link(ptx, cc)[1])
        file.flush()
        text = subprocess.run(
            [disassembler(), "-c", file.name], capture_output=True, text=True, check=True
        ).stdout
    found, label = [], ""
    for line in text[text.index(".text.kernel:") :].splitlines():
        if match := re.match(r"\s*(\.L_\w+):", line):
            label = match[1]
        elif match := re.search(r"/\*[0-9a-f]{4}\*/\s+(.*?)\s*;", line):
            found.append((label, match[1]))
            label = ""
            if match[1] == "EXIT":
                return found
    raise AssertionError("no EXIT")


def loops(code: list[tuple[str, str]]) -> list[tuple[int, int]]:
    """(first, last) instruction of each loop: a branch back to a label closes it."""
    at = {label: number for number, (label, _) in enumerate(code) if label}
    found = []
    for number, (_, text) in enumerate(code):
        target = re.search(r"\bBRA\b.*`\((\.L_\w+)\)", text)
        if target and at.get(target[1], number + 1) <= number:
            found.append((at[target[1]], number))
    return found


def counted(source: str, cc: tuple[int, int], n: int):
    kernel = cp.RawKernel(source, "kernel")
    x, y, out = (cp.ones(64 * max(n, 4), cp.float32) for _ in range(3))
    return sass(lambda: kernel((3,), (64,), (x, y, out, n)), cc=cc)


each_machine_code = pytest.mark.parametrize("cc", [(8, 0), (9, 0), (10, 0), (12, 0)], ids=str)
WARPS = 3 * 2


@each_machine_code
def test_straight_code_runs_once(cc):
    code = listing(STRAIGHT, cc)
    assert not loops(code)
    found = counted(STRAIGHT, cc, 5)
    assert found.total == WARPS * len(code)


@each_machine_code
@pytest.mark.parametrize("n", [1, 2, 9])
def test_the_body_of_a_loop_runs_as_often_as_the_loop_goes_round(cc, n):
    code = listing(LOOP, cc)
    ((first, last),) = loops(code)
    body = last - first + 1
    found = counted(LOOP, cc, n)
    assert found.total == WARPS * (len(code) - body + n * body)
    assert found.by_opcode["LDG"] == WARPS * (1 + n)


@each_machine_code
def test_a_loop_in_a_loop_runs_as_often_as_both_together(cc):
    code, n = listing(NESTED, cc), 5
    inner, outer = sorted(loops(code), key=lambda loop: loop[1] - loop[0])
    assert outer[0] < inner[0] <= inner[1] < outer[1]
    inside, both = inner[1] - inner[0] + 1, outer[1] - outer[0] + 1
    found = counted(NESTED, cc, n)
    assert found.total == WARPS * (len(code) - both + n * (both - inside + 7 * inside))
    assert found.by_opcode["BAR"] == WARPS * 2 * n and found.by_opcode["LDS"] == WARPS * 7 * n
