"""Names of numba.cuda that mean something only in a kernel: `cuda.grid`, `cuda.threadIdx`, `cuda.atomic` …"""

from __future__ import annotations

from functools import reduce
from typing import Any, NoReturn

from gpulab.foundation.errors import Message


class OnlyInKernel(Message, NotImplementedError):
    """A name of kernels was used in host code."""


class DeviceOnly:
    """Stands for ``numba.cuda.<path>`` when a kernel is compiled; on the host it only explains itself."""

    def __init__(self, path: str):
        self._path = path
        self.__doc__ = getattr(real(path), "__doc__", None)

    def __stands_for__(self, cc: tuple[int, int]) -> Any:
        return real(self._path)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        found = getattr(real(self._path), name)  # an AttributeError of numba's says what is missing
        if isinstance(found, property):  # threadIdx.x
            self._explain(f".{name}")
        return DeviceOnly(f"{self._path}.{name}")

    def __call__(self, *args: Any, **kwargs: Any) -> NoReturn:
        self._explain("(…)")

    def __index__(self) -> NoReturn:
        self._explain()

    __int__ = __float__ = __index__

    def _explain(self, rest: str = "") -> NoReturn:
        raise OnlyInKernel(
            f"cuda.{self._path}{rest} exists only in a kernel, where there are threads; this is host code."
        )

    def __dir__(self) -> list[str]:
        return [name for name in dir(real(self._path)) if not name.startswith("_")]

    def __repr__(self) -> str:
        return f"<cuda.{self._path}, for use in kernels>"


def real(path: str) -> Any:
    """``numba.cuda.<path>``."""
    from numba import cuda

    return reduce(getattr, path.split("."), cuda)


def is_device_only(thing: Any) -> bool:
    """Whether a thing of numba.cuda can be used in kernels only: a stub or an intrinsic."""
    from numba.cuda import extending, stubs

    return isinstance(thing, extending._Intrinsic) or (
        isinstance(thing, type) and issubclass(thing, stubs.Stub)
    )
