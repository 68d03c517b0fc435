"""`cupy.ReductionKernel`: map every element, combine what comes out along axes, map the result."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from . import generated, parameters
from .arrays import ndarray
from .elementwise import CachedCodes, check_count, check_name, check_outputs
from .generated import Kind
from .parameters import Types

BLOCK = 512
NEIGHBOURS = 32  # outputs side by side that one block makes, so that a warp reads side by side


class ReductionKernel(CachedCodes):
    """A kernel that reduces its arrays along axes.

    `map_expr` makes a value of each element; `reduce_expr` combines two, ``a`` and ``b``; `post_map_expr`
    stores the result ``a``, as in ``y = sqrt(a)``; `identity` is the value to start from.
    """

    def __init__(
        self,
        in_params: str,
        out_params: str,
        map_expr: str,
        reduce_expr: str,
        post_map_expr: str,
        identity: Any,
        name: str = "reduce_kernel",
        reduce_type: str | None = None,
        reduce_dims: bool = True,
        preamble: str = "",
        options: tuple[str, ...] = (),
    ):
        check_name(name)
        self.in_params, self.out_params = (
            parameters.parse(in_params, True),
            parameters.parse(out_params, False),
        )
        self.params = self.in_params + self.out_params
        self.nin, self.nout, self.nargs = len(self.in_params), len(self.out_params), len(self.params)
        self.map_expr, self.reduce_expr, self.post_map_expr = map_expr, reduce_expr, post_map_expr
        self.identity = "" if identity is None else str(identity)
        self.name = self.__name__ = name
        self.reduce_type = reduce_type or self.out_params[0].ctype
        self.reduce_dims, self.preamble, self.options = reduce_dims, preamble, tuple(options)
        self._cached_codes = {}
        self._texts: dict[tuple[Any, ...], str] = {}

    def __call__(
        self, *args: Any, out: Any = None, axis: Any = None, keepdims: bool = False, stream: Any = None
    ) -> Any:
        """The outputs: arrays without the reduced axes, or with length 1 there if `keepdims`."""
        check_count(self.name, self.nin, self.nargs, len(args))
        values = parameters.arguments(self.name, args)
        given = values[self.nin :]
        if out is not None:
            if given:
                raise ValueError("cannot specify 'out' as both a positional and keyword argument")
            given = [out]
        check_outputs(given)
        inputs, shape = parameters.broadcast(self.in_params, values[: self.nin], None)
        types = parameters.resolve(self.name, self.in_params, self.out_params, inputs, given)
        reduced, kept = _axes(axis, len(shape))
        out_shape = tuple(
            1 if i in reduced else n for i, n in enumerate(shape) if keepdims or i not in reduced
        )
        outputs = given or [ndarray(out_shape, dtype) for dtype in types.outputs]
        for parameter, array in zip(self.out_params, outputs, strict=True):
            if not parameter.raw and array.shape != out_shape:
                raise ValueError(
                    f"Out shape is mismatched: {self.name} makes {out_shape}, and `{parameter.name}` is "
                    f"{array.shape}."
                )
        if outputs[0].size:
            if not self.identity and 0 in shape:
                raise ValueError(f"zero-size array to reduction operation {self.name} which has no identity")
            scalars = zip(inputs, types.inputs, strict=True)
            inputs = [v if isinstance(v, ndarray) else parameters.as_dtype(v, t) for v, t in scalars]
            self._run(inputs, outputs, shape, out_shape, (*reduced, *kept), types)
        return outputs[0] if self.nout == 1 else tuple(outputs)

    def _run(
        self,
        inputs: list[Any],
        outputs: list[Any],
        shape: tuple[int, ...],
        out_shape: tuple[int, ...],
        order: tuple[int, ...],
        types: Types,
    ) -> None:
        """Reduced axes come first: element j of an input belongs to output j % (number of outputs)."""
        if order != tuple(range(len(shape))):
            if any(p.raw for p in self.in_params):
                raise NotImplementedError(
                    f"{self.name} has a raw parameter: the reduced axes must be the first ones "
                    "(axis=0, (0, 1), …)."
                )
            inputs = [v.part(v.layout().transpose(order)) if isinstance(v, ndarray) else v for v in inputs]
            shape = tuple(shape[i] for i in order)
        if self.reduce_dims:
            inputs, shape = parameters.with_few_dimensions(self.in_params, inputs, shape)
            outputs, out_shape = parameters.with_few_dimensions(self.out_params, outputs, out_shape)
        values = [*inputs, *outputs]
        kinds = tuple(map(generated.kind_of, values, (*types.inputs, *types.outputs)))
        n_in, n_out = (int(np.prod(s, dtype=np.int64)) for s in (shape, out_shape))
        narrow = n_in < generated.NARROW
        key = (kinds, types.placeholders, len(shape), len(out_shape), narrow)
        if key not in self._texts:
            self._texts[key] = self._text(kinds, types, len(shape), len(out_shape), narrow)
            dtypes = tuple(kind.dtype for kind in kinds if kind.ndim is not None)
            self._cached_codes.setdefault(dtypes, self._texts[key])
        side_by_side = _outputs_per_block(n_in, n_out, inputs)
        generated.launch(
            self._texts[key],
            self.name,
            self.options,
            -(-n_out // side_by_side),
            BLOCK,
            self.params,
            values,
            [generated.indexer(shape), generated.indexer(out_shape), np.int32(side_by_side)],
        )

    def _text(self, kinds: Sequence[Kind], types: Types, ndim: int, out_ndim: int, narrow: bool) -> str:
        body = "\n".join([self.map_expr, self.reduce_expr, self.post_map_expr, self.reduce_type])
        ins, outs = kinds[: self.nin], kinds[self.nin :]
        declared = [
            *map(generated.parameter_text, self.params, kinds),
            generated.indexer_text("_in_ind", ndim, narrow),
            generated.indexer_text("_out_ind", out_ndim, narrow),
            "const int _side_by_side",
        ]
        return "\n".join(
            [
                *generated.head_text(types, [kind.dtype for kind in kinds], self.preamble, body),
                f"typedef {'int' if narrow else 'long long'} IndexT;",
                f"typedef {self.reduce_type} _type_reduce;",
                f'extern "C" __global__ void {self.name}({", ".join(declared)}) {{',
                f"  __shared__ __align__(16) char _bytes[{BLOCK} * sizeof(_type_reduce)];",
                "  _type_reduce* const _partial = reinterpret_cast<_type_reduce*>(_bytes);",
                "  const auto _combine = [&](const _type_reduce a, const _type_reduce b) -> _type_reduce {",
                f"    return ({self.reduce_expr});",
                "  };",
                "  const int _tid = threadIdx.x;",
                "  const IndexT _n_out = _out_ind.size();",
                "  // Threads of the same remainder work on the same output.",
                "  const IndexT _i = static_cast<IndexT>(blockIdx.x) * _side_by_side + _tid % _side_by_side;",
                f"  const IndexT _step = {BLOCK} / _side_by_side;",
                f"  _type_reduce _sum = _type_reduce({self.identity});",
                "  if (_i < _n_out) {",
                "    IndexT _J = _tid / _side_by_side;",
                "    for (ptrdiff_t _j = _i + static_cast<ptrdiff_t>(_J) * _n_out; _j < _in_ind.size();",
                "         _j += static_cast<ptrdiff_t>(_step) * _n_out, _J += _step) {",
                "      _in_ind.set(_j);",
                *(f"      {line}" for line in generated.elements_text(self.in_params, ins, "_in_ind")),
                f"      _sum = _combine(_sum, static_cast<_type_reduce>({self.map_expr}));",
                "    }",
                "  }",
                "  _partial[_tid] = _sum;",
                "  __syncthreads();",
                f"  for (int _half = {BLOCK // 2}; _half >= _side_by_side; _half /= 2) {{",
                "    if (_tid < _half) _partial[_tid] = _combine(_partial[_tid], _partial[_tid + _half]);",
                "    __syncthreads();",
                "  }",
                "  if (_tid < _side_by_side && _i < _n_out) {",
                "    _type_reduce a = _partial[_tid];",
                "    _out_ind.set(_i);",
                *(f"    {line}" for line in generated.elements_text(self.out_params, outs, "_out_ind")),
                f"    {self.post_map_expr};",
                "  }",
                "}",
            ]
        )

    def __repr__(self) -> str:
        return f"<ReductionKernel {self.name}>"


def _axes(axis: Any, ndim: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """(axes to reduce, axes to keep). Raises numpy's AxisError, ValueError for one named twice."""
    from numpy.lib.array_utils import normalize_axis_tuple

    reduced = tuple(range(ndim)) if axis is None else tuple(sorted(normalize_axis_tuple(axis, ndim, "axis")))
    return reduced, tuple(i for i in range(ndim) if i not in reduced)


def _outputs_per_block(n_in: int, n_out: int, inputs: Sequence[Any]) -> int:
    """A power of two: few where much is reduced, many where little is, or where outputs lie side by side."""
    length = max(1, n_in // n_out)
    side_by_side = any(isinstance(v, ndarray) and v.ndim and v.strides[-1] == v.itemsize for v in inputs)
    wanted = max(min(n_out, NEIGHBOURS) if side_by_side and n_out > 1 else 1, BLOCK // length)
    return 1 << (min(wanted, BLOCK).bit_length() - 1)
