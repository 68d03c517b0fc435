"""Triton without a GPU: real Triton compiles, the simulator runs, and everything else is Triton's own.

Simulated: launches (``kernel[grid](…)``), `autotune` (by counted traffic), `heuristics`. Not simulated:
clocks (`testing.do_bench`), graphs, multi-GPU. Kernels are compiled for compute capability 8.0 to 9.0.
"""

from __future__ import annotations

import importlib
from importlib.util import find_spec
from typing import Any

from .jit import Kernel, jit
from .testing import testing
from .tuning import Autotuner, autotune, heuristics

__all__ = ["Autotuner", "JITFunction", "Kernel", "autotune", "heuristics", "jit", "testing"]

JITFunction = Kernel  # some programs make kernels by the class itself


def __getattr__(name: str) -> Any:
    """Whatever does not launch — language, Config, cdiv, next_power_of_2 … — is Triton's."""
    import triton
    import triton.language

    module = f"triton.{name}"
    if name == "runtime" or (not hasattr(triton, name) and find_spec(module)):
        from .driver import install

        install()
        importlib.import_module(module)
    return getattr(triton, name)
