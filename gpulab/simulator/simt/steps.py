"""Instructions as steps: functions that change a run. Made once when a program is loaded."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gpulab.simulator.ptx import Address, Instruction, Operand, Register, Special, Symbol, Vector, writes

from . import accesses, atomics, call_steps, heap_steps, packed, printing, warps
from .errors import Trap
from .executable import Step
from .floats import canonical
from .memory import LOCAL_WINDOW, SHARED_WINDOW, WINDOW
from .opcodes import Function, Opcode, is_volatile
from .operands import CARRY, CLOCKS, Decoder, targets_of
from .operations import operation
from .program import Source
from .run import RANK_BIT, Run
from .types import B128, BOOL, DTYPES, I32, I64, SIGNED, UNSIGNED, size_of

Array = np.ndarray
Adapter = Callable[[Array], Array] | None
Builder = Callable[[Decoder, Opcode, int], Step | None]  # … and the instruction's index in the program
SPACES = {"global", "shared", "local", "const", "param"}
WINDOW_OF = {"shared": SHARED_WINDOW, "local": LOCAL_WINDOW}


def guarded(decoder: Decoder, instruction: Instruction, index: int, step: Step) -> Step:
    assert instruction.guard is not None
    guard = decoder.slot(instruction.guard.name)
    negated = instruction.guard_negated
    kept = 0
    for name in writes(instruction):
        kept |= 1 << decoder.slot(name)

    def run_guarded(run: Run) -> None:
        holds = run.registers[guard]
        if negated:
            holds = ~holds
        lanes, protected = run.lanes, run.protected
        chosen = holds if lanes is None else lanes & holds
        for hear in run.on_guarded:
            hear(index, chosen, run.chunk)
        if not chosen.any():
            return
        run.lanes, run.protected = chosen, protected | kept
        step(run)
        run.lanes, run.protected = lanes, protected

    return run_guarded


# ---- arithmetic ----------------------------------------------------------------------------------


def arithmetic(decoder: Decoder, op: Opcode, index: int) -> Step:
    meaning = operation(op.instruction)
    if meaning is None:
        raise decoder.unsupported(op)
    destination, *operands = op.instruction.operands
    single = [item for o in operands for item in (o.items if isinstance(o, Vector) else (o,))]
    sources = [decoder.source(o, t) for o, t in zip(single, meaning.reads, strict=True)]
    targets = targets_of(destination)
    slots: list[int | None] = [decoder.destination(t) for t in targets]
    if meaning.carry_in:
        sources.append(Source(decoder.slot(CARRY)))
    if meaning.carry_out:
        slots.append(decoder.slot(CARRY))
    adapters = [adapter(decoder, s, t) for s, t in zip(slots, (*meaning.writes, BOOL), strict=False)]
    if len(slots) > 1:
        return _many_results(meaning.run, sources, slots, adapters)
    return one_result(meaning.run, sources, slots[0], adapters[0])


def adapter(decoder: Decoder, slot: int | None, dtype: np.dtype) -> Adapter:
    """From an operation's result type to the register's type."""
    if slot is None or decoder.dtypes[slot] == dtype:
        return None
    have = decoder.dtypes[slot]
    if dtype == np.float16 and have.itemsize == 2:  # half floats live in integer registers
        return lambda x: canonical(x).view(have)
    if have.itemsize == dtype.itemsize and have.kind != "b":
        return lambda x: x.view(have)
    return lambda x: x.astype(have)


def one_result(run_operation: Function, sources: list[Source], slot: int | None, adapt: Adapter) -> Step:
    """Specialised by the number of sources: this is where a run spends its time."""
    if slot is None:
        return lambda run: None
    bit = 1 << slot
    if any(source.view for source in sources) or adapt is not None or len(sources) > 3:
        pairs = [(source.slot, source.view) for source in sources]

        def step(run: Run) -> None:
            registers = run.registers
            value = run_operation(*[registers[s] if v is None else v(registers[s]) for s, v in pairs])
            if adapt is not None:
                value = adapt(value)
            registers[slot] = run.merged(slot, value) if run.protected & bit else value

        return step
    slots = [source.slot for source in sources]
    if len(slots) == 1:
        (a,) = slots

        def step(run: Run) -> None:
            registers = run.registers
            value = run_operation(registers[a])
            registers[slot] = run.merged(slot, value) if run.protected & bit else value

    elif len(slots) == 2:
        a, b = slots

        def step(run: Run) -> None:
            registers = run.registers
            value = run_operation(registers[a], registers[b])
            registers[slot] = run.merged(slot, value) if run.protected & bit else value

    else:
        a, b, c = slots

        def step(run: Run) -> None:
            registers = run.registers
            value = run_operation(registers[a], registers[b], registers[c])
            registers[slot] = run.merged(slot, value) if run.protected & bit else value

    return step


def _many_results(
    run_operation: Function, sources: list[Source], slots: list[int | None], adapters: list[Adapter]
) -> Step:
    pairs = [(source.slot, source.view) for source in sources]

    def step(run: Run) -> None:
        registers = run.registers
        values = run_operation(*[registers[s] if v is None else v(registers[s]) for s, v in pairs])
        for slot, value, adapt in zip(slots, values, adapters, strict=True):
            run.put(slot, value if adapt is None else adapt(value))

    return step


# ---- moves ---------------------------------------------------------------------------------------


def _move(decoder: Decoder, op: Opcode, index: int) -> Step:
    destination, source = op.instruction.operands
    if isinstance(source, Vector):
        return _pack(decoder, destination, source, op)
    if isinstance(destination, Vector):
        return _unpack(decoder, destination, source, op)
    slot = decoder.destination(destination)
    if slot is None:
        return lambda run: None
    if isinstance(source, Special) and source.name.startswith(CLOCKS):
        dtype = decoder.dtypes[slot]
        return lambda run: run.put(slot, np.full((1, 1), run.clock).astype(dtype))
    have = decoder.dtypes[slot]
    return one_result(lambda x: x, [decoder.source(source, have)], slot, None)


def _pack(decoder: Decoder, destination: Operand, source: Vector, op: Opcode) -> Step:
    """``mov.b64 %rd, {%r1, %r2}``: the first item is the lowest."""
    slot = decoder.destination(destination)
    whole = size_of(op.type)
    part = whole // len(source.items)
    sources = [decoder.source(item, np.dtype(f"u{part}")) for item in source.items]
    if whole == B128.itemsize:
        return one_result(
            lambda *x: np.stack(np.broadcast_arrays(*x), axis=-1).view(B128)[..., 0], sources, slot, None
        )
    wide = np.dtype(f"u{whole}")
    adapt = adapter(decoder, slot, wide)

    def join(*parts: Array) -> Array:
        total = parts[0].astype(wide)
        for i, x in enumerate(parts[1:], 1):
            total = total | (x.astype(wide) << wide.type(8 * part * i))
        return total

    return one_result(join, sources, slot, adapt)


def _unpack(decoder: Decoder, destination: Vector, source: Operand, op: Opcode) -> Step:
    whole = size_of(op.type)
    part = whole // len(destination.items)
    slots = [decoder.destination(item) for item in destination.items]
    narrow = np.dtype(f"u{part}")
    adapters = [adapter(decoder, slot, narrow) for slot in slots]
    if whole == B128.itemsize:

        def pieces(x: Array) -> list[Array]:
            items = np.ascontiguousarray(x).view(narrow).reshape(*x.shape, len(slots))
            return [items[..., i] for i in range(len(slots))]

        return _many_results(pieces, [decoder.source(source, B128)], slots, adapters)
    wide = np.dtype(f"u{whole}")

    def split(x: Array) -> list[Array]:
        return [(x >> wide.type(8 * part * i)).astype(narrow) for i in range(len(slots))]

    return _many_results(split, [decoder.source(source, wide)], slots, adapters)


def _convert_address(decoder: Decoder, op: Opcode, index: int) -> Step:
    """``cvta``: generic address ↔ offset in a window; global and const addresses are generic already."""
    destination, source = op.instruction.operands
    slot = decoder.destination(destination)
    if "param" in op.modifiers and decoder.kernel_parameters:
        near = Source(_first_parameter(decoder))
        return one_result(_near, [decoder.source(source, I64), near], slot, None)
    window = next((WINDOW_OF[m] for m in op.modifiers if m in WINDOW_OF), 0)
    shift = np.int64(-window if "to" in op.modifiers else window)
    if shift == 0:
        return one_result(lambda x: x, [decoder.source(source, I64)], slot, None)
    return one_result(lambda x: x + shift, [decoder.source(source, I64)], slot, adapter(decoder, slot, I64))


def _first_parameter(decoder: Decoder) -> int:
    """The slot with the address of the kernel's first parameter."""
    return decoder.symbol(next(iter(decoder.kernel_parameters)), 0)


def _near(address: Array, base: Array) -> Array:
    """The whole of an address of a parameter, of which Triton takes 32 bits: parameters lie in global memory,
    near each other."""
    return base + (address - base).astype(I32)


def _whole(address: Callable[[list[Array]], Array], first: int) -> Callable[[list[Array]], Array]:
    """`address`, of which a register may have 32 bits, as that of a parameter."""
    return lambda registers: _near(address(registers), registers[first])


def _is_space(decoder: Decoder, op: Opcode, index: int) -> Step:
    destination, source = op.instruction.operands
    space = next(m.partition("::")[0] for m in op.modifiers if m.partition("::")[0] in SPACES)
    start = WINDOW_OF.get(space)
    slot = decoder.destination(destination)
    if space == "shared" and "shared::cluster" not in op.modifiers:
        own = decoder.source(Special("%cluster_ctarank"), I64)
        return one_result(
            lambda x, rank: (x - SHARED_WINDOW) >> RANK_BIT == rank,
            [decoder.source(source, I64), own],
            slot,
            None,
        )

    def test(x: Array) -> Array:
        if start is None:
            return x < LOCAL_WINDOW
        return (x >= start) & (x < start + WINDOW)

    return one_result(test, [decoder.source(source, I64)], slot, None)


# ---- memory --------------------------------------------------------------------------------------


def space_of(op: Opcode) -> str:
    """The memory space that an opcode names; ``generic`` where it names none."""
    for part in op.instruction.parts[1:]:
        name = part.partition("::")[0]
        if name in SPACES:
            return name
    return "generic"


def _load(decoder: Decoder, op: Opcode, index: int) -> Step:
    destination, source = op.instruction.operands[:2]
    space = space_of(op)
    if not op.types or op.type == "b128":
        raise decoder.unsupported(op)
    size = size_of(op.type)
    items = destination.items if isinstance(destination, Vector) else (destination,)
    slots = [decoder.destination(item) for item in items]
    first = next((decoder.dtypes[s] for s in slots if s is not None), SIGNED[size])
    dtype = first if first.itemsize == size else _extended_from(op.type)
    adapters = [adapter(decoder, slot, dtype) for slot in slots]
    if space == "param":
        constant = _parameter_slots(decoder, source, dtype, len(items))
        if constant is not None:
            pairs = list(zip(slots, constant, adapters, strict=True))

            def load_parameter(run: Run) -> None:
                for slot, parameter, adapt in pairs:
                    value = run.registers[parameter]
                    run.put(slot, value if adapt is None else adapt(value))

            return load_parameter
    address = decoder.address(source)
    if space == "param" and decoder.kernel_parameters:
        address = _whole(address, _first_parameter(decoder))
    count = len(items)
    waits = is_volatile(op.instruction)

    def load(run: Run) -> None:
        run.idle += waits
        values = accesses.load(run, index, space, address(run.registers), dtype, count)
        for slot, value, adapt in zip(slots, values, adapters, strict=True):
            run.put(slot, value if adapt is None else adapt(value))

    return load


def _extended_from(type_: str) -> np.dtype:
    """How a loaded value enters a wider register: with its sign if the type has one, else with zeros."""
    return UNSIGNED[size_of(type_)] if type_ in ("b8", "b16", "b32", "b64") else DTYPES[type_]


def _parameter_slots(decoder: Decoder, source: Operand, dtype: np.dtype, count: int) -> list[int] | None:
    """Slots that the launch fills from the argument buffer; None for an address computed at run time."""
    assert isinstance(source, Address)
    if not isinstance(source.base, Symbol) or source.base.name not in decoder.kernel_parameters:
        return None
    start = decoder.kernel_parameters[source.base.name] + source.base.offset + source.offset
    return [decoder.parameter(start + i * dtype.itemsize, dtype) for i in range(count)]


def _store(decoder: Decoder, op: Opcode, index: int) -> Step:
    target, value = op.instruction.operands[:2]
    if not op.types or op.type == "b128":
        raise decoder.unsupported(op)
    size = size_of(op.type)
    items = value.items if isinstance(value, Vector) else (value,)
    dtype = next(
        (
            accesses.memory_dtype(decoder.dtypes[decoder.slot(i.name)], size)
            for i in items
            if isinstance(i, Register)
        ),
        DTYPES[op.type] if op.type in DTYPES and DTYPES[op.type].kind == "f" else SIGNED[size],
    )
    sources = [decoder.source(item, dtype, canonical=True) for item in items]
    address = decoder.address(target)
    space = space_of(op)

    def store(run: Run) -> None:
        registers = run.registers
        values = [source.value(registers) for source in sources]
        accesses.store(run, index, space, address(registers), values)

    return store


def _atomic(decoder: Decoder, op: Opcode, index: int) -> Step:
    operands = list(op.instruction.operands)
    destination = operands.pop(0) if op.name == "atom" else None
    target, *values = operands
    name = next((m for m in op.instruction.parts[1:] if m in atomics.INTEGER), None)
    dtype = (DTYPES | packed.ATOMIC).get(op.type) if op.types else None
    function = None
    if name is not None and dtype is not None:
        function = packed.atomic(name, op.type) or atomics.function(name, dtype)
    if function is None or dtype is None or isinstance(destination, Vector):
        raise decoder.unsupported(op)
    slot = decoder.destination(destination) if destination is not None else None
    keep = slot is not None and isinstance(destination, Register) and destination.name in decoder.read
    adapt = adapter(decoder, slot, dtype)
    sources = [decoder.source(v, dtype, canonical=True) for v in values]
    space = space_of(op)
    address = decoder.address(target)

    def step(run: Run) -> None:
        registers = run.registers
        given = tuple(source.value(registers) for source in sources)
        old = accesses.atomic(run, index, space, address(registers), function, dtype, given, keep)
        if old is not None and slot is not None:
            run.put(slot, old if adapt is None else adapt(old))

    return step


# ---- the rest ------------------------------------------------------------------------------------


def _nothing(decoder: Decoder, op: Opcode, index: int) -> None:
    """Hints and the like: no effect on results."""


def _fence(decoder: Decoder, op: Opcode, index: int) -> Step:
    def step(run: Run) -> None:
        run.idle += 1  # a loop around a fence waits for another thread
        for hear in run.on_fence:
            hear(index, run.lanes, run.chunk)

    return step


def _active_mask(decoder: Decoder, op: Opcode, index: int) -> Step:
    slot = decoder.destination(op.instruction.operands[0])

    def step(run: Run) -> None:
        masks = warps.pack(run.by_warp(run.mask())).repeat(32, axis=-1)
        run.put(slot, masks.reshape(masks.shape[0], -1).view(np.int32))

    return step


def _call(decoder: Decoder, op: Opcode, index: int) -> Step | None:
    instruction = op.instruction
    if build := CALLS.get(instruction.parts[1]):
        return build(decoder, op, index)
    if instruction.parts[1].startswith("__assert"):

        def fail(run: Run) -> None:
            raise Trap(**run.blame(index), what="failed an assertion.")

        return fail
    text, values = (decoder.source(o, I64) for o in instruction.operands)

    def print_(run: Run) -> None:
        _print(run, text.value(run.registers), values.value(run.registers))

    return print_


def _print(run: Run, texts: Array, buffers: Array) -> None:
    """One line of text for each lane of the group, in the order of blocks and threads."""
    texts, buffers = np.broadcast_to(texts, run.shape), np.broadcast_to(buffers, run.shape)
    for row, lane in np.argwhere(np.broadcast_to(run.mask(), run.shape)):
        form = run.c_string(int(texts[row, lane]))
        needed = sum(argument.nbytes + 7 for argument in printing.arguments_of(form))
        raw = printing.unpack_arguments(form, run.peek(row, lane, int(buffers[row, lane]), needed))
        kinds = [m["kind"] for m in printing.SPECIFIER.finditer(form) if m["kind"] != "%"]
        shown = [run.c_string(int(v)) if k == "s" else v for k, v in zip(kinds, raw, strict=True)]
        run.write(printing.render(form, shown))


# What calls have become (`inline`), but for those that print or fail.
CALLS: dict[str, Builder] = {
    "push": call_steps.push,
    "pop": call_steps.pop,
    "malloc": heap_steps.malloc,
    "free": heap_steps.free,
}

BUILDERS: dict[str, Builder] = {
    "mov": _move,
    "cvta": _convert_address,
    "isspacep": _is_space,
    "ld": _load,
    "ldu": _load,
    "st": _store,
    "atom": _atomic,
    "red": _atomic,
    "membar": _fence,
    "fence": _fence,
    "nanosleep": _fence,
    "activemask": _active_mask,
    "call": _call,
    **dict.fromkeys(
        (
            "prefetch",
            "prefetchu",
            "createpolicy",
            "applypriority",
            "discard",
            "pmevent",
            "brkpt",
            "griddepcontrol",
        ),
        _nothing,
    ),
}
