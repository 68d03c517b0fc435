"""Kernels and host functions in CuTe DSL that several tests launch."""

from __future__ import annotations

from gpulab import cutlass
from gpulab.cutlass import cute


@cute.kernel
def add_kernel(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor, n: cutlass.Int32):
    i = cute.arch.block_idx()[0] * 128 + cute.arch.thread_idx()[0]
    if i < n:
        c[i] = a[i] + b[i]


@cute.jit
def add(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor):
    n = cute.size(a)
    add_kernel(a, b, c, n).launch(grid=((n + 127) // 128, 1, 1), block=(128, 1, 1))


@cute.kernel
def double_kernel(a: cute.Tensor, c: cute.Tensor):
    i = cute.arch.block_idx()[0] * 128 + cute.arch.thread_idx()[0]
    c[i] = a[i] * 2.0


@cute.jit
def double_without_guard(a: cute.Tensor, c: cute.Tensor, blocks: cutlass.Int32):
    double_kernel(a, c).launch(grid=(blocks, 1, 1), block=(128, 1, 1))


@cute.kernel
def racing_kernel(c: cute.Tensor):
    c[0] = cutlass.Float32(cute.arch.thread_idx()[0])


@cute.jit
def racing(c: cute.Tensor):
    racing_kernel(c).launch(grid=(1, 1, 1), block=(64, 1, 1))


@cute.kernel
def printing_kernel(a: cute.Tensor):
    i = cute.arch.thread_idx()[0]
    if i == 2:
        cute.printf("element {} is {}", i, a[i])


@cute.jit
def printing(a: cute.Tensor):
    printing_kernel(a).launch(grid=(1, 1, 1), block=(4, 1, 1))


@cute.kernel
def reversing_kernel(a: cute.Tensor, c: cute.Tensor):
    i = cute.arch.thread_idx()[0]
    tile = cutlass.memory.SmemAllocator().allocate_tensor(cutlass.Float32, cute.make_layout(64))
    tile[i] = a[i]
    cute.arch.sync_threads()
    c[i] = tile[63 - i]


@cute.jit
def reversing(a: cute.Tensor, c: cute.Tensor):
    reversing_kernel(a, c).launch(grid=(1, 1, 1), block=(64, 1, 1))


@cute.kernel
def wrong_kernel(c: cute.Tensor):
    c[0] = c[1] + "x"


@cute.jit
def wrong(c: cute.Tensor):
    wrong_kernel(c).launch(grid=(1, 1, 1), block=(32, 1, 1))


@cute.jit
def show_on_host(a: cute.Tensor):
    cute.print_tensor(a)


@cute.kernel
def clustered_kernel(c: cute.Tensor):
    c[cute.arch.block_idx()[0]] = 1.0


@cute.jit
def clustered(c: cute.Tensor):
    clustered_kernel(c).launch(grid=(2, 1, 1), block=(32, 1, 1), cluster=(2, 1, 1))
