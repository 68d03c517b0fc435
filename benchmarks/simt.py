"""The same numba kernels here, with all counts on, and under numba's own CUDA simulator, side by side in one
run.

    python benchmarks/simt.py           two minutes, most of them numba's simulator
    python benchmarks/simt.py --alone   without numba's simulator
    python benchmarks/simt.py --against HEAD~3   and beside it this simulator as it was at a commit

Each side runs in a process of its own, on the same inputs, and its results are compared with NumPy's. Here
the time is that of `gpulab.profile`, so with every count and the report; the kernel was compiled before,
because numba's simulator compiles nothing. What numba's simulator cannot finish in sensible time is run at a
smaller size on both sides, which gives the ratio, and here at the full size, too.

Times are processor time, which other work on the machine disturbs less than the clock on the wall; both sides
keep one core busy. The best of several runs is taken here; numba's simulator runs once. Its threads also wait
for each other, so on the wall it takes longer than that.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

TILE = 16
THREADS = 256
FEWEST, MOST, ENOUGH = 3, 30, 3.0  # runs here, and the seconds after which there were enough of them


# The side's module; a global, because numba's simulator finds its names in no other place.
cuda: Any = None


class Case(NamedTuple):
    """A kernel's launch: what runs it once, and whether its results are right."""

    launch: Callable[[], object]
    is_right: Callable[[], bool]


def matmul(n: int) -> Case:
    @cuda.jit
    def tiled(a, b, c):
        ta = cuda.shared.array((TILE, TILE), np.float32)
        tb = cuda.shared.array((TILE, TILE), np.float32)
        x, y = cuda.grid(2)
        tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
        total = np.float32(0)
        for panel in range(a.shape[1] // TILE):
            ta[ty, tx] = a[y, panel * TILE + tx]
            tb[ty, tx] = b[panel * TILE + ty, x]
            cuda.syncthreads()
            for k in range(TILE):
                total += ta[ty, k] * tb[k, tx]
            cuda.syncthreads()
        c[y, x] = total

    a, b = (np.random.default_rng(i).random((n, n), np.float32) for i in range(2))
    on_device, c = [cuda.to_device(m) for m in (a, b)], cuda.device_array((n, n), np.float32)
    grid = (n // TILE, n // TILE)
    return Case(
        lambda: tiled[grid, (TILE, TILE)](*on_device, c),
        lambda: np.allclose(c.copy_to_host(), a @ b, rtol=1e-4),
    )


def vector_add(n: int) -> Case:
    @cuda.jit
    def add(x, y, out):
        i = cuda.grid(1)
        if i < out.size:
            out[i] = x[i] + y[i]

    x, y = (np.random.default_rng(i).random(n, np.float32) for i in range(2))
    on_device, out = [cuda.to_device(v) for v in (x, y)], cuda.device_array(n, np.float32)
    blocks = -(-n // THREADS)
    return Case(
        lambda: add[blocks, THREADS](*on_device, out), lambda: np.array_equal(out.copy_to_host(), x + y)
    )


def reduction(n: int) -> Case:
    @cuda.jit
    def block_sums(x, out):
        tile = cuda.shared.array(THREADS, np.float32)
        t = cuda.threadIdx.x
        i = cuda.grid(1)
        tile[t] = x[i] if i < x.size else np.float32(0)
        cuda.syncthreads()
        step = THREADS // 2
        while step > 0:
            if t < step:
                tile[t] += tile[t + step]
            cuda.syncthreads()
            step //= 2
        if t == 0:
            out[cuda.blockIdx.x] = tile[0]

    x, blocks = np.random.default_rng(0).random(n, np.float32), -(-n // THREADS)
    on_device, out = cuda.to_device(x), cuda.device_array(blocks, np.float32)
    return Case(
        lambda: block_sums[blocks, THREADS](on_device, out),
        lambda: np.allclose(out.copy_to_host().sum(dtype=np.float64), x.sum(dtype=np.float64), rtol=1e-5),
    )


def stencil(n: int) -> Case:
    @cuda.jit
    def five_points(a, out):
        x, y = cuda.grid(2)
        if 0 < x < a.shape[1] - 1 and 0 < y < a.shape[0] - 1:
            sides = a[y, x - 1] + a[y, x + 1] + a[y - 1, x] + a[y + 1, x]
            out[y, x] = np.float32(0.5) * a[y, x] + np.float32(0.125) * sides

    a = np.random.default_rng(0).random((n, n), np.float32)
    on_device, out = cuda.to_device(a), cuda.to_device(np.zeros_like(a))
    right = np.zeros_like(a)
    sides = a[1:-1, :-2] + a[1:-1, 2:] + a[:-2, 1:-1] + a[2:, 1:-1]
    right[1:-1, 1:-1] = np.float32(0.5) * a[1:-1, 1:-1] + np.float32(0.125) * sides
    grid = (-(-n // 32), -(-n // 8))
    return Case(
        lambda: five_points[grid, (32, 8)](on_device, out),
        lambda: np.allclose(out.copy_to_host(), right, rtol=1e-5),
    )


class Row(NamedTuple):
    """A kernel, its size on both sides, its size here alone, and the goals by size."""

    name: str
    make: Callable[[int], Case]
    both: int
    here: int
    goals: dict[int, str]


ROWS = (
    Row("tiled matrix product, n × n", matmul, 128, 512, {128: "1000 ×"}),
    Row("vector add", vector_add, 8192, 10_000_000, {10_000_000: "under 3 s"}),
    Row("sums of blocks", reduction, 4096, 1 << 20, {}),
    Row("five-point stencil, n × n", stencil, 64, 1024, {}),
)


class Seconds(NamedTuple):
    """Of one run: processor time, and by the clock on the wall."""

    processor: float
    wall: float


def timed(run: Callable[[], object]) -> Seconds:
    processor, wall = time.process_time(), time.perf_counter()
    run()
    return Seconds(time.process_time() - processor, time.perf_counter() - wall)


def theirs(row: Row, size: int) -> Seconds:
    case = row.make(size)
    seconds = timed(case.launch)
    assert case.is_right(), row.name
    return seconds


def ours(row: Row, size: int) -> Seconds:
    import gpulab

    case = row.make(size)
    case.launch()  # compiles
    runs = [timed(lambda: gpulab.profile(lambda: case.launch())) for _ in range(FEWEST)]
    while len(runs) < MOST and sum(run.wall for run in runs) < ENOUGH:
        runs.append(timed(lambda: gpulab.profile(lambda: case.launch())))
    assert case.is_right(), row.name
    return min(runs)


def run_side(side: str) -> None:
    """Print the measurements of one side as JSON: seconds by row and size, and the peak of memory."""
    global cuda
    cuda = importlib.import_module("numba.cuda" if side == "numba" else "gpulab.cuda")
    found: dict[str, Any] = {}
    for row in ROWS:
        for size in [row.both] if side == "numba" else [row.both, row.here]:
            found[f"{row.name} {size}"] = theirs(row, size) if side == "numba" else ours(row, size)
    found["memory"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(json.dumps(found))


def measured(side: str, packages: str = "") -> dict[str, Any]:
    """What `run_side` prints in a process of its own, which looks for packages in a folder first."""
    choice = {"NUMBA_ENABLE_CUDASIM": "1"} if side == "numba" else {"GPULAB_SIMULATE": "1"}
    choice |= {"PYTHONPATH": packages} if packages else {}
    command = [sys.executable, __file__, "--side", side]
    done = subprocess.run(command, env=os.environ | choice, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout)


def as_it_was(commit: str) -> dict[str, Any]:
    """The measurements here with the simulator of a commit."""
    with tempfile.TemporaryDirectory() as folder:
        archive = subprocess.run(["git", "archive", commit, "gpulab"], stdout=subprocess.PIPE, check=True)
        subprocess.run(["tar", "x", "-C", folder], input=archive.stdout, check=True)
        return measured("here", folder)


def show_both(commit: str, before: dict[str, Any], now: dict[str, Any]) -> None:
    """The table of two versions of this simulator."""
    print(f"{'kernel':<30}{'size':>12}{commit:>16}{'now':>16}{'ratio':>10}")
    for row in ROWS:
        for size in (row.both, row.here):
            was, is_ = (Seconds(*found[f"{row.name} {size}"]).processor for found in (before, now))
            print(
                f"{row.name:<30}{size:>12,}{was * 1e3:>13,.1f} ms{is_ * 1e3:>13,.1f} ms{was / is_:>8,.2f} ×"
            )


def show(here: dict[str, Any], there: dict[str, Any]) -> None:
    """The table."""
    print(f"{'kernel':<30}{'size':>12}{'here, counted':>16}{'numba simulator':>18}{'ratio':>10}   goal")
    for row in ROWS:
        for size in (row.both, row.here):
            key = f"{row.name} {size}"
            ours, other, ratio = Seconds(*here[key]), "–", "–"
            if key in there:
                peer = Seconds(*there[key])
                other, ratio = f"{peer.processor:.2f} s", f"{peer.processor / ours.processor:,.0f} ×"
            goal = row.goals.get(size, "")
            print(
                f"{row.name:<30}{size:>12,}{ours.processor * 1e3:>13,.1f} ms{other:>18}{ratio:>10}   {goal}"
            )
    print(f"peak memory here: {here['memory'] / 1e9:.2f} GB   goal: under 1.5 GB")
    if there:
        key = f"{ROWS[0].name} {ROWS[0].both}"
        waited = Seconds(*there[key]).wall, Seconds(*here[key]).wall
        print(f"by the clock on the wall the first row took {waited[0]:.1f} s and {waited[1] * 1e3:.1f} ms")


def main() -> None:
    parser = argparse.ArgumentParser(description="Time kernels here and under numba's CUDA simulator.")
    parser.add_argument("--alone", action="store_true", help="do not run numba's simulator")
    parser.add_argument("--against", metavar="COMMIT", help="run this simulator as it was then, too")
    parser.add_argument("--side", choices=("here", "numba"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.side:
        run_side(options.side)
    elif options.against:
        before = as_it_was(options.against)
        show_both(options.against, before, measured("here"))
    else:
        show(measured("here"), {} if options.alone else measured("numba"))


if __name__ == "__main__":
    main()
