"""Triton without a GPU: real Triton compiles, the simulator runs, and everything else is Triton's own.

Simulated: launches (``kernel[grid](…)``), `autotune` (by counted traffic), `heuristics`. Not simulated:
clocks (`testing.do_bench`), graphs, multi-GPU. Kernels are compiled for compute capability 8.0 to 9.0.
"""

from __future__ import annotations

import importlib
from typing import Any

from .jit import Kernel, jit
from .testing import testing
from .tuning import Autotuner, autotune, heuristics

__all__ = ["Autotuner", "JITFunction", "Kernel", "autotune", "heuristics", "jit", "testing"]

JITFunction = Kernel  # some programs make kernels by the class itself


def __getattr__(name: str) -> Any:
    """Whatever does not launch — language, Config, cdiv, next_power_of_2 … — is Triton's, as are modules that
    nobody has imported yet, such as its profiler."""
    import triton
    import triton.language

    if name == "experimental":  # ours, and not Triton's, whether that is imported or not
        return importlib.import_module(f"{__name__}.experimental")
    if name == "_C":
        from .blas import install as install_blas

        install_blas()
    if name == "runtime" or (not hasattr(triton, name) and not name.startswith("__")):
        from .driver import install

        install()
    if not hasattr(triton, name) and not name.startswith("__"):
        try:
            importlib.import_module(f"triton.{name}")
        except ModuleNotFoundError as error:
            raise AttributeError(f"Triton has no {name!r}.") from error
    return getattr(triton, name)
