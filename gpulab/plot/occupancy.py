"""What fits on one SM: its warp slots, and how many warps each limit would allow."""

from __future__ import annotations

from matplotlib.axes import Axes

from gpulab.hardware import Occupancy

from . import style

ORDER = ("warps", "blocks", "registers", "shared memory")


def occupancy(result: Occupancy, ax: Axes | None = None) -> style.Picture:
    """Draw an occupancy: a strip with one slot per warp, coloured by block, above one bar per limit.

    The limits that bind are dark and hatched; all bars share the axis of the slots, warps per SM.
    """
    ax, given = style.begin(ax, 7.6, 2.9)
    slots = result.max_warps
    per_block = -(-result.threads_per_block // result.capability.warp)
    for slot in range(slots):
        block = slot // per_block
        fill = style.SERIES[block % 2] if slot < result.active_warps else None
        style.cell(ax, slot, -1.55, "", fill, width=1, height=0.8, faint=fill is None)
    labels = ["warps resident"]
    for row, name in enumerate(ORDER):
        limit = result.limits[name]
        binds = name in result.limited_by
        length = slots if limit is None else min(slots, limit * per_block)
        style.cell(
            ax,
            0,
            row - 0.3,
            "",
            (style.BAD if binds else style.FAINT) if limit is not None else None,
            width=length,
            height=0.6,
            faint=limit is None,
            wrong=binds,
        )
        told = "sets no limit" if limit is None else style.plural(limit, "block")
        inside = length > 0.8 * slots
        ax.text(
            length - 0.6 if inside else length + 0.6,
            row,
            told,
            ha="right" if inside else "left",
            va="center",
            fontsize=8,
            color=style.on(style.BAD) if inside and binds else style.INK,
            bbox={"facecolor": style.BAD, "edgecolor": "none", "pad": 1} if inside and binds else None,
        )
        labels.append(f"by {name}")
    ax.axvline(slots, color=style.INK, linewidth=1)
    ax.set_yticks([-1.15, *range(len(ORDER))], labels)
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)
    ax.set_xticks([*range(0, slots, 8), slots])
    ax.set_xlim(0, slots * 1.02)
    ax.set_ylim(len(ORDER) - 0.4, -1.8)
    ax.set_xlabel(f"warps per SM (compute capability {result.capability} holds {slots})", color=style.INK)

    if result.impossible:
        told = f"This launch cannot run: {result.impossible}."
    else:
        limits = " and ".join(result.limited_by)
        told = (
            f"{style.plural(result.active_blocks, 'block')} of {style.plural(per_block, 'warp')} fill "
            f"{result.active_warps} of {slots} slots; the limit of {limits} keeps more out."
        )
    return style.finish(ax, told, given)


def sample() -> style.Picture:
    """A block of 256 threads that uses 40 registers and 24 KiB of shared memory on an A100."""
    from gpulab import hardware

    return occupancy(hardware.occupancy("A100", 256, registers=40, shared_bytes=40 * 1024))


if __name__ == "__main__":
    style.demo(sample)
