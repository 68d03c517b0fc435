"""A process in which "a GPU" means the simulated one: for programs that were written for real ones."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np

from gpulab.simulator import device as devices
from gpulab.simulator import hardware

from . import imports
from .late import once_imported


def install(gpu: str = "") -> devices.SimulatedDevice:
    """From now on this process and those that it starts simulate a GPU: the device.

    `gpu` is a name of the catalogue, or empty for the one in use. Imports of CUDA packages lead to the faces,
    and PyTorch's "cuda" device means the CPU. Raises hardware.UnknownGPU.
    """
    chosen = hardware.find(gpu) if gpu else devices.current().gpu
    os.environ |= {"GPULAB_SIMULATE": "1", "GPULAB_GPU": chosen.name}
    device = devices.simulate(chosen.name)
    imports.install()
    once_imported("torch", _let_cuda_mean_the_cpu)
    return device


def _let_cuda_mean_the_cpu() -> None:
    from . import torch_cuda

    torch_cuda.install()


def fill_new_memory(device: devices.SimulatedDevice, fill: str) -> None:
    """From now on new memory of the device, and new tensors of PyTorch's, hold this: nan, zero or random."""
    if fill == "nan":  # as the device's does; tensors keep what PyTorch leaves in them
        return
    device.memory.unwritten = FILLS[fill]

    def let_tensors_hold_it() -> None:
        from . import torch_cuda

        torch_cuda.fill_new_tensors(FILLS[fill])

    once_imported("torch", let_tensors_hold_it)


@contextmanager
def timed_by(clock: str) -> Iterator[None]:
    """While it is entered, Triton's benchmarks are timed by this clock: none, wall or modelled."""
    with ExitStack() as stack:

        def begin() -> None:
            from gpulab.frontends.triton.testing import testing

            stack.enter_context(testing.timed_by(CLOCKS[clock]))

        once_imported("gpulab.frontends.triton", begin)
        yield


def _no_time(fn: Callable[[], Any]) -> float:
    """Runs the function, so that it is checked and counted; its time is not a number."""
    fn()
    return float("nan")


def _wall_time(fn: Callable[[], Any]) -> float:
    """The milliseconds of the simulation."""
    began = time.perf_counter()
    fn()
    return 1e3 * (time.perf_counter() - began)


def _modelled_time(fn: Callable[[], Any]) -> float:
    """The milliseconds of the function's kernels by the time model; not a number where it launches none."""
    from gpulab.analysis.machine.modelled import modelled
    from gpulab.analysis.profile.watch import NothingLaunched

    try:
        return 1e3 * modelled(fn).seconds
    except NothingLaunched:
        return float("nan")


_DRAW = np.random.default_rng(0)  # the same bytes in every run
FILLS: dict[str, Callable[[int], np.ndarray]] = {
    "zero": lambda nbytes: np.zeros(nbytes, np.uint8),
    "random": lambda nbytes: _DRAW.integers(0, 256, nbytes, np.uint8),
}
CLOCKS = {"none": _no_time, "wall": _wall_time, "modelled": _modelled_time}
