"""What `triton.runtime.driver.active` is where there is no GPU: it answers for the simulated one."""

from __future__ import annotations

from typing import Any

from triton.backends.compiler import GPUTarget
from triton.backends.driver import DriverBase
from triton.runtime import driver

from gpulab.simulator import device as devices

from .testing import testing


class SimulatedDriver(DriverBase):
    """The simulated GPU as Triton's driver describes a GPU to a program.

    >>> triton.runtime.driver.active.get_current_target().arch
    80
    """

    @classmethod
    def is_active(cls) -> bool:
        return True

    def map_python_to_cpp_type(self, ty: str) -> str:
        from triton.backends.nvidia.driver import ty_to_cpp

        return str(ty_to_cpp(ty))

    def get_current_target(self) -> GPUTarget:
        major, minor = devices.current().cc
        return GPUTarget("cuda", major * 10 + minor, 32)

    def get_current_device(self) -> int:
        return 0

    def set_current_device(self, device: int) -> None:
        """There is one device."""

    def get_current_stream(self, device: int | None = None) -> int:
        return 0

    def get_active_torch_device(self) -> Any:
        """The CPU, where a simulated GPU's tensors are."""
        import torch

        return torch.device("cpu")

    def get_device_interface(self) -> Any:
        import torch

        return torch.cuda

    def get_benchmarker(self) -> Any:
        return testing.do_bench

    def get_empty_cache_for_benchmark(self) -> Any:
        import torch

        return torch.empty(0, dtype=torch.int)

    def clear_cache(self, cache: Any) -> None:
        """The caches of a simulated GPU are empty at the start of each launch."""

    @property
    def utils(self) -> Any:
        return self

    def get_device_properties(self, device: int = 0) -> dict[str, int]:
        """Shared memory in bytes, clocks in kHz, the bus in bits; a clock that no data sheet states is 0."""
        gpu = devices.current().gpu
        bits = int(gpu.bus_bits) if gpu.bus_bits is not None else 0
        return {
            "max_shared_mem": gpu.capability.shared_per_block_optin,
            "max_num_regs": gpu.capability.registers_per_sm,
            "multiprocessor_count": int(gpu.sms),
            "warpSize": gpu.capability.warp,
            "sm_clock_rate": round(float(gpu.boost_clock) / 1e3),
            # Two transfers a clock, as the driver counts them.
            "mem_clock_rate": round(float(gpu.dram_bandwidth) * 8 / bits / 2 / 1e3) if bits else 0,
            "mem_bus_width": bits,
        }

    def set_printf_fifo_size(self, size: int) -> None:
        """What kernels print is never cut off here."""


def install() -> None:
    """Let Triton's `driver.active` be the simulated GPU, unless a driver has been chosen already."""
    if driver._active is None:
        driver.set_active(SimulatedDriver())
