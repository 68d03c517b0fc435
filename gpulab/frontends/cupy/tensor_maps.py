"""``cuTensorMapEncodeTiled`` and its like, which CUDA's driver has and a machine without a GPU has not.

They take and return what those of ``cuda.bindings.driver`` do, so that a host's code runs as it is. A rule
that is broken is an exception that names it; the driver only returns a number.

>>> from gpulab.frontends.cupy.tensor_maps import driver
>>> driver.cuTensorMapEncodeTiled.__name__
'cuTensorMapEncodeTiled'
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from types import ModuleType
from typing import Any

import numpy as np

from gpulab.foundation.errors import shorten
from gpulab.simulator import device as devices
from gpulab.simulator.simt import tensor_maps
from gpulab.simulator.simt.tensor_maps import (
    DRIVER_SWIZZLES,
    DRIVER_TYPES,
    INTERLEAVES,
    SPANS,
    WrongTensorMap,
)

from .arrays import ndarray
from .driver import CUDADriverError

Result = tuple[Any, Any]
HOPPERS_TYPES = 13  # the first ones of CUtensorMapDataType
WORDS = tensor_maps.BYTES // 8
SWIZZLES = (0, *SPANS[1:])  # bytes, by CUtensorMapSwizzle


def _real() -> Any:
    return importlib.import_module("cuda.bindings.driver")


def _numbers(values: Sequence[Any] | None) -> tuple[int, ...]:
    return tuple(int(value) for value in values or ())


def _one_of(what: str, known: Sequence[Any], value: Any) -> Any:
    number = int(value)
    if not 0 <= number < len(known):
        name = getattr(value, "name", number)
        raise WrongTensorMap(f"Hopper has no {what} {name}.")
    return known[number]


def _types() -> Sequence[Any]:
    """The types that the device copies. Those of 4 and 6 bits came with Blackwell."""
    return DRIVER_TYPES if devices.current().gpu.cc >= (10, 0) else DRIVER_TYPES[:HOPPERS_TYPES]


def _checked_rank(rank: Any, **given: tuple[int, ...]) -> None:
    """The driver reads as many numbers as the rank says; here all are there."""
    for name, values in given.items():
        wanted = int(rank) - (name == "globalStrides")
        if len(values) != wanted:
            numbers = f"{wanted} number{'' if wanted == 1 else 's'}"
            raise WrongTensorMap(
                f"{name} must have {numbers} for a tensor of rank {int(rank)}, but has {len(values)}."
            )


def _made(data: bytes) -> Result:
    real = _real()
    made = real.CUtensorMap()
    made.opaque = [real.cuuint64_t(word) for word in np.frombuffer(data, np.uint64).tolist()]
    return real.CUresult.CUDA_SUCCESS, made


def content(made: Any) -> bytes:
    """The 128 bytes of a ``CUtensorMap``."""
    return np.array([int(word) for word in made.opaque], np.uint64).tobytes()


def is_tensor_map(value: Any) -> bool:
    """Whether something is a ``CUtensorMap`` of ``cuda.bindings``."""
    return type(value).__name__ == "CUtensorMap" and hasattr(value, "opaque")


def cuTensorMapEncodeTiled(
    tensorDataType: Any,
    tensorRank: Any,
    globalAddress: Any,
    globalDim: Sequence[Any] | None,
    globalStrides: Sequence[Any] | None,
    boxDim: Sequence[Any] | None,
    elementStrides: Sequence[Any] | None,
    interleave: Any,
    swizzle: Any,
    l2Promotion: Any,
    oobFill: Any,
) -> Result:
    """(CUDA_SUCCESS, the tensor map of a tiled tensor). Raises CUDADriverError for a broken rule."""
    dimensions, strides = _numbers(globalDim), _numbers(globalStrides)
    box, steps = _numbers(boxDim), _numbers(elementStrides)
    try:
        _checked_rank(
            tensorRank, globalDim=dimensions, globalStrides=strides, boxDim=box, elementStrides=steps
        )
        span, atomicity = _one_of("swizzle", DRIVER_SWIZZLES, swizzle)
        data = tensor_maps.encode_tiled(
            _one_of("type", _types(), tensorDataType),
            int(globalAddress),
            dimensions,
            strides,
            box,
            steps,
            interleave=_one_of("interleave", INTERLEAVES, interleave),
            span=span,
            atomicity=atomicity,
            promotion=int(l2Promotion),
            fills_nan=bool(int(oobFill)),
        )
    except WrongTensorMap as error:
        raise _in_words("cuTensorMapEncodeTiled", error) from None
    return _made(data)


def cuTensorMapEncodeIm2col(
    tensorDataType: Any,
    tensorRank: Any,
    globalAddress: Any,
    globalDim: Sequence[Any] | None,
    globalStrides: Sequence[Any] | None,
    pixelBoxLowerCorner: Sequence[int] | None,
    pixelBoxUpperCorner: Sequence[int] | None,
    channelsPerPixel: Any,
    pixelsPerColumn: Any,
    elementStrides: Sequence[Any] | None,
    interleave: Any,
    swizzle: Any,
    l2Promotion: Any,
    oobFill: Any,
) -> Result:
    """(CUDA_SUCCESS, the tensor map of an im2col tensor). Raises CUDADriverError as for a tiled one."""
    dimensions, strides, steps = map(_numbers, (globalDim, globalStrides, elementStrides))
    try:
        _checked_rank(tensorRank, globalDim=dimensions, globalStrides=strides, elementStrides=steps)
        span, atomicity = _one_of("swizzle", DRIVER_SWIZZLES, swizzle)
        data = tensor_maps.encode_im2col(
            _one_of("type", _types(), tensorDataType),
            int(globalAddress),
            dimensions,
            strides,
            _numbers(pixelBoxLowerCorner),
            _numbers(pixelBoxUpperCorner),
            int(channelsPerPixel),
            int(pixelsPerColumn),
            steps,
            interleave=_one_of("interleave", INTERLEAVES, interleave),
            span=span,
            atomicity=atomicity,
            promotion=int(l2Promotion),
            fills_nan=bool(int(oobFill)),
        )
    except WrongTensorMap as error:
        raise _in_words("cuTensorMapEncodeIm2col", error) from None
    return _made(data)


def cuTensorMapReplaceAddress(tensorMap: Any, globalAddress: Any) -> tuple[Any]:
    """Let a tensor map mean the same tensor at another address. Raises CUDADriverError."""
    try:
        data = tensor_maps.replaced(content(tensorMap), "global_address", int(globalAddress))
        tensor_maps.decode(data)
    except WrongTensorMap as error:
        raise _in_words("cuTensorMapReplaceAddress", error) from None
    code, made = _made(data)
    tensorMap.opaque = made.opaque
    return (code,)


def _in_words(call: str, error: WrongTensorMap) -> BaseException:
    return shorten(CUDADriverError(f"CUDA_ERROR_INVALID_VALUE: {call}: {error}"))


# Types of elements by NumPy's name: ``CU_TENSOR_MAP_DATA_TYPE_UINT8`` and so on.
TYPES = (
    "uint8", "uint16", "uint32", "int32", "uint64", "int64", "float16", "float32", "float64", "bfloat16",
)  # fmt: skip


def tensor_map(array: Any, box: Sequence[int], swizzle: int = 0) -> np.void:
    """A tensor map of a device array, to be passed to a kernel as ``const __grid_constant__ CUtensorMap``.

    `array` is CuPy's, of one to five dimensions, whose last one has no gaps. `box` is the shape of what one
    copy moves, in elements and in the order of the array's axes. `swizzle` is 0, 32, 64 or 128: within so
    many bytes of shared memory the pieces of 16 bytes change places. Elements outside the array are read as 0
    and never written. The result is a NumPy scalar of 128 bytes, which CuPy's kernels take as it is.

    It asks ``cuTensorMapEncodeTiled`` of ``cuda.bindings``. Raises TypeError for a type that tensor maps do
    not have, and CUDADriverError, in words, for a rule that is broken: strides and the box's rows are
    multiples of 16 bytes, a box has at most 256 elements along each axis, and its rows fit the swizzle.

    >>> from gpulab import cupy as cp
    >>> gpulab.tensor_map(cp.zeros((64, 48), cp.float32), (8, 32), swizzle=128).nbytes
    128
    """
    on_gpu = devices.uses_gpu() and not isinstance(array, ndarray)  # checks simulate on every machine
    encode: Any = _real().cuTensorMapEncodeTiled if on_gpu else cuTensorMapEncodeTiled
    if str(array.dtype) not in TYPES:
        known = ", ".join(TYPES)
        raise shorten(TypeError(f"A tensor map knows no elements of type {array.dtype}. It knows {known}."))
    if swizzle not in SWIZZLES:
        raise shorten(ValueError(f"The swizzle is {swizzle} bytes, but there are 0 (none), 32, 64 and 128."))
    if array.strides[-1:] != (array.itemsize,):
        raise shorten(ValueError("The elements of the array's last axis must lie side by side in memory."))
    real = _real()
    code, made = encode(
        getattr(real.CUtensorMapDataType, f"CU_TENSOR_MAP_DATA_TYPE_{str(array.dtype).upper()}"),
        array.ndim,
        array.data.ptr,
        [real.cuuint64_t(size) for size in reversed(array.shape)],
        [real.cuuint64_t(stride) for stride in reversed(array.strides[:-1])],
        [real.cuuint32_t(size) for size in reversed(box)],
        [real.cuuint32_t(1)] * array.ndim,
        real.CUtensorMapInterleave.CU_TENSOR_MAP_INTERLEAVE_NONE,
        real.CUtensorMapSwizzle(SWIZZLES.index(swizzle)),
        real.CUtensorMapL2promotion.CU_TENSOR_MAP_L2_PROMOTION_NONE,
        real.CUtensorMapFloatOOBfill.CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
    )
    if code != real.CUresult.CUDA_SUCCESS:
        raise shorten(CUDADriverError(f"{code.name}: cuTensorMapEncodeTiled refuses the box {tuple(box)}."))
    made_of: np.void = np.frombuffer(content(made), f"V{tensor_maps.BYTES}")[0]
    return made_of


class _Driver(ModuleType):
    """``cuda.bindings.driver`` as a learner's code sees it: what makes tensor maps is ours, all else its."""

    cuTensorMapEncodeTiled = staticmethod(cuTensorMapEncodeTiled)
    cuTensorMapEncodeIm2col = staticmethod(cuTensorMapEncodeIm2col)
    cuTensorMapReplaceAddress = staticmethod(cuTensorMapReplaceAddress)

    def __getattr__(self, name: str) -> Any:
        return getattr(_real(), name)


class _Bindings(ModuleType):
    """``cuda.bindings`` with that driver."""

    def __getattr__(self, name: str) -> Any:
        return importlib.import_module(f"cuda.bindings.{name}")


driver = _Driver("cuda.bindings.driver")
bindings = _Bindings("cuda.bindings")
bindings.driver = driver  # type: ignore[attr-defined]
