"""Codecs of number formats beside ml_dtypes, on 10⁷ float32 numbers: ratios of times in one run.

python benchmarks/numerics.py
"""

from __future__ import annotations

import time
from collections.abc import Callable

import ml_dtypes
import numpy as np

from gpulab.subjects import numerics

COUNT = 10**7
REPEATS = 7
THEIRS = {
    "BF16": "bfloat16",
    "E4M3": "float8_e4m3fn",
    "E5M2": "float8_e5m2",
    "E4M3FNUZ": "float8_e4m3fnuz",
    "E5M2FNUZ": "float8_e5m2fnuz",
    "E3M2": "float6_e3m2fn",
    "E2M3": "float6_e2m3fn",
    "E2M1": "float4_e2m1fn",
    "E8M0": "float8_e8m0fnu",
}


def best(work: Callable[[], object]) -> float:
    """The shortest of several runs, in seconds."""
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def main() -> None:
    numbers = np.random.default_rng(1).standard_normal(COUNT).astype(np.float32)
    numbers = np.abs(numbers) + np.float32(0.01)
    print(f"{'format':10}{'encode':>10}{'theirs':>10}{'ratio':>8}{'decode':>10}{'theirs':>10}{'ratio':>8}")
    for name, theirs in THEIRS.items():
        dtype = np.dtype(getattr(ml_dtypes, theirs))
        codes = numerics.encode(numbers, name)
        typed = codes.view(dtype)
        rows = [
            (best(lambda name=name: numerics.encode(numbers, name)), best(lambda t=dtype: numbers.astype(t))),
            (
                best(lambda name=name, codes=codes: numerics.decode(codes, name)),
                best(lambda typed=typed: typed.astype(np.float32)),
            ),
        ]
        cells = "".join(f"{1e3 * a:8.1f}ms{1e3 * b:8.1f}ms{b / a:7.1f}×" for a, b in rows)
        print(f"{name:10}{cells}")


if __name__ == "__main__":
    main()
