"""Triton's own kernels, as a learner has them on a machine with a GPU, become simulated ones."""

from __future__ import annotations

import sys
from typing import Any


def is_tritons(thing: Any) -> bool:
    """Whether it is a kernel of Triton itself, tuned or not. Loads nothing: who has none has not imported
    Triton."""
    if "triton" not in sys.modules:
        return False
    from triton.runtime import Autotuner, JITFunction

    from gpulab.frontends.triton import Kernel

    return isinstance(thing, JITFunction | Autotuner) and not isinstance(thing, Kernel)


def simulated(thing: Any) -> Any:
    """The same kernel for the simulated device. Kernels that it calls stay: the compiler takes Triton's."""
    from triton.runtime import Autotuner

    from gpulab.frontends import triton as simulated_triton

    if isinstance(thing, Autotuner):
        return simulated_triton.Autotuner(simulated(thing.fn), thing.configs, thing.keys)
    return simulated_triton.jit(thing.fn)
