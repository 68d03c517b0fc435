"""`sanitize`: one kernel, looked at by every tool; where the order may matter, in other orders, too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gpulab import device as devices
from gpulab import simt
from gpulab.messages import Message
from gpulab.profile.onto_simulator import arrays_there, onto_simulator
from gpulab.profile.to_run import misuse
from gpulab.ptx import Location
from gpulab.simt.errors import source_text

from .findings import Finding, Findings
from .tools import Tools, lines_of

ORDERS = (simt.BACKWARDS, simt.two_teams(1))  # beside lockstep: every pair meets in both orders
UNDEFINED = 0x5A5A5A5A  # what undefined results of shuffles are in a run that tells whether they matter
FAULTS = {simt.DivergentBarrier: "barrier", simt.Endless: "endless", simt.Trap: "stopped"}  # else memory
LOOKED = (
    "looked at: races in shared and global memory, bounds, alignment, uninitialised reads, barriers, shuffles"
)
SEVERAL_ORDERS = f"{LOOKED}; in lockstep and in {len(ORDERS)} orders of warps and blocks"
ONE_ORDER = f"{LOOKED}; no race, and no atomics but those that commute: every order gives the same result"


class NotALaunch(Message):
    """What was given to `sanitize` launches nothing."""


def sanitize(run: Callable[..., Any], *args: Any, cures: bool = True, **named: Any) -> Findings:
    """Run ``run(*args, **named)`` under all tools and say what is wrong with the kernel.

    `run` is a kernel with its launch shape, ``kernel[grid, block]``, or host code that launches kernels. It
    runs several times on the same inputs; what it leaves behind is the result of the first run. Each finding
    is told once, with both source lines, both threads, array and index, and the usual cure; without `cures`
    it is left to the reader to find out why. Raises NotALaunch, and whatever a wrong launch raises.
    """
    if problem := misuse("sanitize", run):
        raise NotALaunch(problem)
    if devices.uses_gpu():
        run = onto_simulator(run)
    with arrays_there(args) as there:
        found = _sanitize(run, there, named)
    return found if cures else Findings(found.kernel, [f.puzzle() for f in found], found.looked)


def _sanitize(run: Callable[..., Any], args: tuple[Any, ...], named: dict[str, Any]) -> Findings:
    device = devices.current()
    before = _Contents(device, (*args, *named.values()))
    tools = Tools(device)
    with tools.standing():
        fault = _attempt(run, args, named)
    found = tools.findings()
    if fault is not None:
        return Findings(tools.kernel(run), [*found, _as_finding(fault)], LOOKED)
    first = before.now()

    def again(**options: Any) -> str:
        """Run once more in another way; how the result differs from the first one."""
        before.restore()
        with device.using(**options):
            fault = _attempt(run, args, named)
        if fault is not None:
            found.append(_as_finding(fault))
            return ""
        return first.difference(before.now(), tools.labels())

    found += tools.undefined_results(certain=True)
    doubtful = tools.undefined_results(certain=False)
    if doubtful and again(undefined=UNDEFINED):  # where it makes no difference nobody uses what they give
        found += doubtful
    if not found and not tools.order_may_matter():
        first.restore()
        return Findings(tools.kernel(run), [], ONE_ORDER)
    difference = next((d for order in ORDERS if (d := again(schedule=order))), "")
    if difference:
        found.append(_order(tools.kernel(run), difference, bool(found), tools.ordered_atomics()))
    first.restore()
    return Findings(
        tools.kernel(run), list({(f.kind, f.lines): f for f in reversed(found)}.values()), SEVERAL_ORDERS
    )


def _attempt(run: Callable[..., Any], args: tuple, named: dict[str, Any]) -> simt.KernelFault | None:
    try:
        run(*args, **named)
    except simt.KernelFault as fault:
        return fault
    return None


def _as_finding(fault: simt.KernelFault) -> Finding:
    kind = next((kind for cls, kind in FAULTS.items() if isinstance(fault, cls)), "memory")
    return Finding(kind, str(fault), lines_of(fault.location, fault.elsewhere))


class _Contents:
    """What device memory and the host's arrays hold at one time."""

    def __init__(self, device: devices.SimulatedDevice, args: tuple[Any, ...]):
        self.device, self.args = device, args
        self.hosts = [a for a in args if isinstance(a, np.ndarray)]
        self.tensors = [a for a in args if hasattr(a, "untyped_storage")]
        self.host_data = [a.copy() for a in self.hosts]
        self.tensor_data = [t.detach().clone() for t in self.tensors]
        self.modules = dict(device.memory.modules)
        self.allocations = [(a, a.data.copy(), a.written) for a in device.memory.allocations]

    def now(self) -> _Contents:
        """The contents at this moment, of the same arrays."""
        return _Contents(self.device, self.args)

    def restore(self) -> None:
        self.device.memory.modules = dict(self.modules)  # a module loaded since then starts anew
        for allocation, data, written in self.allocations:
            if allocation.data.size == data.size:  # else it has been freed since then
                allocation.data[:] = data
                allocation.written = written
        for array, data in zip(self.hosts, self.host_data, strict=True):
            array[...] = data
        for tensor, data in zip(self.tensors, self.tensor_data, strict=True):
            tensor.data.copy_(data)

    def difference(self, other: _Contents, labels: list[simt.ArrayLabel]) -> str:
        """An element that differs, with both values; empty where all results are equal bit for bit."""
        arrays = [a for a in self.args if isinstance(a, np.ndarray) or hasattr(a, "untyped_storage")]
        names = [label.name for label in labels] if len(labels) == len(arrays) else []
        for number, (mine, theirs) in enumerate(zip(self.host_data, other.host_data, strict=True)):
            if mine.tobytes() != theirs.tobytes():
                place = next(i for i, a in enumerate(arrays) if a is self.hosts[number])
                return _difference(names[place] if names else f"array {place}", mine, theirs)
        for mine, theirs in zip(self.tensor_data, other.tensor_data, strict=True):
            if not bool((mine == theirs).all()):
                return "a tensor differs"
        after = {a.address: data for a, data, _ in other.allocations}
        for allocation, data, _ in self.allocations:
            later = after.get(allocation.address)
            if later is not None and not np.array_equal(data, later):
                return _difference_at(allocation, data, later, labels)
        return ""


def _difference(name: str, mine: np.ndarray, theirs: np.ndarray) -> str:
    different = mine.view(f"V{mine.itemsize}") != theirs.view(f"V{mine.itemsize}")
    at = np.unravel_index(int(different.argmax()), mine.shape)
    place = ", ".join(str(int(i)) for i in at)
    return f"{name}[{place}] is once {mine[at]} and once {theirs[at]}"


def _difference_at(
    allocation: simt.Allocation, mine: np.ndarray, theirs: np.ndarray, labels: list[simt.ArrayLabel]
) -> str:
    """As `_difference`, for bytes on the device."""
    address = allocation.address + int((mine != theirs).argmax())
    label = next((a for a in labels if a.address <= address < a.address + a.extent), None)
    if label is None or label.dtype.startswith(("void", "record")):
        return f"`{label.name if label else allocation.name or 'a device array'}` differs"
    index = label.index_of(address)
    start = label.address - allocation.address + sum(i * s for i, s in zip(index, label.strides, strict=True))
    once, again = (data[start : start + label.itemsize].view(label.dtype)[0] for data in (mine, theirs))
    return f"{label.name}[{', '.join(map(str, index))}] is once {once} and once {again}"


def _order(kernel: str, difference: str, explained: bool, atomics: dict[Location, str]) -> Finding:
    lead = f"The result of kernel {kernel} depends on the order of warps and blocks: {difference}."
    if explained:
        return Finding("order", f"{lead}\nThe findings above say why.")
    texts = [source_text(place) for place in atomics]
    width = max(map(len, texts), default=0)
    rows = [
        f"    {place.line:4} │ {text:<{width}}   {why}"
        for (place, why), text in zip(atomics.items(), texts, strict=True)
    ]
    return Finding("order", "\n".join([lead, *rows]), lines_of(*atomics))
