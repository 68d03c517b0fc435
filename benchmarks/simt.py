"""The simulator with all counts on, beside numba's CUDA simulator, on the same kernels in one run.

    python benchmarks/simt.py [--quick]

Each side runs in a process of its own: numba's with ``NUMBA_ENABLE_CUDASIM=1``. A row a kernel: seconds
there, seconds here, and the ratio; ``--quick`` leaves numba's slowest kernel at a quarter of its size on both
sides. Goals are those of the project: the tiled matrix product at 128³ at least 1000 × faster; vector
addition of 10⁷ elements in under 3 s; peak memory under 1.5 GB.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
from numba import float32

if os.environ.get("NUMBA_ENABLE_CUDASIM") == "1":  # it replaces a kernel's globals, so `cuda` must be one
    from numba import cuda
else:
    from gpulab import cuda

TILE = 16
BLOCK = 128


@cuda.jit
def matmul(a, b, c):
    tile_a = cuda.shared.array((TILE, TILE), float32)
    tile_b = cuda.shared.array((TILE, TILE), float32)
    x, y = cuda.grid(2)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    total = float32(0.0)
    for start in range(0, a.shape[1], TILE):
        tile_a[ty, tx] = a[y, start + tx]
        tile_b[ty, tx] = b[start + ty, x]
        cuda.syncthreads()
        for k in range(TILE):
            total += tile_a[ty, k] * tile_b[k, tx]
        cuda.syncthreads()
    c[y, x] = total


@cuda.jit
def add(a, b, c):
    i = cuda.grid(1)
    if i < c.size:
        c[i] = a[i] + b[i]


@cuda.jit
def block_sum(a, sums):
    part = cuda.shared.array(BLOCK, float32)
    t = cuda.threadIdx.x
    part[t] = a[cuda.grid(1)]
    cuda.syncthreads()
    half = BLOCK // 2
    while half > 0:
        if t < half:
            part[t] += part[t + half]
        cuda.syncthreads()
        half //= 2
    if t == 0:
        sums[cuda.blockIdx.x] = part[0]


@cuda.jit
def stencil(a, out):
    x, y = cuda.grid(2)
    if 0 < x < a.shape[1] - 1 and 0 < y < a.shape[0] - 1:
        out[y, x] = (a[y, x] + a[y, x - 1] + a[y, x + 1] + a[y - 1, x] + a[y + 1, x]) / float32(5.0)


KERNELS = {"matmul": matmul, "add": add, "block_sum": block_sum, "stencil": stencil}


def cases(quick: bool) -> dict[str, tuple]:
    """Name → (kernel, grid, block, arrays, function of the arrays that gives the last one)."""
    generator = np.random.default_rng(0)

    def array(*shape: int) -> np.ndarray:
        return generator.standard_normal(shape).astype(np.float32)

    n = 64 if quick else 128
    groups = n // TILE

    def blurred(arrays: list[np.ndarray]) -> np.ndarray:
        a = arrays[0]
        out = np.zeros_like(a)
        out[1:-1, 1:-1] = (a[1:-1, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:] + a[:-2, 1:-1] + a[2:, 1:-1]) / 5
        return out

    rows = {
        f"tiled matmul {n}³": ("matmul", (groups, groups), (TILE, TILE)),
        "block sums of 8,192": ("block_sum", (8192 // BLOCK,), (BLOCK,)),
        "5-point stencil 64 × 64": ("stencil", (4, 4), (16, 16)),
        "vector add of 10,000": ("add", (79,), (BLOCK,)),
    }
    data = {
        "matmul": ([array(n, n), array(n, n), array(n, n)], lambda x: x[0] @ x[1]),
        "block_sum": ([array(8192), array(8192 // BLOCK)], lambda x: x[0].reshape(-1, BLOCK).sum(1)),
        "stencil": ([array(64, 64), np.zeros((64, 64), np.float32)], blurred),
        "add": ([array(10_000), array(10_000), array(10_000)], lambda x: x[0] + x[1]),
    }
    return {name: (kernel, *shape, *data[kernel]) for name, (kernel, *shape) in rows.items()}


def counting() -> AbstractContextManager[None]:
    """While it is entered, every launch here is counted."""
    from gpulab import device
    from gpulab.observe import Counters

    return device.current().observed(lambda launch: Counters())


def run(who: str, quick: bool) -> dict[str, float]:
    """Seconds of each kernel on one side, the best of three here, one run there; results are checked."""
    seconds = {}
    for name, (kernel, grid, block, arrays, expected) in cases(quick).items():
        launch = KERNELS[kernel][grid, block]
        there = [cuda.to_device(a) for a in arrays]
        times = []
        for _ in range(1 if who == "numba" else 4):  # the first run here also compiles, and is dropped
            start = time.perf_counter()
            with nullcontext() if who == "numba" else counting():
                launch(*there)
            times.append(time.perf_counter() - start)
        found = there[-1].copy_to_host()
        np.testing.assert_allclose(found, expected(arrays), rtol=1e-3, atol=1e-4)
        seconds[name] = times[0] if who == "numba" else min(times[1:])
    return seconds


def large_add() -> float:
    """Seconds of a counted vector addition of 10⁷ elements, compiled before."""
    n = 10**7
    a, b, c = (cuda.to_device(np.ones(n, np.float32)) for _ in range(3))
    launch = add[(n + 255) // 256, 256]
    launch(a, b, c)
    start = time.perf_counter()
    with counting():
        launch(a, b, c)
    return time.perf_counter() - start


def side(who: str, quick: bool) -> dict[str, Any]:
    """What one side's process says."""
    environment = dict(os.environ, GPULAB_SIMULATE="1")
    if who == "numba":
        environment["NUMBA_ENABLE_CUDASIM"] = "1"
    command = [sys.executable, __file__, "--side", who, *(["--quick"] if quick else [])]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{who} failed:\n{done.stderr[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    quick = "--quick" in sys.argv
    if "--side" in sys.argv:
        import resource

        who = sys.argv[sys.argv.index("--side") + 1]
        answer: dict[str, Any] = {"seconds": run(who, quick)}
        if who != "numba":
            answer["large_add"] = large_add()
            answer["peak_bytes"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        print(json.dumps(answer))
        return
    here, there = side("gpulab", quick), side("numba", quick)
    print(f"{'kernel':<28}{'numba':>12}{'gpulab':>12}{'ratio':>10}")
    for name, seconds in here["seconds"].items():
        other = there["seconds"][name]
        print(f"{name:<28}{other:>10.2f} s{seconds * 1e3:>9.1f} ms{other / seconds:>9,.0f}×")
    print(f"vector add of 10⁷, counted: {here['large_add']:.2f} s (goal: under 3 s)")
    print(f"peak memory: {here['peak_bytes'] / 1e9:.2f} GB (goal: under 1.5 GB)")


if __name__ == "__main__":
    main()
