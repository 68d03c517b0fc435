"""All tools of the sanitizer over one run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from gpulab.simulator import device as devices
from gpulab.simulator import simt
from gpulab.simulator.observe import Races
from gpulab.simulator.observe.counters import bulk_kind
from gpulab.simulator.observe.early_touches import EarlyTouches
from gpulab.simulator.observe.ordered_atomics import OrderedAtomics
from gpulab.simulator.observe.proxies import Proxies
from gpulab.simulator.observe.synchronisation import Synchronisation
from gpulab.simulator.observe.tensor_core_hazards import TensorCoreHazards
from gpulab.simulator.observe.uninitialised import Uninitialised
from gpulab.simulator.observe.warp_results import WarpResults
from gpulab.simulator.observe.warpgroup_hazards import WarpgroupHazards
from gpulab.simulator.ptx import Instruction, Location
from gpulab.simulator.simt.opcodes import is_volatile

from .findings import Finding

ORDERED = frozenset({"fence", "membar", "activemask", "mbarrier", "nanosleep"})

Maker = Callable[[devices.Launch], simt.Observer]


class Tools:
    """The observers of one run, made launch by launch: enter `standing` around it, then ask `findings`."""

    def __init__(self, device: devices.SimulatedDevice) -> None:
        self.device = device
        self._made: list[Any] = []
        self._launches: list[devices.Launch] = []

    @contextmanager
    def standing(self) -> Iterator[None]:
        """While it is entered, every launch is looked at by every tool."""
        makers: tuple[Maker, ...] = (
            lambda launch: Races(
                ("shared", "global"), launch.arrays, self.device.memory.find, launch.kernel.replicates
            ),
            lambda launch: Uninitialised(tuple(a for a in launch.arrays if not self._is_written(a))),
            lambda _: Synchronisation(),
            lambda _: EarlyTouches(),
            lambda _: WarpgroupHazards(),
            lambda launch: TensorCoreHazards(loads=not launch.kernel.places_waits),
            lambda _: Proxies(),
            lambda _: WarpResults(),
            lambda _: OrderedAtomics(),
        )
        with ExitStack() as stack:
            stack.enter_context(self.device.observed(self._launches.append))
            for make in makers:
                stack.enter_context(self.device.observed(self._kept(make)))
            yield

    def _kept(self, make: Maker) -> Maker:
        def factory(launch: devices.Launch) -> simt.Observer:
            tool = make(launch)
            self._made.append(tool)
            return tool

        return factory

    def _is_written(self, label: simt.ArrayLabel) -> bool:
        allocation = self.device.memory.find(label.address)
        return allocation is None or allocation.written

    def of(self, tool: type[Any]) -> list[Any]:
        """What the tools of one kind have found."""
        return [found for made in self._made if isinstance(made, tool) for found in made.findings]

    def findings(self) -> list[Finding]:
        touched = self._touched_early()
        told = {frozenset(each.places) for each in touched if each.places}  # better than as races
        races = [
            Finding("race", str(r), known(r.first.location, r.second.location), r.sighting)
            for r in self.of(Races)
        ]
        races = [race for race in races if frozenset(race.places) not in told]
        explained = {place for race in races for place in race.places}  # races may read too early, too
        reads = [Finding("uninitialised", str(u), known(u.location)) for u in self.of(Uninitialised)]
        missed = [
            Finding("barrier", str(m), known(m.location, getattr(m, "elsewhere", None)))
            for m in self.of(Synchronisation)
        ]
        return [
            *races,
            *self._unseen_writes(),
            *(read for read in reads if not explained & set(read.places)),
            *missed,
            *self._early_reads(),
            *touched,
        ]

    def hazards(self) -> list[Finding]:
        """What is wrong between threads and copy engines or tensor cores, which use memory beside them."""
        return [*self._unseen_writes(), *self._early_reads(), *self._touched_early()]

    def _unseen_writes(self) -> list[Finding]:
        return [Finding("proxy", str(u), known(u.written, u.location)) for u in self.of(Proxies)]

    def _early_reads(self) -> list[Finding]:
        return [Finding("barrier", str(e), _once(known(e.copied, e.location))) for e in self.of(EarlyTouches)]

    def _touched_early(self) -> list[Finding]:
        touched = [*self.of(WarpgroupHazards), *self.of(TensorCoreHazards)]
        return [Finding("barrier", str(h), known(h.first, h.second)) for h in touched]

    def undefined_results(self, certain: bool) -> list[Finding]:
        """Warp operations without a defined result: wrong for `certain`, or only if somebody uses it."""
        found = [u for u in self.of(WarpResults) if (u.why == "unnamed") == certain]
        return [Finding("barrier", str(u), known(u.location)) for u in found]

    def kernel(self, run: Any) -> str:
        """What was looked at: the kernels that were launched, or `run` if there was none."""
        names = dict.fromkeys(launch.kernel.name for launch in self._launches)
        return ", ".join(names) or str(getattr(run, "__name__", "kernel"))

    def launched(self) -> bool:
        """Whether there was any launch."""
        return bool(self._launches)

    def labels(self) -> list[simt.ArrayLabel]:
        """What the learner calls the arrays of the first launch."""
        return list(self._launches[0].arrays) if self._launches else []

    def order_may_matter(self) -> bool:
        """Whether a result could depend on the order although nobody races: where threads use atomics that do
        not commute, look at what others change, at a clock, or at who else runs."""
        return (
            any(program.timed for program in self._programs())
            or any(i.parts[0] in ORDERED or is_volatile(i) or bulk_kind(i) for i in self._instructions())
            or any(atomics.may_matter for atomics in self._atomics())
        )

    def reaches_other_blocks(self) -> bool:
        """Whether blocks of a cluster use each other's shared memory, which is gone when its block ends."""
        return any(i.parts[0] == "mapa" for i in self._instructions())

    def _programs(self) -> list[simt.Program]:
        return [self.device.program(launch.kernel) for launch in self._launches]

    def _instructions(self) -> Iterator[Instruction]:
        return (i for program in self._programs() for i in program.instructions)

    def ordered_atomics(self) -> dict[Location, str]:
        """Source lines whose outcome depends on the order, with the reason."""
        return {place: why for atomics in self._atomics() for place, why in atomics.reasons.items()}

    def _atomics(self) -> list[OrderedAtomics]:
        return [tool for tool in self._made if isinstance(tool, OrderedAtomics)]


def known(*places: Location | None) -> tuple[Location, ...]:
    """The places without those that the compiler did not write down."""
    return tuple(place for place in places if place is not None)


def _once(places: tuple[Location, ...]) -> tuple[Location, ...]:
    """The places without one that is there twice."""
    return tuple(dict.fromkeys(places))
