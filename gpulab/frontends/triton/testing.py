"""`triton.testing` without a clock: what measures time says so, all else is Triton's."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from gpulab.simulator.device import LaunchError

CLOCKS = ("do_bench", "do_bench_cudagraph")
Clock = Callable[[Callable[[], Any]], float]  # runs a function and says how many milliseconds it took


class _Testing:
    """Triton's own module, but for the functions that measure."""

    def __init__(self) -> None:
        self._clock: Clock | None = None

    def __getattr__(self, name: str) -> Any:
        if name in CLOCKS and self._clock is not None:
            return self._measure
        if name in CLOCKS:
            raise LaunchError(
                f"triton.testing.{name} measures time, and a simulated GPU has no clock. "
                "gpulab.profile(kernel[grid], …) counts what the kernel does."
            )
        import triton.testing

        return getattr(triton.testing, name)

    @contextmanager
    def timed_by(self, clock: Clock) -> Iterator[None]:
        """While it is entered, the functions that measure ask `clock`, which runs a function once."""
        before, self._clock = self._clock, clock
        try:
            yield
        finally:
            self._clock = before

    def _measure(
        self,
        fn: Callable[[], Any],
        warmup: float = 0,
        rep: float = 0,
        grad_to_none: Any = None,
        quantiles: Sequence[float] | None = None,
        return_mode: str = "mean",
    ) -> Any:
        """`triton.testing.do_bench` of one run: every statistic of one number is that number."""
        assert self._clock is not None
        took = self._clock(fn)
        if quantiles is not None:
            return [took] * len(quantiles) if len(quantiles) > 1 else took
        return [took] if return_mode == "all" else took


testing = _Testing()
