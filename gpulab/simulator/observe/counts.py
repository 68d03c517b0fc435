"""The counts of one launch: a row per instruction of the program. Everything else is derived from them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpulab.simulator.ptx import Instruction

COLUMNS = (
    "warps",  # warps that executed the instruction (a warp counts once per pass with at least one lane)
    "threads",  # lanes that executed it
    "active",  # … and whose guard predicate held
    "requests",  # memory instructions: warps with at least one lane whose guard held
    "bytes",  # memory: bytes that the lanes asked for
    "sectors",  # global and local memory: distinct 32-byte sectors, summed over requests
    # … had the same lanes asked for the same number of bytes without gaps, overlaps counted once
    "ideal_sectors",
    "wavefronts",  # shared memory: passes that the banks need; operands of wgmma need as few as can be
    "ideal_wavefronts",  # … without bank conflicts
    "flops",  # floating-point operations (an fma is two), by lanes whose guard held
    "uniform",  # conditional branches: warps whose lanes all went one way
    "strong",  # loads by which a warp can wait for another (acquire, relaxed, volatile): warps
    "conflicts",  # atomics: lanes beyond the first on the same address in one warp
    # waits for cp.async: bytes that arrived for a lane, times its bytes that were still on their way
    "behind",
)


@dataclass(frozen=True)
class Counts:
    """Counts of one launch, int64.

    `table[column][i]` belongs to `instructions[i]`. At the end stand once more those with generic
    addresses, for what they did in shared and in local memory, those that reached other blocks of a
    cluster, and ``cp.async``, for what it stored. `kinds[i]` is ``(kind, space)``. A kind is load, store,
    atomic, branch, barrier, cluster_barrier (a wait), mbarrier, copy_wait (for ``cp.async``; its bytes
    are those that arrived), shuffle, warp_sync (what else a warp does together), special (one instruction
    of the special function unit), matrix (a warpgroup's product, which reads shared memory by itself),
    matrix_wait, tensor_product (``tcgen05.mma``), tensor_load and tensor_store (between registers and
    Tensor Memory), tensor_copy (from shared memory to it), arithmetic or other, and of bulk copies
    bulk_load, bulk_store, bulk_reduction, bulk_prefetch or bulk_exchange. A space is global, shared,
    cluster (shared memory of other blocks), local, tensor (Tensor Memory), const, param or "".
    """

    kernel: str
    instructions: tuple[Instruction, ...]
    kinds: tuple[tuple[str, str], ...]
    table: dict[str, np.ndarray]
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    most_loaded: int = 0  # bytes of global loads and bulk copies of the block that has most
    most_asked: int = 0  # … of loads and atomics
    # warps of the block that has most, each time they pass a barrier, an mbarrier, an atomic or a strong load
    most_handed: int = 0

    def total(self, column: str, kind: str | None = None, space: str | None = None) -> int:
        """Sum of a column over all instructions of a kind and a space (None means any)."""
        rows = self.table[column]
        return int(
            sum(
                rows[i]
                for i, (k, s) in enumerate(self.kinds)
                if (kind is None or k == kind) and (space is None or s == space)
            )
        )
