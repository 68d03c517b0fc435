"""`cuda.vectorize`, `cuda.guvectorize` and `cuda.Reduce` on the simulated device.

The first two are numba's own host code, in a copy of its module in which `cuda` is the face: it works out
shapes and types, and its kernels come through our door. What it does with the insides of device arrays is
done here.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Iterable
from functools import cache
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

from gpulab.simulator import device as devices

from .arrays import ArrayError, DeviceArray
from .kernels import Kernel, jit
from .streams import Stream
from .transfers import as_device_array, to_device

BLOCK = 128  # threads of a block of a reduction; a power of two
MOST_BLOCKS = 64


def vectorize(signatures: Any = (), target: str = "cuda", **options: Any) -> Callable[[FunctionType], Any]:
    """A function of numbers, made a ufunc whose loop runs on the device; `signatures` say for which types."""
    return _decorator(_numbas_vectorizers().CUDAVectorize, signatures, (), target, options)


def guvectorize(
    signatures: Any, layout: str, target: str = "cuda", **options: Any
) -> Callable[[FunctionType], Any]:
    """A function of small arrays, made a ufunc over many of them; `layout` is such as ``"(n),()->(n)"``."""
    return _decorator(_numbas_vectorizers().CUDAGUFuncVectorize, signatures, (layout,), target, options)


def _decorator(
    builder: Any, signatures: Any, more: tuple[Any, ...], target: str, options: dict[str, Any]
) -> Callable[[FunctionType], Any]:
    if target != "cuda":
        raise ValueError(f"Unsupported target: {target}")
    if isinstance(signatures, FunctionType):
        raise TypeError("give the types too, as in @cuda.vectorize(['float32(float32, float32)'])")
    wanted: Iterable[Any] = [signatures] if isinstance(signatures, str) else signatures
    named = {name: options.pop(name) for name in ("identity", "cache", "writable_args") if name in options}

    def decorate(fn: FunctionType) -> Any:
        made = builder(fn, *more, targetoptions=dict(options), **named)
        for signature in wanted:
            made.add(signature)
        return made.build_ufunc()

    return decorate


@cache
def _numbas_vectorizers() -> ModuleType:
    """A copy of numba.cuda.vectorizers whose `cuda` is the face."""
    original = importlib.util.find_spec("numba.cuda.vectorizers")
    assert original and original.origin
    name = f"{__package__}.numbas_vectorizers"  # of its own, by which its objects can be pickled
    spec = importlib.util.spec_from_file_location(name, original.origin)
    assert spec and spec.loader
    copy = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(copy)

    def compile_core(self: Any, signature: Any) -> tuple[Kernel, Any]:
        core = jit(signature, device=True, inline="always")(self.pyfunc)
        compiled = core.function.dispatcher(devices.current().cc).overloads[tuple(signature.args)]
        return core, compiled.signature.return_type

    def launch_kernel(self: Any, kernel: Kernel, nelem: int, args: tuple[Any, ...]) -> None:
        kernel.forall(nelem, stream=self._stream)(*args)

    copy.__dict__.update(cuda=sys.modules[__package__])
    copy.CUDAVectorize._compile_core = compile_core
    copy.CUDAUFuncMechanism.broadcast_device = lambda self, array, shape: broadcast(array, shape)
    copy.CUDAGeneralizedUFunc._broadcast_scalar_input = lambda self, array, n: broadcast(array, (n,))
    copy.CUDAGeneralizedUFunc._broadcast_add_axis = lambda self, array, shape: broadcast(array, shape)
    return copy


def broadcast(array: DeviceArray, shape: Any) -> DeviceArray:
    """A view in which elements repeat, as by np.broadcast_to."""
    shape = tuple(shape)
    missing = len(shape) - array.ndim
    strides = (0,) * missing + tuple(
        stride if size == wanted else 0
        for stride, size, wanted in zip(array.strides, array.shape, shape[missing:], strict=True)
    )
    return DeviceArray(shape, array.dtype, strides, "C", array.stream, array._buffer, array._offset)


class Reduce:
    """A reduction with any function of two numbers whose order does not matter: ``Reduce(f)(array)``.

    Each block combines what its threads collected; a second launch combines the blocks' results.
    """

    def __init__(self, functor: Any):
        self._functor = functor
        self._kernels: dict[np.dtype, Kernel] = {}

    def __call__(
        self,
        arr: Any,
        size: int | None = None,
        res: DeviceArray | None = None,
        init: Any = 0,
        stream: Stream | int = 0,
    ) -> Any:
        """The result as a number, or into ``res[0]``. `init` takes part; only `size` elements if given."""
        if arr.ndim != 1:
            raise ArrayError(f"cuda.Reduce takes 1-D arrays, not one of {arr.ndim} dimensions.")
        arr = arr if size is None else arr[:size]
        init = arr.dtype.type(init)
        if arr.size == 0:
            return init
        array = as_device_array(arr) or to_device(np.ascontiguousarray(arr))
        kernel = self._kernel(array.dtype)
        blocks = min(-(-array.size // BLOCK), MOST_BLOCKS)
        partial = DeviceArray(blocks, array.dtype)
        kernel[blocks, BLOCK, stream](array, partial, init, blocks == 1)
        if blocks > 1:
            kernel[1, BLOCK, stream](partial, partial, init, True)
        if res is None:
            return partial[0]
        res[:1].copy_to_device(partial[:1], stream)
        return None

    def _kernel(self, dtype: np.dtype) -> Kernel:
        if dtype not in self._kernels:
            self._kernels[dtype] = _reduction(self._functor, dtype)
        return self._kernels[dtype]


def _reduction(functor: Any, dtype: np.dtype) -> Kernel:
    from numba import cuda
    from numba.cuda.np.numpy_support import from_dtype

    combine = jit(device=True)(functor)
    element = from_dtype(dtype)
    width = BLOCK

    @jit
    def reduce(array, partial, init, use_init):  # type: ignore[no-untyped-def]
        collected = cuda.shared.array(width, element)
        thread, first = cuda.threadIdx.x, cuda.grid(1)
        step = cuda.gridsize(1)
        if first < array.size:
            mine = array[first]
            for i in range(first + step, array.size, step):
                mine = combine(mine, array[i])
            collected[thread] = mine
        cuda.syncthreads()
        # Threads without an element of their own are the last ones of their block.
        filled = min(width, array.size - cuda.blockIdx.x * width)
        half = width // 2
        while half > 0:
            if thread < half and thread + half < filled:
                collected[thread] = combine(collected[thread], collected[thread + half])
            cuda.syncthreads()
            half //= 2
        if thread == 0:
            if use_init:
                partial[cuda.blockIdx.x] = combine(collected[0], init)
            else:
                partial[cuda.blockIdx.x] = collected[0]

    return reduce
