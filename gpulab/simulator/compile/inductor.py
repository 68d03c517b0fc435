"""What ``torch.compile`` makes of a PyTorch function: the Triton kernels that Inductor writes, anywhere.

Inductor writes Triton for GPUs and C++ for CPUs. Told to use Triton for the CPU too, it writes the same kind
of code and needs no GPU for it; compiling and running the code is left to others.
"""

from __future__ import annotations

import linecache
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import ModuleType
from typing import Any

_KERNEL = re.compile(r"= async_compile\.triton\('(?P<name>\w+)', '''(?P<text>.*?)'''", re.DOTALL)
_STEP = re.compile(
    r"^\s+(?:(?P<kernel>\w+)\.run\((?P<given>.*), stream=|extern_kernels\.(?P<library>\w+)\()", re.M
)
TARGET = ("cuda", 80, 32)  # what Inductor asks Triton's driver for, and puts into its cache key


@dataclass(frozen=True)
class Generated:
    """A kernel that Inductor wrote: its name and its Triton source, decorator included."""

    name: str
    source: str

    def define(self, triton: ModuleType) -> Any:
        """The kernel, as the given Triton's `jit` makes it."""
        import triton.language as tl
        from torch._inductor.runtime import triton_helpers

        file = f"<{self.name}>"
        linecache.cache[file] = (len(self.source), None, self.source.splitlines(True), file)
        names = {
            "triton": triton,
            "tl": tl,
            "triton_helpers": triton_helpers,
            "libdevice": triton_helpers.libdevice,
            "tl_math": triton_helpers.math,
        }
        exec(compile(self.source, file, "exec"), names)
        return names[self.name]


@dataclass(frozen=True)
class Program:
    """What Inductor made of a function: `kernels` by name, and `steps` in the order of their launches, each
    the name of a kernel or of a library function (``addmm``)."""

    kernels: dict[str, Generated]
    steps: tuple[str, ...]


class _Written(Exception):
    """The code is there; nothing of it is to be compiled."""


class _Driver:
    """What Inductor asks of a GPU's driver while it writes."""

    def get_current_target(self) -> Any:
        from triton.backends.compiler import GPUTarget

        return GPUTarget(*TARGET)


def inductor(fn: Callable[..., Any], *inputs: Any) -> Program:
    """The Triton program that ``torch.compile`` makes of ``fn(*inputs)``; the inputs are tensors of the CPU.

    Raises what the function raises, and PyTorch's own error where it makes more than one graph.
    """
    import torch

    written: list[str] = []
    torch._dynamo.reset()
    with _writing(written):
        try:
            torch.compile(fn, fullgraph=True)(*inputs)
        except Exception:
            if not written:
                raise
    torch._dynamo.reset()
    (code,) = written
    kernels = {}
    for match in _KERNEL.finditer(code):
        _, jit, body = match["text"].partition("@triton.jit\n")
        kernels[match["name"]] = Generated(match["name"], jit + body)
    steps = tuple(step["kernel"] or step["library"] for step in _STEP.finditer(code))
    return Program(kernels, steps)


@contextmanager
def _writing(written: list[str]) -> Iterator[None]:
    """Inside, Inductor writes Triton, hands its code over, and stops."""
    import triton
    from torch._inductor import config
    from torch._inductor.graph import GraphLowering

    def keep(code: str) -> None:
        written.append(code)
        raise _Written

    driver, save = triton.runtime.driver._active, GraphLowering.save_output_code
    triton.runtime.driver.set_active(_Driver())
    GraphLowering.save_output_code = staticmethod(keep)
    try:
        with config.patch(cpu_backend="triton", fx_graph_cache=False, compile_threads=1):
            yield
    finally:
        triton.runtime.driver._active = driver
        GraphLowering.save_output_code = save
