"""Which PTX instructions multiply matrices on tensor cores, and numbers of which type."""

from __future__ import annotations

from collections.abc import Mapping

from gpulab.simulator.ptx import Instruction

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
_TOTALS = ("f32", "s32")  # of what is summed only


def matrix_dtype(instruction: Instruction) -> str | None:
    """The dtype of the factors of ``mma``, ``wmma.mma`` and ``wgmma.mma_async``; None for other instructions
    and other types.

    An opcode ends in the types of result, factors and summand; that of ``wgmma`` in those of result and
    factors. ``wmma.mma`` names no factors of float16.
    """
    parts = instruction.parts
    if parts[0] != "mma" and parts[:2] not in (("wmma", "mma"), ("wgmma", "mma_async")):
        return None
    types = [part for part in parts if part in TENSOR_TYPES or part in _TOTALS]
    if parts[0] == "wgmma":
        return TENSOR_TYPES.get(types[1]) if len(types) == 3 else None
    return TENSOR_TYPES.get(types[1]) if len(types) == 4 else "float16"
