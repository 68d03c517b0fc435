"""PyTorch's "cuda" device, where there is none: its tensors are tensors of the CPU.

A mode of PyTorch's sees every call of its functions and methods. Where a call asks for the device "cuda" it
gets the CPU. Where it asks a tensor for its device, the answer is "cuda:0", so that a program's assertions
hold and new tensors are made where it expects them. `torch.cuda` answers for the simulated GPU. Work on the
simulated device is over when a call returns, so streams and events have nothing to wait for.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import nullcontext
from functools import wraps
from importlib.util import find_spec
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
import torch.nn.attention
from torch.overrides import TorchFunctionMode

from gpulab.frontends.driver import tensors
from gpulab.simulator import device as devices

from . import scaled_products, tf32

CUDA = torch.device("cuda", 0)
CPU = torch.device("cpu")
_ANSWERS: dict[Any, Any] = {
    torch.Tensor.device.__get__: CUDA,
    torch.Tensor.is_cuda.__get__: True,
}
# Functions whose tensors hold what was there before, and what is written into them (None: nothing).
_MAKES_NEW = frozenset(
    {
        torch.empty,
        torch.empty_like,
        torch.empty_strided,
        torch.empty_permuted,
        torch.Tensor.new_empty,
        torch.Tensor.new_empty_strided,
    }
)
_fill: Callable[[int], np.ndarray] | None = None
_TO_THE_GPU = frozenset({torch.Tensor.cuda})
_IN_PINNED_MEMORY = frozenset({torch.Tensor.pin_memory})


class CudaMeansCpu(TorchFunctionMode):
    """While it is entered, "cuda" means the CPU in every call of PyTorch's functions and methods.

    Which tensors the program has put on the GPU is not kept: all of them answer "cuda:0".
    """

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        kwargs = kwargs or {}
        if func in _ANSWERS:
            return _ANSWERS[func]
        if func is torch.device:  # an answer to it may be asked for its type
            return func(*args, **kwargs)
        if func in _TO_THE_GPU or func in _IN_PINNED_MEMORY:
            return args[0]
        if func is torch.Tensor.data_ptr:
            _let_kernels_reach(args[0])
        if func is torch._scaled_mm and scaled_products.is_of_4_bits(args):
            return scaled_products.scaled_mm(*args, **kwargs)
        if kwargs.get("pin_memory"):
            kwargs = {**kwargs, "pin_memory": False}
        args, kwargs = tuple(map(_on_cpu, args)), {name: _on_cpu(value) for name, value in kwargs.items()}
        if tf32.is_allowed():
            with tf32.RoundedFactors():
                made = func(*args, **kwargs)
        else:
            made = func(*args, **kwargs)
        if _fill is not None and func in _MAKES_NEW and made.layout is torch.strided:
            storage = made.untyped_storage()
            torch.empty(0, dtype=torch.uint8).set_(storage).numpy()[:] = _fill(storage.nbytes())
        return made


def fill_new_tensors(fill: Callable[[int], np.ndarray]) -> None:
    """From now on new tensors hold these bytes, of which `fill` makes so many."""
    global _fill
    _fill = fill


def _let_kernels_reach(tensor: torch.Tensor) -> None:
    """A program asks for a tensor's address, perhaps to give it to a kernel in a table of pointers."""
    if type(tensor) in (torch.Tensor, torch.nn.Parameter) and tensor.device.type == "cpu":
        tensors.adopted(devices.current(), tensor.untyped_storage(), in_place=True)


def _on_cpu(value: Any) -> Any:
    """The same argument, with the CPU where it says "cuda" or a number of a GPU."""
    if isinstance(value, torch.device):
        return CPU if value.type == "cuda" else value
    if isinstance(value, str) and (value == "cuda" or value.startswith("cuda:")):
        return "cpu"
    return value


class Event:
    """`torch.cuda.Event`: the time between two is the simulation's, in milliseconds."""

    def __init__(
        self, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False
    ) -> None:
        self._at = 0.0

    @property
    def cuda_event(self) -> int:
        """A handle for CUDA's functions, which have nothing to wait for either."""
        return id(self)

    def record(self, stream: Any = None) -> None:
        self._at = time.perf_counter()

    def elapsed_time(self, end: Event) -> float:
        return 1e3 * (end._at - self._at)

    def query(self) -> bool:
        return True

    def wait(self, stream: Any = None) -> None:
        """Nothing is under way."""

    def synchronize(self) -> None:
        """Nothing is under way."""


class Stream:
    """`torch.cuda.Stream`: an order of work that is done at once."""

    cuda_stream = 0
    device = CUDA

    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *error: object) -> None: ...

    def wait_event(self, event: Any) -> None: ...

    def wait_stream(self, stream: Any) -> None: ...

    def synchronize(self) -> None: ...

    def query(self) -> bool:
        return True

    def is_capturing(self) -> bool:
        """Optimizers ask this before each step."""
        return False

    def record_event(self, event: Event | None = None) -> Event:
        event = event or Event()
        event.record()
        return event


def properties(device: Any = None) -> SimpleNamespace:
    """What `torch.cuda.get_device_properties` says of the simulated GPU, as far as its data sheet says it."""
    gpu = devices.current().gpu
    return SimpleNamespace(
        name=f"NVIDIA {gpu.name}",
        major=gpu.cc[0],
        minor=gpu.cc[1],
        total_memory=int(gpu.dram_bytes),
        multi_processor_count=int(gpu.sms),
        L2_cache_size=int(gpu.l2_bytes),
        warp_size=gpu.capability.warp,
        regs_per_multiprocessor=gpu.capability.registers_per_sm,
        max_threads_per_multi_processor=gpu.capability.max_threads,
        shared_memory_per_block=gpu.capability.shared_per_block_static,
        shared_memory_per_block_optin=gpu.capability.shared_per_block_optin,
        shared_memory_per_multiprocessor=gpu.capability.shared_per_sm,
        gcnArchName="",
    )


class Generator(torch.Generator):
    """`torch.Generator` of the CPU, also where the program asks for one of the GPU."""

    def __new__(cls, device: Any = "cpu") -> Generator:
        made: Generator = super().__new__(cls, device=_on_cpu(device))
        return made


def install() -> None:
    """Let "cuda" mean the CPU for the rest of this process."""
    CudaMeansCpu().__enter__()
    # Programs choose among back ends that only a GPU has. On a CPU, PyTorch chooses one itself.
    torch.nn.attention.sdpa_kernel = wraps(torch.nn.attention.sdpa_kernel)(_any_backend)
    torch.Generator = Generator
    torch.compile = _with_triton(torch.compile)
    torch.serialization.register_package(0, _no_tag, _loaded)
    torch.autocast.__init__ = _of_the_cpu(torch.autocast.__init__)
    # PyTorch without CUDA lacks it, and asks for it before it leaves out CUDA graphs on the CPU.
    torch._C._cuda_cudaCachingAllocator_is_enabled = _always(True)
    for name, value in _module().items():
        setattr(torch.cuda, name, value)
    for name, value in _accelerator().items():
        setattr(torch.accelerator, name, value)


def _with_triton(compile: Callable[..., Any]) -> Callable[..., Any]:
    """`torch.compile`, which makes Triton kernels where there is Triton."""

    @wraps(compile)
    def with_triton(*args: Any, **kwargs: Any) -> Any:
        if find_spec("triton"):
            from gpulab.frontends.triton import inductor

            inductor.install()
        return compile(*args, **kwargs)

    return with_triton


def _of_the_cpu(init: Callable[..., None]) -> Callable[..., None]:
    """`torch.autocast.__init__`: what is cast on the GPU is cast on the CPU, to the same type."""

    @wraps(init)
    def of_the_cpu(self: Any, device_type: str, dtype: Any = None, *args: Any, **kwargs: Any) -> None:
        if device_type == "cuda" and dtype is None:
            dtype = torch.get_autocast_dtype("cuda")
        init(self, _on_cpu(device_type), dtype, *args, **kwargs)

    return of_the_cpu


def _no_tag(storage: Any) -> None:
    """Where a storage is is left to others to say: it is on the CPU."""


def _loaded(storage: Any, location: str) -> Any:
    """What `torch.load` makes of a storage that belongs on a GPU: it stays where it is."""
    return storage if location.startswith("cuda") else None


def _any_backend(*args: Any, **kwargs: Any) -> nullcontext[None]:
    return nullcontext()


def _always(value: Any) -> Callable[..., Any]:
    """A new function at each call: torch.compile keeps a table of them and refuses one that occurs twice."""
    return lambda *args, **kwargs: value


def _module() -> dict[str, Any]:
    """The names of `torch.cuda` that answer for the simulated GPU."""
    return {
        "is_available": lambda: True,
        "is_initialized": lambda: True,
        "init": _always(None),
        "device_count": lambda: 1,
        "current_device": lambda: 0,
        "set_device": _always(None),
        "synchronize": _always(None),
        "empty_cache": _always(None),
        "manual_seed": lambda seed: torch.default_generator.manual_seed(seed),
        "manual_seed_all": lambda seed: torch.default_generator.manual_seed(seed),
        "get_rng_state": lambda device="cuda": torch.default_generator.get_state(),
        "set_rng_state": lambda state, device="cuda": torch.default_generator.set_state(state),
        "get_rng_state_all": lambda: [torch.default_generator.get_state()],
        "set_rng_state_all": lambda states: torch.default_generator.set_state(next(iter(states))),
        "initial_seed": lambda: torch.default_generator.initial_seed(),
        "get_device_name": lambda device=None: properties().name,
        "get_device_capability": lambda device=None: devices.current().gpu.cc,
        "get_device_properties": properties,
        "is_bf16_supported": lambda *args, **kwargs: devices.current().gpu.cc >= (8, 0),
        "Event": Event,
        "Stream": Stream,
        "stream": lambda stream: stream if stream is not None else Stream(),
        "current_stream": lambda device=None: Stream(),
        "default_stream": lambda device=None: Stream(),
        "device": _Device,
        "memory_allocated": _always(0),
        "max_memory_allocated": _always(0),
        "memory_reserved": _always(0),
        "max_memory_reserved": _always(0),
        "reset_peak_memory_stats": _always(None),
        "mem_get_info": lambda device=None: (int(devices.current().gpu.dram_bytes),) * 2,
    }


def _accelerator() -> dict[str, Any]:
    """The names of `torch.accelerator`, by which programs for any kind of GPU ask for theirs."""
    index = dict.fromkeys(("current_device_index", "current_device_idx"), lambda: 0)
    choice = dict.fromkeys(("set_device_index", "set_device_idx", "set_stream"), _always(None))
    alike = ("is_available", "device_count", "synchronize", "empty_cache", "current_stream")
    memory = ("memory_allocated", "max_memory_allocated", "memory_reserved", "max_memory_reserved")
    there = _module()
    return {
        "current_accelerator": lambda check_available=False: torch.device("cuda"),
        "device_index": _Device,
        "get_memory_info": there["mem_get_info"],
        "reset_peak_memory_stats": _always(None),
        **index,
        **choice,
        **{name: there[name] for name in (*alike, *memory)},
    }


class _Device:
    """`torch.cuda.device`: there is one."""

    def __init__(self, device: Any = None) -> None: ...

    def __enter__(self) -> None: ...

    def __exit__(self, *error: object) -> None: ...
