"""Runs PTX on the CPU: all lanes of many blocks at once, in NumPy. Tells observers what happened."""

from .engine import BACKWARDS, LOCKSTEP, Schedule, launch, two_teams, variables_of, warp_serial
from .errors import (
    ArrayLabel,
    DivergentBarrier,
    Endless,
    KernelFault,
    Misaligned,
    OutOfBounds,
    SimulationError,
    Trap,
    UnsupportedInstruction,
)
from .events import Access, Chunk, Observer
from .journal import Journal
from .memory import Allocation, Memory
from .program import Program, load

__all__ = [
    "BACKWARDS",
    "LOCKSTEP",
    "Access",
    "Allocation",
    "ArrayLabel",
    "Chunk",
    "DivergentBarrier",
    "Endless",
    "Journal",
    "KernelFault",
    "Memory",
    "Misaligned",
    "Observer",
    "OutOfBounds",
    "Program",
    "Schedule",
    "SimulationError",
    "Trap",
    "UnsupportedInstruction",
    "launch",
    "load",
    "two_teams",
    "variables_of",
    "warp_serial",
]
