"""Which PTX instructions multiply matrices on tensor cores, and numbers of which type."""

from __future__ import annotations

from collections.abc import Mapping

from gpulab.simulator.ptx import Instruction, by_opcode

# PTX's names of the elements → the data sheets'.
TENSOR_TYPES: Mapping[str, str] = {
    "f16": "float16",
    "bf16": "bfloat16",
    "tf32": "tfloat32",
    "f64": "float64",
    "s8": "int8",
    "u8": "int8",
    "e4m3": "float8",
    "e5m2": "float8",
}
# The kinds of ``tcgen05.mma`` and of Blackwell's ``mma``. Of ``tcgen05.mma`` the opcode says no more.
KINDS: Mapping[str, str] = {
    "kind::f16": "float16",
    "kind::tf32": "tfloat32",
    "kind::f8f6f4": "float8",
    "kind::i8": "int8",
    "kind::mxf8f6f4": "float8",
    "kind::mxf4": "float4",
    "kind::mxf4nvf4": "float4",
}
_TOTALS = ("f32", "s32")  # of what is summed only


@by_opcode
def matrix_dtype(instruction: Instruction) -> str | None:
    """The dtype of the factors of ``mma``, ``wmma.mma``, ``wgmma.mma_async`` and ``tcgen05.mma``; None for
    other instructions and other types. Of ``kind::f16`` it is float16, also where the numbers are bfloat16.

    An opcode ends in the types of result, factors and summand; that of ``wgmma`` in those of result and
    factors. ``wmma.mma`` names no factors of float16.
    """
    parts = instruction.parts
    kind = next((part for part in parts if part in KINDS), None)
    if parts[:2] == ("tcgen05", "mma") or (parts[0] == "mma" and kind):
        return KINDS.get(kind or "")
    if parts[0] != "mma" and parts[:2] not in (("wmma", "mma"), ("wgmma", "mma_async")):
        return None
    types = [part for part in parts if part in TENSOR_TYPES or part in _TOTALS]
    if parts[0] == "wgmma":
        return TENSOR_TYPES.get(types[1]) if len(types) == 3 else None
    return TENSOR_TYPES.get(types[1]) if len(types) == 4 else "float16"
