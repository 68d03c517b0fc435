"""`cuda.jit` and what it makes: kernels and device functions that compile and run without a GPU."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import math
import pickle
from collections.abc import Callable, Iterable
from types import FunctionType, MethodType
from typing import Any

from gpulab.foundation import underway
from gpulab.foundation.errors import Message, shorten
from gpulab.simulator import device as devices
from gpulab.simulator.compile import CompiledKernel, CompileError, NumbaFunction, Resources
from gpulab.simulator.device import LaunchError, LaunchTypeError
from gpulab.simulator.device.launch import Dim3, Launch
from gpulab.simulator.hardware import occupancy
from gpulab.simulator.simt import SimulationError

from . import exceptions
from .arguments import Packed, pack
from .not_simulated import SimulationGap
from .streams import Stream

NOT_SIMULATED = frozenset(
    {"inspect_llvm", "inspect_sass", "inspect_sass_cfg", "inspect_lto_ptx", "inspect_types"}
)
FORALL_BLOCKS = (1024, 512, 256, 128, 64, 32)  # block sizes that forall chooses from


class Overload(CompiledKernel):
    """A kernel compiled for one set of argument types, as numba's `overloads` hold it."""

    @classmethod
    def of(cls, kernel: CompiledKernel) -> Overload:
        return cls(**{field.name: getattr(kernel, field.name) for field in dataclasses.fields(kernel)})

    def max_cooperative_grid_blocks(self, blockdim: Any, dynsmemsize: int = 0) -> int:
        """How many blocks of this shape the GPU holds at once: the most whose grid can sync."""
        block = devices.dimensions(blockdim, "block", self.name)
        return devices.current().resident_blocks(Launch(self, (1, 1, 1), block, b"", dynsmemsize))


class Kernel:
    """What `cuda.jit` returns. ``kernel[grid, block](*arguments)`` compiles if need be, and runs.

    With ``device=True`` it is a device function, for kernels to call. `py_func` is the Python function,
    `overloads` what is compiled so far, by argument types.
    """

    def __init__(self, fn: FunctionType, options: dict[str, Any], signatures: Iterable[Any] = ()):
        functools.update_wrapper(self, fn)
        self.name = fn.__name__
        self.py_func = fn
        self.targetoptions = options
        # Each may change (type, value) of every argument before a launch: numba's `prepare_args`.
        self.extensions: list[Any] = list(options.get("extensions") or ())
        self.function = NumbaFunction(fn, **options)
        self.overloads: dict[tuple[Any, ...], Overload] = {}
        self.specialized = False
        self._compiles_more = True
        self._parameters = tuple(inspect.signature(fn).parameters)
        if signatures:
            self._compile_only(signatures)

    def __reduce__(self) -> tuple[Any, ...]:
        """The function itself, for its name leads to the kernel; what was compiled is compiled again."""
        from numba.cuda import cloudpickle

        only = [] if self._compiles_more else list(self.overloads)
        given = [types if result is None else result(*types) for types, result in self.function.signatures]
        return _unpickled, (cloudpickle.dumps(self.py_func), self.targetoptions, given or only)

    def __stands_for__(self, cc: tuple[int, int]) -> Any:
        """numba's own device function, for kernels that call this one."""
        return self.function.dispatcher(cc)

    def _compile_only(self, signatures: Iterable[Any]) -> None:
        """Compile these signatures now, and no others later."""
        for signature in signatures:
            types, result = _normalised(signature)
            if self.is_device_function:
                self.function.signatures.append((types, result))
                continue
            if result is not None and str(result) not in ("none", "void"):
                raise CompileError(
                    self.name,
                    f"The signature says that the kernel returns {result}; a kernel returns nothing.",
                    "Write it as void(…), or add device=True for a device function.",
                )
            self.compile(types)
        self._compiles_more = self.is_device_function
        self.specialized = len(self.overloads) == 1

    @property
    def is_device_function(self) -> bool:
        return bool(self.targetoptions.get("device"))

    # Launching

    def __getitem__(self, configuration: Any) -> LaunchConfiguration:
        if not isinstance(configuration, tuple) or not 2 <= len(configuration) <= 4:
            raise LaunchError(
                f"{self.name}[…]: give the grid and the block, as in "
                f"{self.name}[blocks, threads_per_block]; a stream and the bytes of shared memory may follow."
            )
        return self.configure(*configuration)

    def configure(
        self, griddim: Any, blockdim: Any, stream: Stream | int = 0, sharedmem: int = 0
    ) -> LaunchConfiguration:
        """The kernel with the shape of its launch: ``kernel[griddim, blockdim, stream, sharedmem]``."""
        if self.is_device_function:
            raise LaunchError(
                f"{self.name} is a device function (device=True): a kernel can call it, "
                "but it cannot be launched."
            )
        grid = devices.dimensions(griddim, "grid", self.name)
        block = devices.dimensions(blockdim, "block", self.name)
        return LaunchConfiguration(self, grid, block, stream, sharedmem)

    def __call__(self, *args: Any, **kwargs: Any) -> None:
        name = self.name
        if self.is_device_function:
            raise LaunchError(
                f"{name} is a device function: only a kernel can call it. On the host call {name}.py_func(…)."
            )
        raise LaunchError(
            f"{name} is a kernel: say how many blocks and threads, as in {name}[blocks, threads_per_block]"
            f"({', '.join(self._parameters)})."
        )

    def forall(self, ntasks: int, tpb: int = 0, stream: Stream | int = 0, sharedmem: int = 0) -> ForAll:
        """The kernel, launched with at least `ntasks` threads in one dimension, `tpb` per block."""
        if ntasks < 0:
            raise LaunchError(f"{self.name}.forall({ntasks}): the number of tasks cannot be negative.")
        return ForAll(self, ntasks, tpb, stream, sharedmem)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else MethodType(self, instance)

    # Compiling

    def compile(self, signature: Any) -> Overload:
        """Compile for argument types or a signature, ``"void(float32[:], int32)"``. Raises CompileError."""
        types, _ = _normalised(signature)
        if types not in self.overloads:
            with underway.work(f"compiling {self.name}"):
                self._for_this_gpu(types)
        return self.overloads[types]

    def specialize(self, *args: Any) -> Kernel:
        """A kernel compiled for arguments of the types of `args` (or for types) and for no others."""
        from numba.cuda import types

        if self.specialized:
            raise RuntimeError(f"Dispatcher already specialized: {self.name} has one signature only")
        given = args if all(isinstance(arg, types.Type) for arg in args) else self.types_of(args)
        return Kernel(self.py_func, self.targetoptions, [tuple(given)])

    def types_of(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """The numba types of arguments. Raises LaunchError for the wrong number or kind."""
        from numba.cuda.typing.typeof import Purpose, typeof

        names = self._parameters
        if len(args) != len(names):
            given = f"{len(args)} argument{'' if len(args) == 1 else 's'}"
            raise LaunchError(
                f"{self.name} takes {len(names)} ({', '.join(names)}), but was launched with {given}"
                + (f": {', '.join(names[len(args) :])} missing." if len(args) < len(names) else ".")
            )
        types = []
        for name, value in zip(names, args, strict=True):
            try:
                numba_type = typeof(value, Purpose.argument)
            except Exception:  # numba raises all kinds of errors here
                numba_type = None
            if numba_type is None or _is_host_only(numba_type):
                cure = " Make it an array with np.array(…)." if isinstance(value, list) else ""
                raise LaunchError(
                    f"{self.name}: argument `{name}` is {_a(type(value).__name__)}; a kernel takes "
                    f"numbers, tuples of numbers, and arrays.{cure}"
                )
            if str(getattr(numba_type, "dtype", "")) == "pyobject":
                raise LaunchError(
                    f"{self.name}: argument `{name}` is an array of dtype {value.dtype}; a kernel takes "
                    "numbers, tuples of numbers, and arrays of them."
                )
            types.append(numba_type)
        return tuple(types)

    def prepared(
        self, args: tuple[Any, ...], stream: Stream | int, fetched: list[Callable[[], Any]]
    ) -> tuple[Any, ...]:
        """The arguments as the kernel's extensions want them; the last extension comes first, as in numba."""
        if not self.extensions:
            return args
        from numba.cuda.typing.typeof import Purpose, typeof

        values = []
        for value in args:
            numba_type: Any = typeof(value, Purpose.argument)
            for extension in reversed(self.extensions):
                numba_type, value = extension.prepare_args(numba_type, value, stream=stream, retr=fetched)
            values.append(value)
        return tuple(values)

    def overload_for(self, args: tuple[Any, ...]) -> tuple[tuple[Any, ...], Overload]:
        """The argument types under which `args` are passed, and the kernel compiled for them."""
        types = self.types_of(args)
        if self._compiles_more or types in self.overloads:
            return types, self._for_this_gpu(types)
        chosen = _best_match(self, types)
        if chosen is None and self.specialized:
            chosen = next((only for only in self.overloads if all(map(_same_bytes, types, only))), None)
        if chosen is None:
            raise LaunchTypeError(
                f"{self.name} is compiled for {' or '.join(map(_signature, self.overloads))} only, "
                f"but was launched with {_signature(types)}. Convert the arguments, or omit the signature."
            )
        return chosen, self._for_this_gpu(chosen)

    def _for_this_gpu(self, types: tuple[Any, ...]) -> Overload:
        kernel = self.overloads.get(types)
        if kernel is None or kernel.cc != devices.current().cc:  # another GPU is simulated now
            compiled = self.function.kernel(types, devices.current().cc)
            kernel = self.overloads[types] = Overload.of(compiled)
        return kernel

    # What is known about it

    @property
    def signatures(self) -> list[tuple[Any, ...]]:
        return list(self.overloads)

    def inspect_asm(self, signature: Any = None) -> str | dict[tuple[Any, ...], str]:
        """The PTX for argument types, or of everything compiled so far."""
        if signature is not None:
            return self.overloads[_normalised(signature)[0]].ptx
        return {types: kernel.ptx for types, kernel in self.overloads.items()}

    def get_regs_per_thread(self, signature: Any = None) -> int | dict[tuple[Any, ...], int]:
        """Registers per thread, as ptxas allocates them."""
        return self._resource(signature, lambda used: used.registers)

    def get_shared_mem_per_block(self, signature: Any = None) -> int | dict[tuple[Any, ...], int]:
        """Static shared memory per block, in bytes."""
        return self._resource(signature, lambda used: used.shared_bytes)

    def get_local_mem_per_thread(self, signature: Any = None) -> int | dict[tuple[Any, ...], int]:
        """Local memory per thread, in bytes."""
        return self._resource(signature, lambda used: used.local_bytes)

    def get_const_mem_size(self, signature: Any = None) -> int | dict[tuple[Any, ...], int]:
        """Constant memory, in bytes, the arguments included."""
        return self._resource(signature, lambda used: used.const_bytes)

    def get_max_threads_per_block(self, signature: Any = None) -> int | dict[tuple[Any, ...], int]:
        """The most threads that a block of this kernel can have with its registers."""
        return self._resource(signature, _most_threads)

    def _resource(self, signature: Any, pick: Callable[[Resources], int]) -> int | dict[tuple[Any, ...], int]:
        return self._about(signature, lambda kernel: pick(devices.current().resources(kernel)))

    def _about(self, signature: Any, tell: Callable[[CompiledKernel], Any]) -> Any:
        if signature is not None:
            return tell(self.overloads[_normalised(signature)[0]])
        if self.specialized:
            return tell(next(iter(self.overloads.values())))
        return {types: tell(kernel) for types, kernel in self.overloads.items()}

    def __getattr__(self, attribute: str) -> Any:
        if attribute in NOT_SIMULATED:
            raise SimulationGap(f"kernel.{attribute} is not simulated; kernel.inspect_asm() shows the PTX.")
        raise AttributeError(f"a kernel has no attribute {attribute!r}", name=attribute, obj=self)

    def __repr__(self) -> str:
        kind = "device function" if self.is_device_function else "kernel"
        return f"<{kind} {self.name}({', '.join(self._parameters)})>"


def _unpickled(function: bytes, options: dict[str, Any], signatures: list[Any]) -> Kernel:
    return Kernel(pickle.loads(function), options, signatures)


class LaunchConfiguration:
    """``kernel[grid, block, stream, shared]``: call it with the arguments to launch.

    `grid` and `block` are (x, y, z); `shared` is the dynamic shared memory in bytes.
    """

    def __init__(self, kernel: Kernel, grid: Dim3, block: Dim3, stream: Stream | int = 0, shared: int = 0):
        self.kernel, self.grid, self.block, self.stream, self.shared = kernel, grid, block, stream, shared
        self.dispatcher, self.griddim, self.blockdim, self.sharedmem = kernel, grid, block, shared

    def __call__(self, *args: Any) -> None:
        try:
            self._launch(args)
        except (Message, SimulationError) as error:
            raise shorten(error) from None

    def _launch(self, args: tuple[Any, ...]) -> None:
        kernel = self.kernel
        fetched: list[Callable[[], Any]] = []  # what extensions want done after the launch
        args = kernel.prepared(args, self.stream, fetched)
        types, compiled = kernel.overload_for(args)
        if compiled.cooperative:
            self._check_grid_sync(compiled)
        packed: Packed = pack(kernel.name, kernel._parameters, types, args)
        raised = exceptions.watch(compiled)
        devices.current().launch(
            compiled,
            self.grid,
            self.block,
            bytes(packed.data),
            shared_bytes=self.shared,
            pointers=tuple(packed.pointers),
            arrays=tuple(packed.arrays),
        )
        raised()
        for finish in (*packed.afterwards, *fetched):
            finish()

    def _check_grid_sync(self, compiled: Overload) -> None:
        blocks = math.prod(self.grid)
        most = compiled.max_cooperative_grid_blocks(self.block, self.shared)
        if blocks > most:
            raise LaunchError(
                f"{self.kernel.name} syncs its whole grid, so all its {blocks:,} blocks must be on the GPU "
                f"at once; the {devices.current().gpu} holds {most:,} of this size. Launch fewer blocks and "
                "let each thread do more."
            )

    def __repr__(self) -> str:
        return f"<{self.kernel.name}[{self.grid}, {self.block}]; call it with the arguments to launch>"


class ForAll:
    """A kernel that is launched with one thread per task."""

    def __init__(self, kernel: Kernel, ntasks: int, tpb: int, stream: Stream | int, sharedmem: int):
        self.kernel, self.ntasks, self.tpb, self.stream, self.sharedmem = (
            kernel,
            ntasks,
            tpb,
            stream,
            sharedmem,
        )

    def __call__(self, *args: Any) -> None:
        if self.ntasks == 0:
            return
        try:
            block = self.tpb or self._best_block(args)
        except (Message, SimulationError) as error:
            raise shorten(error) from None
        self.kernel[-(-self.ntasks // block), block, self.stream, self.sharedmem](*args)

    def _best_block(self, args: tuple[Any, ...]) -> int:
        """The largest block size with the highest occupancy."""
        device = devices.current()
        used = device.resources(self.kernel.overload_for(args)[1])
        shared = used.shared_bytes + self.sharedmem
        return max(
            FORALL_BLOCKS,
            key=lambda size: (occupancy(device.gpu, size, used.registers, shared).active_warps, size),
        )


def jit(
    func_or_sig: Any = None,
    device: bool = False,
    inline: str | bool = "never",
    forceinline: bool = False,
    link: Any = (),
    debug: bool | None = None,
    opt: bool | None = None,
    lineinfo: bool = False,
    cache: bool = False,
    **options: Any,
) -> Any:
    """Make a function a kernel, or with ``device=True`` a device function. Takes all options of numba's.

    With a signature or a list of them it is compiled at once and for these types only. With `debug` a kernel
    raises as Python does, and is slow and large. `lineinfo` and `cache` change nothing: the simulator always
    knows the source line, and keeps no files.
    """
    if isinstance(inline, bool):
        inline = "always" if inline else "never"
    chosen = {
        "device": device,
        "inline": inline,
        "forceinline": forceinline,
        "link": tuple(link),
        "debug": debug,
        "opt": opt,
        "lineinfo": lineinfo,
        "cache": cache,
        **options,
    }
    fn = getattr(func_or_sig, "py_func", func_or_sig)
    if isinstance(fn, FunctionType):
        return Kernel(fn, chosen)
    signatures = (
        () if func_or_sig is None else func_or_sig if isinstance(func_or_sig, list) else [func_or_sig]
    )

    def decorate(function: Any) -> Kernel:
        try:
            return Kernel(getattr(function, "py_func", function), chosen, signatures)
        except Message as error:
            raise shorten(error) from None

    return decorate


# ---- types


def _normalised(signature: Any) -> tuple[tuple[Any, ...], Any]:
    """(argument types, return type or None) of a signature in any of numba's notations."""
    from numba.cuda.core import sigutils

    if isinstance(signature, str):
        signature = sigutils._parse_signature_string(signature)
    types, result = sigutils.normalize_signature(signature)
    return tuple(types), result


def _is_host_only(numba_type: Any) -> bool:
    from numba.cuda import types

    return not isinstance(
        numba_type,
        types.Array | types.Record | types.Number | types.Boolean | types.NPDatetime | types.NPTimedelta
        | types.BaseTuple | types.EnumMember | types.CPointer,
    )  # fmt: skip


def _best_match(kernel: Kernel, types: tuple[Any, ...]) -> tuple[Any, ...] | None:
    """The compiled argument types that numba would convert `types` to, or None."""
    from numba.core.typing import signature
    from numba.cuda import types as numba_types
    from numba.cuda.descriptor import cuda_target

    cases = [signature(numba_types.void, *overload) for overload in kernel.overloads]
    try:
        best = cuda_target.typing_context.resolve_overload(
            kernel.py_func, cases, types, {}, allow_ambiguous=True, unsafe_casting=True
        )
    except TypeError:
        return None
    return tuple(best.args) if best else None


def _same_bytes(given: Any, declared: Any) -> bool:
    """Whether a kernel with one signature takes an argument of another type: numba does not check then.

    Only where it does no harm: an array of elements of the same size, or an address as a whole number.
    """
    from numba.cuda import types

    if isinstance(given, types.Array) and isinstance(declared, types.Array):
        fits = declared.layout in ("A", given.layout) and given.ndim == declared.ndim
        return fits and given.dtype.bitwidth == declared.dtype.bitwidth
    if isinstance(given, types.Number) and isinstance(declared, types.Number):
        return not isinstance(given, types.Complex) or isinstance(declared, types.Complex)
    return given == declared or (isinstance(given, types.Integer) and isinstance(declared, types.CPointer))


def _signature(types: tuple[Any, ...]) -> str:
    return f"({', '.join(_short(t) for t in types)})"


def _short(numba_type: Any) -> str:
    """``float32[:]`` rather than ``array(float32, 1d, A)``."""
    if hasattr(numba_type, "ndim") and hasattr(numba_type, "layout"):
        inner = [":"] * numba_type.ndim
        if inner and numba_type.layout == "C":
            inner[-1] = "::1"
        elif inner and numba_type.layout == "F":
            inner[0] = "::1"
        return f"{numba_type.dtype}[{', '.join(inner)}]"
    return str(numba_type)


def _a(noun: str) -> str:
    return f"{'an' if noun[0].lower() in 'aeiou' else 'a'} {noun}"


def _most_threads(used: Resources) -> int:
    gpu = devices.current().gpu
    limit = gpu.capability.max_threads_per_block
    sizes = range(limit, 0, -gpu.capability.warp)
    return next((size for size in sizes if not occupancy(gpu, size, used.registers).impossible), 0)
