"""`sanitize`: one kernel, looked at by every tool, in lockstep and warp after warp."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from gpulab import device as devices
from gpulab import simt
from gpulab.observe import Races
from gpulab.observe.synchronisation import Synchronisation
from gpulab.observe.uninitialised import Uninitialised
from gpulab.simt.errors import DivergentBarrier

from .findings import Finding, Findings

SEEDS = (1, 2)  # of the orders in which warps and blocks run
LOOKED = (
    "looked at: races in shared and global memory, bounds, alignment, uninitialised reads, barriers; "
    f"in lockstep and in {len(SEEDS)} orders of warps and blocks"
)


class _Tools:
    """The observers of one run, made launch by launch."""

    def __init__(self, device: devices.SimulatedDevice) -> None:
        self.device = device
        self.races: list[Races] = []
        self.uninitialised: list[Uninitialised] = []
        self.synchronisation: list[Synchronisation] = []

    def race(self, launch: devices.Launch) -> Races:
        self.races.append(Races(("shared", "global"), launch.arrays))
        return self.races[-1]

    def unwritten(self, launch: devices.Launch) -> Uninitialised:
        fresh = tuple(label for label in launch.arrays if not self._is_written(label))
        self.uninitialised.append(Uninitialised(fresh))
        return self.uninitialised[-1]

    def _is_written(self, label: simt.ArrayLabel) -> bool:
        allocation = self.device.memory.find(label.address)
        return allocation is None or allocation.written

    def meeting(self, launch: devices.Launch) -> Synchronisation:
        self.synchronisation.append(Synchronisation())
        return self.synchronisation[-1]

    @contextmanager
    def standing(self) -> Iterator[None]:
        observed = self.device.observed
        with observed(self.race), observed(self.unwritten), observed(self.meeting):
            yield

    def findings(self) -> list[Finding]:
        races = [r for tool in self.races for r in tool.findings]
        reads = [u for tool in self.uninitialised for u in tool.findings]
        missed = [m for tool in self.synchronisation for m in tool.findings]
        return [
            *(Finding("race", str(r), (r.first.line, r.second.line)) for r in races),
            *(Finding("uninitialised", str(u), _line(u.location)) for u in reads),
            *(Finding("barrier", str(m), _line(m.location)) for m in missed),
        ]


def _line(location: Any) -> tuple[int, ...]:
    return (location.line,) if location is not None else ()


def sanitize(run: Callable[..., Any], *args: Any, **named: Any) -> Findings:
    """Run ``run(*args, **named)`` under all tools and say what is wrong with the kernel.

    `run` is a kernel with its launch shape, ``kernel[grid, block]``, or host code that launches kernels. It
    runs several times on the same inputs; what it leaves behind is the result of the first run. Each finding
    is told once, with both source lines, both threads, array and index, and the usual cure.
    """
    device = devices.current()
    before = _Contents(device, (*args, *named.values()))
    tools = _Tools(device)
    findings: list[Finding] = []
    with tools.standing():
        fault = _attempt(run, args, named)
    findings += tools.findings()
    if fault is not None:
        return Findings(_name(run), [*findings, _as_finding(fault)], LOOKED)
    first = before.now()
    for seed in SEEDS:
        before.restore()
        with device.using(schedule=simt.warp_serial(seed)):
            fault = _attempt(run, args, named)
        if fault is not None:
            findings.append(_as_finding(fault))
        elif (difference := first.difference(before.now())) and not any(f.kind == "order" for f in findings):
            findings.append(Finding("order", _order_words(_name(run), difference, bool(findings))))
    first.restore()
    return Findings(_name(run), findings, LOOKED)


def _name(run: Any) -> str:
    kernel = getattr(run, "kernel", None)
    return str(
        getattr(kernel, "name", None)
        or getattr(kernel, "__name__", None)
        or getattr(run, "__name__", "kernel")
    )


def _attempt(run: Callable[..., Any], args: tuple, named: dict[str, Any]) -> simt.KernelFault | None:
    try:
        run(*args, **named)
    except simt.KernelFault as fault:
        return fault
    return None


def _as_finding(fault: simt.KernelFault) -> Finding:
    kind = "barrier" if isinstance(fault, DivergentBarrier) else "memory"
    return Finding(kind, str(fault), _line(fault.location))


class _Contents:
    """What device memory and the host's arrays hold at one time."""

    def __init__(self, device: devices.SimulatedDevice, args: tuple[Any, ...]):
        self.device, self.args = device, args
        self.hosts = [a for a in args if isinstance(a, np.ndarray)]
        self.tensors = [a for a in args if hasattr(a, "untyped_storage")]
        self.host_data = [a.copy() for a in self.hosts]
        self.tensor_data = [t.detach().clone() for t in self.tensors]
        self.allocations = [(a, a.data.copy(), a.written) for a in device.memory.allocations]

    def now(self) -> _Contents:
        """The contents at this moment, of the same arrays."""
        return _Contents(self.device, self.args)

    def restore(self) -> None:
        for allocation, data, written in self.allocations:
            allocation.data[:] = data
            allocation.written = written
        for array, data in zip(self.hosts, self.host_data, strict=True):
            array[...] = data
        for tensor, data in zip(self.tensors, self.tensor_data, strict=True):
            tensor.data.copy_(data)

    def difference(self, other: _Contents) -> str:
        """In which array, and how far, the results differ; empty where they are equal bit for bit."""
        for number, (mine, theirs) in enumerate(zip(self.host_data, other.host_data, strict=True)):
            if mine.tobytes() != theirs.tobytes():
                return _difference(f"array number {number}", mine, theirs)
        for mine, theirs in zip(self.tensor_data, other.tensor_data, strict=True):
            if not bool((mine == theirs).all()):
                return "a tensor"
        after = {a.address: data for a, data, _ in other.allocations}
        for allocation, data, _ in self.allocations:
            if allocation.address in after and not np.array_equal(data, after[allocation.address]):
                return f"`{allocation.name}`" if allocation.name else "a device array"
        return ""


def _difference(name: str, mine: np.ndarray, theirs: np.ndarray) -> str:
    different = mine.view(f"V{mine.itemsize}") != theirs.view(f"V{mine.itemsize}")
    at = np.unravel_index(int(different.argmax()), mine.shape)
    place = ", ".join(str(int(i)) for i in at)
    return f"{name}, where element [{place}] is once {mine[at]} and once {theirs[at]},"


def _order_words(kernel: str, difference: str, explained: bool) -> str:
    reason = (
        "The findings above say why."
        if explained
        else "Atomic additions of floats are one reason: they round differently in every order."
    )
    return f"The result of {kernel} depends on the order of warps and blocks: {difference} differs.\n{reason}"
