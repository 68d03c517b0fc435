"""PTX text → modules of instructions in basic blocks, with source lines. Knows no machine."""

from .ir import (
    Address,
    Arguments,
    BasicBlock,
    Function,
    Immediate,
    Instruction,
    Location,
    Module,
    Negated,
    Operand,
    Pair,
    PtxError,
    Register,
    Special,
    Symbol,
    Variable,
    Vector,
)
from .parser import parse

__all__ = [
    "Address",
    "Arguments",
    "BasicBlock",
    "Function",
    "Immediate",
    "Instruction",
    "Location",
    "Module",
    "Negated",
    "Operand",
    "Pair",
    "PtxError",
    "Register",
    "Special",
    "Symbol",
    "Variable",
    "Vector",
    "parse",
]
