"""What each compute capability allows: the limits of an SM, of a block and of a launch.

These belong to the capability, not to a GPU model, so all of them stand here and nowhere else.
"""

from __future__ import annotations

from dataclasses import dataclass

from . import sources
from .figure import KIB, Source


@dataclass(frozen=True)
class Capability:
    """The limits of one compute capability. Sizes are in bytes, registers are 32 bits wide.

    `carveouts` are the sizes of shared memory that the L1 of an SM can be split into. `shared_reserved` is
    what the driver takes from a block; `shared_granule` and `register_granule` are the steps of allocation
    (registers are allocated per warp). An SM has `partitions` quarters with a share of the registers each.
    """

    major: int
    minor: int
    max_warps: int
    max_blocks: int
    carveouts: tuple[int, ...]
    shared_per_block_optin: int
    shared_reserved: int
    shared_granule: int
    shared_per_block_static: int = 48 * KIB
    registers_per_sm: int = 65536
    registers_per_block: int = 65536
    max_registers_per_thread: int = 255
    register_granule: int = 256
    partitions: int = 4
    warp: int = 32
    max_threads_per_block: int = 1024
    max_block: tuple[int, int, int] = (1024, 1024, 64)
    max_grid: tuple[int, int, int] = (2**31 - 1, 65535, 65535)
    constant_bytes: int = 64 * KIB
    source: Source = sources.OCCUPANCY_HEADER

    @property
    def cc(self) -> tuple[int, int]:
        return (self.major, self.minor)

    @property
    def max_threads(self) -> int:
        """Resident threads per SM."""
        return self.max_warps * self.warp

    @property
    def shared_per_sm(self) -> int:
        """The largest carve-out, in bytes."""
        return self.carveouts[-1]

    def carveout(self, needed: int) -> int:
        """The smallest carve-out that holds `needed` bytes; the rest of the L1 stays a cache.

        Raises ValueError beyond the largest one.
        """
        for size in self.carveouts:
            if size >= needed:
                return size
        raise ValueError(
            f"{needed:,} B of shared memory per SM; compute capability {self} has {self.shared_per_sm:,} B"
        )

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}"


def _kib(*sizes: int) -> tuple[int, ...]:
    return tuple(size * KIB for size in sizes)


_SMALL = _kib(0, 8, 16, 32, 64, 100)
_LARGE = _kib(0, 8, 16, 32, 64, 100, 132, 164)
_LARGEST = _kib(0, 8, 16, 32, 64, 100, 132, 164, 196, 228)


def _row(major: int, minor: int, max_warps: int, max_blocks: int, carveouts: tuple[int, ...]) -> Capability:
    # From 8.0 on the driver keeps 1 KiB of every block, and shared memory is handed out in 128-byte steps.
    reserved, granule = (1 * KIB, 128) if major >= 8 else (0, 256)
    return Capability(
        major, minor, max_warps, max_blocks, carveouts, carveouts[-1] - reserved, reserved, granule
    )


TABLE: dict[tuple[int, int], Capability] = {
    row.cc: row
    for row in (
        _row(7, 0, 64, 32, _kib(0, 8, 16, 32, 64, 96)),
        _row(7, 5, 32, 16, _kib(32, 64)),
        _row(8, 0, 64, 32, _LARGE),
        _row(8, 6, 48, 16, _SMALL),
        _row(8, 7, 48, 16, _LARGE),
        _row(8, 9, 48, 24, _SMALL),
        _row(9, 0, 64, 32, _LARGEST),
        _row(10, 0, 64, 32, _LARGEST),
        _row(10, 3, 64, 32, _LARGEST),
        _row(11, 0, 48, 24, _LARGEST),
        _row(12, 0, 48, 24, _SMALL),
        _row(12, 1, 48, 24, _SMALL),
    )
}


def capability(cc: tuple[int, int] | str) -> Capability:
    """The limits of the compute capability `cc`, given as ``(8, 0)`` or ``"8.0"``.

    Raises LookupError, in one line that lists the known capabilities.

    >>> capability("8.0").max_threads_per_block
    1024
    """
    try:
        major, minor = (int(part) for part in (cc.split(".") if isinstance(cc, str) else cc))
        return TABLE[major, minor]
    except (KeyError, ValueError, TypeError):
        known = ", ".join(map(str, TABLE.values()))
        raise LookupError(f"no limits known for compute capability {cc!r}; known are {known}") from None
