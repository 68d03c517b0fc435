"""numba.cuda.random on the simulated device: generators run in kernels, their states are made on the host.

Imported under two names (``gpulab.cuda.random`` too), so it shares the rest of the face by absolute imports.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.cuda.random import *  # noqa: F403
from numba.cuda.random import init_xoroshiro128p_states_cpu, xoroshiro128p_dtype

from gpulab.frontends.cuda.arrays import DeviceArray
from gpulab.frontends.cuda.transfers import to_device


def create_xoroshiro128p_states(
    n: int, seed: int, subsequence_start: int = 0, stream: Any = 0
) -> DeviceArray:
    """A device array of `n` generator states, 2⁶⁴ steps apart."""
    states = np.empty(n, dtype=xoroshiro128p_dtype)
    init_xoroshiro128p_states_cpu(states, seed, subsequence_start)
    return to_device(states, stream)


def init_xoroshiro128p_states(
    states: DeviceArray, seed: int, subsequence_start: int = 0, stream: Any = 0
) -> None:
    """Seed the generator states in a device array again."""
    states.copy_to_device(create_xoroshiro128p_states(len(states), seed, subsequence_start))
