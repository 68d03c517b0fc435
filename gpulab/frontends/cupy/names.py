"""Which name is which function: made from the tables when it is first asked for."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from .arrays import ndarray
from .functions import NAMES, function
from .tables import words
from .ufuncs import ufunc

# The submodules that NumPy has too, and the names in them.
SUBMODULES = {
    "": NAMES,
    "linalg": frozenset(words("""
        cholesky cond cross det eig eigh eigvals eigvalsh inv lstsq matmul matrix_power
        matrix_rank matrix_transpose norm pinv qr slogdet solve svd tensorinv tensorsolve
    """)),
    "fft": frozenset(words("""
        fft fft2 fftfreq fftn fftshift hfft ifft ifft2 ifftn ifftshift ihfft irfft irfft2 irfftn rfft
        rfft2 rfftfreq rfftn
    """)),
    "testing": frozenset(words("""
        assert_allclose assert_array_almost_equal assert_array_almost_equal_nulp assert_array_equal
        assert_array_less assert_array_max_ulp
    """)),
}  # fmt: skip

# Types, constants and the like, the same on the host and on the device.
SHARED = frozenset(words("""
    bool bool_ byte cdouble complex128 complex64 complexfloating csingle double dtype finfo float16
    float32 float64 floating generic half iinfo inexact int16 int32 int64 int8 int_ intc integer intp long
    longlong ndindex number short signedinteger single ubyte uint uint16 uint32 uint64 uint8 uintc uintp
    ulong ulonglong unsignedinteger ushort e euler_gamma inf nan newaxis pi index_exp s_ exceptions
"""))  # fmt: skip


@cache
def find(name: str, module: str = "") -> Any:
    """The function, type or constant `name` of ``cupy`` or a submodule of it. Raises AttributeError."""
    place = f"cupy.{module}" if module else "cupy"
    if not module and name in SHARED:
        return getattr(np, name)
    numpys = np if not module else getattr(np, module, None)
    found = getattr(numpys, name, None)
    if name not in SUBMODULES.get(module, ()) or found is None:
        hint = (
            f" NumPy has it: cupy.asarray(numpy.{f'{module}.' if module else ''}{name}(cupy.asnumpy(array)))."
            if found is not None and not name.startswith("_")
            else ""
        )
        raise AttributeError(f"the simulated {place} has no {name!r}.{hint}", name=name)
    if isinstance(found, np.ufunc):
        return ufunc(found)
    if module == "testing":
        return _assertion(found)
    return function(name, found, place)


def _assertion(numpys: Callable[..., Any]) -> Callable[..., Any]:
    """An assertion of NumPy's that takes arrays of either side."""

    def check(*args: Any, **kwargs: Any) -> None:
        on_host = [a.get() if isinstance(a, ndarray) else a for a in args]
        numpys(*on_host, **{k: a.get() if isinstance(a, ndarray) else a for k, a in kwargs.items()})

    check.__name__, check.__doc__ = numpys.__name__, f"NumPy's {numpys.__name__}, of arrays on either side."
    return check
