"""``cutlass.testing`` without a clock: what measures time says what was counted."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from gpulab.frontends.driver import counted


def benchmark(
    callable: Callable[..., Any],
    *,
    kernel_arguments: Any = None,
    workspace_generator: Callable[[], Any] | None = None,
    **_: Any,
) -> float:
    """Run once and print what was counted. NaN µs: a simulated GPU has no clock."""
    if workspace_generator is None and kernel_arguments is None:
        raise ValueError("Please pass a kernel argument if not providing a generator")
    given = kernel_arguments if workspace_generator is None else workspace_generator()
    moved, instructions = counted(lambda: callable(*given.args, **given.kwargs))
    print(
        f"benchmark: {moved:,} bytes of global memory and {instructions:,} warp instructions, counted in one "
        "call. A simulated GPU has no clock, so the time is NaN."
    )
    return math.nan


def _for_autotune(
    callable: Callable[..., Any],
    *args: Any,
    warmup_iterations: int,
    iterations: int,
    use_cold_l2: bool,
    print_verbose: bool,
    current_stream: Any = None,
    **kwargs: Any,
) -> float:
    """What a configuration costs: bytes of global memory, then instructions. No time, but in its place."""
    moved, instructions = counted(lambda: callable(*args, **kwargs))
    return moved + instructions * 1e-12


def install() -> None:
    """Put these where ``cutlass.testing`` has those with a clock."""
    from cutlass import testing
    from cutlass.cute import testing as of_cute

    testing.benchmark = of_cute.benchmark = benchmark
    testing._benchmark_for_autotune = _for_autotune
