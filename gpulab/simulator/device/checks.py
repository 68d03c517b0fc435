"""What is wrong with a launch before it runs: one line with the kernel, the numbers and the cure."""

from __future__ import annotations

import math
import operator
from typing import TYPE_CHECKING, Any

from gpulab.foundation.errors import Message
from gpulab.simulator.hardware import GPU
from gpulab.simulator.hardware.occupancy import LARGEST_CLUSTER

if TYPE_CHECKING:
    from .launch import Dim3

AXES = "xyz"
FIRST_WITH_CLUSTERS = (9, 0)


class LaunchError(Message, ValueError):
    """A launch that no GPU would run. The message is one line: kernel, numbers, cure."""


class LaunchTypeError(LaunchError, TypeError):
    """A launch with something of a wrong type, for which numba raises a TypeError."""


def dimensions(size: Any, what: str, kernel: str) -> Dim3:
    """`size`, one to three integers, as (x, y, z).

    `what` is ``grid`` or ``block`` and `kernel` the kernel's name, for the message. Raises LaunchError.

    >>> dimensions((4, 2), "grid", "my_kernel")
    (4, 2, 1)
    """
    items = tuple(size) if isinstance(size, tuple | list) else (size,)
    if not 1 <= len(items) <= 3:
        raise LaunchError(
            f"{kernel}: the {what} {size!r} has {len(items)} dimensions; give 1, 2 or 3 whole numbers."
        )
    for item in items:
        if isinstance(item, float) or not _is_integer(item):
            raise LaunchTypeError(
                f"{kernel}: the {what} {_written(size)} is no whole number{_integer_cure(item)}"
            )
    x, y, z = (*map(operator.index, items), 1, 1)[:3]
    return x, y, z


def check_shape(kernel: str, grid: Dim3, block: Dim3, gpu: GPU) -> None:
    """Raises LaunchError for a grid or block that `gpu` cannot launch."""
    limits = gpu.capability
    for what, size in (("grid", grid), ("block", block)):
        if min(size) < 0:
            raise LaunchError(f"{kernel}: the {what} {_shape(size)} is negative; sizes start at 1.")
        if min(size) == 0:
            raise LaunchError(
                f"{kernel}: the {what} {_shape(size)} is empty, so there is nothing to launch; "
                "every size must be at least 1."
            )
    threads = math.prod(block)
    if threads > limits.max_threads_per_block:
        raise LaunchError(
            f"{kernel}: blocks of {threads:,} threads ({_shape(block)}) are too large; a block has at most "
            f"{limits.max_threads_per_block:,}. Take smaller blocks and more of them."
        )
    for what, size, most, cure in (
        ("block", block, limits.max_block, "Take smaller blocks and more of them."),
        (
            "grid",
            grid,
            limits.max_grid,
            "Put the longest dimension first (x), or let each thread do more than one item.",
        ),
    ):
        for axis, given, allowed in zip(AXES, size, most, strict=True):
            if given > allowed:
                raise LaunchError(
                    f"{kernel}: the {what} {_shape(size)} is too large in {axis}: {given:,}, "
                    f"at most {allowed:,}. {cure}"
                )


def check_cluster(kernel: str, grid: Dim3, asked: Dim3 | None, compiled: Dim3 | None, gpu: GPU) -> None:
    """Raises LaunchError for clusters that `gpu` cannot launch: those that the launch has `asked` for, or the
    kernel was `compiled` for."""
    cluster = asked or compiled
    if cluster is None:
        return
    if asked and compiled and asked != compiled:
        raise LaunchError(
            f"{kernel}: clusters of {_shape(asked)} blocks, but the kernel was compiled for clusters of "
            f"{_shape(compiled)} (__cluster_dims__). Ask for the same, or leave it to the kernel."
        )
    if min(cluster) < 1:
        raise LaunchError(f"{kernel}: a cluster of {_shape(cluster)} blocks; every size must be at least 1.")
    blocks = math.prod(cluster)
    if blocks > 1 and gpu.cc < FIRST_WITH_CLUSTERS:
        raise LaunchError(
            f"{kernel}: clusters of {blocks} blocks need a GPU of compute capability 9.0 or later; "
            f"the {gpu} has {gpu.cc[0]}.{gpu.cc[1]}."
        )
    if blocks > LARGEST_CLUSTER:
        raise LaunchError(
            f"{kernel}: a cluster of {blocks} blocks ({_shape(cluster)}); a cluster has at most "
            f"{LARGEST_CLUSTER}, and at most 8 on every GPU that has clusters."
        )
    for axis, size, by in zip(AXES, grid, cluster, strict=True):
        if size % by:
            raise LaunchError(
                f"{kernel}: a grid of {_shape(grid)} blocks does not consist of clusters of "
                f"{_shape(cluster)}: in {axis}, {size:,} is no multiple of {by}."
            )


def check_shared(kernel: str, static: int, dynamic: Any, gpu: GPU, extended: bool = False) -> None:
    """Raises LaunchError for more shared memory per block than `gpu` has. Sizes in bytes.

    `extended`: static memory, too, may go beyond the 48 KiB that every GPU gives.
    """
    limits = gpu.capability
    if not _is_integer(dynamic):
        raise LaunchError(
            f"{kernel}: the dynamic shared memory is {dynamic!r}; give a whole number of bytes."
        )
    if dynamic < 0:
        raise LaunchError(
            f"{kernel}: {dynamic:,} bytes of dynamic shared memory; the size cannot be negative."
        )
    if static > limits.shared_per_block_static and not extended:
        raise LaunchError(
            f"{kernel}: {static:,} bytes of cuda.shared.array; a block has at most "
            f"{limits.shared_per_block_static:,}. Take a smaller tile, or dynamic shared memory "
            f"(cuda.shared.array(0, dtype)), of which a block has up to {limits.shared_per_block_optin:,} "
            f"on the {gpu}."
        )
    if static + dynamic > limits.shared_per_block_optin:
        parts = f" ({static:,} static + {dynamic:,} dynamic)" if static else ""
        raise LaunchError(
            f"{kernel}: {static + dynamic:,} bytes of shared memory per block{parts}; the {gpu} has at most "
            f"{limits.shared_per_block_optin:,}. Take a smaller tile."
        )


def check_registers(kernel: str, threads: int, registers: int, gpu: GPU) -> None:
    """Raises LaunchError for a block whose threads need more registers than `gpu` has for one block."""
    limits = gpu.capability
    per_warp = -(-registers * limits.warp // limits.register_granule) * limits.register_granule
    warps = -(-threads // limits.warp)
    needed = per_warp * -(-warps // limits.partitions) * limits.partitions
    if needed > limits.registers_per_block:
        raise LaunchError(
            f"{kernel}: {registers} registers for each of {threads:,} threads make {needed:,} per block; "
            f"the {gpu} has {limits.registers_per_block:,}. "
            "Take smaller blocks, or @cuda.jit(max_registers=…)."
        )


def check_bounds(kernel: str, threads: int, bound: int) -> None:
    """Raises LaunchError for more threads per block than the kernel was compiled for (`launch_bounds`)."""
    if threads > bound:
        raise LaunchError(
            f"{kernel}: blocks of {threads:,} threads, but launch_bounds promised the compiler at most "
            f"{bound:,}. Take smaller blocks or a larger bound."
        )


def _is_integer(item: Any) -> bool:
    try:
        operator.index(item)
    except TypeError:
        return False
    return not isinstance(item, bool)


def _integer_cure(item: Any) -> str:
    if isinstance(item, float):
        return "; divide with //, as in (n + 255) // 256."
    return f" but a {type(item).__name__}."


def _written(size: Any) -> str:
    return repr(tuple(size)) if isinstance(size, list) else repr(size)


def _shape(size: Dim3) -> str:
    """``(4, 3)`` rather than ``(4, 3, 1)``: as the learner wrote it, most likely."""
    used = size[: max((i + 1 for i in range(3) if size[i] != 1), default=1)]
    return f"({', '.join(f'{n}' for n in used)})" if len(used) > 1 else f"{used[0]}"
