"""To the device and back, and what CuPy has beyond NumPy's functions."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import names
from .arrays import borrow, check_dtype, ndarray, to_device
from .functions import OnHost


def array(
    obj: Any,
    dtype: Any = None,
    copy: bool | None = True,
    order: str = "K",
    subok: bool = False,
    ndmin: int = 0,
    *,
    blocking: bool = False,
) -> ndarray:
    """A device array of the elements of a NumPy array, a device array, a list or a number."""
    dtype = None if dtype is None else check_dtype(dtype)
    if not isinstance(obj, ndarray) and hasattr(obj, "__cuda_array_interface__"):
        obj = borrow(obj.__cuda_array_interface__, obj)
    if isinstance(obj, ndarray):
        result = obj.astype(dtype, order, copy=False) if dtype is not None else obj
        wrong_order = order in ("C", "F") and not result.flags[f"{order}_CONTIGUOUS"]
        if wrong_order or (copy and result is obj):
            result = to_device(result.open(), order)
    else:
        host = obj if isinstance(obj, np.ndarray | np.generic) else OnHost("cupy.array").one(obj)
        result = to_device(np.array(host, dtype=dtype, order=_numpys_order(order), ndmin=ndmin, copy=None))
    if result.ndim < ndmin:
        result = result.reshape((1,) * (ndmin - result.ndim) + result.shape)  # type: ignore[attr-defined]
    return result


def asarray(
    a: Any, dtype: Any = None, order: Any = None, *, blocking: bool = False, copy: Any = None
) -> ndarray:
    """A device array: `a` itself if it is one of this dtype."""
    return array(a, dtype, copy=bool(copy), order=order or "K")


asanyarray = asarray


def ascontiguousarray(a: Any, dtype: Any = None) -> ndarray:
    """A device array whose rows lie one behind the other."""
    return array(a, dtype, copy=False, order="C", ndmin=1)


def asfortranarray(a: Any, dtype: Any = None) -> ndarray:
    """A device array whose columns lie one behind the other."""
    return array(a, dtype, copy=False, order="F", ndmin=1)


def asnumpy(
    a: Any, stream: Any = None, order: str = "C", out: Any = None, *, blocking: bool = True
) -> np.ndarray:
    """A NumPy array with the elements of a device array (or of anything that NumPy takes)."""
    if isinstance(a, ndarray):
        return a.get(order=order, out=out)
    if hasattr(a, "__cuda_array_interface__"):
        return borrow(a.__cuda_array_interface__, a).get(order=order, out=out)
    host = np.asarray(a, order=_numpys_order(order))
    if out is None:
        return host
    out[...] = host
    return out


def copy(a: Any, order: str = "K") -> ndarray:
    """A new array with the same elements."""
    return array(a, order=order)


def empty(shape: Any, dtype: Any = float, order: str = "C") -> ndarray:
    """A new array. Its elements are NaN (floats) or -1 (integers) until something is written."""
    return ndarray(shape, dtype, order=order)


def empty_like(
    prototype: Any, dtype: Any = None, order: str = "K", subok: Any = None, shape: Any = None
) -> ndarray:
    """A new array of the shape and dtype of another one."""
    source = prototype if isinstance(prototype, ndarray) else asarray(prototype)
    pattern = np.empty_like(source.layout(), dtype=dtype, order=_numpys_order(order), shape=shape)
    result = ndarray(pattern.shape, pattern.dtype)
    if pattern.size:
        result.strides = pattern.strides
    return result


def astype(x: ndarray, dtype: Any, /, *, copy: bool = True) -> ndarray:
    """The elements as another dtype."""
    return x.astype(dtype, copy=copy)


def get_array_module(*args: Any) -> Any:
    """cupy if one of the arguments is a device array, else numpy."""
    import sys

    if any(isinstance(arg, ndarray) or getattr(type(arg), "stands_for_array", False) for arg in args):
        return sys.modules[__package__]
    return np


def may_share_memory(a: Any, b: Any, max_work: Any = None) -> bool:
    """Whether two arrays may overlap."""
    if not (isinstance(a, ndarray) and isinstance(b, ndarray) and a.size and b.size):
        return False
    return np.may_share_memory(a.layout(), b.layout(), max_work)


def load(file: Any, mmap_mode: Any = None, allow_pickle: Any = None) -> Any:
    """An array of a .npy file, or what lies in a .npz file, by name."""
    found = np.load(file, mmap_mode, allow_pickle=bool(allow_pickle))
    if isinstance(found, np.ndarray):
        return to_device(found)
    return {name: to_device(found[name]) for name in found.files}


def save(file: Any, arr: ndarray, allow_pickle: Any = None) -> None:
    """Write an array to a .npy file."""
    np.save(file, asnumpy(arr))


def savez(file: Any, *args: Any, **kwargs: Any) -> None:
    """Write arrays to a .npz file."""
    on_host: Any = {name: asnumpy(a) for name, a in kwargs.items()}
    np.savez(file, *map(asnumpy, args), **on_host)


def show_config(*, _full: bool = False) -> None:
    """Print what there is: a simulated GPU."""
    from gpulab.simulator import device as devices
    from gpulab.simulator.compile.cuda_c import nvrtc_version

    gpu = devices.current().gpu
    for label, value in (
        ("device", f"{gpu.product} (simulated; set GPULAB_GPU to choose another)"),
        ("compute capability", f"{gpu.cc[0]}{gpu.cc[1]}"),
        ("compiler", nvrtc_version()),
        ("NumPy", np.__version__),
    ):
        print(f"{label:<20}: {value}")


def _numpys_order(order: Any) -> Any:
    return order if order in ("C", "F", "A", "K") else "K"


def clear_memo() -> None:
    """Forget the kernels compiled so far."""
    from gpulab.simulator.compile import cuda_c_module

    cuda_c_module.cache_clear()


def memoize(for_each_device: bool = False) -> Any:
    """A decorator: keep the results of a function by its arguments."""
    from functools import cache

    return lambda fn: cache(fn)


def einsum(*args: Any, **kwargs: Any) -> Any:
    """Einstein's summation convention."""
    kwargs.pop("optimize", None)
    return names.find("einsum")(*args, **kwargs)
