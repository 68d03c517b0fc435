"""Headers that CUDA sources include and NVRTC lacks, made from CUDA's own C++ library.

nvcc finds ``<cstdint>`` or ``<limits>`` with the host's compiler. NVRTC has none, but the wheels bring the
same library for device code as ``<cuda/std/…>``. So a text that does not find a header is compiled once more
with one of that name in memory, which leads there. Only what is missed is given, because CUDA's own headers
ask which there are.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType

from .headers import header_folders

IN_STD = "namespace cuda { namespace std {} } namespace std { using namespace ::cuda::std; }"
# Of C: the names are global, and the same library has them with a c in front.
OF_C = ("assert", "float", "limits", "stddef", "stdint", "stdlib", "string", "time")
CONSTANTS = {
    "M_E": "2.71828182845904523536",
    "M_LOG2E": "1.44269504088896340736",
    "M_LOG10E": "0.43429448190325182765",
    "M_LN2": "0.69314718055994530942",
    "M_LN10": "2.30258509299404568402",
    "M_PI": "3.14159265358979323846",
    "M_PI_2": "1.57079632679489661923",
    "M_PI_4": "0.78539816339744830962",
    "M_1_PI": "0.31830988618379067154",
    "M_2_PI": "0.63661977236758134308",
    "M_2_SQRTPI": "1.12837916709551257390",
    "M_SQRT2": "1.41421356237309504880",
    "M_SQRT1_2": "0.70710678118654752440",
    "INFINITY": "__int_as_float(0x7f800000)",
    "NAN": "__int_as_float(0x7fffffff)",
    "HUGE_VALF": "__int_as_float(0x7f800000)",
    "HUGE_VAL": "__longlong_as_double(0x7ff0000000000000)",
}
# Built-ins under the same names in std. Those of <cuda/std/cmath> would be ambiguous with them in a text that
# is `using namespace std`.
FUNCTIONS = """
abs acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh erf erfc exp exp2 expm1 fabs fdim
floor fma fmax fmin fmod frexp hypot ilogb isfinite isinf isnan ldexp lgamma llrint llround log log10 log1p
log2 logb lrint lround modf nan nearbyint nextafter pow remainder remquo rint round scalbln scalbn signbit
sin sinh sqrt tan tanh tgamma trunc
"""
MATHEMATICS = "\n".join(f"#ifndef {n}\n#define {n} {value}\n#endif" for n, value in CONSTANTS.items())
USED = " ".join(f"using ::{name};" for name in FUNCTIONS.split())
FORMATS = "\n".join(
    f'#define PRI{letter}{bits} "{"ll" if bits == 64 else ""}{letter}"'
    for bits in (8, 16, 32, 64)
    for letter in "diouxX"
)
# Whose functions are CUDA's built-ins, and what there is besides.
OTHERS = {
    "math.h": MATHEMATICS,
    "cmath": f"{MATHEMATICS}\nnamespace std {{ {USED} }}",
    "stdbool.h": "",
    "stdio.h": "",
    "cstdio": "namespace std { using ::printf; }",
    "inttypes.h": f"#include <cuda/std/cstdint>\n{FORMATS}",
    "cinttypes": f"#include <cuda/std/cstdint>\n{FORMATS}\n{IN_STD}",
    "new": "",
    # The driver's interface is host code. Kernels need its types at most.
    "cuda.h": "struct alignas(64) CUtensorMap { unsigned long long opaque[16]; };\n"
    "typedef unsigned long long CUdeviceptr;",
    # thrust::complex<T> may be written to a stream, which only host code has.
    "thrust/detail/complex/stream.h": "",
}
STREAMS = (
    "namespace std { template <class C> struct char_traits; "
    "template <class C, class T = char_traits<C>> class basic_ostream; "
    "template <class C, class T = char_traits<C>> class basic_istream; }"
)

# What NVRTC says where a header is missed, or has no form for it.
MISSED = re.compile(
    r'(?m)^.*[/ ](cuda\.h)\(\d+\): .*"stdlib\.h"|cannot open source file "([^"]+)"'
    r"|Including <([^>]+)> is not supported|(thrust/detail/complex/stream\.h)\("
)


def missed(log: str) -> dict[str, str]:
    """Those of `standard_headers` that would have helped, by what NVRTC said."""
    asked = {next(filter(None, match.groups())) for match in MISSED.finditer(log)}
    if "thrust/detail/complex/stream.h" in asked:
        asked.add("thrust/complex.h")
    return {name: text for name, text in standard_headers().items() if name in asked}


@cache
def standard_headers() -> Mapping[str, str]:
    """The text of each header, by the name in its ``#include``.

    >>> print(standard_headers()["cstdint"])
    #pragma once
    #include <cuda/std/cstdint>
    namespace cuda { namespace std {} } namespace std { using namespace ::cuda::std; }
    """
    library = _folder("cuda/std")
    names = [path.name for path in library.iterdir() if path.is_file() and not path.suffix] if library else []
    found = {name: f"#include <cuda/std/{name}>\n{IN_STD}" for name in names}
    found |= {f"{name}.h": f"#include <cuda/std/c{name}>" for name in OF_C if f"c{name}" in found}
    if cub := _folder("cub"):
        parts = sorted(
            f"cub/{part}/{path.name}" for part in ("block", "warp") for path in cub.glob(f"{part}/*.cuh")
        )
        found["cub/cub.cuh"] = "\n".join(f"#include <{part}>" for part in parts)
    if thrust := _folder("thrust"):
        whole = (thrust / "complex.h").as_posix()
        found["thrust/complex.h"] = f'{STREAMS}\n#include "{whole}"'
    return MappingProxyType({name: f"#pragma once\n{text}" for name, text in (found | OTHERS).items()})


def _folder(name: str) -> Path | None:
    """A folder of CUDA's C++ libraries, if the wheel is installed that brings it."""
    return next((path for start in header_folders() if (path := Path(start) / name).is_dir()), None)
