"""What a compiler hands over: PTX with a name, or an error in words."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from gpulab.foundation.errors import Message

Capability = tuple[int, int]
OF_A_TILE = "___NV_TILE_LAUNCH_META_DATA___"  # a variable in the PTX of cuTile, and in no other


def cure_of(said: str, cures: Iterable[tuple[str, str]]) -> str:
    """What helps against what a compiler said: the first cure whose pattern it contains, or nothing."""
    return next((cure for pattern, cure in cures if re.search(pattern, said)), "")


def extends_shared(ptx: str) -> bool:
    """Whether static shared memory may be as large as dynamic: cuTile asks ptxas for that."""
    return OF_A_TILE in ptx


@dataclass(frozen=True)
class CompiledKernel:
    """One kernel for one set of argument types and one compute capability.

    `name` is what the learner called it, `entry` its name in `ptx`, `compiler` e.g. ``NVVM 13.5``.
    `max_registers` is the limit per thread that the learner asked for; it binds ptxas, not the PTX.
    `with_variables` compiles the same kernel, for the same arguments, so that its PTX says where each named
    variable is (`ptx.source_variables`): slowly, and with other instructions; None where no compiler can.
    `numbers` gives what names outside of the source stand for, such as the size of a tile.
    `exceptions` are those that the kernel may raise, (class, arguments, place) by the number that it leaves
    in memory; only numba's ``debug=True`` makes a kernel raise.
    """

    name: str
    entry: str
    ptx: str = field(repr=False)
    cc: Capability
    compiler: str
    max_registers: int | None = None
    with_variables: Callable[[], CompiledKernel] | None = field(default=None, compare=False, repr=False)
    exceptions: Mapping[int, Any] = field(default_factory=dict, compare=False, repr=False)
    numbers: Mapping[str, int] = field(default_factory=dict, compare=False, repr=False)

    @property
    def cooperative(self) -> bool:
        """Whether its blocks wait for each other, so that all of them must be on the GPU at once."""
        return "cudaCGSynchronize" in self.ptx

    @property
    def replicates(self) -> bool:
        """Whether the compiler may hold a number in several lanes and let all of them store it, as Triton
        does with sums; their last bits may differ."""
        return self.compiler.startswith(("Triton", "cuTile"))

    @property
    def places_waits(self) -> bool:
        """Whether the compiler alone waits for what is loaded from Tensor Memory: the program cannot, and
        LLVM moves the wait behind a use, which the assembler sees to."""
        return self.compiler.startswith(("Triton", "cuTile"))

    @property
    def extends_shared(self) -> bool:
        """Whether its static shared memory may be as large as dynamic."""
        return extends_shared(self.ptx)

    @property
    def guard(self) -> str:
        """What its language calls that which keeps an index inside an array."""
        return "mask" if self.compiler.startswith("Triton") else "guard"

    @property
    def digest(self) -> str:
        """A hash of the PTX and the entry, of which a text may have several: equal hash, equal behaviour."""
        return hashlib.sha256(f"{self.entry}\0{self.ptx}".encode()).hexdigest()


class CompileError(Message):
    """A function that cannot become a kernel: `line` and its `text`, `why`, and the `cure`.

    `file` is set when the line is not in the kernel's own file, but in a device function elsewhere.
    """

    def __init__(self, kernel: str, why: str, cure: str = "", line: int = 0, text: str = "", file: str = ""):
        self.kernel, self.why, self.cure, self.line, self.text, self.file = (
            kernel,
            why,
            cure,
            line,
            text,
            file,
        )
        place = f", line {line}" if line else ""
        if file:
            place += f" of {os.path.basename(file)}"
        source = f"    {line} │ {text}" if text else ""
        super().__init__("\n".join(filter(None, [f"CompileError in {kernel}{place}", source, why, cure])))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.kernel, self.why, self.cure, self.line, self.text, self.file)


class AssertionDoesNotHold(CompileError):
    """What a kernel itself demands of its constants, as by ``tl.static_assert``, is not so."""
