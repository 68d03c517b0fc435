"""Launches a program: variables and parameters in memory, blocks in chunks, chunks in a fair order."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from gpulab.foundation.cpp_names import readable
from gpulab.simulator.ptx import Module, Variable

from .errors import ArrayLabel, Index
from .events import Observer
from .executable import Executable, Step
from .frame import HEAP_BYTES, LOCKSTEP, STACK_BYTES, Frame, Schedule
from .layouts import bytes_of
from .memory import Allocation, Memory, Variables
from .program import Program
from .run import Run
from .scheduling import execute, stuck
from .supply import Supply
from .types import UNWRITTEN, WIDEST, Filled

Array = np.ndarray

CHUNK_LANES = 32_768  # lanes that run at once: arrays that fit the cache, long enough to hide the interpreter
CONTENDED_LANES = 2_048  # … where compare-and-swap loops make most of them wait anyway
CHUNK_BYTES = 256 << 20  # registers, shared and local memory of one chunk
TURNS = 128  # of fruitless looks at memory, after which a chunk counts as stuck
GRID_BARRIER_BYTES = 64


def launch(
    program: Executable,
    grid: Index,
    block: Index,
    arguments: bytes,
    memory: Memory,
    *,
    shared_bytes: int = 0,
    observers: Sequence[Observer] = (),
    schedule: Schedule = LOCKSTEP,
    resident_blocks: int | None = None,
    limit: int | None = None,
    arrays: tuple[ArrayLabel, ...] = (),
    write: Callable[[str], None] | None = None,
    undefined: int | None = None,
    blocks: Array | None = None,
    guard: str = "guard",
    garbage: np.random.Generator | None = None,
    cluster: Index | None = None,
    allotted: int | None = None,
    stack_bytes: int = STACK_BYTES,
    heap_bytes: int = HEAP_BYTES,
) -> None:
    """Run the kernel `program` to its end; what it leaves behind is in `memory`.

    `grid` and `block` are (x, y, z); `arguments` is the packed parameter buffer, whose arrays `arrays`
    describe; `shared_bytes` is the dynamic shared memory. `observers` are told what happens. `schedule` is
    the order in which warps run, and `resident_blocks` how many blocks the device could hold at once. A chunk
    of blocks counts as endless after `limit` instructions (None: when it has taken millions and minutes), and
    in any case once it provably goes in circles. `write` gets what the kernel prints.

    `undefined` is what a shuffle fetches where its result is undefined (None: what the register happens to
    hold). `blocks` are the linear indices of the blocks that run, in order (None: all). `guard` is what keeps
    an index inside an array, in the words of the kernel's language. `garbage` draws what registers,
    shared and local memory hold before anything is written there (None: `memory.FRESH`, everywhere).

    `cluster` is the shape of the clusters of blocks, which divides the grid (None: as the kernel was
    compiled). With clusters, every cluster runs of which `blocks` has a block. `allotted` is how many
    registers each thread has until ``setmaxnreg`` changes it (None: registers are not counted).
    `stack_bytes` is the room of each thread for calls of functions that call themselves, `heap_bytes` what
    ``malloc`` and ``new`` have for all kernels together.
    Raises `KernelFault`.

    >>> text = ".version 8.0 .target sm_80 .address_size 64 .visible .entry stop() { ret; }"
    >>> stop = load(gpulab.simulator.ptx.parse(text))
    >>> launch(stop, grid=(2, 1, 1), block=(32, 1, 1), arguments=b"", memory=Memory())
    """
    on_loan: list[Allocation] = []  # what lies in memory for the time of the launch
    registers = _registers(program, arguments, memory, on_loan, garbage)
    shape = cluster or program.cluster or (1, 1, 1)
    supply = _supply(grid, shape, schedule, blocks)
    frame = Frame(
        program=program,
        grid=grid,
        block=block,
        arguments=arguments,
        memory=memory,
        registers=registers,
        grid_barrier=_place_grid_barrier(memory, on_loan) if program.syncs_grid else 0,
        dynamic_shared=shared_bytes,
        observers=tuple(observers),
        schedule=schedule,
        limit=limit,
        arrays=arrays,
        write=write,
        undefined=undefined,
        guard=guard,
        garbage=garbage,
        supply=supply,
        cluster=shape,
        has_clusters=(cluster or program.cluster) is not None,
        allotted=allotted,
        stack_bytes=stack_bytes,
        heap_bytes=heap_bytes,
    )
    for observer in observers:
        observer.start(program, grid, block)
    try:
        with np.errstate(all="ignore"):
            _run_chunks(frame, program.steps, resident_blocks)
    finally:
        for allocation in on_loan:
            memory.free(allocation)
    for observer in observers:
        observer.end()


# ---- what lies in registers and memory when a launch begins --------------------------------------


def _registers(
    program: Program,
    arguments: bytes,
    memory: Memory,
    on_loan: list[Allocation],
    garbage: np.random.Generator | None,
) -> tuple[Array, ...]:
    """The contents with which every chunk begins; a register that nobody has written holds anything."""
    unwritten = UNWRITTEN if garbage is None else Filled(garbage.bytes(WIDEST))
    registers = [unwritten[dtype.str] for dtype in program.dtypes]
    for constant in program.constants:
        registers[constant.slot] = constant.value
    for shared in program.shared_slots:
        registers[shared.slot] = np.full((1, 1), shared.offset, np.int64)
    for slot, offset, dtype in program.parameter_slots:
        registers[slot] = np.frombuffer(arguments[offset : offset + dtype.itemsize], dtype).reshape(1, 1)
    if program.symbols:
        places = _place_variables(program, arguments, memory, on_loan)
        for symbol in program.symbols:
            registers[symbol.slot] = np.full((1, 1), places[symbol.name] + symbol.offset, np.int64)
    return tuple(registers)


def _place_grid_barrier(memory: Memory, on_loan: list[Allocation]) -> int:
    """The counter of arrived blocks in a cooperative launch: zeros, as the driver makes it."""
    barrier = memory.allocate(GRID_BARRIER_BYTES, "the barrier of the grid", fill=None)
    on_loan.append(barrier)
    return barrier.address


def _place_variables(
    program: Program, arguments: bytes, memory: Memory, on_loan: list[Allocation]
) -> dict[str, int]:
    """Addresses of everything that the program names: variables of its module, parameters in memory."""
    addresses = variables_of(program.module, memory)
    named = {symbol.name for symbol in program.symbols}
    for name in named & program.module.functions.keys() - addresses.keys():
        addresses[name] = _code(memory, program.module, name).address
        memory.modules[id(program.module)].addresses[name] = addresses[name]
    for name, offset, size in program.parameters:
        if name in named:  # a parameter whose address is taken
            copy = memory.allocate(size, name)
            copy.data[:] = np.frombuffer(arguments[offset : offset + size], np.uint8)
            copy.writable = False
            addresses[name] = copy.address
            on_loan.append(copy)
    return addresses


def variables_of(module: Module, memory: Memory) -> dict[str, int]:
    """Addresses of a module's global and constant variables, which `memory` makes once and keeps.

    >>> text = ".version 8.0 .target sm_80 .address_size 64 .global .u32 total; "
    >>> text += ".visible .entry stop() { ret; }"
    >>> list(variables_of(gpulab.simulator.ptx.parse(text), Memory()))
    ['total']
    """
    places = memory.modules.get(id(module))
    if places is None:
        wanted = [v for v in module.variables.values() if v.space in ("global", "const")]
        allocations = {v.name: _new_variable(memory, v) for v in wanted}
        for variable in wanted:
            for offset, symbol in variable.pointers:
                pointed_at = allocations.get(symbol.name) or _code(memory, module, symbol.name)
                allocations[symbol.name] = pointed_at
                value = pointed_at.address + symbol.offset
                allocations[variable.name].data[offset : offset + 8].view(np.int64)[0] = value
        addresses = {name: allocation.address for name, allocation in allocations.items()}
        places = memory.modules[id(module)] = Variables(module, addresses)
    return dict(places.addresses)


def _code(memory: Memory, module: Module, name: str) -> Allocation:
    """A place that stands for a function whose address is taken: nothing can be read there."""
    assert name in module.functions, name
    return memory.allocate(0, f"the code of {readable(name)}", fill=None)


def _new_variable(memory: Memory, variable: Variable) -> Allocation:
    allocation = memory.allocate(bytes_of(variable), variable.name, fill=None)
    if variable.initial is not None:
        initial = np.frombuffer(variable.initial, np.uint8)
        allocation.data[: len(initial)] = initial
    allocation.writable = variable.space != "const"
    return allocation


# ---- chunks --------------------------------------------------------------------------------------


def _supply(grid: Index, cluster: Index, schedule: Schedule, blocks: Array | None) -> Supply:
    whole = math.prod(grid)
    if math.prod(cluster) > 1:
        clusters = _clusters(grid, cluster)
        if blocks is not None:
            owner = np.empty(whole, np.int64)
            owner[clusters] = np.arange(len(clusters))[:, None]
            clusters = clusters[list(dict.fromkeys(owner[blocks].tolist()))]
        if schedule.seed is not None:
            clusters = np.random.default_rng(schedule.seed).permutation(clusters)
        return Supply(clusters.size, clusters.reshape(-1), schedule.backwards)
    count = whole if blocks is None else len(blocks)
    if schedule.seed is not None:
        blocks = np.random.default_rng(schedule.seed).permutation(whole if blocks is None else blocks)
    return Supply(count, blocks, schedule.backwards)


def _clusters(grid: Index, cluster: Index) -> Array:
    """Linear indices of the blocks of each cluster, a row a cluster, in the order of their ranks."""
    linear = np.arange(math.prod(grid)).reshape(grid[::-1])
    pieces = [part for size, by in zip(grid[::-1], cluster[::-1], strict=True) for part in (size // by, by)]
    return linear.reshape(pieces).transpose(0, 2, 4, 1, 3, 5).reshape(-1, math.prod(cluster))


def _chunk_size(frame: Frame) -> int:
    """How many blocks run together: whole clusters."""
    unit = frame.cluster_size
    if frame.schedule.teams is None:
        return unit
    program = frame.program
    per_lane = 8 * min(len(program.dtypes), 96) + program.local_bytes
    per_block = frame.lanes_per_block * per_lane + frame.shared_bytes
    lanes = CONTENDED_LANES if program.contended else CHUNK_LANES
    fit = min(lanes // frame.lanes_per_block, CHUNK_BYTES // max(per_block, 1))
    return max(1, fit // unit) * unit


class Parked(NamedTuple):
    """A chunk that waits for another one, and what goes on with it."""

    run: Run
    going: Iterator[int]


def _run_chunks(frame: Frame, steps: Sequence[Sequence[Step]], resident_blocks: int | None) -> None:
    """Run all chunks; one that waits for another is put aside while the next ones start.

    A launch is stuck when all chunks that may run have, one after the other, come back to a state in which
    they were before, and no memory has changed since: they would go in circles forever. Those that watch the
    clock are never as before; they are stuck when each has looked for `TURNS` turns without success.
    """
    size, supply = _chunk_size(frame), frame.supply
    parked: list[Parked] = []
    seen: set[tuple[int, int]] = set()  # states of parked chunks since memory changed
    again = 0  # how many chunks in a row have come back to one of them
    waited = 0  # how many in a row have looked without success
    while True:
        room = size
        if resident_blocks is not None:
            room = min(size, resident_blocks - sum(each.run.chunk.blocks.size for each in parked))
            room -= room % frame.cluster_size
            if not parked:
                room = max(room, frame.cluster_size)
        if room > 0 and supply.left:
            run = Run(frame, supply.take(room))
            going = execute(run, steps)
        elif parked:
            run, going = parked.pop(0)
        else:
            return
        before = run.changes
        state = next(going, None)
        if state is not None:
            parked.append(Parked(run, going))
        if state is None or run.changes != before:
            seen.clear()
            again = waited = 0
            continue
        known = (id(run), state)
        again = again + 1 if known in seen else 0
        seen.add(known)
        waited = waited + 1 if run.in_vain else 0
        if again > len(parked) or waited > TURNS * len(parked):
            raise stuck(run, supply.left > 0)
