"""The machine code that ptxas makes of PTX, as nvdisasm writes it. Needs no GPU and no driver."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from functools import cache, lru_cache

from gpulab.foundation.errors import Message

from .kernel import Capability, CompileError
from .ptxas import link

SECTION = re.compile(r"^\.text\.(\S+):$")
PLACE = re.compile(r'//## File "[^"]*", line (\d+)')
LABEL = re.compile(r"^(\.L_\w+):$")
INSTRUCTION = re.compile(r"/\*([0-9a-f]{4,})\*/\s+(.*?)\s*;")


class NoDisassembler(Message):
    """nvdisasm is not installed, so machine code cannot be read here."""


@dataclass(frozen=True)
class MachineInstruction:
    """One instruction of SASS: its address in bytes, its text, and the source line that it comes from (0 for
    none). `label` is a jump's target that stands before it, empty for most."""

    address: int
    text: str
    line: int = 0
    label: str = ""

    def __str__(self) -> str:
        label = f"{self.label}:\n" if self.label else ""
        return f"{label}    {self.address:04x}  {self.text}"


@lru_cache(maxsize=64)
def sass(ptx: str, cc: Capability = (8, 0), entry: str | None = None) -> tuple[MachineInstruction, ...]:
    """The machine code of a kernel of `ptx` (the first by default) on a GPU of compute capability `cc`.

    What ptxas puts behind the code to fill it up is left out. Raises NoDisassembler without nvdisasm,
    CompileError where ptxas refuses the PTX or has no kernel `entry`.

    >>> text = ".version 8.0 .target sm_80 .address_size 64 .visible .entry stop() { ret; }"
    >>> "EXIT" in [instruction.text for instruction in sass(text)]
    True
    """
    listings = _listings(_disassembled(link(ptx, cc)[1]))
    if not listings or (entry is not None and entry not in listings):
        raise CompileError(entry or "a kernel", f"the PTX has no kernel of that name: {', '.join(listings)}")
    return listings[entry] if entry is not None else next(iter(listings.values()))


@cache
def disassembler() -> str:
    """Where nvdisasm is: on the PATH, or in the wheel of Triton, which brings it along; empty if nowhere."""
    if found := shutil.which("nvdisasm"):
        return found
    spec = importlib.util.find_spec("triton")
    folders = spec.submodule_search_locations if spec else None
    for folder in folders or ():
        path = os.path.join(folder, "backends", "nvidia", "bin", "nvdisasm")
        if os.access(path, os.X_OK):
            return path
    return ""


def _disassembled(cubin: bytes) -> str:
    tool = disassembler()
    if not tool:
        raise NoDisassembler(
            "nvdisasm is not installed here, so machine code cannot be read; PTX can. It comes with "
            "the wheel of Triton (pip install triton) and with NVIDIA's CUDA Toolkit."
        )
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        run = subprocess.run([tool, "-c", "-g", file.name], capture_output=True, text=True, check=False)
    if run.returncode:
        raise NoDisassembler(f"nvdisasm cannot read the machine code: {run.stderr.strip()}")
    return run.stdout


def _listings(text: str) -> dict[str, tuple[MachineInstruction, ...]]:
    """The instructions by kernel."""
    found: dict[str, list[MachineInstruction]] = {}
    current: list[MachineInstruction] = []
    label, line = "", 0
    for row in map(str.strip, text.splitlines()):
        if match := SECTION.match(row):
            current, label, line = found.setdefault(match[1], []), "", 0
        elif match := LABEL.match(row):
            label = match[1]
        elif match := PLACE.search(row):
            line = int(match[1])
        elif match := INSTRUCTION.search(row):
            current.append(MachineInstruction(int(match[1], 16), match[2], line, label))
            label = ""
    return {name: _without_filling(tuple(listing)) for name, listing in found.items()}


def _without_filling(listing: tuple[MachineInstruction, ...]) -> tuple[MachineInstruction, ...]:
    """Without the jump to itself and the NOPs with which a kernel ends."""
    last = len(listing)
    while last and listing[last - 1].text == "NOP":
        last -= 1
    if last and listing[last - 1].label and f"({listing[last - 1].label})" in listing[last - 1].text:
        last -= 1
    return listing[:last]
