"""The operators and methods of `ndarray`, from tables of names; what NumPy's own functions do with one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from . import names
from .arrays import ndarray
from .tables import words

BINARY = {
    "add": "add",
    "sub": "subtract",
    "mul": "multiply",
    "truediv": "true_divide",
    "floordiv": "floor_divide",
    "mod": "remainder",
    "divmod": "divmod",
    "pow": "power",
    "matmul": "matmul",
    "lshift": "left_shift",
    "rshift": "right_shift",
    "and": "bitwise_and",
    "or": "bitwise_or",
    "xor": "bitwise_xor",
}
COMPARISONS = {
    "lt": "less",
    "le": "less_equal",
    "gt": "greater",
    "ge": "greater_equal",
    "eq": "equal",
    "ne": "not_equal",
}
UNARY = {"neg": "negative", "pos": "positive", "abs": "absolute", "invert": "invert"}

# Methods that are functions of the same name with the array in front.
METHODS = words("""
    all any argmax argmin argpartition argsort choose clip compress conj conjugate cumprod cumsum diagonal dot
    max mean min nonzero prod ptp put ravel repeat reshape round searchsorted squeeze std sum swapaxes take
    trace transpose var
""")

# Methods that sort in place.
IN_PLACE = ("sort", "partition")


def _binary(name: str) -> tuple[Callable[..., Any], Callable[..., Any], Callable[..., Any]]:
    function = names.find(name)

    def forward(self: ndarray, other: Any) -> Any:
        return function(self, other) if _may_operate(other) else NotImplemented

    def reflected(self: ndarray, other: Any) -> Any:
        return function(other, self) if _may_operate(other) else NotImplemented

    def in_place(self: ndarray, other: Any) -> Any:
        return function(self, other, out=self)

    return forward, reflected, in_place


def _comparison(name: str) -> Callable[..., Any]:
    function = names.find(name)

    def compare(self: ndarray, other: Any) -> Any:
        if other is None and name in ("equal", "not_equal"):  # an element is never None
            return names.find("full")(self.shape, name == "not_equal")
        return function(self, other) if _may_operate(other) else NotImplemented

    return compare


def _may_operate(other: Any) -> bool:
    """Whether the other side of an operator is not better asked itself."""
    traced = getattr(type(other), "stands_for_array", False)
    return not traced and getattr(other, "__array_ufunc__", True) is not None


def _unary(name: str) -> Callable[..., Any]:
    function = names.find(name)
    return lambda self: function(self)


def _method(name: str) -> Callable[..., Any]:
    function = names.find(name)

    def method(self: ndarray, *args: Any, **kwargs: Any) -> Any:
        return function(self, *args, **kwargs)

    method.__name__, method.__doc__ = name, f"cupy.{name} of this array."
    return method


def _reshape(self: ndarray, *shape: Any, order: str = "C") -> ndarray:
    """The elements in another shape: a view where that is possible."""
    return names.find("reshape")(self, shape[0] if len(shape) == 1 else shape, order=order)


def _transpose(self: ndarray, *axes: Any) -> ndarray:
    """A view with the axes in reverse or in the given order."""
    order = axes[0] if len(axes) == 1 and not isinstance(axes[0], int) else axes or None
    return names.find("transpose")(self, order)


def _flatten(self: ndarray, order: str = "C") -> ndarray:
    """A copy in one dimension."""
    return names.find("ravel")(self, order).copy()


def _choose(self: ndarray, choices: Any, out: Any = None, mode: str = "raise") -> Any:
    """An element of one of the choices for each element."""
    return names.find("choose")(self, choices, out=out, mode=mode)


def _compress(self: ndarray, condition: Any, axis: Any = None, out: Any = None) -> Any:
    """The parts along an axis where the condition holds."""
    return names.find("compress")(condition, self, axis, out)


def _in_place(name: str) -> Callable[..., None]:
    def method(self: ndarray, *args: Any, **kwargs: Any) -> None:
        getattr(self.open(writes=True), name)(*args, **kwargs)

    method.__name__, method.__doc__ = name, f"Apply {name} to the array itself."
    return method


def _array_ufunc(self: ndarray, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
    """NumPy's ufuncs of device arrays are CuPy's."""
    if "out" in kwargs and len(kwargs["out"]) == 1:
        kwargs["out"] = kwargs["out"][0]
    try:
        function = names.find(ufunc.__name__)
    except AttributeError:
        return NotImplemented
    run = function if method == "__call__" else getattr(function, method)
    return run(*inputs, **kwargs)


def _array_function(
    self: ndarray, function: Any, types: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """NumPy's functions of device arrays are CuPy's."""
    try:
        found = names.find(function.__name__, function.__module__.removeprefix("numpy").lstrip("."))
    except AttributeError:
        return NotImplemented
    return found(*args, **kwargs)


def install() -> None:
    """Give `ndarray` its operators and methods."""
    for operator, name in BINARY.items():
        forward, reflected, in_place = _binary(name)
        setattr(ndarray, f"__{operator}__", forward)
        setattr(ndarray, f"__r{operator}__", reflected)
        if operator != "divmod":
            setattr(ndarray, f"__i{operator}__", in_place)
    for operator, name in COMPARISONS.items():
        setattr(ndarray, f"__{operator}__", _comparison(name))
    for operator, name in UNARY.items():
        setattr(ndarray, f"__{operator}__", _unary(name))
    for name in METHODS:
        setattr(ndarray, name, _method(name))
    for name in IN_PLACE:
        setattr(ndarray, name, _in_place(name))
    special = {
        "reshape": _reshape,
        "transpose": _transpose,
        "flatten": _flatten,
        "choose": _choose,
        "compress": _compress,
        "__array_ufunc__": _array_ufunc,
        "__array_function__": _array_function,
    }
    for name, method in special.items():
        setattr(ndarray, name, method)
