"""The real package, whose launcher calls the simulated device's driver."""

from __future__ import annotations

import dataclasses
import importlib
import sys
from functools import cache
from types import ModuleType
from typing import Any

from gpulab.foundation.errors import speaking
from gpulab.frontends import driver
from gpulab.simulator import device as devices
from gpulab.simulator.compile import cutile, cutile_errors
from gpulab.simulator.device import LaunchError
from gpulab.simulator.simt import ArrayLabel

from . import libcuda, tuning

LOADER = "cuda.tile._load_libcuda"  # where the launcher looks for the driver


@cache
def package() -> ModuleType:
    """cuTile's own ``cuda.tile``, tied to the simulated device. Raises MissingCompiler in one line."""
    cutile.PACKAGE.check_presence()
    if LOADER in sys.modules:
        raise LaunchError("cuTile has launched on a GPU in this process. Restart it to simulate one.")
    loader = ModuleType(LOADER, libcuda.__doc__)
    loader.cuGetProcAddress_v2_ptrptr = libcuda.GET_PROC_ADDRESS  # type: ignore[attr-defined]
    sys.modules[LOADER] = loader
    cutile.prepare()
    real = importlib.import_module("cuda.tile")
    _compile_here()
    real.launch = launch  # type: ignore[attr-defined]
    for name in ("_cext", "_compile", "_execution"):
        module = importlib.import_module(f"cuda.tile.{name}")
        module.get_compute_capability = lambda device_id=0: devices.current().cc  # type: ignore[attr-defined]
    tuning.install(launch)
    return real


def _compile_here() -> None:
    """A compiled kernel remembers what the learner calls it."""
    from cuda.tile._execution import kernel

    compile = kernel._compile

    def _compile(self: Any, *args: Any) -> Any:
        made = compile(self, *args)
        libcuda.kernels[made[1]] = self._pyfunc.__name__
        return made

    kernel._compile = _compile
    kernel.__getitem__ = _launched_otherwise


def _launched_otherwise(self: Any, grid: Any) -> None:
    """``kernel[grid]``, as numba and Triton launch."""
    raise LaunchError(
        f"cuTile launches by a function: ct.launch(stream, grid, {self._pyfunc.__name__}, (arguments,))."
    )


def launch(stream: Any, grid: Any, kernel: Any, kernel_args: tuple[Any, ...], /, **options: Any) -> None:
    """``cuda.tile.launch``: run a kernel over a grid of tile blocks, at most three numbers.

    Arrays are those of `gpulab.cupy` and `gpulab.cuda`, torch tensors and NumPy arrays; those of the host
    are copied to the device for the launch, and back. `stream` is any: work is done when this returns.
    Raises cuTile's own errors, and what `device.launch` raises.
    """
    from cuda.tile import TileError
    from cuda.tile._cext import launch as real

    refused = TileError, TypeError, ValueError, OverflowError

    if not isinstance(kernel_args, tuple):
        raise LaunchError(f"launch: the kernel's arguments are a tuple, not a {type(kernel_args).__name__}.")
    with driver.enter() as copies:
        given = _Given(kernel, copies)
        moved = tuple(map(given.moved, given.names(kernel_args), kernel_args))
        with driver.labelled(tuple(given.labels)), driver.errors_raised():
            try:
                real(0, grid, kernel, moved, **options)
            except refused as error:
                raise speaking(error, cutile_errors.in_words(error)) from None


class _Given:
    """The arguments of one launch, on their way to the device."""

    def __init__(self, kernel: Any, copies: driver.HostCopies):
        self.kernel, self.copies = kernel, copies
        self.labels: list[ArrayLabel] = []

    def names(self, arguments: tuple[Any, ...]) -> list[str]:
        """The kernel's names of its parameters, as many as there are arguments."""
        function = getattr(self.kernel, "_pyfunc", None)
        known = list(function.__code__.co_varnames[: function.__code__.co_argcount]) if function else []
        return (known + [""] * len(arguments))[: len(arguments)]

    def moved(self, name: str, value: Any) -> Any:
        """The argument as the launcher takes it: arrays of the host are on the device, and arrays in tuples,
        lists and data classes, too."""
        if isinstance(value, tuple | list):
            return type(value)(self.moved(f"{name}[{i}]", item) for i, item in enumerate(value))
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            fields = {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
            return dataclasses.replace(
                value, **{field: self.moved(f"{name}.{field}", item) for field, item in fields.items()}
            )
        if any(stride < 0 for stride in getattr(value, "strides", None) or ()):
            raise LaunchError(
                f"{name} runs backwards through memory, as x[::-1] does, and cuTile counts forwards only. "
                f"Pass a copy: np.ascontiguousarray({name})."
            )
        if driver.is_on_device(value):
            self._label(name, value)
            return driver.exported(value)
        region = driver.region_of(value)
        if region is None:
            return value
        first = value.data_ptr() if hasattr(value, "data_ptr") else value.ctypes.data
        address = self.copies.address(region) + first - region.address
        self._label(name, value, address)
        return driver.exported(value, address)

    def _label(self, name: str, array: Any, address: int | None = None) -> None:
        label = driver.label_of(name, array, address)
        if label is not None:
            self.labels.append(label)
