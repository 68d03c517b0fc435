"""What a run finds and what it leaves behind, so that it can be run again on the same."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpulab.simulator import device as devices
from gpulab.simulator import simt


class Before:
    """Keeps, while it is entered, what runs with these arguments find; several runs start from the same.

    Of device memory only pages that are written to are kept, of the host's arrays and tensors all: host code
    writes to them as it likes.
    """

    def __init__(self, device: devices.SimulatedDevice, args: tuple[Any, ...]):
        self._memory = device.memory
        self._journal = simt.Journal(device.memory)
        self._hosts = [
            a for a in args if _is_tensor(a) or (isinstance(a, np.ndarray) and not a.dtype.hasobject)
        ]
        self._data = [_copy(array) for array in self._hosts]

    def __enter__(self) -> Before:
        self._memory.journal = self._journal
        return self

    def __exit__(self, *error: object) -> None:
        self._memory.journal = None

    def keep_result(self) -> None:
        """What is there now is the result."""
        self._modules = dict(self._memory.modules)
        self._contents = self._journal.contents()
        self._result = [
            data if _is_same(data, array) else _copy(array)
            for data, array in zip(self._data, self._hosts, strict=True)
        ]

    def restore(self) -> None:
        """Let everything be as the first run found it."""
        self._journal.restore()
        self._fill(self._data)

    def restore_result(self) -> None:
        """Let everything be as the first run left it."""
        self._journal.restore(self._contents)
        self._memory.modules = self._modules
        self._fill(self._result)

    def _fill(self, contents: list[Any]) -> None:
        for array, data in zip(self._hosts, contents, strict=True):
            if _is_tensor(array):
                array.data.copy_(data)
            elif not _is_same(array, data):  # else it may be one that nobody can write to
                array[...] = data

    def difference(self, labels: list[simt.ArrayLabel]) -> str:
        """An element that is not what the first run left there, with both values; empty where all results
        are equal bit for bit."""
        names = [label.name for label in labels] if len(labels) == len(self._hosts) else []
        for number, (mine, theirs) in enumerate(zip(self._result, self._hosts, strict=True)):
            if not _is_same(mine, theirs):
                return _in_host(names[number] if names else f"array {number}", mine, theirs)
        for allocation, start, mine, theirs in self._journal.differences(self._contents):
            return _on_device(allocation, start, mine, theirs, labels)
        return ""


def _is_tensor(thing: Any) -> bool:
    return hasattr(thing, "untyped_storage")


def _copy(array: Any) -> Any:
    return array.detach().clone() if _is_tensor(array) else array.copy()


def _octets(array: Any) -> Any:
    """The bytes of each element, (elements, bytes), of an array or a tensor."""
    if _is_tensor(array):
        import torch

        flat = array.detach().reshape(-1).contiguous()
        return flat.view(torch.uint8).reshape(-1, flat.element_size()).cpu().numpy()
    return np.ascontiguousarray(array).reshape(array.size, 1).view(np.uint8)


def _is_same(mine: Any, theirs: Any) -> bool:
    """Whether all elements are equal, bit for bit."""
    return bool(np.array_equal(_octets(mine), _octets(theirs)))


def _in_host(name: str, mine: Any, theirs: Any) -> str:
    different = (_octets(mine) != _octets(theirs)).any(axis=1)
    index = tuple(int(i) for i in np.unravel_index(int(different.argmax()), tuple(mine.shape)))
    once, again = (a[index].item() if _is_tensor(a) else a[index] for a in (mine, theirs))
    return f"{name}[{', '.join(map(str, index))}] is once {once} and once {again}"


def _on_device(
    allocation: simt.Allocation,
    start: int,
    mine: np.ndarray,
    theirs: np.ndarray,
    labels: list[simt.ArrayLabel],
) -> str:
    """As `_in_host`, for bytes of an allocation from `start` on."""
    address = allocation.address + start + int((mine != theirs).argmax())
    label = next((a for a in labels if a.address <= address < a.address + a.extent), None)
    if label is None or label.dtype.startswith(("void", "record")):
        return f"`{label.name if label else allocation.name or 'a device array'}` differs"
    index = label.index_of(address)
    offset = sum(i * step for i, step in zip(index, label.strides, strict=True))
    first = label.address + offset - allocation.address - start
    if first < 0 or first + label.itemsize > len(mine):
        return f"`{label.name}` differs"  # the element lies in two pages
    once, again = (page[first : first + label.itemsize].view(label.dtype)[0] for page in (mine, theirs))
    return f"{label.name}[{', '.join(map(str, index))}] is once {once} and once {again}"
