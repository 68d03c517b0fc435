"""What every process group in Python needs so that device meshes, DTensor and FSDP can use it."""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist


class Several(dist._Work):
    """Calls that were started as one."""

    def __init__(self, works: list[Any]) -> None:
        super().__init__()
        self.works = works

    def wait(self, *timeout: Any) -> bool:
        return all([work.wait(*timeout) for work in self.works])

    def is_completed(self) -> bool:
        return all([work.is_completed() for work in self.works])


class Group(dist.ProcessGroup):
    """A process group whose methods are Python's. `backend` is what it is registered as."""

    backend = ""

    def __init__(self, rank: int, size: int) -> None:
        super().__init__(rank, size)
        self._name, self._words = "", ""

    def getBackendName(self) -> str:
        return self.backend

    def setGroupName(self, name: str) -> None:
        self._name = name

    def getGroupName(self) -> str:
        return self._name

    def setGroupDesc(self, words: str) -> None:
        self._words = words

    def getGroupDesc(self) -> str:
        return self._words

    # PyTorch's own properties of these names do not come here.
    _set_group_name, _set_group_desc = setGroupName, setGroupDesc

    @property
    def group_name(self) -> str:
        return self._name

    @property
    def group_desc(self) -> str:
        return self._words

    def all_gather_single_coalesced(
        self, into: list[torch.Tensor], given: list[torch.Tensor], opts: Any = None
    ) -> Any:
        return Several([self._allgather_base(a, b) for a, b in zip(into, given, strict=True)])

    def reduce_scatter_single_coalesced(
        self, into: list[torch.Tensor], given: list[torch.Tensor], opts: Any = None
    ) -> Any:
        return Several([self._reduce_scatter_base(a, b, opts) for a, b in zip(into, given, strict=True)])
