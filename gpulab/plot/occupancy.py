"""What fits on one SM: the warps that it holds, and how many of them each limit would allow."""

from __future__ import annotations

from matplotlib.axes import Axes

from gpulab.simulator import hardware
from gpulab.simulator.hardware import Occupancy

from . import style

FULL = {
    "warps": "the warps left are too few for another block",
    "blocks": "an SM takes no more blocks, however small",
    "registers": "no registers are left for another block",
    "shared memory": "no shared memory is left for another block",
}

FURTHEST = 3  # times the warps that an SM holds: limits beyond are cut


def occupancy(result: Occupancy, ax: Axes | None = None) -> style.Picture:
    """Draw an occupancy: a strip with one cell per warp, coloured by block, above one bar per limit.

    A bar ends where its limit lies, in warps; one that goes on beyond three times what an SM holds ends in an
    arrow. The limits that bind are coloured, and hatched while there is room for more warps.
    """
    slots = result.max_warps
    per_block = -(-result.threads_per_block // result.capability.warp)
    full = result.active_warps == slots
    limits = {name: None if n is None else n * per_block for name, n in result.limits.items()}
    end = min(FURTHEST * slots, max([slots, *(n for n in limits.values() if n is not None)]))
    ax, given = style.begin(ax, 7.6, 2.9)
    for slot in range(slots):
        fill = style.SERIES[slot // per_block % 2] if slot < result.active_warps else None
        style.cell(ax, slot, -1.55, "", fill, height=0.8, faint=fill is None)
    ax.axvline(slots, color=style.INK, linewidth=1, linestyle="--")
    for row, name in enumerate(FULL):
        limit = result.limits[name]
        binds = name in result.limited_by
        warps = limits[name]
        length = end if warps is None else min(end, warps)
        where = slots if slots - 0.12 * end < length < slots else length  # a label does not cross the line
        fill = None if limit is None else (style.GOOD if full else style.BAD) if binds else style.FAINT
        style.cell(
            ax, 0, row - 0.3, "", fill, width=length, height=0.6, faint=limit is None,
            wrong=binds and not full,
        )  # fmt: skip
        ax.text(
            where + 0.01 * end, row, _label(limit, cut=warps is not None and warps > end),
            va="center", fontsize=8, color=style.INK,
        )  # fmt: skip
    ax.set_yticks([-1.15, *range(len(FULL))], ["warps resident", *(f"by {name}" for name in FULL)])
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)
    ax.set_xticks(range(0, end + 1, 8 if end <= 1.5 * slots else 16))
    ax.set_xlim(0, end * 1.17)  # room for the bars' labels
    ax.set_ylim(len(FULL) - 0.4, -1.8)
    ax.set_xlabel(
        f"warps per SM (compute capability {result.capability} holds {slots}, dashed)", color=style.INK
    )
    return style.finish(ax, _told(result, per_block, full), given)


def _label(limit: int | None, cut: bool) -> str:
    if limit is None:
        return "sets no limit"
    return f"{style.plural(limit, 'block')}{' →' if cut else ''}"


def _told(result: Occupancy, per_block: int, full: bool) -> str:
    if result.impossible:
        return f"This launch cannot run: {result.impossible}."
    blocks = style.plural(result.active_blocks, "block")
    each = style.plural(per_block, "warp")
    told = f"{blocks} of {each} make {result.active_warps} of the {result.max_warps} warps that an SM holds"
    why = " and ".join(FULL[name] for name in result.limited_by)
    return f"{told}." if full else f"{told}: {why}."


def sample() -> style.Picture:
    """Blocks of 256 threads that use 40 registers a thread and 40 KiB of shared memory on an A100."""
    return occupancy(hardware.occupancy("A100", 256, registers=40, shared_bytes=40 * 1024))


if __name__ == "__main__":
    style.demo(sample)
