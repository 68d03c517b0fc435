"""Kernels and variables of a program: how its start registers them, and how it launches them."""

from __future__ import annotations

import ctypes
import struct
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from threading import get_ident
from typing import Any

from gpulab.foundation.cpp_names import readable
from gpulab.frontends.cupy.c_types import fits
from gpulab.frontends.cupy.cuda_text import signatures
from gpulab.frontends.driver import Config, labelled, launch, read_config
from gpulab.frontends.driver.functions import nothing, put
from gpulab.simulator import device as devices
from gpulab.simulator.compile import CompiledKernel
from gpulab.simulator.compile.headers import header_folders
from gpulab.simulator.compile.joining import join
from gpulab.simulator.compile.kernel import Capability
from gpulab.simulator.compile.lines import with_learners_lines
from gpulab.simulator.compile.versions import version_in
from gpulab.simulator.device import LaunchError
from gpulab.simulator.hardware import occupancy
from gpulab.simulator.simt import ArrayLabel, variables_of

from .errors import Refused, say
from .fat_binary import NoDecompressor, ptx_at
from .graphs import GraphCalls
from .memory import MemoryCalls
from .structures import Dim3, Layouts

P, I, N = ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t
DYNAMIC_SHARED = 48 * 1024  # bytes: what a kernel may have unless it asked for more
MOST_DYNAMIC_SHARED = 8  # cudaFuncAttributeMaxDynamicSharedMemorySize
INVALID_SYMBOL, INVALID_FUNCTION, NO_KERNEL_IMAGE = 13, 98, 209
STREAM_OF_CONFIG = 32  # where a cudaLaunchConfig_t has its stream


@dataclass
class Image:
    """Device code that belongs together: the PTX of a file, or of several that nvcc keeps to be linked."""

    parts: list[str] = field(default_factory=list)

    @cached_property
    def ptx(self) -> str:
        """All of it as one module; `parts` is complete when this is asked for."""
        first, *others = self.parts
        return join(first, others) if others else first


@dataclass
class Function:
    """A kernel as the host knows it, by the address of its stub. `dynamic` is what it asked for, in bytes."""

    image: Image
    entry: str
    cc: Capability
    dynamic: int = DYNAMIC_SHARED

    @cached_property
    def compiled(self) -> CompiledKernel:
        ptx = self.image.ptx
        return CompiledKernel(readable(self.entry), self.entry, ptx, self.cc, version_in(ptx))


@dataclass(frozen=True)
class Symbol:
    """A variable of the device: the code that has it, its name there, and its bytes."""

    image: Image
    name: str
    nbytes: int


@dataclass
class KernelCalls:
    """The runtime's functions about kernels, and those that nvcc writes into the program's start.

    `source` is the text of the program, in which the kernels' parameters have names.
    """

    device: devices.SimulatedDevice
    memory: MemoryCalls
    graphs: GraphCalls
    layouts: Layouts
    source: str
    _images: dict[int, Image] = field(default_factory=dict)  # by the address of its wrapper
    _linked: tuple[int, Image] | None = None  # what ``-rdc=true`` leaves to be linked, and its first wrapper
    _functions: dict[int, Function] = field(default_factory=dict)
    _symbols: dict[int, Symbol] = field(default_factory=dict)
    _managed: list[tuple[int, Symbol]] = field(default_factory=list)  # whose addresses the host waits for
    # What ``<<<…>>>`` has said for launches that are yet to come, by the thread. Python's own values of a
    # thread do not outlast a call from a thread that C++ has made.
    _waiting: dict[int, list[tuple[Dim3, Dim3, int, int]]] = field(default_factory=dict)

    # ---- the program's start ---------------------------------------------------------------------

    def register_image(self, wrapper: int) -> int:
        """``__cudaRegisterFatBinary``: it returns the handle under which kernels and variables follow."""
        self._images[wrapper] = Image([self._ptx(wrapper)])
        return wrapper

    def register_part(self, callback: int, wrapper: int, *_: int) -> None:
        """``__cudaRegisterLinkedBinary_…``: one of several files of device code, which become one image.

        `callback` is what registers the file's kernels and variables under a handle.
        """
        handle, image = self._linked = self._linked or (wrapper, Image())
        self._images[handle] = image
        image.parts.append(self._ptx(wrapper))
        ctypes.CFUNCTYPE(None, P)(callback)(handle)

    def _ptx(self, wrapper: int) -> str:
        """The PTX of a fat binary; code that was inlined from headers lies on the program's line."""
        folders = header_folders()
        major, minor = self.device.cc
        try:
            ptx = ptx_at(wrapper, 10 * major + minor)
        except NoDecompressor as error:
            say(f"gpulab run: {error}")
            ptx = ""
        return with_learners_lines(ptx, foreign=lambda path: path.startswith(folders) or "/include/" in path)

    def register_function(self, image: int, stub: int, _: int, name: int, *__: int) -> None:
        """``__cudaRegisterFunction``."""
        entry = ctypes.string_at(name).decode()
        self._functions[stub] = Function(self._images[image], entry, self.device.cc)

    def register_variable(
        self, image: int, host: int, _: int, name: int, __: int, nbytes: int, *___: int
    ) -> None:
        """``__cudaRegisterVar``."""
        self._symbols[host] = Symbol(self._images[image], ctypes.string_at(name).decode(), nbytes)

    def register_managed(
        self, image: int, pointer: int, _: int, name: int, __: int, nbytes: int, *___: int
    ) -> None:
        """``__cudaRegisterManagedVar``: the host has a pointer to the variable, which is the same memory."""
        self._symbols[pointer] = Symbol(self._images[image], ctypes.string_at(name).decode(), nbytes)
        self._managed.append((pointer, self._symbols[pointer]))

    def registered(self) -> None:
        """All of the program's device code is there: the host gets the addresses of managed variables."""
        for pointer, symbol in self._managed:
            found = self.device.memory.find(self._address(symbol))
            assert found is not None
            put(pointer, found.data.ctypes.data)
        self._managed.clear()

    # ---- variables -------------------------------------------------------------------------------

    def _address(self, symbol: Symbol) -> int:
        module = self.device.module(symbol.image.ptx)
        places = variables_of(module, self.device.memory)
        if symbol.name not in places:  # no kernel uses it, so that the compiler left it out
            places[symbol.name] = self.device.allocate(symbol.nbytes).address
            self.device.memory.modules[id(module)].addresses.update(places)
        return places[symbol.name]

    def _symbol(self, host: int) -> int:
        if host not in self._symbols:
            raise Refused(
                "this is no __device__ or __constant__ variable of the program. Pass the variable itself, "
                "not its name as a text and not its address.",
                INVALID_SYMBOL,
            )
        return self._address(self._symbols[host])

    def copy_to_symbol(self, host: int, source: int, nbytes: int, offset: int, kind: int, *_: int) -> None:
        """``cudaMemcpyToSymbol``."""
        self.memory.copy(self._symbol(host) + offset, source, nbytes, kind)

    def copy_from_symbol(self, to: int, host: int, nbytes: int, offset: int, kind: int, *_: int) -> None:
        """``cudaMemcpyFromSymbol``."""
        self.memory.copy(to, self._symbol(host) + offset, nbytes, kind)

    def symbol_address(self, where: int, host: int) -> None:
        """``cudaGetSymbolAddress``."""
        put(where, self._symbol(host))

    def symbol_size(self, where: int, host: int) -> None:
        """``cudaGetSymbolSize``."""
        self._symbol(host)
        put(where, self._symbols[host].nbytes)

    # ---- launches --------------------------------------------------------------------------------

    def push(self, grid: Dim3, block: Dim3, shared_bytes: int, stream: int | None) -> int:
        """``__cudaPushCallConfiguration``, which ``<<<…>>>`` becomes."""
        self._waiting.setdefault(get_ident(), []).append((grid, block, shared_bytes, stream or 0))
        return 0

    def pop(self, grid: int, block: int, shared_bytes: int, stream: int) -> None:
        """``__cudaPopCallConfiguration``."""
        *shape, nbytes, of_stream = self._waiting[get_ident()].pop()
        for where, what in zip((grid, block), shape, strict=True):
            ctypes.memmove(where, ctypes.addressof(what), ctypes.sizeof(Dim3))
        put(shared_bytes, nbytes)
        put(stream, of_stream)

    def get_kernel(self, where: int, stub: int) -> None:
        """``__cudaGetKernel``: the stub's address names a kernel."""
        put(where, stub)

    def launch(
        self, stub: int, grid: Dim3, block: Dim3, arguments: int, shared_bytes: int, stream: int
    ) -> int:
        """``cudaLaunchKernel``."""
        return self._launch(stub, _config(grid, block, shared_bytes), arguments, stream)

    def launch_cooperative(
        self, stub: int, grid: Dim3, block: Dim3, arguments: int, shared_bytes: int, stream: int
    ) -> int:
        """``cudaLaunchCooperativeKernel``."""
        return self._launch(stub, _config(grid, block, shared_bytes, cooperative=True), arguments, stream)

    def launch_extended(self, config: int, stub: int, arguments: int) -> int:
        """``cudaLaunchKernelExC``."""
        (stream,) = struct.unpack("Q", ctypes.string_at(config + STREAM_OF_CONFIG, 8))
        return self._launch(stub, read_config(config), arguments, stream)

    def _launch(self, stub: int, config: Config, arguments: int, stream: int) -> int:
        if self.graphs.records(stream):
            kept = self._kept(self._function(stub).compiled, arguments)
            self.graphs.carry_out(stream, lambda: self._launch(stub, config, ctypes.addressof(kept[0]), 0))
            return 0
        function = self._function(stub)
        if not function.image.ptx:
            major, minor = function.cc
            raise Refused(
                f"{readable(function.entry)}: the program has no PTX that a GPU of compute capability "
                f"{major}.{minor} can use, and machine code does not run here. Build it with PTX: nvcc "
                f"-gencode arch=compute_{major}{minor},code=compute_{major}{minor}.",
                NO_KERNEL_IMAGE,
            )
        kernel = function.compiled
        if config.shared_bytes > function.dynamic:
            raise LaunchError(
                f"{kernel.name}: {config.shared_bytes:,} bytes of dynamic shared memory; a kernel has at "
                f"most {function.dynamic:,} unless it asks for more: call cudaFuncSetAttribute("
                f"{kernel.name}, cudaFuncAttributeMaxDynamicSharedMemorySize, {config.shared_bytes}) "
                "before the launch."
            )
        if self.device.program(kernel).syncs_grid and not config.cooperative:
            raise LaunchError(
                f"{kernel.name} waits for the whole grid (this_grid().sync()), which takes a cooperative "
                "launch: cudaLaunchCooperativeKernel."
            )
        flush()  # what a kernel prints comes behind what the host has printed before
        with labelled(tuple(self._labels(kernel, arguments))):
            code = launch(config, kernel, arguments)
        sys.stdout.flush()
        return code

    def _kept(self, kernel: CompiledKernel, arguments: int) -> tuple[Any, list[Any]]:
        """(pointers to copies of a kernel's arguments, these): the program's are gone at a graph's launch."""
        parameters = self.device.program(kernel).parameters
        given = (ctypes.c_void_p * len(parameters)).from_address(arguments) if parameters else ()
        pairs = zip(parameters, given, strict=True)
        copies = [ctypes.create_string_buffer(ctypes.string_at(at, p.nbytes), p.nbytes) for p, at in pairs]
        return (ctypes.c_void_p * len(copies))(*map(ctypes.addressof, copies)), copies

    def _labels(self, kernel: CompiledKernel, arguments: int) -> Iterator[ArrayLabel]:
        """What the arrays behind a kernel's pointers are called: as its parameters in the source."""
        found = signatures(self.source).get(kernel.name.partition("<")[0].rpartition("::")[2])
        parameters = found.instance(kernel.name).parameters if found else ()
        if not arguments or len(parameters) != len(self.device.program(kernel).parameters):
            return
        given = (ctypes.c_void_p * len(parameters)).from_address(arguments)
        for parameter, where in zip(parameters, given, strict=True):
            kind = fits(parameter.pointee) if parameter.is_pointer else None
            if kind is None:
                continue
            address = ctypes.c_uint64.from_address(where).value
            array = self.device.memory.find(address)
            if array is not None:
                count = (array.address + array.nbytes - address) // kind.size
                yield ArrayLabel(parameter.name, address, (count,), (kind.size,), kind.dtype, kind.size)

    def _function(self, stub: int) -> Function:
        if stub not in self._functions:
            raise Refused("this is no kernel of the program.", INVALID_FUNCTION)
        return self._functions[stub]

    # ---- what is known about a kernel ------------------------------------------------------------

    def attributes(self, where: int, stub: int) -> None:
        """``cudaFuncGetAttributes``."""
        function = self._function(stub)
        used = self.device.resources(function.compiled)
        major, minor = self.device.cc
        bounds = self.device.program(function.compiled).module.functions[function.compiled.entry].directives
        most = min(
            self.device.gpu.capability.max_threads_per_block, *bounds.get("maxntid", (1024,))[:1], 1024
        )
        self.layouts.write(
            "cudaFuncAttributes",
            where,
            {
                "sharedSizeBytes": used.shared_bytes,
                "constSizeBytes": used.const_bytes,
                "localSizeBytes": used.local_bytes,
                "maxThreadsPerBlock": most,
                "numRegs": used.registers,
                "ptxVersion": 10 * major + minor,
                "binaryVersion": 10 * major + minor,
                "maxDynamicSharedSizeBytes": function.dynamic - used.shared_bytes,
                "preferredShmemCarveout": -1,
            },
        )

    def set_attribute(self, stub: int, which: int, value: int) -> None:
        """``cudaFuncSetAttribute``. Raises Refused for more shared memory than a block can have."""
        function = self._function(stub)
        if which == MOST_DYNAMIC_SHARED:
            most = self.device.gpu.capability.shared_per_block_optin
            static = self.device.program(function.compiled).shared_bytes
            if not 0 <= value <= most - static:
                raise Refused(
                    f"{value:,} bytes of dynamic shared memory for {function.compiled.name}; a block of the "
                    f"{self.device.gpu.name} has at most {most - static:,} for it."
                )
            function.dynamic = max(value, DYNAMIC_SHARED)

    def active_blocks(self, where: int, stub: int, threads: int, shared_bytes: int, *_: int) -> None:
        """``cudaOccupancyMaxActiveBlocksPerMultiprocessor``."""
        used = self.device.resources(self._function(stub).compiled)
        held = occupancy(self.device.gpu, threads, used.registers, used.shared_bytes + shared_bytes)
        put(where, held.active_blocks, ctypes.c_int)

    def answers(self) -> Iterator[tuple[str, Callable[..., Any], tuple[Any, ...]]]:
        """(name, what answers it, types of its arguments) of each function that returns an error code."""
        yield "__cudaPopCallConfiguration", self.pop, (P, P, P, P)
        yield "__cudaGetKernel", self.get_kernel, (P, P)
        for name in ("cudaLaunchKernel", "__cudaLaunchKernel"):
            yield name, self.launch, (P, Dim3, Dim3, P, N, P)
        yield "cudaLaunchCooperativeKernel", self.launch_cooperative, (P, Dim3, Dim3, P, N, P)
        yield "cudaLaunchKernelExC", self.launch_extended, (P, P, P)
        yield "cudaFuncGetAttributes", self.attributes, (P, P)
        yield "cudaFuncSetAttribute", self.set_attribute, (P, I, I)
        yield "cudaFuncSetCacheConfig", nothing, (P, I)
        yield "cudaOccupancyMaxActiveBlocksPerMultiprocessor", self.active_blocks, (P, P, I, N)
        yield "cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags", self.active_blocks, (P, P, I, N, I)
        yield "cudaMemcpyToSymbol", self.copy_to_symbol, (P, P, N, N, I)
        yield "cudaMemcpyToSymbolAsync", self.copy_to_symbol, (P, P, N, N, I, P)
        yield "cudaMemcpyFromSymbol", self.copy_from_symbol, (P, P, N, N, I)
        yield "cudaMemcpyFromSymbolAsync", self.copy_from_symbol, (P, P, N, N, I, P)
        yield "cudaGetSymbolAddress", self.symbol_address, (P, P)
        yield "cudaGetSymbolSize", self.symbol_size, (P, P)


def _config(grid: Dim3, block: Dim3, shared_bytes: int, cooperative: bool = False) -> Config:
    (gx, gy, gz), (bx, by, bz) = grid, block
    return Config((gx, gy, gz), (bx, by, bz), shared_bytes, cooperative=cooperative)


def flush() -> None:
    """Write out what the program has printed so far."""
    ctypes.CDLL(None).fflush(None)
