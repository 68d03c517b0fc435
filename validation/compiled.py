"""Kernels compiled for a GPU by its data sheet, and how one machine code is told from another."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from contextlib import contextmanager

from gpulab.simulator import device as devices
from gpulab.simulator.compile import CompiledKernel
from gpulab.simulator.hardware import GPU

# What names the machine, the run or a line of the source, but no instruction.
NAMES_ONLY = re.compile(r"^\s*(?://|\.file|\.loc|\.section|\.b8|\.b32|\.b64|[{}]\s*$).*$", re.MULTILINE)


@contextmanager
def compiling_for(gpu: GPU) -> Iterator[devices.SimulatedDevice]:
    """While it is entered, kernels are compiled for that GPU."""
    device = devices.current()
    before = device.gpu
    try:
        yield devices.simulate(gpu.name)
    finally:
        device.gpu = before


def digest(kernel: CompiledKernel) -> str:
    """A hash of the instructions of a kernel: the same on every machine for the same source and compiler."""
    names = re.compile(
        rf"\b(?:_Z|_cudapy_smem_|{re.escape(kernel.entry)})\w*"
    )  # numba's count what came before
    numbers: dict[str, str] = {}
    text = NAMES_ONLY.sub("", kernel.ptx)
    text = names.sub(lambda found: numbers.setdefault(found[0], f"name{len(numbers)}"), text)
    return hashlib.sha256(re.sub(r"\s+", " ", text).encode()).hexdigest()[:16]
