"""CuPy's array functions: NumPy computes, the results lie on the device.

The functions come from a table of names. A function looks at device memory in place; a result that shares
memory with an argument is a view, every other one gets memory of its own. NumPy arrays are refused, as CuPy
does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .arrays import ndarray, to_device
from .tables import words

# Everything that has NumPy's name and meaning. What is a ufunc in NumPy is one here.
NAMES = frozenset(words("""
    abs absolute acos acosh add all allclose amax amin angle any append apply_along_axis arange arccos
    arccosh arcsin arcsinh arctan arctan2 arctanh argmax argmin argpartition argsort argwhere around
    array2string array_equal array_equiv array_repr array_split array_str asin asinh atan atan2 atanh
    atleast_1d atleast_2d atleast_3d average bartlett base_repr binary_repr bincount bitwise_and
    bitwise_count bitwise_invert bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift bitwise_xor
    blackman broadcast_arrays broadcast_shapes broadcast_to can_cast cbrt ceil choose clip column_stack
    common_type compress concat concatenate conj conjugate convolve copysign copyto corrcoef correlate cos
    cosh count_nonzero cov cross cumprod cumsum cumulative_prod cumulative_sum deg2rad degrees delete diag
    diag_indices diag_indices_from diagflat diagonal diff digitize divide divmod dot dsplit dstack ediff1d
    einsum equal exp exp2 expand_dims expm1 eye fabs fill_diagonal fix flatnonzero flip fliplr flipud
    float_power floor floor_divide fmax fmin fmod format_float_positional format_float_scientific frexp
    frombuffer fromfunction fromiter fromstring full full_like gcd get_printoptions gradient greater
    greater_equal hamming hanning heaviside histogram histogram2d histogramdd hsplit hstack hypot i0
    identity imag indices inner interp intersect1d invert isclose iscomplex iscomplexobj isdtype isfinite
    isfortran isin isinf isnan isneginf isposinf isreal isrealobj isscalar issubdtype ix_ kaiser kron lcm
    ldexp left_shift less less_equal lexsort linspace log log10 log1p log2 logaddexp logaddexp2
    logical_and logical_not logical_or logical_xor logspace mask_indices matmul matrix_transpose max
    maximum mean median meshgrid min min_scalar_type minimum mod modf moveaxis multiply nan_to_num
    nanargmax nanargmin nancumprod nancumsum nanmax nanmean nanmedian nanmin nanprod nanstd nansum nanvar
    ndim negative nextafter nonzero not_equal ones ones_like outer packbits pad partition percentile
    permute_dims piecewise place poly polyadd polyfit polymul polysub polyval positive pow power
    printoptions prod promote_types ptp put put_along_axis putmask quantile rad2deg radians ravel
    ravel_multi_index real real_if_close reciprocal remainder repeat require reshape resize result_type
    right_shift rint roll rollaxis roots rot90 round row_stack searchsorted select set_printoptions
    setdiff1d setxor1d shape shares_memory sign signbit sin sinc sinh size sort sort_complex split sqrt
    square squeeze stack std subtract sum swapaxes take take_along_axis tan tanh tensordot tile trace
    transpose trapezoid tri tril tril_indices tril_indices_from trim_zeros triu triu_indices
    triu_indices_from true_divide trunc typename union1d unique unique_all unique_counts unique_inverse
    unique_values unpackbits unravel_index unwrap vander var vdot vsplit vstack where zeros zeros_like
"""))  # fmt: skip

# About arrays rather than with them: what comes out stays on the host.
ON_HOST = frozenset(words("""
    array2string array_repr array_str base_repr binary_repr broadcast_shapes can_cast common_type
    format_float_positional format_float_scientific get_printoptions iscomplexobj isdtype isfortran
    isrealobj isscalar issubdtype min_scalar_type ndim printoptions promote_types result_type
    set_printoptions shape shares_memory size typename
"""))  # fmt: skip

# What makes views, without a look at an element.
VIEWS = frozenset(words("""
    array_split atleast_1d atleast_2d atleast_3d broadcast_arrays broadcast_to diagonal dsplit expand_dims
    flip fliplr flipud hsplit imag matrix_transpose moveaxis permute_dims ravel real require reshape
    rollaxis rot90 split squeeze swapaxes transpose vsplit
"""))  # fmt: skip

# What writes into its first argument.
WRITERS = frozenset(words("copyto fill_diagonal place put put_along_axis putmask resize"))

# What makes arrays from nothing but numbers; everything else wants a device array among its arguments.
MAKERS = frozenset(words("""
    arange bartlett blackman diag_indices eye frombuffer fromfunction fromiter fromstring full hamming
    hanning identity indices ix_ kaiser linspace logspace mask_indices ones tri tril_indices triu_indices
    zeros unravel_index ravel_multi_index meshgrid
"""))  # fmt: skip


def function(name: str, numpys: Callable[..., Any], module: str = "cupy") -> Callable[..., Any]:
    """A function of NumPy's as one of device arrays; its name is ``module.name``."""
    needs_array = name not in MAKERS | ON_HOST and module == "cupy"
    on_host, writes, views = name in ON_HOST, name in WRITERS, name in VIEWS

    def call(*args: Any, **kwargs: Any) -> Any:
        if (traced := tracer((*args, *kwargs.values()))) is not None:
            return traced.call(name, args, kwargs)
        host = OnHost(f"{module}.{name}", looks=not views)
        if on_host:
            return numpys(*host.all(args), **host.named(kwargs))
        if writes:
            args = (host.written(args[0]), *args[1:])
        elif isinstance(kwargs.get("out"), ndarray):
            kwargs["out"] = host.written(kwargs["out"])
        lowered, named = host.all(args), host.named(kwargs)
        if needs_array and not host.arrays:
            raise host.refused((*args, *kwargs.values())[0] if args or kwargs else None)
        with np.errstate(all="ignore"):
            return host.back(numpys(*lowered, **named))

    call.__name__ = call.__qualname__ = name
    call.__module__ = module
    call.__doc__ = f"NumPy's {name}, on device arrays."
    return call


def tracer(values: tuple[Any, ...]) -> Any:
    """The stand-in of an array inside a function that is being fused, if one is among the arguments."""
    for value in values:
        if getattr(type(value), "stands_for_array", False):
            return value.trace
        if isinstance(value, tuple | list) and (found := tracer(tuple(value))) is not None:
            return found
    return None


class OnHost:
    """The arguments of one call as NumPy sees them, and its results as device arrays."""

    def __init__(self, name: str, looks: bool = True):
        self.name, self.looks = name, looks
        self.arrays: list[ndarray] = []
        self._known: dict[int, ndarray] = {}  # id of a NumPy array → the device array that it lies in
        self._kept: list[np.ndarray] = []

    def all(self, values: Any) -> list[Any]:
        return [self.one(value) for value in values]

    def named(self, values: dict[str, Any]) -> dict[str, Any]:
        return {name: self.one(value) for name, value in values.items()}

    def one(self, value: Any) -> Any:
        """A value as NumPy gets it. Raises TypeError for NumPy arrays."""
        if isinstance(value, ndarray):
            return self._known_as(value.open() if self.looks else value.layout(), value)
        if isinstance(value, np.ndarray):
            if id(value) in self._known:
                return value
            if value.ndim:
                raise self.refused(value)
            return value[()]
        if type(value) in (list, tuple):
            return type(value)(map(self.one, value))
        if hasattr(value, "__cuda_array_interface__"):
            from .arrays import borrow

            return self.one(borrow(value.__cuda_array_interface__, value))
        return value

    def written(self, value: Any) -> Any:
        """An array that is about to be changed."""
        return self._known_as(value.open(writes=True), value) if isinstance(value, ndarray) else value

    def _known_as(self, host: np.ndarray, array: ndarray) -> np.ndarray:
        self.arrays.append(array)
        self._known[id(host)] = array
        self._kept.append(host)  # so that its id stays its own
        return host

    def refused(self, value: Any) -> TypeError:
        kind = type(value)
        cure = "cupy.asarray(…)" if isinstance(value, np.ndarray | list | tuple) else "a device array"
        return TypeError(f"Unsupported type {kind}: {self.name} takes device arrays; pass {cure}.")

    def back(self, result: Any) -> Any:
        """A result of NumPy's as device arrays."""
        if isinstance(result, np.ndarray):
            if (known := self._known.get(id(result))) is not None:
                return known
            view = self._view(result)
            return self._new(result) if view is None else view
        if isinstance(result, np.generic | bool | int | float | complex):
            return to_device(result)
        if isinstance(result, tuple | list):
            items = [self.back(item) for item in result]
            return type(result)(*items) if hasattr(result, "_fields") else type(result)(items)
        return result

    def _view(self, result: np.ndarray) -> ndarray | None:
        """`result` as a view of one of the arrays, if it lies in one."""
        if not result.size:
            return None
        for array in self.arrays:
            if np.may_share_memory(result, array.data.mem.allocation.data):  # type: ignore[union-attr]
                return array.part(result)
        return None

    def _new(self, result: np.ndarray) -> ndarray:
        if not self.looks:  # no view after all: the elements were copied
            for array in self.arrays:
                array.open()
        return to_device(result)
