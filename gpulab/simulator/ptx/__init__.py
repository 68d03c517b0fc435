"""PTX text → modules of instructions in basic blocks, with source lines. Knows no machine."""

from .dataflow import reads, split_operands, writes
from .debug_info import Scalar, SourceVariable, Where, label_lines, source_variables
from .declarations import parse_prototype
from .dominance import immediate_post_dominators
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
    by_opcode,
)
from .listing import print_instruction, print_module
from .liveness import live_before, live_registers
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
    "Scalar",
    "SourceVariable",
    "Special",
    "Symbol",
    "Variable",
    "Vector",
    "Where",
    "by_opcode",
    "immediate_post_dominators",
    "label_lines",
    "live_before",
    "live_registers",
    "parse",
    "parse_prototype",
    "print_instruction",
    "print_module",
    "reads",
    "source_variables",
    "split_operands",
    "writes",
]
