"""How many blocks and warps of a kernel an SM can hold at once, and what keeps it from holding more.

The rules are those of NVIDIA's ``cuda_occupancy.h``: warps are whole, registers are handed out per warp in
steps of 256 within a quarter of the SM, shared memory per block in steps of 128 B (256 B before 8.0) with
1 KiB kept by the driver from 8.0 on. A test holds this module to that header over thousands of launches.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from .capability import Capability, capability
from .catalogue import find
from .gpu import GPU


@dataclass(frozen=True)
class Occupancy:
    """What one SM holds of a launch.

    `limits` maps each limit (warps, blocks, registers, shared memory) to the number of blocks that it allows,
    None where it sets none; `words` says the same in a sentence each; `limited_by` names those that bind.
    `registers_per_block` and `shared_per_block` (bytes) are what is allocated, rounded up. `impossible` says
    why the launch cannot run at all; it is empty when it can. `active_clusters` is how many clusters of
    `cluster` blocks the whole GPU holds at once, None without clusters and where that is not known.
    """

    capability: Capability
    threads_per_block: int
    registers: int
    shared_bytes: int
    active_blocks: int
    active_warps: int
    limits: Mapping[str, int | None]
    words: Mapping[str, str]
    limited_by: tuple[str, ...]
    registers_per_block: int
    shared_per_block: int
    impossible: str = ""
    cluster: int = 1
    active_clusters: int | None = None

    @property
    def max_warps(self) -> int:
        """Warps that an SM can hold."""
        return self.capability.max_warps

    @property
    def fraction(self) -> float:
        """Active warps as a share of the warps that an SM can hold, 0 to 1."""
        return self.active_warps / self.max_warps

    @property
    def carveout(self) -> int:
        """Bytes of shared memory in the smallest split of the L1 that holds the resident blocks."""
        return self.capability.carveout(self.active_blocks * self.shared_per_block)

    def __str__(self) -> str:
        if self.impossible:
            return f"cannot run: {self.impossible}"
        held = self.active_clusters
        clusters = f"; {held} clusters of {self.cluster} at once" if held is not None else ""
        return (
            f"{self.active_warps} of {self.max_warps} warps ({100 * self.fraction:.0f} %), "
            f"limited by {' and '.join(self.limited_by)}{clusters}"
        )


def occupancy(
    gpu_or_cc: GPU | Capability | str | tuple[int, int],
    threads_per_block: int,
    registers: int = 0,
    shared_bytes: int = 0,
    cluster: int = 1,
) -> Occupancy:
    """How many blocks and warps of a launch an SM can hold at once, and which limit decides.

    `gpu_or_cc` is a GPU (record or name) or a compute capability (``"8.0"``, ``(8, 0)``). `threads_per_block`
    is the size of a block, `registers` is per thread, and `shared_bytes` per block, static and dynamic
    together. `cluster` is the number of blocks of a cluster, which all run in one GPC. A kernel that hands
    registers on (setmaxnreg) takes what it starts with. A launch that cannot run has zero active blocks and
    says why in `impossible`. Raises ValueError for sizes that make no sense, LookupError for an unknown GPU
    or capability.

    >>> occupancy("A100", threads_per_block=256, registers=64).active_blocks
    4
    >>> occupancy("H100", threads_per_block=384, registers=168, cluster=4).active_clusters
    32
    """
    found = _found(gpu_or_cc)
    cap = found.capability if isinstance(found, GPU) else found
    if threads_per_block < 1 or registers < 0 or shared_bytes < 0 or cluster < 1:
        raise ValueError(
            "occupancy needs at least 1 thread per block, 1 block per cluster and no negative registers or "
            f"bytes; got {threads_per_block} threads, {registers} registers, {shared_bytes} B, clusters of "
            f"{cluster}"
        )
    warps = -(-threads_per_block // cap.warp)
    registers_per_warp = _round_up(registers * cap.warp, cap.register_granule)
    shared = _round_up(shared_bytes + cap.shared_reserved, cap.shared_granule)

    limits: dict[str, int | None] = {"warps": cap.max_warps // warps, "blocks": cap.max_blocks}
    words = {
        "warps": f"a block is {warps} warps; an SM holds {cap.max_warps}",
        "blocks": f"an SM holds {cap.max_blocks} blocks, however small",
    }
    limits["registers"] = None
    words["registers"] = "no registers to share out"
    if registers:
        per_quarter = cap.registers_per_sm // cap.partitions // registers_per_warp
        limits["registers"] = per_quarter * cap.partitions // warps
        words["registers"] = (
            f"a warp takes {registers_per_warp:,} registers ({registers} × {cap.warp}, in steps of "
            f"{cap.register_granule}); each of the SM's {cap.partitions} quarters has "
            f"{cap.registers_per_sm // cap.partitions:,} and holds {per_quarter} warps"
        )
    limits["shared memory"] = None
    words["shared memory"] = "no shared memory used"
    if shared:
        limits["shared memory"] = cap.shared_per_sm // shared
        kept = f", {cap.shared_reserved:,} B of them the driver's" if cap.shared_reserved else ""
        words["shared memory"] = f"a block takes {shared:,} B{kept}; an SM has {cap.shared_per_sm:,} B"

    impossible = _impossible(cap, threads_per_block, warps, registers, registers_per_warp, shared_bytes)
    if why := _no_cluster(cap, cluster):
        impossible = "; ".join(filter(None, (impossible, why)))
    blocks = 0 if impossible else min(limit for limit in limits.values() if limit is not None)
    return Occupancy(
        capability=cap,
        threads_per_block=threads_per_block,
        registers=registers,
        shared_bytes=shared_bytes,
        active_blocks=blocks,
        active_warps=blocks * warps,
        limits=limits,
        words=words,
        limited_by=() if impossible else tuple(name for name, limit in limits.items() if limit == blocks),
        registers_per_block=registers_per_warp * warps,
        shared_per_block=shared,
        impossible=impossible,
        cluster=cluster,
        active_clusters=_clusters(found, blocks, cluster),
    )


LARGEST_CLUSTER = 16  # blocks, if the kernel asks for more than the 8 that every GPU with clusters takes


def _no_cluster(cap: Capability, cluster: int) -> str:
    if cluster > LARGEST_CLUSTER:
        return f"{cluster} blocks per cluster; at most {LARGEST_CLUSTER} are allowed"
    if cluster > 1 and cap.cc < (9, 0):
        return f"{cluster} blocks per cluster; clusters begin with compute capability 9.0"
    return ""


def _clusters(gpu: GPU | Capability, blocks: int, cluster: int) -> int | None:
    """Clusters that a GPU holds at once, `blocks` on each SM. How a product shares its TPCs among GPCs is not
    published: as evenly as may be is assumed. None without clusters, for a capability, or for a GPU whose
    GPCs are not known."""
    if cluster == 1 or not isinstance(gpu, GPU) or gpu.gpcs is None or gpu.tpcs is None:
        return None
    gpcs, tpcs = int(gpu.gpcs), int(gpu.tpcs)
    few, larger = divmod(tpcs, gpcs)
    of_a_tpc = int(gpu.sms) // tpcs
    return sum((few + (i < larger)) * of_a_tpc * blocks // cluster for i in range(gpcs))


def _impossible(
    cap: Capability, threads: int, warps: int, registers: int, registers_per_warp: int, shared_bytes: int
) -> str:
    reasons = []
    if threads > cap.max_threads_per_block:
        reasons.append(f"{threads:,} threads per block; at most {cap.max_threads_per_block:,} are allowed")
    if registers > cap.max_registers_per_thread:
        reasons.append(
            f"{registers:,} registers per thread; at most {cap.max_registers_per_thread} are allowed"
        )
    # The hardware checks as if every quarter got as many warps as the fullest one.
    assumed = registers_per_warp * _round_up(warps, cap.partitions)
    if assumed > cap.registers_per_block:
        reasons.append(
            f"{registers} registers for each of {warps} warps make {assumed:,} registers per block; "
            f"at most {cap.registers_per_block:,} are allowed"
        )
    if shared_bytes > cap.shared_per_block_optin:
        most = cap.shared_per_block_optin
        reasons.append(f"{shared_bytes:,} B of shared memory per block; at most {most:,} B are allowed")
    return "; ".join(reasons)


def _found(gpu_or_cc: GPU | Capability | str | tuple[int, int]) -> GPU | Capability:
    """The record that is meant."""
    if isinstance(gpu_or_cc, GPU | Capability):
        return gpu_or_cc
    if isinstance(gpu_or_cc, str) and not re.fullmatch(r"\d+\.\d+", gpu_or_cc):
        return find(gpu_or_cc)
    return capability(gpu_or_cc)


def _round_up(value: int, step: int) -> int:
    return -(-value // step) * step
