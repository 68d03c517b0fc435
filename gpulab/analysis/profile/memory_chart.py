"""The way of a report's bytes from the SMs to DRAM, as a drawing."""

from __future__ import annotations

from math import log2

from gpulab.plot.drawing import Part, arrow, box, column, curve, note, page, row
from gpulab.simulator import hardware
from gpulab.simulator.observe.patterns import SECTOR

from .report import Report, Roofline

UNITS = ((1e9, "GB"), (1e6, "MB"), (1e3, "KB"))


def amount(count: float) -> str:
    """Bytes in three digits: ``393 KB``."""
    for factor, unit in UNITS:
        if count >= factor:
            return f"{count / factor:.3g} {unit}"
    return f"{count:.0f} B"


def told(report: Report) -> str:
    """What the chart shows, in words."""
    asked, sectors = _asked(report), _moved(report)
    words = f"The threads ask the L1 for {amount(asked)} of global memory,"
    words += f" which lie in sectors of {amount(sectors)} (counted)."
    shared = int(report["shared_wavefronts"] or 0)
    if (roof := report.roofline) is not None:
        words += f" At {roof.intensity:.2f} FLOP/B the run is {roof.bound} bound;"
        words += f" the ridge is at {roof.ridge:.3g}."
    words += f" Shared memory serves {shared:,} wavefronts." if shared else ""
    if (modelled := report.modelled) is None or not modelled.traffic:
        return f"{words} What the caches keep from the L2 and DRAM is not modelled here."
    traffic = modelled.all_traffic
    far = f"{amount(traffic.l2_bytes)} go to the L2 and {amount(traffic.dram_bytes)} to DRAM"
    return f"{words} Of these {far} (modelled)."


def chart(report: Report) -> str:
    """The SVG; counted arrows are coloured, modelled ones grey, unknown ones dashed."""
    asked, sectors = _asked(report), _moved(report)
    tone = "bad" if asked and sectors >= 1.5 * asked else "read"
    parts: list[Part] = [box("SM", sub="threads"), arrow(amount(asked), 86, tone="read"), box("L1", "read")]
    traffic = report.modelled.all_traffic if report.modelled and report.modelled.traffic else None
    parts += [
        arrow(f"{amount(sectors)} in sectors", 120, tone=tone),
        box("L2", "plain" if traffic is None else "read"),
    ]
    far = amount(traffic.dram_bytes) if traffic else "not modelled"
    parts += [arrow(far, 86), box("DRAM", "off" if traffic is None else "plain")]
    below = [row(*parts, gap=4)]
    if traffic:
        below.append(note(f"grey: modelled. Of the sectors, {amount(traffic.l2_bytes)} reach the L2", 520))
    if shared := int(report["shared_wavefronts"] or 0):
        below.append(
            note(
                f"shared memory: {shared:,} wavefronts,"
                f" {int(report['shared_wavefronts_ideal'] or 0):,} at best",
                520,
            )
        )
    if report.roofline:
        below.append(_roof(report.roofline))
    return page(column(*below, gap=12), told(report))


def _roof(found: Roofline) -> Part:
    """The roof over the intensity, both logarithmic from 1/256 of the ridge to 8 times it, and where the
    run is."""
    low, high = -8.0, 3.0

    def place(ratio: float) -> tuple[float, float]:
        x = (log2(max(ratio, 2**low)) - low) / (high - low)
        return min(x, 1.0), min(log2(max(min(ratio, 1), 2**low)) - low, -low) / -low * 0.86

    x, y = place(found.intensity / found.ridge)
    knee, top = place(1.0)
    return curve(
        [("roof", [(0, 0), (knee, top), (1, top)], "read")],
        f"FLOP per byte; ridge at {found.ridge:.3g}", "FLOP/s", width=330, height=84,
        points=[(x, y, f"{found.bound} bound: at most {hardware.amount(found.ceiling, 'FLOP/s')}")],
    )  # fmt: skip


def _asked(report: Report) -> int:
    return int(report["global_bytes"] or 0)


def _moved(report: Report) -> int:
    return SECTOR * int((report["global_load_sectors"] or 0) + (report["global_store_sectors"] or 0))
