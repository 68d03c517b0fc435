"""Layers that do not fit on a device: fetched from the host, used, evicted, on a modelled timeline.

A plan is data: what is asked for, in order. The model knows one link, one compute
engine, and a number of places for layers. Modelled, not measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gpulab.foundation.errors import Message

BACKWARD = 2  # times the work of forward: gradients of inputs, and of weights


class CannotRun(Message, ValueError):
    """A plan that cannot be carried out; the message says at which place."""


@dataclass(frozen=True)
class Part:
    """When the link or the compute engine worked on a layer; `what` is fetch, forward or backward."""

    what: str
    layer: int
    start: float
    stop: float


@dataclass(frozen=True)
class Run:
    """A plan that was carried out, in the order of the plan."""

    parts: tuple[Part, ...]

    @property
    def time(self) -> float:
        """When the last part ends."""
        return max((part.stop for part in self.parts), default=0.0)

    @property
    def fetches(self) -> int:
        """How many layers went over the link."""
        return sum(part.what == "fetch" for part in self.parts)


def carry_out(plan: Sequence[str], layers: int, fetch: float, compute: float, room: int) -> Run:
    """Forward through all layers and backward again, with at most `room` layers on the device.

    `plan` lists ``fetch 3``, ``evict 3``, ``forward 3`` and ``backward 3``, layers counted from 0. The
    program goes through it. A fetch takes `fetch` on the link, behind those before it, while the program
    goes on; it needs a place from the moment in which it is asked for. Forward (`compute`) and backward
    (twice that) wait for their layer, and the program for them. An eviction takes no time: weights do not
    change before the optimizer's step. Weights alone are modelled: activations stay, gradients leave in the
    link's other direction. Raises CannotRun.
    """
    order = [f"forward {i}" for i in range(layers)] + [f"backward {i}" for i in reversed(range(layers))]
    now = link = 0.0
    ready: dict[int, float] = {}  # the layers that have a place, and when they are there
    parts: list[Part] = []
    done = 0
    for number, word in enumerate(plan):
        what, layer = _read(word, number, layers)
        if what == "fetch":
            if layer in ready:
                raise CannotRun(
                    f"event {number}, {word!r}: layer {layer} is on the device or on its way already"
                )
            if len(ready) == room:
                there = ", ".join(map(str, sorted(ready)))
                one = "layer" if room == 1 else "layers"
                raise CannotRun(
                    f"event {number}, {word!r}: there is no room, because {one} {there} "
                    f"{'is' if room == 1 else 'are'} on the device. Evict one first"
                )
            start = max(link, now)
            link = ready[layer] = start + fetch
            parts.append(Part(what, layer, start, link))
        elif layer not in ready:
            raise CannotRun(f"event {number}, {word!r}: layer {layer} is not on the device. Fetch it first")
        elif what == "evict":
            if ready[layer] > now:
                raise CannotRun(f"event {number}, {word!r}: layer {layer} is still on its way")
            del ready[layer]
        else:
            if done == len(order) or word != order[done]:
                expected = f"{order[done]!r} comes next" if done < len(order) else "all work is done"
                raise CannotRun(f"event {number}, {word!r}: {expected}")
            start = max(now, ready[layer])
            now = start + compute * (BACKWARD if what == "backward" else 1)
            parts.append(Part(what, layer, start, now))
            done += 1
    if done < len(order):
        raise CannotRun(f"the plan ends before {order[done]!r}")
    return Run(tuple(parts))


def _read(word: Any, number: int, layers: int) -> tuple[str, int]:
    what, _, layer = word.partition(" ") if isinstance(word, str) else ("", "", "")
    known = what in ("fetch", "evict", "forward", "backward")
    if not known or not (layer.isascii() and layer.isdigit()) or int(layer) >= layers:
        raise CannotRun(
            f"event {number} is {word!r}; events are 'fetch', 'evict', 'forward' or 'backward' and a layer "
            f"from 0 to {layers - 1}, as in 'fetch 0'"
        )
    if word != f"{what} {int(layer)}":
        raise CannotRun(f"event {number} is {word!r}; write '{what} {int(layer)}'")
    return what, int(layer)
