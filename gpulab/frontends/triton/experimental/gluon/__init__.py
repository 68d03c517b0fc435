"""Gluon without a GPU: Triton's language in which a kernel says its own layouts, shared memory and waits.

Real Triton compiles, the simulator runs, and everything but `jit` is Gluon's own::

    from gpulab.triton.experimental import gluon
    from gpulab.triton.experimental.gluon import language as gl
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from triton.experimental import gluon as _gluon
from triton.experimental.gluon import GluonJITFunction, language, nvidia

from ...jit import Kernel, jit_with

__all__ = ["Kernel", "jit", "language", "nvidia"]

# So that ``from gpulab.triton.experimental.gluon.language.nvidia import hopper`` finds Gluon's own modules.
for _module in (language, nvidia):
    sys.modules[f"{__name__}.{_module.__name__.rpartition('.')[2]}"] = _module


class GluonKernel(Kernel, GluonJITFunction):
    """What `jit` returns: launched as any kernel of Triton."""


def jit(fn: Callable[..., Any] | None = None, **options: Any) -> Any:
    """`gluon.jit`, with or without parentheses."""
    return jit_with(GluonKernel, fn, options)


def __getattr__(name: str) -> Any:
    """Whatever does not launch — aggregate, constexpr_function … — is Gluon's."""
    return getattr(_gluon, name)
