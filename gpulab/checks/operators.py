"""Operators of PyTorch that exercises allow, by their names in ATen, in groups.

Left out everywhere: what draws random numbers, what waits for a value, what reads files or names memory by
address, and operators that are several in one, which an exercise names where it wants them. An operator's
form in place (``add_``) is allowed with it.
"""

from __future__ import annotations

# They make or name memory and compute nothing.
VIEWS = frozenset(
    [
        "alias",
        "as_strided",
        "detach",
        "diagonal",
        "expand",
        "lift_fresh",
        "permute",
        "select",
        "slice",
        "split",
        "split_with_sizes",
        "squeeze",
        "t",
        "transpose",
        "unbind",
        "unfold",
        "unsqueeze",
        "view",
        "view_as",
        "_reshape_alias",
        "_unsafe_view",
    ]
)
CREATION = frozenset(
    [
        "arange",
        "empty",
        "empty_like",
        "empty_strided",
        "eye",
        "full",
        "full_like",
        "new_empty",
        "new_empty_strided",
        "new_full",
        "new_ones",
        "new_zeros",
        "ones",
        "ones_like",
        "scalar_tensor",
        "tril",
        "triu",
        "zeros",
        "zeros_like",
    ]
)
COPIES = frozenset(
    ["_to_copy", "cat", "clone", "constant_pad_nd", "copy", "fill", "flip", "repeat", "roll", "stack", "zero"]
)
POINTWISE = frozenset(
    [
        "abs",
        "add",
        "bitwise_and",
        "bitwise_not",
        "bitwise_or",
        "ceil",
        "clamp",
        "clamp_max",
        "clamp_min",
        "cos",
        "div",
        "eq",
        "erf",
        "exp",
        "exp2",
        "expm1",
        "floor",
        "ge",
        "gt",
        "isfinite",
        "isinf",
        "isnan",
        "le",
        "log",
        "log1p",
        "log2",
        "logical_and",
        "logical_not",
        "logical_or",
        "lt",
        "masked_fill",
        "maximum",
        "minimum",
        "mul",
        "ne",
        "neg",
        "pow",
        "reciprocal",
        "relu",
        "remainder",
        "round",
        "rsqrt",
        "rsub",
        "sigmoid",
        "sign",
        "sin",
        "sqrt",
        "square",
        "sub",
        "tanh",
        "threshold_backward",
        "sigmoid_backward",
        "tanh_backward",
        "where",
    ]
)
REDUCTIONS = frozenset(
    [
        "all",
        "amax",
        "amin",
        "any",
        "argmax",
        "argmin",
        "cumsum",
        "linalg_vector_norm",
        "logsumexp",
        "max",
        "mean",
        "min",
        "norm",
        "prod",
        "std",
        "sum",
        "var",
        "var_mean",
    ]
)
GATHERS = frozenset(
    ["embedding", "gather", "index", "index_add", "index_put", "index_select", "scatter", "scatter_add"]
)
MATRIX = frozenset(["addmm", "baddbmm", "bmm", "dot", "mm", "mv"])

COMMON = VIEWS | CREATION | COPIES | POINTWISE | REDUCTIONS | GATHERS | MATRIX
MULTI_TENSOR = frozenset(
    "_foreach_" + name
    for name in [
        "abs",
        "add",
        "addcdiv",
        "addcmul",
        "clamp_max",
        "clamp_min",
        "copy",
        "div",
        "exp",
        "lerp",
        "log",
        "maximum",
        "minimum",
        "mul",
        "neg",
        "norm",
        "pow",
        "reciprocal",
        "sigmoid",
        "sign",
        "sqrt",
        "sub",
        "zero",
    ]
)


def allowed(name: str, operators: frozenset[str]) -> bool:
    """Whether an operator's name is on a list, in place or not."""
    return name in operators or name.removesuffix("_") in operators
