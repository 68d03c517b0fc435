"""`cupy.fuse`: a function of arrays becomes one kernel.

The function runs once with stand-ins for its arrays, which write down what is done to an element. What comes
out is an ElementwiseKernel, or a ReductionKernel where the last step is a reduction.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from . import names
from .arrays import check_dtype, ndarray
from .c_expressions import REDUCTIONS, SYNONYMS, compute_name, expression, literal
from .compiler import is_valid_kernel_name
from .elementwise import ElementwiseKernel
from .operators import BINARY, COMPARISONS, UNARY
from .reduction import ReductionKernel

WEAK = (bool, int, float, complex)  # Python's numbers, which take the dtype of what they meet


@dataclass(frozen=True)
class Value:
    """One value in the kernel: its text, its dtype or type of Python's, the arguments that it depends on."""

    text: str
    dtype: Any
    arguments: frozenset[int] = frozenset()
    reduced: bool = False

    @property
    def is_weak(self) -> bool:
        """Whether it is a Python number. (A dtype equals the type of Python's that it is made of.)"""
        return not isinstance(self.dtype, np.dtype)


@dataclass
class Reduction:
    """The reduction that ends a trace: `name` of NumPy's, the value that is reduced, along which axes."""

    name: str
    value: Value
    dtype: np.dtype
    options: dict[str, Any]


class Traced:
    """Stands for an array while a function is traced."""

    stands_for_array = True

    def __init__(self, trace: Trace, value: Value, argument: int | None = None):
        self.trace, self.value, self.argument = trace, value, argument

    @property
    def dtype(self) -> np.dtype:
        return self.value.dtype

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if method != "__call__":
            raise self.trace.refused(f"numpy.{ufunc.__name__}.{method}")
        return self.trace.call(ufunc.__name__, inputs, kwargs)

    def __bool__(self) -> bool:
        raise TypeError(
            f"cupy.fuse: {self.trace.name} asks whether an array is true, which is not known before the "
            "kernel runs. Choose with cupy.where."
        )

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *args, **kwargs: self.trace.call(name, (self, *args), kwargs)

    def astype(self, dtype: Any, *args: Any, **kwargs: Any) -> Traced:
        return self.trace.converted(self, check_dtype(dtype))

    def copy(self, *args: Any) -> Traced:
        return Traced(self.trace, self.value)

    def __setitem__(self, index: Any, value: Any) -> None:
        if index not in (Ellipsis, slice(None)):
            raise self.trace.refused("a[…] = … with an index")
        self.trace.store(self, value)

    def __getitem__(self, index: Any) -> Traced:
        if index not in (Ellipsis, slice(None)):
            raise self.trace.refused("an index")
        return self


def _operator(name: str, reflected: bool = False) -> Callable[..., Any]:
    def operate(self: Traced, *other: Any) -> Any:
        return self.trace.call(name, (*other, self) if reflected else (self, *other), {})

    return operate


def _in_place(name: str) -> Callable[..., Any]:
    def operate(self: Traced, other: Any) -> Traced:
        self.trace.store(self, self.trace.call(name, (self, other), {}))
        return self

    return operate


for _operator_name, _name in (BINARY | COMPARISONS | UNARY).items():
    setattr(Traced, f"__{_operator_name}__", _operator(_name))
    if _operator_name in BINARY:
        setattr(Traced, f"__r{_operator_name}__", _operator(_name, reflected=True))
        setattr(Traced, f"__i{_operator_name}__", _in_place(_name))


@dataclass
class Trace:
    """What is done to an element, line by line."""

    name: str
    lines: list[str] = field(default_factory=list)
    after: list[str] = field(default_factory=list)  # what is done to the result of the reduction
    stored: dict[int, Value] = field(default_factory=dict)  # arguments that are written
    reduction: Reduction | None = None

    def refused(self, what: str) -> TypeError:
        return TypeError(
            f"cupy.fuse: {self.name} uses {what}, which cannot be fused: only functions of elements, and one "
            "reduction as the last step."
        )

    def call(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A function of CuPy's is called with a stand-in."""
        out = kwargs.pop("out", None)
        name = SYNONYMS.get(name, name)
        if name in REDUCTIONS:
            if out is not None:
                raise self.refused("a reduction with out=…")
            return self._reduce(name, *args, **kwargs)
        if name == "where" and len(args) == 3:
            result = self._choose(*args)
        elif name == "clip":
            result = self.call("minimum", (self.call("maximum", (args[0], args[1]), {}), args[2]), {})
        else:
            result = self._element(name, args, kwargs)
        if out is None:
            return result
        self.store(out, result)
        return out

    def store(self, target: Traced, value: Any) -> None:
        """Write to an array: the placeholder now means the new value."""
        found = self._value(value)
        target.value = self.converted(Traced(self, found), target.dtype).value
        if target.argument is not None:
            self.stored[target.argument] = target.value

    def converted(self, traced: Traced, dtype: np.dtype) -> Traced:
        if traced.dtype == dtype:
            return traced
        return self._new(f"static_cast<{compute_name(dtype)}>({traced.value.text})", dtype, [traced.value])

    # ---- steps -----------------------------------------------------------------------------------

    def _element(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        numpys = getattr(names.find(name), "_numpys", None) if name in names.SUBMODULES[""] else None
        if numpys is None or kwargs.keys() - {"dtype"}:
            raise self.refused(f"cupy.{name}" + ("".join(f"({k}=…)" for k in kwargs)))
        if len(args) > numpys.nin:
            self.store(args[numpys.nin], self._element(name, args[: numpys.nin], kwargs))
            return args[numpys.nin]
        values = [self._value(arg) for arg in args]
        unknown = (None,) * numpys.nout
        loop = numpys.resolve_dtypes((*(v.dtype for v in values), *unknown), **_signature(numpys, kwargs))
        text = expression(numpys.__name__, loop, [self._as(v, t) for v, t in zip(values, loop, strict=False)])
        if text is None or numpys.nout != 1:
            raise self.refused(f"cupy.{name}")
        return self._new(text, loop[-1], values)

    def _choose(self, condition: Any, a: Any, b: Any) -> Traced:
        values = [self._value(x) for x in (condition, a, b)]
        dtype = np.result_type(*[v.dtype(0) if v.is_weak else v.dtype for v in values[1:]])
        kind = compute_name(dtype)
        if_so, if_not = (f"static_cast<{kind}>({self._as(v, dtype)})" for v in values[1:])
        return self._new(f"{values[0].text} ? {if_so} : {if_not}", dtype, values)

    def _reduce(self, name: str, array: Any, axis: Any = None, dtype: Any = None, **options: Any) -> Traced:
        value = self._value(array)
        if self.reduction is not None or value.is_weak:
            raise self.refused(f"cupy.{name} after another reduction")
        numpys = getattr(np, name)
        found = np.dtype(dtype) if dtype else numpys(np.ones(1, value.dtype)).dtype
        self.reduction = Reduction(name, value, found, {"axis": axis, **options})
        return Traced(self, Value("a" if name != "mean" else "_mean", found, value.arguments, reduced=True))

    # ---- values ----------------------------------------------------------------------------------

    def _value(self, thing: Any) -> Value:
        if isinstance(thing, Traced):
            return thing.value
        if isinstance(thing, np.generic):  # before Python's numbers: numpy.float64 is a float too
            return Value(literal(thing, thing.dtype), thing.dtype)
        if isinstance(thing, WEAK):
            return Value(repr(thing), type(thing))
        raise self.refused(
            f"{'an array' if isinstance(thing, ndarray) else type(thing).__name__} from outside"
        )

    def _as(self, value: Value, dtype: np.dtype) -> str:
        """The text of a value; Python's numbers as literals of the type that they take."""
        if value.is_weak and not value.arguments:
            return literal(eval(value.text, {"inf": np.inf, "nan": np.nan}), dtype)
        return value.text

    def _new(self, text: str, dtype: np.dtype, values: list[Value]) -> Traced:
        reduced = any(v.reduced for v in values)
        if reduced and any(v.arguments and not v.reduced for v in values):
            raise self.refused("an array together with the result of a reduction")
        lines = self.after if reduced else self.lines
        name = f"_v{len(self.lines) + len(self.after)}"
        lines.append(f"const {compute_name(dtype)} {name} = {text};")
        arguments = frozenset().union(*(v.arguments for v in values))
        return Traced(self, Value(name, dtype, arguments, reduced))


@dataclass(frozen=True)
class Fused:
    """A compiled trace: `run(arguments)` → what the function returns."""

    run: Callable[[tuple[Any, ...]], Any]


class Fusion:
    """A function that runs as one kernel on device arrays, and as it is on anything else."""

    def __init__(self, function: Callable[..., Any], kernel_name: str | None = None):
        functools.update_wrapper(self, function)
        self.function = function
        name = str(kernel_name or getattr(function, "__name__", "fused"))
        self.name: str = name if is_valid_kernel_name(name) else "fused"
        self._fused: dict[tuple[Any, ...], Fused] = {}

    def __call__(self, *args: Any) -> Any:
        if not any(isinstance(arg, ndarray) for arg in args):
            return self.function(*args)
        key = tuple(
            (arg.dtype, arg.ndim) if isinstance(arg, ndarray) else type(arg) if _is_number(arg) else arg
            for arg in args
        )
        if key not in self._fused:
            self._fused[key] = self._trace(args)
        return self._fused[key].run(args)

    def clear_cache(self) -> None:
        """Forget the kernels made so far."""
        self._fused.clear()

    def _trace(self, args: tuple[Any, ...]) -> Fused:
        trace = Trace(self.name)
        numbers = [i for i, arg in enumerate(args) if isinstance(arg, ndarray) or _is_number(arg)]
        stand_ins = list(args)
        for i in numbers:
            dtype = args[i].dtype if isinstance(args[i], ndarray | np.generic) else type(args[i])
            stand_ins[i] = Traced(trace, Value(f"x{i}", dtype, frozenset([i])), i)
        result = self.function(*stand_ins)
        single = not isinstance(result, tuple | list)
        returned = [] if result is None else [result] if single else list(result)
        if trace.reduction is not None:
            return self._with_reduction(trace, args, numbers, returned)
        return self._elementwise(trace, args, numbers, returned, single)

    def _elementwise(
        self, trace: Trace, args: tuple[Any, ...], numbers: list[int], returned: list[Any], single: bool
    ) -> Fused:
        values = [trace._value(r) for r in returned]
        made = [v for v, r in zip(values, returned, strict=True) if not _is_argument(r)]
        outputs = [
            *(f"{_dtype_of(v)} y{k}" for k, v in enumerate(made)),
            *(f"{args[i].dtype} z{i}" for i in trace.stored),
        ]
        stores = [
            *(f"y{k} = {trace._as(v, _dtype_of(v))};" for k, v in enumerate(made)),
            *(f"z{i} = {v.text};" for i, v in trace.stored.items()),
        ]
        kernel = ElementwiseKernel(
            ", ".join(f"{_parameter_dtype(args[i])} x{i}" for i in numbers),
            ", ".join(outputs),
            "\n".join([*trace.lines, *stores]),
            self.name,
            return_tuple=True,
        )

        def run(given: tuple[Any, ...]) -> Any:
            shapes = {i: given[i].shape for i in numbers if isinstance(given[i], ndarray)}
            shape = np.broadcast_shapes(*shapes.values())
            for value in made:
                if np.broadcast_shapes(*(shapes.get(i, ()) for i in value.arguments)) != shape:
                    return self.function(*given)  # a result that is smaller than the loop
            results = [ndarray(shape, _dtype_of(value)) for value in made]
            if outputs:
                kernel(*(given[i] for i in numbers), *results, *(given[i] for i in trace.stored))
            found = iter(results)
            back = [given[r.argument] if _is_argument(r) else next(found) for r in returned]
            return None if not back else back[0] if single else tuple(back)

        return Fused(run)

    def _with_reduction(
        self, trace: Trace, args: tuple[Any, ...], numbers: list[int], returned: list[Any]
    ) -> Fused:
        reduction = trace.reduction
        assert reduction is not None
        if len(returned) != 1 or not isinstance(returned[0], Traced) or trace.stored:
            raise trace.refused("a reduction beside other results")
        value = returned[0].value
        if not value.reduced:
            raise trace.refused("a reduction whose result is not returned")
        used = sorted(reduction.value.arguments)
        combine, identity = REDUCTIONS[reduction.name]
        compute = compute_name(reduction.dtype)
        if reduction.name == "mean":
            trace.after.insert(0, f"const {compute} _mean = a / (_in_ind.size() / _out_ind.size());")
        kernel = ReductionKernel(
            ", ".join(f"{_parameter_dtype(args[i])} x{i}" for i in used),
            f"{_dtype_of(value)} y",
            f"[&] {{ {' '.join(trace.lines)} return {reduction.value.text}; }}()",
            combine,
            "\n".join([*trace.after, f"y = {value.text}"]),
            identity if identity else _start(reduction),
            self.name,
            reduce_type=compute,
        )

        def run(given: tuple[Any, ...]) -> Any:
            return kernel(*(given[i] for i in used), **reduction.options)

        return Fused(run)


def fuse(*args: Any, kernel_name: str | None = None) -> Any:
    """Decorator: make a function of arrays one kernel. ``@cupy.fuse()``, ``@cupy.fuse(kernel_name='f')``."""
    if len(args) == 1 and callable(args[0]):
        return Fusion(args[0], kernel_name)
    return lambda function: Fusion(function, kernel_name)


def vectorize(*args: Any, **kwargs: Any) -> Any:
    """Not simulated: `fuse` does what it is used for."""
    from gpulab.foundation.errors import Message

    raise Message("cupy.vectorize is not simulated; write the function with cupy.where and use cupy.fuse.")


def _signature(numpys: np.ufunc, kwargs: dict[str, Any]) -> dict[str, Any]:
    """``dtype=…`` of a ufunc, as its resolution of dtypes wants it."""
    if kwargs.get("dtype") is None:
        return {}
    return {"signature": (None,) * numpys.nin + (np.dtype(kwargs["dtype"]),) * numpys.nout}


def _is_number(thing: Any) -> bool:
    return isinstance(thing, bool | int | float | complex | np.generic)


def _is_argument(thing: Any) -> bool:
    """Whether a result is an argument itself, changed or not."""
    return isinstance(thing, Traced) and thing.argument is not None


def _dtype_of(value: Value) -> np.dtype:
    return np.dtype(value.dtype)


def _parameter_dtype(arg: Any) -> np.dtype:
    return arg.dtype if isinstance(arg, ndarray | np.generic) else np.dtype(type(arg))


def _start(reduction: Reduction) -> str:
    """What a maximum or minimum starts from: the other end of the dtype."""
    dtype = reduction.dtype
    largest = reduction.name == "min"
    if dtype.kind == "b":
        return "true" if largest else "false"
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        return f"({limits.max if largest else limits.min + 1}ll{'' if largest else ' - 1'})"
    return literal(np.inf if largest else -np.inf, dtype)
