"""`triton.jit` whose kernels run in the simulator. A kernel is a real ``JITFunction``: others may call it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from triton.backends.nvidia.compiler import CUDAOptions
from triton.runtime import _allocation
from triton.runtime.jit import JITFunction, MockTensor

from gpulab.foundation.errors import Message, shorten
from gpulab.simulator import device as devices
from gpulab.simulator.compile.kernel import CompileError
from gpulab.simulator.compile.triton_kernel import TritonKernel, triton_kernel
from gpulab.simulator.device import LaunchError
from gpulab.simulator.simt import SimulationError

from .arguments import Argument, constant, describe, leaves, pack, transfers
from .refusals import refusal

POINTER = (
    8  # bytes; Triton's last two parameters are pointers to scratch memory, of the kernel and a profiler
)
OPTIONS = tuple(each.name for each in fields(CUDAOptions))  # of a launch, beside the kernel's parameters


class WrongCall(LaunchError, TypeError):
    """Arguments that the kernel does not have, or lacks."""


class Kernel(JITFunction):
    """What `jit` returns. ``kernel[grid](*arguments, BLOCK=128, num_warps=4)`` compiles if need be, and
    runs."""

    def __init__(self, fn: Callable[..., Any], **options: Any):
        super().__init__(fn, **options)
        self._compiled: dict[tuple[Any, ...], TritonKernel] = {}

    def __getitem__(self, grid: Any) -> Launcher:
        return Launcher(self, grid)

    def __call__(self, *args: Any, **kwargs: Any) -> None:
        name = self.__name__
        raise LaunchError(f"{name} is a kernel: say how many programs, as in {name}[grid](…).")

    def run(self, *args: Any, grid: Any, warmup: bool = False, **kwargs: Any) -> Compiled:
        """Compile for the arguments and, unless only to warm up, launch."""
        options = {name: kwargs[name] for name in OPTIONS if name in kwargs}
        for name in options.keys() - self.signature.parameters.keys():  # a kernel may have one as a constexpr
            del kwargs[name]
        if warmup:  # then a type stands for a tensor of it
            args = tuple(map(MockTensor.wrap_dtype, args))
        bound = self._bind(args, kwargs)
        device = devices.current()
        try:
            with transfers(device) as moved:
                given = self._described(bound, moved)
                made = self._compile(given, options, device.cc)
                if not warmup:
                    self._launch(device, made, given, _grid(grid, bound, self.__name__))
        except CompileError as error:
            raise shorten(refusal(error)) from (error.__cause__ and error.__cause__.__cause__)
        except (Message, SimulationError) as error:
            raise shorten(error) from None
        return Compiled(self, made, bound, options)

    def _bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        try:
            bound = self.signature.bind(*args, **kwargs)
        except TypeError as error:
            names = ", ".join(self.signature.parameters)
            raise WrongCall(f"{self.__name__}({names}): {error}.") from None
        bound.apply_defaults()
        return dict(bound.arguments)

    def _described(self, bound: dict[str, Any], moved: Any) -> dict[str, Argument]:
        """Each parameter's argument; constexpr parameters, None and the number 1 become constants, as in
        Triton."""
        given: dict[str, Argument] = {}
        for parameter in self.params:
            name, value = parameter.name, bound[parameter.name]
            if parameter.is_constexpr:
                given[name] = constant(value)
                continue
            argument = describe(name, self.__name__, value, moved)
            if parameter.do_not_specialize:
                given[name] = argument.plain()
                continue
            annotated = parameter.annotation_type
            argument = argument.annotated(annotated) if annotated else argument.specialised()
            if parameter.do_not_specialize_on_alignment:
                argument = argument.plain()
            given[name] = argument
        return given

    def _compile(
        self, given: dict[str, Argument], options: dict[str, Any], cc: tuple[int, int]
    ) -> TritonKernel:
        found = leaves(given.values())
        key = (cc, repr(sorted(options.items())), tuple(a.key for a in given.values()))
        if key not in self._compiled:
            signature = {name: argument.signature for name, argument in given.items()}
            constants = {path: leaf.value for path, leaf in found if leaf.type == "constexpr"}
            aligned = tuple(path for path, leaf in found if leaf.aligned)
            self._compiled[key] = triton_kernel(self, signature, constants, aligned, cc, options)
        return self._compiled[key]

    def _launch(
        self,
        device: devices.SimulatedDevice,
        made: TritonKernel,
        given: dict[str, Argument],
        grid: tuple[Any, ...],
    ) -> None:
        names = list(given)
        passed = [(names[path[0]], leaf) for path, leaf in leaves(given.values()) if leaf.type != "constexpr"]
        room = device.program(made.kernel).parameter_bytes
        buffer, pointers = pack(self.__name__, passed, room, made.boxes)
        blocks = (grid[0] * made.blocks, *grid[1:])
        device.launch(
            made.kernel,
            blocks,
            (made.threads,),
            buffer,
            shared_bytes=made.shared_bytes,
            pointers=pointers,
            arrays=tuple(a.label for _, a in passed if a.label is not None),
            cluster=(made.blocks,) if made.blocks > 1 else None,
            scratch=_scratch(self.__name__, made, blocks, len(buffer)),
        )


@dataclass(frozen=True)
class Compiled:
    """What a launch returns, and `warmup` without launching: the kernel as compiled for certain arguments.

    ``compiled[grid](*arguments)`` launches it with other arguments; constants that are left out are those
    that it was compiled for.
    """

    function: Kernel
    made: TritonKernel
    bound: dict[str, Any] = field(repr=False)
    options: dict[str, Any] = field(repr=False)

    def __getitem__(self, grid: Any) -> Callable[..., Compiled]:
        def launch(*args: Any, **kwargs: Any) -> Compiled:
            parameters = self.function.params
            given = {p.name for p, _ in zip(parameters, args, strict=False)} | set(kwargs)
            constants = {
                p.name: self.bound[p.name] for p in parameters if p.is_constexpr and p.name not in given
            }
            return self.function.run(*args, grid=grid, **{**self.options, **constants, **kwargs})

        return launch

    def _init_handles(self) -> None:
        """Triton loads the machine code here."""

    @property
    def asm(self) -> Mapping[str, Any]:
        """What the compiler made, by its name, such as ``ttir``, ``ptx`` or ``cubin``."""
        found: Mapping[str, Any] = self.made.asm
        return found

    @property
    def metadata(self) -> Any:
        """What Triton says of it, as a named tuple: `name`, `shared` in bytes a block, `num_warps` …"""
        return self.made.metadata

    @property
    def name(self) -> str:
        """The kernel's name in its PTX."""
        return self.made.kernel.entry

    @property
    def n_regs(self) -> int:
        """Registers of a thread, as ptxas allocates them."""
        return devices.current().resources(self.made.kernel).registers

    @property
    def n_spills(self) -> int:
        """Bytes that a thread spills into local memory."""
        return devices.current().resources(self.made.kernel).spill_bytes


class Launcher:
    """A kernel with its grid, ready to be called; `gpulab.profile` takes it too."""

    def __init__(self, kernel: Any, grid: Any):
        self.kernel, self.grid = kernel, grid
        self.__name__ = kernel.__name__

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.kernel.run(*args, grid=self.grid, **kwargs)


def _scratch(kernel: str, made: TritonKernel, blocks: tuple[Any, ...], room: int) -> tuple[int, int] | None:
    """Where the kernel gets the address of its scratch memory, and how large that is.

    Triton asks the allocator for it that the program has set. Here the device has it, but there must be one.
    """
    if not made.scratch_bytes:
        return None
    if isinstance(_allocation._allocator.get(), _allocation.NullAllocator):
        raise LaunchError(
            f"{kernel} makes tensor descriptors, for which it needs memory of its own, but no allocator was "
            "set. Call triton.set_allocator(lambda size, alignment, stream: torch.empty(size, "
            "dtype=torch.int8)) before the launch."
        )
    return room - 2 * POINTER, made.scratch_bytes * math.prod(blocks)


def _grid(grid: Any, bound: dict[str, Any], kernel: str) -> tuple[Any, ...]:
    """The grid as a tuple; a function gets all arguments by name, as in Triton."""
    if callable(grid):
        grid = grid(bound)
    if not isinstance(grid, tuple | list):
        raise LaunchError(
            f"{kernel}[{grid!r}]: the grid is a tuple of one to three numbers, as in {kernel}[(8,)]."
        )
    return tuple(int(n) for n in grid)


def jit(fn: Callable[..., Any] | None = None, **options: Any) -> Any:
    """`triton.jit`, with or without parentheses."""
    return jit_with(Kernel, fn, options)


def jit_with(kind: type[Kernel], fn: Callable[..., Any] | None, options: dict[str, Any]) -> Any:
    """A kernel of a language, or what makes one of a function."""
    keep = {k: v for k, v in options.items() if k not in ("launch_metadata",)}
    if fn is None:
        return lambda function: kind(function, **keep)
    return kind(fn, **keep)
