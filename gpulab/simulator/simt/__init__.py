"""Runs PTX on the CPU: all lanes of many blocks at once, in NumPy. Tells observers what happened.

The modules, each group built on those above it:

- records and names: `types`, `errors`, `program`, `opcodes`, `events`;
- meanings, functions of whole arrays that know no registers: `integers`, `floats`, `conversions`, `packed`,
  `warps`, `matrix`, `sparse`, `warpgroup_matrices`, `textures` and others, with `operations` as the table of
  arithmetic, `aligned_sums` for how tensor cores add, and `compiled` for what NumPy has no function for;
- memory (`memory`, `heap`, `journal`), what a launch holds (`frame`), the state of a chunk of blocks
  (`run`), and what changes it: `clusters` (whose shared memory an address means), `accesses`, compiled
  as `moves`, `atomics`, `stacks` (calls that are open), `transfers` (the engine that moves bulk copies),
  `branching`, `block_meetings`, `cluster_meetings`, `warp_meetings`, `warpgroup_meetings`; in words, should
  it never end, `waits`;
- decoding, once per kernel: `call_graph`, `inline`, `layouts` and `operands`, then the builders of steps
  (`steps`, `call_steps`, `heap_steps`, `matrix_steps`, `warpgroup_steps`, `async_copies`, `mbarriers`,
  `bulk_copies`, `tensor_copies`, `texture_steps`, `meetings` and others), `table`, which picks the builder
  for each instruction, and `decoding`, which makes an `Executable` of a parsed kernel;
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
    NoFunction,
    OutOfBounds,
    SimulationError,
    StackOverflow,
    Trap,
    UnsupportedInstruction,
    WrongFree,
    WrongTexture,
)
from .events import Access, Chunk, Observer, State, TensorProduct, Transfer
from .executable import Executable
from .frame import BACKWARDS, HEAP_BYTES, LOCKSTEP, STACK_BYTES, Schedule, two_teams, warp_serial
from .heap import Heap
from .journal import Journal
from .memory import Allocation, Memory, host_address
from .program import Program

__all__ = [
    "BACKWARDS",
    "HEAP_BYTES",
    "LOCKSTEP",
    "STACK_BYTES",
    "Access",
    "Allocation",
    "ArrayLabel",
    "Chunk",
    "DivergentBarrier",
    "Endless",
    "Executable",
    "Heap",
    "Journal",
    "KernelFault",
    "Memory",
    "Misaligned",
    "NoFunction",
    "Observer",
    "OutOfBounds",
    "Program",
    "Schedule",
    "SimulationError",
    "StackOverflow",
    "State",
    "TensorProduct",
    "Transfer",
    "Trap",
    "UnsupportedInstruction",
    "WrongFree",
    "WrongTexture",
    "host_address",
    "launch",
    "load",
    "two_teams",
    "variables_of",
    "warp_serial",
]
