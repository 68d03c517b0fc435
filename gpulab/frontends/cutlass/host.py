"""What CuTe DSL's Python code, and not its compiled host code, asks CUDA for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gpulab.frontends.driver.attributes import attribute
from gpulab.simulator import device as devices

SMS, L2_BYTES = 16, 38  # CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, _L2_CACHE_SIZE
MOST_BLOCKS = 32  # in a cluster


def _stream(*_: Any) -> Any:
    from cuda.bindings import driver

    return driver.CUstream(0)


def _nothing(*_: Any, **__: Any) -> None:
    """There is one context, and all work is done when a launch returns."""


# By their names in ``cutlass.cuda``.
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "initialize_cuda_context": _nothing,
    "context_destroy": _nothing,
    "get_current_device": lambda: 0,
    "get_compute_capability_major_minor": lambda *_: devices.current().cc,
    "stream_create": _stream,
    "stream_destroy": _nothing,
    "stream_sync": _nothing,
    "get_device_attribute": lambda which, *_: attribute(int(which)),
}


class HardwareInfo:
    """``cutlass.utils.HardwareInfo`` of the simulated GPU, from its data sheet."""

    def __init__(self, device_id: int = 0):
        if device_id:
            raise ValueError(f"Device ID {device_id} is out of range for device count 1")
        self.device_id = device_id

    def get_max_active_clusters(self, cluster_size: int, stream: Any = None) -> int:
        """How many clusters of blocks that fill an SM each are resident at once."""
        if not 0 < cluster_size <= MOST_BLOCKS:
            raise ValueError(f"Cluster size must be between 1 and 32, {cluster_size} is not supported")
        return attribute(SMS) // cluster_size

    def get_l2_cache_size_in_bytes(self) -> int:
        return attribute(L2_BYTES)

    def get_device_multiprocessor_count(self) -> int:
        return attribute(SMS)


def install() -> None:
    """Put these where the package has those that ask CUDA's driver."""
    import cutlass
    from cutlass import utils
    from cutlass.utils import hardware_info

    for name, function in FUNCTIONS.items():
        setattr(cutlass.cuda, name, function)
    utils.HardwareInfo = hardware_info.HardwareInfo = HardwareInfo
