"""The memory of torch tensors, which the simulated device adopts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gpulab.simulator import device as devices
from gpulab.simulator.simt import Allocation


def adopted(device: devices.SimulatedDevice, storage: Any, *, in_place: bool = False) -> Allocation | None:
    """The device's memory that is a torch storage; None where it cannot be, as for an empty one.

    It keeps its address as long as the storage lives. `in_place` as in `HostMemory.adopt`.
    """
    from torch.multiprocessing.reductions import StorageWeakRef

    where, nbytes = storage.data_ptr(), storage.nbytes()
    return device.host_memory.adopt(
        where, nbytes, _is_there(StorageWeakRef(storage), where, nbytes), in_place=in_place
    )


def _is_there(weak: Any, where: int, nbytes: int) -> Callable[[], bool]:
    """Whether a storage still has its memory: it has been collected, or resized, if not."""
    import torch

    def is_there() -> bool:
        if weak.expired():
            return False
        storage = torch.UntypedStorage._new_with_weak_ptr(weak.cdata)
        return storage is not None and storage.data_ptr() == where and storage.nbytes() == nbytes

    return is_there
