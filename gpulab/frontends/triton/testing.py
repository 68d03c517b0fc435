"""`triton.testing` without a clock: what measures time says so, all else is Triton's."""

from __future__ import annotations

from typing import Any

from gpulab.simulator.device import LaunchError

CLOCKS = ("do_bench", "do_bench_cudagraph")


class _Testing:
    def __getattr__(self, name: str) -> Any:
        if name in CLOCKS:
            raise LaunchError(
                f"triton.testing.{name} measures time, and a simulated GPU has no clock. "
                "gpulab.profile(kernel[grid], …) counts what the kernel does."
            )
        import triton.testing

        return getattr(triton.testing, name)


testing = _Testing()
