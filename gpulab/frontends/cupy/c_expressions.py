"""What functions of elements are in CUDA C++: NumPy's name → an expression of its operands."""

from __future__ import annotations

import numpy as np

from .c_types import c_name
from .tables import words

# What C calls by the same name, with one and with two operands.
SAME = words("""
    fabs sqrt cbrt exp exp2 expm1 log log2 log10 log1p sin cos tan sinh cosh tanh floor ceil trunc rint
""")
SAME_BINARY = words("fmax fmin fmod hypot copysign nextafter")

EXPRESSIONS: dict[str, str] = {
    **{name: f"{name}({{0}})" for name in SAME},
    **{name: f"{name}({{0}}, {{1}})" for name in SAME_BINARY},
    **{f"arc{name}": f"a{name}({{0}})" for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh")},
    "arctan2": "atan2({0}, {1})",
    "add": "{0} + {1}",
    "subtract": "{0} - {1}",
    "multiply": "{0} * {1}",
    "divide": "{0} / {1}",
    "floor_divide": "_floor_divide({0}, {1})",
    "remainder": "_remainder({0}, {1})",
    "power": "_power({0}, {1})",
    "float_power": "pow({0}, {1})",
    "negative": "-{0}",
    "positive": "{0}",
    "absolute": "_absolute({0})",
    "square": "{0} * {0}",
    "reciprocal": "1 / {0}",
    "sign": "_sign({0})",
    "deg2rad": "{0} * (3.14159265358979323846 / 180)",
    "rad2deg": "{0} * (180 / 3.14159265358979323846)",
    "maximum": "_maximum({0}, {1})",
    "minimum": "_minimum({0}, {1})",
    "logaddexp": "fmax({0}, {1}) + log1p(exp(-fabs({0} - {1})))",
    "conjugate": "conj({0})",
    "isnan": "isnan({0})",
    "isinf": "isinf({0})",
    "isfinite": "isfinite({0})",
    "signbit": "signbit({0})",
    "logical_not": "!{0}",
    "logical_and": "{0} && {1}",
    "logical_or": "{0} || {1}",
    "logical_xor": "!{0} != !{1}",
    "invert": "~{0}",
    "bitwise_and": "{0} & {1}",
    "bitwise_or": "{0} | {1}",
    "bitwise_xor": "{0} ^ {1}",
    "left_shift": "{0} << {1}",
    "right_shift": "{0} >> {1}",
    "equal": "{0} == {1}",
    "not_equal": "{0} != {1}",
    "less": "{0} < {1}",
    "less_equal": "{0} <= {1}",
    "greater": "{0} > {1}",
    "greater_equal": "{0} >= {1}",
}

# Where a loop over bools does something else.
OF_BOOLS = {"add": "{0} || {1}", "multiply": "{0} && {1}", "invert": "!{0}", "absolute": "{0}"}

# Reductions: NumPy's name → (how two are combined, what to start from). Without a start there is none.
REDUCTIONS: dict[str, tuple[str, str]] = {
    "sum": ("a + b", "0"),
    "prod": ("a * b", "1"),
    "max": ("_maximum(a, b)", ""),
    "min": ("_minimum(a, b)", ""),
    "all": ("a && b", "true"),
    "any": ("a || b", "false"),
    "mean": ("a + b", "0"),
}
SYNONYMS = {"amax": "max", "amin": "min"}


def compute_name(dtype: np.dtype) -> str:
    """The type that elements of a dtype are computed with: half floats as float."""
    return "float" if dtype == np.float16 else c_name(dtype)


def expression(name: str, loop: tuple[np.dtype, ...], operands: list[str]) -> str | None:
    """The expression for one element; None for a function that has none."""
    form = OF_BOOLS.get(name) if loop[0].kind == "b" else None
    form = form or EXPRESSIONS.get(name)
    if form is None:
        return None
    cast = [f"static_cast<{compute_name(t)}>({o})" for t, o in zip(loop, operands, strict=False)]
    return form.format(*cast)


def literal(value: object, dtype: np.dtype) -> str:
    """A number in the text of a kernel."""
    number = dtype.type(value)
    if dtype.kind == "b":
        return "true" if number else "false"
    if dtype.kind in "iu":
        return f"{int(number)}{'ull' if dtype.kind == 'u' else 'll'}"
    if dtype.kind == "c":
        part = f"{'float' if dtype.itemsize == 8 else 'double'}"
        return f"{c_name(dtype)}(({part}){_real(number.real)}, ({part}){_real(number.imag)})"
    return f"static_cast<{compute_name(dtype)}>({_real(number)})"


def _real(number: float) -> str:
    x = float(number)
    if x != x:
        return "__longlong_as_double(0x7ff8000000000000ll)"
    if x in (float("inf"), float("-inf")):
        return f"{'-' if x < 0 else ''}__longlong_as_double(0x7ff0000000000000ll)"
    return repr(x)
