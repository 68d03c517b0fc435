"""The parts of numba.cuda that the simulated device does not have. Each says so when it is used."""

from __future__ import annotations

from typing import Any, NoReturn

from gpulab.foundation.errors import Message

# Name → what to do instead.
NOT_SIMULATED = {
    "open_ipc_array": "Share arrays between processes through the host.",
    "set_memory_manager": "",
}


class SimulationGap(Message, NotImplementedError):
    """A part of numba.cuda that is not simulated was used."""


class NotSimulated:
    """Stands where a missing part would be."""

    def __init__(self, name: str):
        self._name = name

    def __call__(self, *args: Any, **kwargs: Any) -> NoReturn:
        advice = NOT_SIMULATED[self._name]
        raise SimulationGap(
            f"cuda.{self._name} is not simulated; it needs a GPU.{' ' + advice if advice else ''}"
        )

    def __repr__(self) -> str:
        return f"<cuda.{self._name}, not simulated>"
