"""Runs PTX on the CPU: all lanes of many blocks at once, in NumPy. Tells observers what happened."""

from .decoding import load
from .engine import launch, variables_of
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
from .executable import Executable
from .frame import BACKWARDS, LOCKSTEP, Schedule, two_teams, warp_serial
from .journal import Journal
from .memory import Allocation, Memory
from .program import Program

__all__ = [
    "BACKWARDS",
    "LOCKSTEP",
    "Access",
    "Allocation",
    "ArrayLabel",
    "Chunk",
    "DivergentBarrier",
    "Endless",
    "Executable",
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
