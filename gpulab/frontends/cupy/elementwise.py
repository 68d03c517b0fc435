"""`cupy.ElementwiseKernel`: a line of CUDA C++ for each element, with broadcasting."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from . import generated, parameters
from .arrays import ndarray
from .compiler import is_valid_kernel_name
from .generated import Kind
from .parameters import Parameter, Types

BLOCK = 128
MOST_BLOCKS = 2**31 - 1


class CachedCodes:
    """The texts that were generated so far, by the dtypes of their arrays."""

    _cached_codes: dict[tuple[Any, ...], str]

    @property
    def cached_codes(self) -> dict[tuple[Any, ...], str]:
        """Types of the array arguments → the kernel's text."""
        if not self._cached_codes:
            warnings.warn("no text is generated before the first call.", stacklevel=2)
        return dict(self._cached_codes)

    @property
    def cached_code(self) -> str:
        """The kernel's text, of the first call."""
        return next(iter(self._cached_codes.values()))


class ElementwiseKernel(CachedCodes):
    """A kernel that runs `operation` for each element of its arrays, broadcast to one shape.

    Parameters are written as ``'T x, raw float32 y'``. In `operation`, ``i`` is the number of the element and
    ``_ind.size()`` how many there are. Called with inputs, or inputs and outputs; returns the outputs.
    """

    def __init__(
        self,
        in_params: str,
        out_params: str,
        operation: str,
        name: str = "kernel",
        reduce_dims: bool = True,
        preamble: str = "",
        no_return: bool = False,
        return_tuple: bool = False,
        *,
        options: tuple[str, ...] = (),
        loop_prep: str = "",
        after_loop: str = "",
    ):
        check_name(name)
        self.in_params, self.out_params = (
            parameters.parse(in_params, True),
            parameters.parse(out_params, False),
        )
        self.params = self.in_params + self.out_params
        self.nin, self.nout, self.nargs = len(self.in_params), len(self.out_params), len(self.params)
        self.operation, self.name, self.preamble = operation, name, preamble
        self.reduce_dims, self.no_return, self.return_tuple = reduce_dims, no_return, return_tuple
        self.options, self.loop_prep, self.after_loop = tuple(options), loop_prep, after_loop
        self.__name__ = name
        self._cached_codes = {}
        self._texts: dict[tuple[Any, ...], str] = {}
        if "i" in (p.name for p in self.params):
            raise ValueError("Can not use 'i' as a parameter name: it is the number of the element.")

    def __call__(
        self, *args: Any, size: int | None = None, stream: Any = None, block_size: int = BLOCK
    ) -> Any:
        """The outputs. `size` says how many elements there are where every array is raw."""
        if block_size <= 0:
            raise ValueError(f"block_size must be greater than zero, not {block_size}.")
        check_count(self.name, self.nin, self.nargs, len(args))
        values = parameters.arguments(self.name, args)
        given = values[self.nin :]
        check_outputs(given)
        values, shape = parameters.broadcast(self.params, values, size)
        inputs = values[: self.nin]
        types = parameters.resolve(self.name, self.in_params, self.out_params, inputs, given)
        outputs = self._outputs(given, types, shape, size is not None)
        if all(shape):
            scalars = zip(inputs, types.inputs, strict=True)
            inputs = [v if isinstance(v, ndarray) else parameters.as_dtype(v, t) for v, t in scalars]
            self._run([*inputs, *outputs], shape, types, block_size)
        return self._returned(outputs)

    def _outputs(
        self, given: list[ndarray], types: Types, shape: tuple[int, ...], size_given: bool
    ) -> list[ndarray]:
        if not given:
            if any(p.raw for p in self.out_params) and not size_given:
                raise ValueError("Output array size is Undecided: pass the raw output, or size=….")
            return [ndarray(shape, dtype) for dtype in types.outputs]
        for parameter, array in zip(self.out_params, given, strict=True):
            if not parameter.raw and array.shape != shape:
                raise ValueError(
                    f"Out shape is mismatched: {self.name} writes {shape}, and `{parameter.name}` is "
                    f"{array.shape}."
                )
        return given

    def _run(self, values: list[Any], shape: tuple[int, ...], types: Types, block_size: int) -> None:
        if self.reduce_dims:
            values, shape = parameters.with_few_dimensions(self.params, values, shape)
        kinds = tuple(map(generated.kind_of, values, (*types.inputs, *types.outputs)))
        count = int(np.prod(shape, dtype=np.int64))
        narrow = count < generated.NARROW
        key = (kinds, types.placeholders, len(shape), narrow)
        if key not in self._texts:
            self._texts[key] = self._text(kinds, types, len(shape), narrow)
            dtypes = tuple(kind.dtype for kind in kinds if kind.ndim is not None)
            self._cached_codes.setdefault(dtypes, self._texts[key])
        grid = min(-(-count // block_size), MOST_BLOCKS)
        generated.launch(
            self._texts[key],
            self.name,
            self.options,
            grid,
            min(block_size, count),
            self.params,
            values,
            [generated.indexer(shape)],
        )

    def _text(self, kinds: Sequence[Kind], types: Types, ndim: int, narrow: bool) -> str:
        body = "\n".join([self.operation, self.loop_prep, self.after_loop])
        declared = [
            *map(generated.parameter_text, self.params, kinds),
            generated.indexer_text("_ind", ndim, narrow),
        ]
        elements = generated.elements_text(self.params, kinds, "_ind")
        return "\n".join(
            [
                *generated.head_text(types, [kind.dtype for kind in kinds], self.preamble, body),
                f'extern "C" __global__ void {self.name}({", ".join(declared)}) {{',
                *([f"  {self.loop_prep};"] if self.loop_prep else []),
                "  CUPY_FOR(i, _ind.size()) {",
                "    _ind.set(i);",
                *(f"    {line}" for line in elements),
                f"    {self.operation.strip()};",
                "  }",
                *([f"  {self.after_loop};"] if self.after_loop else []),
                "}",
            ]
        )

    def _returned(self, outputs: list[ndarray]) -> Any:
        if self.no_return:
            return None
        return outputs[0] if self.nout == 1 and not self.return_tuple else tuple(outputs)

    def __repr__(self) -> str:
        return f"<ElementwiseKernel {self.name}({', '.join(map(_shown, self.params))})>"


def check_name(name: str) -> None:
    """Raises ValueError for what is no name of a function."""
    if not is_valid_kernel_name(name):
        raise ValueError(f'Invalid kernel name: "{name}"; write a letter or _, then letters, digits and _.')


def check_count(name: str, nin: int, nargs: int, given: int) -> None:
    """Raises TypeError for a wrong number of arguments."""
    if given not in (nin, nargs):
        raise TypeError(
            f"Wrong number of arguments for {name!r}. It must be either {nin} or {nargs} (with outputs), "
            f"but given {given}."
        )


def check_outputs(values: Sequence[Any]) -> None:
    """Raises TypeError for outputs that are no arrays."""
    for value in values:
        if not isinstance(value, ndarray):
            raise TypeError(f"Output arguments type must be cupy.ndarray, not {type(value).__name__}.")


def _shown(parameter: Parameter) -> str:
    return f"{'raw ' if parameter.raw else ''}{parameter.dtype or parameter.ctype} {parameter.name}"
