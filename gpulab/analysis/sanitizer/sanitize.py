"""`sanitize`: one kernel, looked at by every tool; where the order may matter, in other orders, too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gpulab.analysis.profile.onto_simulator import arrays_there, onto_simulator
from gpulab.analysis.profile.to_run import misuse
from gpulab.foundation.errors import Message
from gpulab.simulator import device as devices
from gpulab.simulator import simt
from gpulab.simulator.ptx import Location
from gpulab.simulator.simt.errors import source_text

from .before import Before
from .findings import Finding, Findings
from .tools import Tools, known

ORDERS = (simt.BACKWARDS, simt.two_teams(1))  # beside lockstep: every pair meets in both orders
# Where blocks reach each other's shared memory: some block returns before others have done all that they do.
IN_CLUSTERS = (*ORDERS, simt.warp_serial(1))
UNDEFINED = 0x5A5A5A5A  # what undefined results of shuffles are in a run that tells whether they matter
FAULTS = {simt.DivergentBarrier: "barrier", simt.Endless: "endless", simt.Trap: "stopped"}  # else memory
LOOKED = (
    "looked at: races in shared and global memory, bounds, alignment, uninitialised reads, barriers, shuffles"
)
SEVERAL_ORDERS = f"{LOOKED}; in lockstep and in {{count}} orders of warps and blocks"
ONE_ORDER = f"{LOOKED}; no race, and no atomics but those that commute: every order gives the same result"


class NotALaunch(Message):
    """What was given to `sanitize` launches nothing."""


def sanitize(run: Callable[..., Any], *args: Any, cures: bool = True, **named: Any) -> Findings:
    """Run ``run(*args, **named)`` under all tools and say what is wrong with the kernel.

    `run` is a kernel with its launch shape, ``kernel[grid, block]``, or host code that launches kernels. It
    runs several times on the same inputs; what it leaves behind is the result of the first run. Each finding
    is reported once, with both source lines, both threads, array and index, and the usual cure, which
    ``cures=False`` leaves for the reader to find. Raises NotALaunch, and whatever a wrong launch raises.

    >>> @cuda.jit
    ... def pull(a):
    ...     i = cuda.grid(1)
    ...     if i + 1 < a.size:
    ...         a[i] = a[i + 1]
    >>> [finding.kind for finding in sanitize(pull[4, 32], np.zeros(100, np.float32))]
    ['race']
    """
    if problem := misuse("sanitize", run, args, named):
        raise NotALaunch(problem)
    if devices.uses_gpu():
        run = onto_simulator(run)
    with arrays_there(args) as there:
        found = _sanitize(run, there, named)
    return found if cures else Findings(found.kernel, [f.puzzle() for f in found], found.looked)


def _sanitize(run: Callable[..., Any], args: tuple[Any, ...], named: dict[str, Any]) -> Findings:
    device = devices.current()
    tools = Tools(device)
    with Before(device, (*args, *named.values())) as before:
        with tools.standing():
            fault = _attempt(run, args, named)
        found = tools.findings()
        if fault is not None:
            return Findings(tools.kernel(run), [*found, _as_finding(fault)], LOOKED)

        def again(**options: Any) -> str:
            """Run once more in another way; how the result differs from the first one."""
            before.restore()
            with device.using(**options):
                fault = _attempt(run, args, named)
            if fault is not None:
                found.append(_as_finding(fault))
                return ""
            return before.difference(tools.labels())

        before.keep_result()
        found += tools.undefined_results(certain=True)
        doubtful = tools.undefined_results(certain=False)
        if doubtful and again(undefined=UNDEFINED):  # if it makes no difference nobody uses what they give
            found += doubtful
        looked = ONE_ORDER
        reaches = tools.reaches_other_blocks()
        if found or reaches or tools.order_may_matter():
            orders = IN_CLUSTERS if reaches else ORDERS
            looked = SEVERAL_ORDERS.format(count=len(orders))
            difference = next((d for order in orders if (d := again(schedule=order))), "")
            if difference:
                found.append(_order(tools.kernel(run), difference, bool(found), tools.ordered_atomics()))
        before.restore_result()
    if not tools.launched():
        looked = f"`{tools.kernel(run)}` launched no kernel: there was nothing to look at"
    once = {(f.kind, f.places): f for f in reversed(found)}
    return Findings(tools.kernel(run), list(once.values()), looked)


def _attempt(
    run: Callable[..., Any], args: tuple[Any, ...], named: dict[str, Any]
) -> simt.KernelFault | None:
    try:
        run(*args, **named)
    except simt.KernelFault as fault:
        return fault
    return None


def _as_finding(fault: simt.KernelFault) -> Finding:
    kind = next((kind for cls, kind in FAULTS.items() if isinstance(fault, cls)), "memory")
    return Finding(kind, str(fault), known(fault.location, fault.elsewhere))


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
    return Finding("order", "\n".join([lead, *rows]), known(*atomics))
