"""Runs PTX on the CPU: all lanes of many blocks at once, in NumPy. Tells observers what happened.

The modules, each group built on those above it:

- records and names: `types`, `errors`, `program`, `opcodes`, `events`;
- meanings, functions of whole arrays that know no registers: `integers`, `floats`, `conversions`, `packed`,
  `warps`, `matrix`, `sparse`, `warpgroup_matrices` and others, with `operations` as the table of arithmetic,
  `aligned_sums` for how tensor cores add, and `compiled` for what NumPy has no function for;
- memory (`memory`, `journal`), what a launch holds (`frame`), the state of a chunk of blocks (`run`), and
  what changes it: `clusters` (whose shared memory an address means), `accesses`, compiled as `moves`,
  `atomics`, `transfers` (the engine that moves bulk copies), `branching`, `block_meetings`,
  `cluster_meetings`, `warp_meetings`, `warpgroup_meetings`; in words, should it never end, `waits`;
- decoding, once per kernel: `inline`, `layouts` and `operands`, then the builders of steps (`steps`,
  `matrix_steps`, `warpgroup_steps`, `async_copies`, `mbarriers`, `bulk_copies`, `tensor_copies`,
  `cluster_steps`, `meetings` and others), `table`, which picks the builder for each instruction, and
  `decoding`, which makes an `Executable` of a parsed kernel;
- running, once per launch: `engine` and `scheduling`.
"""

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
from .events import Access, Chunk, Observer, State, TensorProduct, Transfer
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
    "State",
    "TensorProduct",
    "Transfer",
    "Trap",
    "UnsupportedInstruction",
    "launch",
    "load",
    "two_teams",
    "variables_of",
    "warp_serial",
]
