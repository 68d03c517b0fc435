"""``tex``, ``tld4``, ``suld`` and ``sust`` as steps.

Observers hear nothing of them: how a GPU lays out the memory of a CUDA array is not public, so there would
be no true number of sectors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from gpulab.simulator.ptx import Address, Operand, Vector

from . import accesses
from .errors import OutOfBounds, WrongTexture
from .executable import Step
from .opcodes import Opcode
from .operands import Decoder
from .program import Source
from .run import Run
from .steps import Builder, adapter
from .textures import Texels, Texture, fetch, gather
from .types import DTYPES, I32, I64, size_of

Array = np.ndarray

F32 = DTYPES["f32"]
AXES = {"1d": 1, "2d": 2, "3d": 3, "a1d": 1, "a2d": 2}  # by the opcode's geometry; an ``a`` has layers
COMPONENTS = "rgba"
CUBES = "Cube maps are not simulated: read a layered texture with six layers."


class _Place(NamedTuple):
    """Where an operand ``[object, {coordinates}]`` points: the handle, the coordinates, the layer."""

    handle: Source
    coordinates: list[Source]
    layer: Source | None


def _place(decoder: Decoder, op: Opcode, operand: Operand, dtype: np.dtype) -> _Place:
    geometry = next((part for part in op.instruction.parts if part in AXES), "")
    if not geometry:
        raise decoder.unsupported(op, CUBES)
    assert isinstance(operand, Address) and operand.base is not None
    (given,) = operand.coordinates
    items = given.items if isinstance(given, Vector) else (given,)
    layered = geometry.startswith("a")
    layer = decoder.source(items[0], I32) if layered else None
    places = items[layered : layered + AXES[geometry]]
    return _Place(decoder.source(operand.base, I64), [decoder.source(i, dtype) for i in places], layer)


def _objects(run: Run, index: int, place: _Place, kind: type, what: str) -> Iterator[tuple[object, Array]]:
    """The objects that the group's handles name, each with the lanes that name it."""
    handles = np.broadcast_to(place.handle.value(run.registers), run.shape)
    lanes = run.mask()
    for handle in np.unique(handles[lanes]).tolist():
        here = lanes & (handles == handle)
        found = run.memory.textures.get(handle)
        if not isinstance(found, kind):
            raise WrongTexture(
                **run.blame(index, here),
                what=f"used {handle:#x}, which is no {what}.",
                advice=f"Was the {what} created, handed to the kernel, and not yet destroyed?",
            )
        yield found, here


def _seen(run: Run, index: int, texels: Texels, lanes: Array) -> Array:
    """The texels where they are in memory."""
    allocation = run.memory.find(texels.address)
    if allocation is None or texels.address + texels.nbytes > allocation.address + allocation.nbytes:
        raise WrongTexture(
            **run.blame(index, lanes),
            what="read a texture whose memory is not there any more.",
            advice="Free the array of a texture after the last kernel that reads it.",
        )
    return texels.seen_in(allocation.data, texels.address - allocation.address)


def _reading(
    decoder: Decoder,
    op: Opcode,
    index: int,
    read: Callable[[Texture, Array, list[Array], Array | None], list[Array]],
) -> Step:
    destination, source = op.instruction.operands[:2]
    assert isinstance(destination, Vector)
    result, given = (DTYPES[type_] for type_ in op.types[-2:])
    place = _place(decoder, op, source, F32 if given.kind == "f" else I32)
    slots = [decoder.destination(item) for item in destination.items]
    seen_as = F32 if result.kind == "f" else I32
    adapters = [adapter(decoder, slot, seen_as) for slot in slots]

    def step(run: Run) -> None:
        registers = run.registers
        at = [source.value(registers) for source in place.coordinates]
        layer = None if place.layer is None else place.layer.value(registers)
        values: list[Array] = []
        for texture, lanes in _objects(run, index, place, Texture, "texture object"):
            assert isinstance(texture, Texture)
            there = _seen(run, index, texture.texels, lanes)
            found = [_bits(value, seen_as) for value in read(texture, there, at, layer)]
            values = (
                [np.where(lanes, new, old) for new, old in zip(found, values, strict=True)]
                if values
                else found
            )
        for slot, value, adapt in zip(slots, values, adapters, strict=True):
            run.put(slot, value if adapt is None else adapt(value))

    return step


def _bits(value: Array, dtype: np.dtype) -> Array:
    """A number as 32 bits: whole numbers are widened, nothing is rounded."""
    wide = value.astype(F32 if value.dtype.kind == "f" else I32)
    return wide if wide.dtype == dtype else wide.view(dtype)


def texture(decoder: Decoder, op: Opcode, index: int) -> Step:
    """``tex``. There is one level of detail, so all choices of one mean that."""
    return _reading(decoder, op, index, fetch)


def corners(decoder: Decoder, op: Opcode, index: int) -> Step:
    """``tld4``."""
    channel = COMPONENTS.index(next(part for part in op.instruction.parts if part in COMPONENTS))
    return _reading(decoder, op, index, lambda t, there, at, layer: gather(t, there, at, channel))


# ---- surfaces ------------------------------------------------------------------------------------


def _reached(
    run: Run, index: int, place: _Place, texels: Texels, lanes: Array, nbytes: int, outside: str
) -> tuple[Array, Array]:
    """The address of each lane's element, and which lanes lie inside; x counts bytes."""
    at = [np.broadcast_to(c.value(run.registers), run.shape).astype(np.int64) for c in place.coordinates]
    if place.layer is not None:
        layer = np.broadcast_to(place.layer.value(run.registers), run.shape).astype(np.int64)
        at = [*at, *[np.zeros(run.shape, np.int64)] * (2 - len(at)), layer]
    sizes = (texels.width * texels.texel_bytes - nbytes + 1, max(texels.height, 1), max(texels.depth, 1))
    inside = lanes.copy()
    for coordinate, size in zip(at, sizes, strict=False):
        inside &= (coordinate >= 0) & (coordinate < size)
    if outside == "trap" and (lanes & ~inside).any():
        row, lane = np.argwhere(lanes & ~inside)[0]
        where = ", ".join(f"{name} = {int(c[row, lane])}" for name, c in zip("xyz", at, strict=False))
        raise OutOfBounds(
            **run.blame(index, lanes & ~inside),
            what=f"reached {nbytes} bytes of a surface at {where}, x in bytes; it is "
            f"{texels.width * texels.texel_bytes} bytes wide"
            + (f" and {texels.height} rows high." if texels.height else "."),
            advice="The x of a surface counts bytes, not elements. Or choose cudaBoundaryModeZero or Clamp.",
        )
    steps = (1, texels.pitch, texels.slice_bytes)
    kept = [c.clip(0, size - 1) for c, size in zip(at, sizes, strict=False)]
    address = np.full(run.shape, texels.address, np.int64)
    for coordinate, bytes_ in zip(kept, steps, strict=False):
        address += coordinate * bytes_
    return address, inside if outside == "zero" else lanes


def _surface(decoder: Decoder, op: Opcode, index: int, stores: bool) -> Step:
    target, items = op.instruction.operands[:2] if stores else op.instruction.operands[1::-1]
    assert isinstance(items, Vector)
    size, count = size_of(op.type), len(items.items)
    if op.instruction.parts[1] != "b":
        raise decoder.unsupported(op, "Formatted access to surfaces is not simulated.")
    place = _place(decoder, op, target, I32)
    dtype = np.dtype(f"u{size}")
    outside = next(part for part in ("trap", "clamp", "zero") if part in op.instruction.parts)
    sources = [decoder.source(item, dtype, canonical=True) for item in items.items] if stores else []
    slots = [] if stores else [decoder.destination(item) for item in items.items]
    adapters = [adapter(decoder, slot, dtype) for slot in slots]

    def step(run: Run) -> None:
        loaded: list[Array] = []
        for texels, lanes in _objects(run, index, place, Texels, "surface object"):
            assert isinstance(texels, Texels)
            address, reached = _reached(run, index, place, texels, lanes, size * count, outside)
            values = [source.value(run.registers) for source in sources]
            with run.unheard(), run.only(reached):
                if stores:
                    if reached.any():
                        accesses.store(run, index, "global", address, values)
                    continue
                found = [np.zeros(run.shape, dtype)] * count
                if reached.any():
                    found = accesses.load(run, index, "global", address, dtype, count)
            found = [np.where(reached, value, dtype.type(0)) for value in found]
            loaded = [np.where(lanes, new, old) for new, old in zip(found, loaded or found, strict=True)]
        for slot, value, adapt in zip(slots, loaded, adapters, strict=True):
            run.put(slot, value if adapt is None else adapt(value))

    return step


BUILDERS: dict[str, Builder] = {
    "tex": texture,
    "tld4": corners,
    "suld": lambda decoder, op, index: _surface(decoder, op, index, stores=False),
    "sust": lambda decoder, op, index: _surface(decoder, op, index, stores=True),
}
