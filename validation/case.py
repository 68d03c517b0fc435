"""What a kernel of the validation is: where its text lies, what it is launched with, what must come out."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from gpulab.frontends import cuda as simulated_cuda
from gpulab.frontends import cupy as simulated_cupy

Array = np.ndarray
FOLDER = Path(__file__).parent / "kernels"
CUDA_C, NUMBA = "cuda", "numba"


@dataclass(frozen=True)
class Case:
    """One launch: NumPy arrays and scalars in the order of the kernel's parameters, in both languages.

    `expected` maps the number of an argument to what the array must hold afterwards, up to `rtol` and `atol`
    as `numpy.allclose` takes them; both are 0 where arithmetic is exact. `shared` is dynamic shared memory in
    bytes.
    """

    grid: tuple[int, ...]
    block: tuple[int, ...]
    arguments: tuple[Any, ...]
    expected: Mapping[int, Array]
    shared: int = 0
    rtol: float = 0.0
    atol: float = 0.0


@dataclass(frozen=True)
class Kernel:
    """One row of the table: `entry` of `file`, launched as `case(size)` says, for three sizes, the smallest
    first. Several rows may launch the same entry differently."""

    name: str
    file: str
    entry: str
    case: Callable[[int], Case] = field(compare=False)
    sizes: tuple[int, int, int]


@dataclass(frozen=True)
class Variant:
    """A kernel in one language. Its `key` names it on the command line and in files: ``copy/numba``."""

    kernel: Kernel
    language: str

    @property
    def key(self) -> str:
        return f"{self.kernel.name}/{self.language}"

    def prepared(self, case: Case) -> tuple[Callable[..., None], tuple[Any, ...]]:
        """What launches it, and new arrays on the simulated device to launch it with."""
        kernel = self.kernel
        if self.language == CUDA_C:
            given = tuple(simulated_cupy.asarray(a) if isinstance(a, Array) else a for a in case.arguments)
            return _in_cuda_c(kernel.file, kernel.entry, case), given
        given = tuple(simulated_cuda.to_device(a) if isinstance(a, Array) else a for a in case.arguments)
        return in_numba(kernel.file)[kernel.entry][case.grid, case.block, 0, case.shared], given


def _in_cuda_c(file: str, entry: str, case: Case) -> Callable[..., None]:
    raw = _raw(file, entry)

    def launch(*arguments: Any) -> None:
        raw(case.grid, case.block, arguments, shared_mem=case.shared)

    return launch


@cache
def _raw(file: str, entry: str) -> Any:
    return simulated_cupy.RawKernel(text_of(file), entry)


@cache
def text_of(file: str) -> str:
    """The CUDA C of one file."""
    return (FOLDER / f"{file}.cu").read_text(encoding="utf-8")


def in_cuda_c(file: str) -> set[str]:
    """The kernels that the CUDA C of one file defines."""
    return set(re.findall(r"__global__ void (\w+)\(", text_of(file)))


@cache
def in_numba(file: str) -> dict[str, Any]:
    """The kernels that the numba half of one file defines, by name."""
    module = import_module(f"validation.kernels.{file}")
    return {name: thing for name, thing in vars(module).items() if isinstance(thing, simulated_cuda.Kernel)}


def wrong(case: Case, after: tuple[Any, ...]) -> str:
    """What is wrong with the arrays after a launch, on the device or brought back, in a sentence; empty where
    all is right."""
    for number, wanted in case.expected.items():
        got = _on_host(after[number])
        if not np.allclose(got, wanted, rtol=case.rtol, atol=case.atol):
            where = int(np.flatnonzero(~np.isclose(got, wanted, rtol=case.rtol, atol=case.atol))[0])
            return f"argument {number} is {got[where]} at [{where}], where {wanted[where]} is right"
    return ""


def _on_host(array: Any) -> Array:
    if isinstance(array, np.ndarray):
        return array
    return np.asarray(array.get() if hasattr(array, "get") else array.copy_to_host())
