"""`cupy.RawKernel` and `cupy.RawModule`: CUDA C++ compiled by NVRTC, run by the simulated device."""

from __future__ import annotations

import difflib
import re
import warnings
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any, NoReturn

from gpulab.foundation.errors import Message, shorten
from gpulab.simulator import device as devices
from gpulab.simulator.compile import CompiledKernel, Resources, cuda_c_module
from gpulab.simulator.compile.versions import version_in
from gpulab.simulator.device import Launch, LaunchError
from gpulab.simulator.device.launch import Dim3
from gpulab.simulator.hardware import occupancy
from gpulab.simulator.simt import SimulationError, variables_of

from .arguments import pack
from .compiler import INCLUDE, warn_of_jitify
from .cuda_text import Signature, signatures
from .driver import CUDADriverError
from .memory import MemoryPointer, UnownedMemory
from .streams import Stream

MAX_REGISTERS = re.compile(r"--?maxrregcount=(\d+)")
DYNAMIC_SHARED = 48 * 1024  # bytes: what a kernel may have unless it asked for more
MISSING = "CUDA_ERROR_NOT_FOUND: named symbol not found"


class RawKernel:
    """A kernel written in CUDA C++: ``kernel((blocks,), (threads,), (arguments…))``.

    It is compiled at its first launch, for the compute capability of the simulated GPU.
    """

    def __init__(
        self,
        code: str,
        name: str,
        options: tuple[str, ...] = (),
        backend: str = "nvrtc",
        *,
        translate_cucomplex: bool = False,
        enable_cooperative_groups: bool = False,
        jitify: bool | None = None,
    ):
        _check_source(code, options, backend, jitify)
        code = _translated(code) if translate_cucomplex else code
        self._begin(Source(name, code, None, tuple(options)), name, backend, enable_cooperative_groups)

    def _begin(self, source: Source, name: str, backend: str, cooperative: bool) -> None:
        self._source, self.name, self.backend = source, name, backend
        self.code, self.file_path, self.options = source.code, source.path, source.options
        self.enable_cooperative_groups = cooperative
        self.__name__ = name
        self._shared_limit: int | None = None

    # ---- launching -------------------------------------------------------------------------------

    def __call__(
        self,
        grid: Any,
        block: Any,
        args: Any,
        *,
        shared_mem: int = 0,
        stream: Any = None,
        enable_cooperative_groups: bool = False,
    ) -> None:
        """Launch: `grid` blocks of `block` threads, both tuples; `shared_mem` is in bytes per block."""
        try:
            with stream if isinstance(stream, Stream) else nullcontext():
                self._launch(grid, block, args, shared_mem, enable_cooperative_groups)
        except (Message, SimulationError) as error:
            raise shorten(error) from None

    def __getitem__(self, configuration: Any) -> NoReturn:
        raise TypeError(
            f"{self.name}[…] is numba's way to launch; CuPy's is "
            f"{self.name}((blocks,), (threads,), (x, y, n)). To count, "
            f"gpulab.profile({self.name}, (blocks,), (threads,), (x, y, n))."
        )

    def _launch(self, grid: Any, block: Any, args: Any, shared_mem: int, cooperative: bool) -> None:
        shape = _dimensions(self.name, "grid", grid), _dimensions(self.name, "block", block)
        if not isinstance(args, tuple | list):
            raise LaunchError(
                f"{self.name}: the arguments are of type {type(args).__name__}, not a tuple; write "
                "(x, y, n), or (x,) for a single one."
            )
        kernel = self._compiled()
        device = devices.current()
        program = device.program(kernel)
        variables = program.module.functions[kernel.entry].parameters
        packed = pack(self.name, variables, program.parameters, self._signature(), tuple(args))
        self._check_shared(shared_mem)
        grid = shape[0]
        if program.syncs_grid:
            grid = self._cooperative_grid(Launch(kernel, *shape, b"", shared_mem), cooperative)
        device.launch(
            kernel,
            grid,
            shape[1],
            bytes(packed.data),
            shared_bytes=shared_mem,
            pointers=tuple(packed.pointers),
            arrays=tuple(packed.arrays),
        )

    def _check_shared(self, wanted: Any) -> None:
        allowed = self._shared_limit if self._shared_limit is not None else DYNAMIC_SHARED
        if isinstance(wanted, int) and allowed < wanted <= _most_shared():
            raise LaunchError(
                f"{self.name}: {wanted:,} bytes of dynamic shared memory; a kernel has at most {allowed:,} "
                "unless it asks for more: set "
                f"kernel.max_dynamic_shared_size_bytes = {wanted} before the launch."
            )

    def _cooperative_grid(self, launch: Launch, cooperative: bool) -> Dim3:
        """The grid of a kernel whose blocks wait for each other: no more than the GPU holds at once, as "
        "CuPy."""
        if not (cooperative or self.enable_cooperative_groups):
            raise LaunchError(
                f"{self.name} waits for the whole grid (this_grid().sync()), which takes a cooperative "
                "launch: cupy.RawKernel(…, enable_cooperative_groups=True)."
            )
        blocks, most = launch.blocks, devices.current().resident_blocks(launch)
        if blocks <= most:
            return launch.grid
        if launch.grid[1:] != (1, 1):
            raise LaunchError(
                f"{self.name} waits for the whole grid of {blocks:,} blocks, but the {devices.current().gpu} "
                f"holds {most:,} blocks of this size at once. Launch fewer, and let each do more."
            )
        warnings.warn(
            f"{self.name}: the grid size will be reduced from {blocks} to {most}, the most blocks of this "
            f"size that "
            f"the {devices.current().gpu} holds at once.",
            stacklevel=4,
        )
        return (most, 1, 1)

    # ---- compiling -------------------------------------------------------------------------------

    def compile(self, log_stream: Any = None) -> None:
        """Compile now; the compiler's warnings go to `log_stream`."""
        try:
            self._compiled()
        except Message as error:
            raise shorten(error) from None
        if log_stream is not None:
            log_stream.write(self._source.load().log)

    @property
    def kernel(self) -> CompiledKernel:
        """The compiled kernel."""
        return self._compiled()

    def _compiled(self, variables: bool = False) -> CompiledKernel:
        module = self._source.load(variables)
        limit = next((int(m[1]) for o in self.options if (m := MAX_REGISTERS.match(o))), None)
        entry = _entry(self, module)
        has_source = self._source.code is not None and not variables
        again = partial(self._compiled, variables=True) if has_source else None
        return CompiledKernel(self.name, entry, module.ptx, module.cc, module.compiler, limit, again)

    def _signature(self) -> Signature | None:
        base = self.name.partition("<")[0].strip().rpartition("::")[2]
        found = signatures(self.code).get(base) if self.code else None
        return found.instance(self.name) if found else None

    # ---- what is known about it ------------------------------------------------------------------

    @property
    def _resources(self) -> Resources:
        return devices.current().resources(self._compiled())

    @property
    def attributes(self) -> dict[str, int]:
        """All of the attributes below by name."""
        return {name: getattr(self, name) for name in ATTRIBUTES}

    @property
    def max_threads_per_block(self) -> int:
        """The most threads that a block of this kernel can have, with its registers and launch bounds."""
        kernel = self._compiled()
        device = devices.current()
        bounds = device.program(kernel).module.functions[kernel.entry].directives.get("maxntid", ())
        limit = device.gpu.capability.max_threads_per_block
        for bound in bounds[:1]:
            limit = min(limit, bound)
        used = self._resources
        sizes = range(limit, 0, -device.gpu.capability.warp)
        return next((n for n in sizes if not occupancy(device.gpu, n, used.registers).impossible), 0)

    @property
    def num_regs(self) -> int:
        """Registers per thread, as ptxas allocates them."""
        return self._resources.registers

    @property
    def shared_size_bytes(self) -> int:
        """Static shared memory per block."""
        return self._resources.shared_bytes

    @property
    def const_size_bytes(self) -> int:
        """Constant memory, the arguments included."""
        return self._resources.const_bytes

    @property
    def local_size_bytes(self) -> int:
        """Local memory per thread."""
        return self._resources.local_bytes

    @property
    def ptx_version(self) -> int:
        """The compute capability that the PTX is for, 80 for 8.0."""
        major, minor = self._compiled().cc
        return major * 10 + minor

    binary_version = ptx_version
    cache_mode_ca = 0

    @property
    def max_dynamic_shared_size_bytes(self) -> int:
        """The most dynamic shared memory that a launch may ask for. Set it to allow more than 48 KB."""
        if self._shared_limit is not None:
            return self._shared_limit
        return DYNAMIC_SHARED - self.shared_size_bytes

    @max_dynamic_shared_size_bytes.setter
    def max_dynamic_shared_size_bytes(self, size: int) -> None:
        most = _most_shared() - self.shared_size_bytes
        if not 0 <= size <= most:
            raise CUDADriverError(
                f"CUDA_ERROR_INVALID_VALUE: {self.name}: {size:,} bytes of dynamic shared memory; the "
                f"{devices.current().gpu} has at most {most:,} for it."
            )
        self._shared_limit = size

    preferred_shared_memory_carveout = -1

    def __repr__(self) -> str:
        signature = self._signature()
        return f"<RawKernel {self.name}{signature or ''}>"


ATTRIBUTES = (
    "max_threads_per_block",
    "shared_size_bytes",
    "const_size_bytes",
    "local_size_bytes",
    "num_regs",
    "ptx_version",
    "binary_version",
    "cache_mode_ca",
    "max_dynamic_shared_size_bytes",
    "preferred_shared_memory_carveout",
)


class RawModule:
    """Several kernels and variables of one CUDA C++ text, or of a PTX file."""

    def __init__(
        self,
        *,
        code: str | None = None,
        path: str | None = None,
        options: tuple[str, ...] = (),
        backend: str = "nvrtc",
        translate_cucomplex: bool = False,
        enable_cooperative_groups: bool = False,
        name_expressions: Any = None,
        jitify: bool | None = None,
    ):
        if (code is None) == (path is None):
            raise TypeError("give either code=… or path=…, and not both.")
        if code is not None:
            _check_source(code, options, backend, jitify)
            code = _translated(code) if translate_cucomplex else code
        if name_expressions is not None:
            if code is None:
                raise ValueError("name_expressions=… need the CUDA C++ text: give code=….")
            if backend != "nvrtc":
                raise ValueError(f"name_expressions=… work with backend='nvrtc' only, not {backend!r}.")
        names = () if name_expressions is None else tuple(name_expressions)
        title = next(iter(signatures(code)), "module") if code is not None else ""
        self._source = Source(title, code, path, tuple(options), names)
        self.code, self.file_path, self.options, self.backend = code, path, tuple(options), backend
        self.name_expressions = names
        self.enable_cooperative_groups = enable_cooperative_groups

    def get_function(self, name: str) -> RawKernel:
        """A kernel by its name, or by one of the `name_expressions`. Compiles if need be."""
        kernel = RawKernel.__new__(RawKernel)
        kernel._begin(self._source, name, self.backend, self.enable_cooperative_groups)
        kernel.compile()
        return kernel

    def get_global(self, name: str) -> MemoryPointer:
        """Where a ``__device__`` or ``__constant__`` variable lies; all kernels of the module share it."""
        device = devices.current()
        places = variables_of(device.module(self.module.ptx), device.memory)
        found = {_plain(entry): address for entry, address in places.items()} | places
        if name not in found:
            raise shorten(CUDADriverError(f"{MISSING}: {_unknown('variable', name, list(places))}"))
        allocation = device.memory.find(found[name])
        assert allocation is not None
        return MemoryPointer(UnownedMemory(allocation, self))

    def compile(self, log_stream: Any = None) -> None:
        """Compile now; the compiler's warnings go to `log_stream`."""
        module = self.module
        if log_stream is not None:
            log_stream.write(module.log)

    @property
    def module(self) -> Loaded:
        """The compiled text."""
        try:
            return self._source.load()
        except Message as error:
            raise shorten(error) from None


# ---- modules -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Loaded:
    """PTX, the entries of kernels that were asked for by C++ name, the compiler's warnings and its name."""

    ptx: str
    names: Mapping[str, str]
    log: str
    compiler: str
    cc: tuple[int, int]


@dataclass(frozen=True)
class Source:
    """What kernels are made of: CUDA C++, or a file of PTX. Equal sources are one module and share variables.

    `title` is what messages call it, `names` are C++ names of kernels to compile.
    """

    title: str
    code: str | None
    path: str | None = None
    options: tuple[str, ...] = ()
    names: tuple[str, ...] = ()

    def load(self, variables: bool = False) -> Loaded:
        """The PTX for the simulated GPU, with `variables` such that it says where they are. Compiled once.

        Raises CompileError or CUDADriverError."""
        cc = devices.current().cc
        if self.path is not None:
            return _from_file(self.path, cc)
        assert self.code is not None
        made = cuda_c_module(self.code, cc, self.title, self.options, self.names, (INCLUDE,), variables)
        return Loaded(made.ptx, made.names, made.log, made.compiler, cc)


def _from_file(path: str, cc: tuple[int, int]) -> Loaded:
    try:
        with open(path, "rb") as file:
            content = file.read()
    except OSError as error:
        raise CUDADriverError(f"CUDA_ERROR_FILE_NOT_FOUND: {path}: {error.strerror}.") from None
    if b".address_size" not in content:
        raise CUDADriverError(
            f"CUDA_ERROR_INVALID_IMAGE: {path} is no PTX: machine code cannot be simulated. Make a .ptx file."
        )
    text = content.decode(errors="replace")
    return Loaded(text, {}, "", version_in(text), cc)


def _entry(kernel: RawKernel, module: Loaded) -> str:
    """The name of the kernel in the PTX. Raises CUDADriverError, which lists those that are there."""
    if kernel.name in module.names:
        return module.names[kernel.name]
    entries = devices.current().module(module.ptx).entries
    if kernel.name in entries:
        return kernel.name
    raise CUDADriverError(f"{MISSING}: {_why_missing(kernel, entries)}")


def _why_missing(kernel: RawKernel, entries: tuple[str, ...]) -> str:
    base, _, arguments = kernel.name.partition("<")
    declared = signatures(kernel.code).get(base) if kernel.code else None
    if declared and declared.template:
        example = kernel.name if arguments else f"{base}<float>"
        return (
            f"{base} is a template, of which no instance was compiled"
            + (f" as {kernel.name!r}" if arguments else "")
            + f'. Write cupy.RawModule(code=…, name_expressions=["{example}"]).get_function("{example}").'
        )
    if declared:
        return (
            f"the source has a kernel {base!r}, but C++ gives it another name. "
            f'Did you forget extern "C" before __global__?'
        )
    return _unknown("kernel", kernel.name, list(signatures(kernel.code)) or [_plain(e) for e in entries])


def _unknown(kind: str, name: str, known: list[str]) -> str:
    known = [_plain(entry) for entry in known]
    if not known:
        return f"there is no {kind} {name!r}: the source has none."
    close = difflib.get_close_matches(name, known, 1)
    hint = f" Did you mean {close[0]!r}?" if close else ""
    return f"there is no {kind} {name!r}; the source has {', '.join(map(repr, known))}.{hint}"


def _plain(entry: str) -> str:
    """The last part of a mangled name: ``_ZN3lab5scaleEPf`` → ``scale``."""
    match = re.match(r"_ZN?K?", entry)
    if not match:
        return entry
    at, name = match.end(), entry
    while digits := re.match(r"(\d+)", entry[at:]):
        start = at + digits.end()
        name = entry[start : start + int(digits[1])]
        at = start + int(digits[1])
    return name


def _translated(code: str) -> str:
    """The text with the header in which one name works for both precisions of complex numbers."""
    return re.sub(r"#\s*include\s*<cuComplex\.h>", "#include <cupy/cuComplex_overloads.cuh>", code)


def _check_source(code: Any, options: Any, backend: str, jitify: bool | None) -> None:
    if not isinstance(code, str):
        raise TypeError(f"the code must be a text, not {_a(type(code).__name__)}.")
    if not isinstance(options, tuple):
        raise TypeError(f"options must be a tuple of texts, as in ('-DN=4',), not {options!r}.")
    if backend not in ("nvrtc", "nvcc"):
        raise ValueError(f"backend {backend!r} is neither 'nvrtc' nor 'nvcc'; both compile with NVRTC here.")
    warn_of_jitify(jitify)


def _dimensions(kernel: str, what: str, size: Any) -> tuple[int, int, int]:
    if not isinstance(size, tuple | list):
        shown = f"({size!r},)" if isinstance(size, int) else "a tuple such as (128,)"
        raise LaunchError(f"{kernel}: the {what} is {size!r}; CuPy takes a tuple: write {shown}.")
    return devices.dimensions(size, what, kernel)


def _most_shared() -> int:
    return devices.current().gpu.capability.shared_per_block_optin


def _a(noun: str) -> str:
    return f"{'an' if noun[0].lower() in 'aeiou' else 'a'} {noun}"
