"""All answers together, as addresses of C functions."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from typing import Any

from gpulab.simulator import device as devices

from .errors import Errors, name_of, text_of
from .graphs import GraphCalls
from .kernels import KernelCalls
from .memory import MemoryCalls
from .properties import DeviceCalls
from .streams import StreamCalls
from .structures import Dim3, Layouts
from .textures import TextureCalls

P, I, N = ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t
LINKED = "__cudaRegisterLinkedBinary"  # goes on with the name of a file
Answer = tuple[str, Callable[..., Any], tuple[Any, ...]]


class Runtime:
    """CUDA's runtime for one program. `source` is its text, `now` what its events are timed by, in ms.

    The functions live as long as the object does, which must be as long as the program may call them.
    """

    def __init__(
        self, device: devices.SimulatedDevice, layouts: Layouts, source: str, now: Callable[[], float]
    ):
        self.errors = Errors()
        graphs = GraphCalls()
        memory = MemoryCalls(device, graphs)
        self._kernels = KernelCalls(device, memory, graphs, layouts, source)
        self._texts: dict[bytes, Any] = {}
        about_device = DeviceCalls(device, layouts), TextureCalls(device, memory)
        calls = (memory, self._kernels, graphs, StreamCalls(graphs, now), *about_device)
        self._functions: dict[str, Any] = {
            name: _function(self.errors.guarded(name, answer), types)
            for part in calls
            for name, answer, types in part.answers()
        }
        self._functions |= {
            name: ctypes.CFUNCTYPE(result, *types)(answer) for name, result, answer, types in self._others()
        }

    def _others(self) -> Iterator[tuple[str, Any, Callable[..., Any], tuple[Any, ...]]]:
        """(name, type of the result, answer, types of the arguments) of what returns no error of its own."""
        kernels = self._kernels
        yield "__cudaRegisterFatBinary", P, kernels.register_image, (P,)
        yield "__cudaRegisterFatBinaryEnd", None, lambda _: None, (P,)
        yield "__cudaUnregisterFatBinary", None, lambda _: None, (P,)
        yield "__cudaRegisterFunction", None, kernels.register_function, (P, P, P, P, I, P, P, P, P, P)
        yield "__cudaRegisterVar", None, kernels.register_variable, (P, P, P, P, I, N, I, I)
        yield "__cudaRegisterManagedVar", None, kernels.register_managed, (P, P, P, P, I, N, I, I)
        yield LINKED, None, kernels.register_part, (P, P, P, P)
        yield "__cudaInitModule", ctypes.c_char, lambda _: 1, (P,)
        yield "__cudaPushCallConfiguration", ctypes.c_uint, kernels.push, (Dim3, Dim3, N, P)
        yield "cudaGetLastError", I, self.errors.get, ()
        yield "cudaPeekAtLastError", I, self.errors.peek, ()
        yield "cudaGetErrorString", P, lambda code: self._text(text_of(code)), (I,)
        yield "cudaGetErrorName", P, lambda code: self._text(name_of(code).encode()), (I,)

    def _text(self, text: bytes) -> int:
        """The address of a text of C, which stays."""
        kept = self._texts.setdefault(text, ctypes.create_string_buffer(text))
        return ctypes.addressof(kept)

    def registered(self) -> None:
        """The program is loaded, and has said which kernels and variables it has."""
        self._kernels.registered()

    def address(self, name: str) -> int:
        """The address of the C function of this name; one that is not there says so when it is called."""
        if name.startswith(LINKED):
            name = LINKED
        if name not in self._functions:
            self._functions[name] = _function(self.errors.refuse_missing(name), ())
        return ctypes.cast(self._functions[name], P).value or 0


def _function(answer: Callable[..., int], types: tuple[Any, ...]) -> Any:
    return ctypes.CFUNCTYPE(I, *types)(answer)
