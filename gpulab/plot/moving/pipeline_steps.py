"""A pipeline's schedule to scrub through: which device works on which micro-batch, and what it holds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .figure import Figured, Moving
from .frames import Drawing, Frame, Frames

WORDS = {"F": "forward", "B": "backward", "W": "weights"}
DONE = {"F": "ahead", "B": "back", "W": "weights"}  # kinds of marks
LEFT, ROW = 78.0, 34.0
MOST = 400  # frames


@dataclass(frozen=True)
class PipelineSteps(Figured):
    """`slots` have ``device``, ``start``, ``stop`` and ``work`` with ``kind`` (F, B or W), ``batch`` and
    ``chunk``, as `gpulab.distributed.pipelines` gives them. A frame is a moment at which something starts or
    ends; `unit` names the unit of time. Raises ValueError without a slot, and for too many moments.
    """

    slots: Sequence[Any]
    unit: str = "steps"

    def __post_init__(self) -> None:
        if not self.slots:
            raise ValueError("there is nothing to step through: no device does anything")
        if len(self._moments()) > MOST:
            raise ValueError(f"{len(self._moments())} moments are too many to step through; at most {MOST}")

    def _moments(self) -> list[float]:
        return sorted({slot.start for slot in self.slots})

    def figure(self) -> Moving:
        devices = 1 + max(slot.device for slot in self.slots)
        end = max(slot.stop for slot in self.slots)
        drawing = Drawing(LEFT + 640 + 84)
        scale = 640 / end
        marks = []
        for device in range(devices):
            y = 26 + device * ROW
            drawing.text(LEFT - 10, y + 18, f"device {device}", "small end")
            drawing.box(LEFT, y, 640, ROW - 8, "idle", f"device {device} waits", radius=2)
        for slot in self.slots:
            x, wide = LEFT + slot.start * scale, (slot.stop - slot.start) * scale
            y = 26 + slot.device * ROW
            name = f"{slot.work.batch}{'′' * slot.work.chunk}"
            title = (
                f"{WORDS[slot.work.kind]} of micro-batch {name}, {slot.start:g} to {slot.stop:g} {self.unit}"
            )
            box = drawing.box(x + 0.7, y, wide - 1.4, ROW - 8, "coming", title, radius=2)
            label = (
                drawing.text(x + wide / 2, y + 18, name, "small middle soft")
                if wide > 7 * len(name) + 3
                else -1
            )
            marks.append((slot, box, label))
        held = [drawing.text(LEFT + 650, 26 + d * ROW + 18, "", "small") for d in range(devices)]
        drawing.text(LEFT + 650, 16, "holds", "small soft")
        bottom = 26 + devices * ROW
        for tick in range(0, int(end) + 1, max(1, int(end) // 12)):
            drawing.text(LEFT + tick * scale, bottom + 12, f"{tick}", "tiny soft middle")
        drawing.text(LEFT + 320, bottom + 28, f"time, {self.unit}", "small soft middle")
        frames = [self._frame(now, devices, marks, held) for now in self._moments()]
        frames.append(self._frame(end, devices, marks, held))
        legend = [
            ("box ahead", "forward"),
            ("box back", "backward"),
            ("box idle", "waits"),
            ("box frame", "now"),
        ]
        if any(slot.work.kind == "W" for slot in self.slots):
            legend.insert(2, ("box weights", "weights' gradient"))
        busy = sum(slot.stop - slot.start for slot in self.slots)
        idle = 100 * (1 - busy / (devices * end))
        name = f"A pipeline of {devices} devices that idle for {idle:.0f} % of the time"
        return Frames(drawing, frames, name, "moment", len(frames) // 2, legend).figure()

    def _frame(
        self, now: float, devices: int, marks: Sequence[tuple[Any, int, int]], held: Sequence[int]
    ) -> Frame:
        kinds: dict[int, str] = {}
        holds, works = [0] * devices, [""] * devices
        for slot, box, label in marks:
            if slot.start <= now and slot.work.kind == "F":
                holds[slot.device] += 1
            if slot.stop <= now and slot.work.kind == "B":
                holds[slot.device] -= 1
            if slot.start <= now:
                current = now < slot.stop
                kinds[box] = DONE[slot.work.kind] + (" current" if current else "")
                if label >= 0:
                    kinds[label] = "small middle strong"
                if current:
                    name = f"{slot.work.batch}{'′' * slot.work.chunk}"
                    works[slot.device] = f"{WORDS[slot.work.kind]} {name}"
        doing = [f"device {d} {work}" for d, work in enumerate(works) if work]
        waits = [str(d) for d, work in enumerate(works) if not work]
        said = f"At time {now:g} ({self.unit}): {', '.join(doing) if doing else 'all are through'}."
        if doing and waits:
            many = len(waits) > 1
            said += f" {'Devices' if many else 'Device'} {', '.join(waits)} {'wait' if many else 'waits'}."
        return Frame(said, kinds, {mark: str(n) for mark, n in zip(held, holds, strict=True)})
