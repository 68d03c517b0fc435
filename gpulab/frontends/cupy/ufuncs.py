"""`cupy.ufunc`: functions of elements, by name from NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np

from .arrays import ndarray
from .functions import OnHost, tracer


class ufunc:
    """A function that works element by element on device arrays and numbers; dtypes by NumPy's rules."""

    def __init__(self, numpys: np.ufunc, name: str = ""):
        self._numpys = numpys
        self.name = self.__name__ = f"cupy_{numpys.__name__}"
        self.__name__ = numpys.__name__
        self.__doc__ = f"NumPy's {numpys.__name__}, on device arrays."
        self.nin, self.nout, self.nargs = numpys.nin, numpys.nout, numpys.nargs
        self.types = numpys.types

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The result for each element; `out`, `where`, `dtype` and `casting` as NumPy's."""
        if (traced := tracer((*args, *kwargs.values()))) is not None:
            return traced.call(self.__name__, args, kwargs)
        return self._run("", args, kwargs)

    def outer(self, a: Any, b: Any, **kwargs: Any) -> Any:
        return self._run("outer", (a, b), kwargs)

    def reduce(
        self, array: Any, axis: Any = 0, dtype: Any = None, out: Any = None, keepdims: bool = False
    ) -> Any:
        return self._run("reduce", (array, axis, dtype, out, keepdims), {})

    def accumulate(self, array: Any, axis: int = 0, dtype: Any = None, out: Any = None) -> Any:
        return self._run("accumulate", (array, axis, dtype, out), {})

    def reduceat(self, array: Any, indices: Any, axis: int = 0, dtype: Any = None, out: Any = None) -> Any:
        return self._run("reduceat", (array, indices, axis, dtype, out), {})

    def at(self, a: Any, indices: Any, b: Any = None) -> None:
        host = OnHost(f"cupy.{self.__name__}.at")
        values = (indices,) if b is None else (indices, b)
        with np.errstate(all="ignore"):
            self._numpys.at(host.written(a), *host.all(values))

    def _run(self, method: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        host = OnHost(f"cupy.{self.__name__}" + (f".{method}" if method else ""))
        inputs = args if method else args[: self.nin]
        for value in inputs[: self.nin]:
            if isinstance(value, list | tuple | range | np.ndarray) and (method == "" or value is inputs[0]):
                raise host.refused(value)
        if len(args) > self.nin and not method:
            kwargs["out"] = args[self.nin :]
        out = kwargs.pop("out", None)
        if out is not None:
            outs = out if isinstance(out, tuple) else (out,)
            if not all(isinstance(o, ndarray) or o is None for o in outs):
                raise TypeError("Output arguments type must be cupy.ndarray")
            kwargs["out"] = tuple(host.written(o) for o in outs)
        run = getattr(self._numpys, method) if method else self._numpys
        lowered, named = host.all(inputs), host.named(kwargs)
        with np.errstate(all="ignore"):
            return host.back(run(*lowered, **named))

    def __repr__(self) -> str:
        return f"<ufunc '{self.name}'>"
