"""A simulated GPU: memory and launches."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol

import numpy as np

from gpulab.foundation import underway
from gpulab.foundation.errors import shorten
from gpulab.simulator import compile, ptx, simt
from gpulab.simulator.hardware import GPU, occupancy

from .checks import check_bounds, check_cluster, check_registers, check_shape, check_shared, dimensions
from .host_memory import HostMemory
from .instructions import check_instructions
from .launch import Dim3, Launch

ObserverFactory = Callable[[Launch], simt.Observer | None]

ALWAYS_ENOUGH_REGISTERS = 256  # threads per block for which 255 registers each still fit


class Executor(Protocol):
    """Carries out launches and lets the host touch device memory: the simulator, or what takes its place.

    A recorder's `launch` notes the launch and runs nothing, and its `host_access` refuses reads, in words.
    """

    def launch(self, device: SimulatedDevice, launch: Launch) -> None:
        """Carry out a launch."""

    def host_access(self, device: SimulatedDevice, allocation: simt.Allocation, writes: bool) -> None:
        """The host is about to read (or write) this memory: raise to refuse."""


class _Blocks(simt.Observer):
    """Counts the blocks that began before the newest chunk."""

    def __init__(self, work: underway.Work) -> None:
        self.work, self.begun = work, 0

    def begin(self, state: simt.State) -> None:
        self.work.done = self.begun
        self.begun += len(state.chunk.blocks)


class Simulator:
    """Carries out launches with `simt`. The host may touch any memory at any time."""

    def launch(self, device: SimulatedDevice, launch: Launch) -> None:
        kernel = launch.kernel
        observers = [observer for make in device.observer_factories if (observer := make(launch)) is not None]
        program = device.program(kernel)
        blocks = math.prod(launch.grid)
        with (
            scratch(device, launch) as arguments,
            underway.work(f"simulating {kernel.name}", blocks, "block") as work,
        ):
            simt.launch(
                program,
                launch.grid,
                launch.block,
                arguments,
                device.memory,
                shared_bytes=launch.shared_bytes,
                observers=(*observers, *([_Blocks(work)] if underway.watched() else [])),
                arrays=launch.arrays,
                guard=kernel.guard,
                cluster=launch.cluster,
                # Only blocks that wait for each other can tell how many of them are there at once.
                **(
                    {"resident_blocks": device.resident_blocks(launch) if program.ordered else None}
                    | {"allotted": device.registers_at_entry(launch) if program.reallocates else None}
                    | device.limits
                    | device.options
                ),
            )

    def host_access(self, device: SimulatedDevice, allocation: simt.Allocation, writes: bool) -> None:
        pass


@contextmanager
def scratch(device: SimulatedDevice, launch: Launch) -> Iterator[bytes]:
    """The arguments of a launch. The memory that only its kernel needs is there until the block is left."""
    if launch.scratch is None:
        yield launch.arguments
        return
    at, nbytes = launch.scratch
    allocation = device.memory.allocate(nbytes, "scratch memory")
    arguments = bytearray(launch.arguments)
    arguments[at : at + 8] = allocation.address.to_bytes(8, "little")
    try:
        yield bytes(arguments)
    finally:
        device.memory.free(allocation)


# What a program may set by cudaDeviceSetLimit, and where it begins: by its name in `simt.launch`.
LIMITS = {"stack_bytes": simt.STACK_BYTES, "heap_bytes": simt.HEAP_BYTES}


class SimulatedDevice:
    """A GPU of the catalogue, simulated. `gpu` may be changed at any time; memory is one and stays.

    New memory holds bytes 0xFF: NaN as a float, -1 as an integer, so that an element that no thread wrote
    shows.
    """

    def __init__(self, gpu: GPU):
        self.gpu = gpu
        self.memory = simt.Memory()
        self.host_memory = HostMemory(self.memory)
        self.observer_factories: tuple[ObserverFactory, ...] = ()
        self.options: dict[str, Any] = {}
        self.limits = dict(LIMITS)
        self._executors: list[Executor] = [Simulator()]
        self._modules: dict[str, ptx.Module] = {}
        self._programs: dict[tuple[str, str], simt.Executable] = {}
        self._checked: set[tuple[str, str, compile.kernel.Capability]] = set()

    @property
    def cc(self) -> compile.kernel.Capability:
        """The compute capability that kernels are compiled for."""
        return self.gpu.cc

    # Memory

    def allocate(self, nbytes: int, fresh: bool = True) -> simt.Allocation:
        """New device memory, which holds what `memory.unwritten` says; 0 if it is not `fresh`, because it is
        filled at once."""
        return self.memory.allocate(nbytes) if fresh else self.memory.allocate(nbytes, fill=None)

    def free(self, allocation: simt.Allocation) -> None:
        """Give memory back; a kernel that still uses it faults."""
        self.memory.free(allocation)

    def heap_left(self) -> tuple[int, int]:
        """How many blocks of ``malloc`` and ``new`` kernels have not given back, and their bytes."""
        return simt.Heap(self.memory, 0).left() if self.memory.heap else (0, 0)

    def host_view(self, allocation: simt.Allocation, writes: bool) -> np.ndarray:
        """The bytes of device memory for the host, uint8, live. The executor may refuse."""
        self._executors[-1].host_access(self, allocation, writes)
        if writes:
            self.memory.writes(allocation)
        return allocation.data

    # Launches

    def launch(
        self,
        kernel: compile.CompiledKernel,
        grid: Any,
        block: Any,
        arguments: bytes,
        *,
        shared_bytes: int = 0,
        pointers: tuple[int, ...] = (),
        arrays: tuple[simt.ArrayLabel, ...] = (),
        cluster: Any = None,
        scratch: tuple[int, int] | None = None,
    ) -> None:
        """Check a launch and carry it out: the one door for all launches.

        `cluster` is how many blocks are a cluster, one to three numbers; None leaves it to the kernel.
        `scratch` is as in `Launch`.
        Raises LaunchError before anything runs, simt.KernelFault for what the kernel does wrong, and
        KeyboardInterrupt, shown in one line, when it is stopped.
        """
        self.host_memory.sweep()
        shape = dimensions(grid, "grid", kernel.name), dimensions(block, "block", kernel.name)
        blocks = None if cluster is None else dimensions(cluster, "cluster", kernel.name)
        shape = self._in_blocks(kernel, *shape)
        launch = Launch(kernel, *shape, arguments, shared_bytes, pointers, arrays, blocks, scratch)
        self._check(launch)
        try:
            self._executors[-1].launch(self, launch)
        except KeyboardInterrupt:
            stopped = f"Kernel {kernel.name} was stopped before its end: its results are incomplete."
            raise shorten(KeyboardInterrupt(stopped)) from None

    def _in_blocks(self, kernel: compile.CompiledKernel, grid: Dim3, block: Dim3) -> tuple[Dim3, Dim3]:
        """A launch's grid counted in blocks, and its block. A kernel that says ``.blocksareclusters`` is
        launched by clusters, and has blocks of its own size where a launch asks for one thread."""
        program = self.program(kernel)
        directives = program.module.functions[kernel.entry].directives
        if "blocksareclusters" not in directives or program.cluster is None:
            return grid, block
        x, y, z = (n * size for n, size in zip(grid, program.cluster, strict=True))
        if block == (1, 1, 1):
            block = dimensions(directives["reqntid"], "block", kernel.name)
        return (x, y, z), block

    def _check(self, launch: Launch) -> None:
        kernel = launch.kernel
        check_shape(kernel.name, launch.grid, launch.block, self.gpu)
        program = self.program(kernel)
        known = (kernel.ptx, kernel.entry, self.cc)
        if known not in self._checked:
            check_instructions(kernel.name, program.instructions, self.gpu)
            self._checked.add(known)
        check_shared(
            kernel.name, program.shared_bytes, launch.shared_bytes, self.gpu, extended=kernel.extends_shared
        )
        check_cluster(kernel.name, launch.grid, launch.cluster, program.cluster, self.gpu)
        threads = launch.threads_per_block
        if bounds := program.module.functions[kernel.entry].directives.get("maxntid"):
            check_bounds(kernel.name, threads, math.prod(bounds))
        if threads > ALWAYS_ENOUGH_REGISTERS:
            check_registers(kernel.name, threads, self.resources(kernel).registers, self.gpu)

    def program(self, kernel: compile.CompiledKernel) -> simt.Executable:
        """The kernel as the simulator runs it; read and decoded once per PTX."""
        key = (kernel.ptx, kernel.entry)
        if key not in self._programs:
            self._programs[key] = simt.load(self.module(kernel.ptx), kernel.entry, kernel.name)
        return self._programs[key]

    def module(self, text: str) -> ptx.Module:
        """A PTX text, read once: its kernels share its variables."""
        if text not in self._modules:
            self._modules[text] = ptx.parse(text)
        return self._modules[text]

    def resources(self, kernel: compile.CompiledKernel) -> compile.Resources:
        """What ptxas makes of the kernel: registers, shared memory, spills."""
        return compile.resources(kernel.ptx, kernel.cc, kernel.entry, kernel.max_registers)

    def registers_at_entry(self, launch: Launch) -> int | None:
        """The registers with which each thread of a kernel with ``setmaxnreg`` starts; None if unknown."""
        kernel = launch.kernel
        return compile.registers_at_entry(kernel.ptx, kernel.entry, kernel.max_registers)

    def resident_blocks(self, launch: Launch) -> int:
        """How many blocks of a launch the GPU holds at once."""
        used = self.resources(launch.kernel)
        held = occupancy(
            self.gpu,
            launch.threads_per_block,
            used.registers,
            used.shared_bytes + launch.shared_bytes,
        )
        return held.active_blocks * int(self.gpu.sms)

    @property
    def runs_kernels(self) -> bool:
        """Whether launches are carried out here and now, and not noted by a recorder."""
        return isinstance(self._executors[-1], Simulator)

    # Who stands at the door

    @contextmanager
    def observed(self, make: ObserverFactory, alone: bool = False) -> Iterator[None]:
        """While it is entered, `make(launch)` gives each launch an observer, or None for no observer.

        `alone`: those who stood at the door before see nothing of it.
        """
        before = self.observer_factories
        self.observer_factories = (make,) if alone else (*before, make)
        try:
            yield
        finally:
            self.observer_factories = before

    @contextmanager
    def using(self, **options: Any) -> Iterator[None]:
        """While it is entered, launches run with these options of `simt.launch`: schedule, limit, write …"""
        before = self.options
        self.options = before | options
        try:
            yield
        finally:
            self.options = before

    @contextmanager
    def executed_by(self, executor: Executor) -> Iterator[None]:
        """While it is entered, `executor` carries out launches instead of the simulator."""
        self._executors.append(executor)
        try:
            yield
        finally:
            self._executors.remove(executor)

    def behind(self, executor: Executor) -> Executor:
        """The executor that would carry out launches in place of this one."""
        return self._executors[self._executors.index(executor) - 1]
