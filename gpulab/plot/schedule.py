"""When each device of a pipeline works on which micro-batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from . import readings, style

KINDS = {"F": ("forward", style.DEEP), "B": ("backward", style.AMBER), "W": ("weights' gradient", style.LEAF)}


def schedule(
    slots: Sequence[Any],
    unit: str = "steps",
    ax: Axes | None = None,
    *,
    peaks: Sequence[int] = (),
    until: float | None = None,
) -> style.Picture:
    """Draw what each device does when; a number is a micro-batch.

    `slots` have ``device``, ``start``, ``stop`` and ``work`` with ``kind`` (F, B or W), ``batch`` and
    ``chunk``, as `gpulab.distributed.pipelines` gives them or as ranks took them down; the number of a
    micro-batch has a stroke for each chunk behind the first. `peaks` are the activations that each device
    holds at most, `until` is the end of the axis, for schedules that are to be compared. Raises NothingToDraw
    without a slot.
    """
    if not slots:
        raise style.NothingToDraw("there is nothing to draw: no device does anything")
    devices = 1 + max(slot.device for slot in slots)
    end = max(slot.stop for slot in slots)
    wide = until or end
    ax, given = style.begin(ax, 9.0, 1.1 + 0.34 * devices)
    for slot in slots:
        length = slot.stop - slot.start
        number = f"{slot.work.batch}{'′' * slot.work.chunk}"
        fits = length / wide * 8.0 > 0.085 * len(number)  # inches
        style.cell(
            ax, slot.start, slot.device - 0.4, number if fits else "", KINDS[slot.work.kind][1],
            width=length, height=0.8, size=7.5,
        )  # fmt: skip
        what = f"{KINDS[slot.work.kind][0]} of micro-batch {number}"
        times = f"device {slot.device}, {style.number(slot.start)} to {style.number(slot.stop)} {unit}"
        readings.say(ax, slot.start, slot.device - 0.4, length, 0.8, f"{what}\n{times}")
    for device, peak in enumerate(peaks):
        ax.annotate(
            f"holds {peak}", (1, device), xycoords=("axes fraction", "data"), xytext=(4, 0),
            textcoords="offset points", va="center", fontsize=style.TEXT, color=style.INK,
        )  # fmt: skip
    ax.set_xlim(0, wide)
    ax.set_ylim(devices - 0.5, -0.5)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 5, 10]))  # a step has no halves
    ax.set_yticks(range(devices), [f"device {d}" for d in range(devices)])
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)
    ax.set_xlabel(f"time, {unit}", color=style.INK)
    there = [kind for kind in KINDS if any(slot.work.kind == kind for slot in slots)]
    style.legend(ax, [KINDS[kind] for kind in there])
    worked = sum(slot.stop - slot.start for slot in slots)
    idle = 100 * (1 - worked / (devices * end))
    what = "chunks of micro-batches" if any(slot.work.chunk for slot in slots) else "micro-batches"
    held = f"; at most {max(peaks)} {what} are held" if peaks else ""
    said = f"{devices} devices are through after {end:,.4g} {unit} and idle for {idle:.1f} % of that{held}."
    return style.finish(ax, said, given)


def sample() -> style.Picture:
    """Two devices, three micro-batches, one forward and one backward in turn."""
    from types import SimpleNamespace

    orders = {
        0: ("F0 0", "F1 1", "B0 3", "F2 4", "B1 5", "B2 7"),
        1: ("F0 1", "B0 2", "F1 3", "B1 4", "F2 5", "B2 6"),
    }
    slots = []
    for device, words in orders.items():
        for word in words:
            what, start = word.split()
            work = SimpleNamespace(kind=what[0], batch=int(what[1]), chunk=0)
            slots.append(SimpleNamespace(device=device, work=work, start=float(start), stop=float(start) + 1))
    return schedule(slots, peaks=(2, 1))


if __name__ == "__main__":
    style.demo(sample)
