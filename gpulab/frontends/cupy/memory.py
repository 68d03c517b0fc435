"""Device memory as CuPy hands it out: pointers, the pool that keeps freed blocks, pinned memory, hooks.

The pool's books are CuPy's: sizes rounded up to 512 bytes, the smallest block that fits, split when it is
larger, joined with free neighbours. Each piece has an address of its own with a guard gap behind it, so that
an index off by one is a fault here where it would hit the neighbour on a GPU.
"""

from __future__ import annotations

import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gpulab.foundation.errors import Message
from gpulab.simulator import device as devices
from gpulab.simulator import simt
from gpulab.simulator.hardware import amount
from gpulab.simulator.simt import Allocation

UNIT = 512  # bytes: what sizes are rounded up to


class OutOfMemoryError(Message, MemoryError):
    """More device memory than the GPU, or the pool's limit, has."""


class BaseMemory:
    """A piece of device memory. `ptr` is its address, `size` its bytes."""

    device_id = 0

    def __init__(self, allocation: Allocation | None, size: int):
        self.allocation, self.size = allocation, size

    @property
    def ptr(self) -> int:
        return self.allocation.address if self.allocation else 0

    @property
    def device(self) -> Any:
        from .devices import Device

        return Device(0)

    def host_bytes(self, writes: bool = False) -> np.ndarray:
        """The bytes for the host, live."""
        if self.allocation is None:
            return np.empty(0, np.uint8)
        return devices.current().host_view(self.allocation, writes)


class Memory(BaseMemory):
    """Device memory straight from the device, without a pool; given back when nothing uses it any more."""

    def __init__(self, size: int):
        super().__init__(None, size)
        if size:
            with _hooked("alloc", device_id=0, mem_size=size) as done:
                self.allocation = _allocate(size)
                done(mem_ptr=self.ptr)
            weakref.finalize(self, devices.current().free, self.allocation).atexit = False


class UnownedMemory(BaseMemory):
    """Device memory that something else owns; `owner` lives as long as this does."""

    def __init__(self, allocation: Allocation, owner: Any = None):
        super().__init__(allocation, allocation.nbytes)
        self.owner = owner


class MemoryPointer:
    """A place in device memory: what ``array.data`` is."""

    def __init__(self, mem: BaseMemory, offset: int = 0):
        self.mem, self.offset = mem, offset

    @property
    def ptr(self) -> int:
        """The address."""
        return self.mem.ptr + self.offset if self.mem.allocation else 0

    device_id = 0

    @property
    def device(self) -> Any:
        return self.mem.device

    def __int__(self) -> int:
        return self.ptr

    def __add__(self, offset: int) -> MemoryPointer:
        return MemoryPointer(self.mem, self.offset + offset)

    __radd__ = __add__

    def __sub__(self, offset: int) -> MemoryPointer:
        return self + -offset

    def __repr__(self) -> str:
        return f"<device pointer 0x{self.ptr:x}>"

    def bytes(self, size: int, writes: bool = False) -> np.ndarray:
        """The next `size` bytes for the host, live."""
        return self.mem.host_bytes(writes)[self.offset : self.offset + size]

    def copy_from_device(self, src: MemoryPointer, size: int) -> None:
        """Copy `size` bytes from another place on the device."""
        self.bytes(size, writes=True)[:] = src.bytes(size)

    def copy_from_host(self, mem: Any, size: int) -> None:
        """Copy `size` bytes from a host address (an int or ``ctypes.c_void_p``)."""
        self.bytes(size, writes=True)[:] = host_bytes(mem, size)

    def copy_to_host(self, mem: Any, size: int) -> None:
        """Copy `size` bytes to a host address."""
        host_bytes(mem, size)[:] = self.bytes(size)

    def copy_from(self, mem: Any, size: int) -> None:
        """Copy from a device pointer or a host address."""
        (self.copy_from_device if isinstance(mem, MemoryPointer) else self.copy_from_host)(mem, size)

    def memset(self, value: int, size: int) -> None:
        """Set `size` bytes to `value`."""
        self.bytes(size, writes=True)[:] = value

    def copy_from_device_async(self, src: MemoryPointer, size: int, stream: Any = None) -> None:
        self.copy_from_device(src, size)

    def copy_from_host_async(self, mem: Any, size: int, stream: Any = None) -> None:
        self.copy_from_host(mem, size)

    def copy_to_host_async(self, mem: Any, size: int, stream: Any = None) -> None:
        self.copy_to_host(mem, size)

    def copy_from_async(self, mem: Any, size: int, stream: Any = None) -> None:
        self.copy_from(mem, size)

    def memset_async(self, value: int, size: int, stream: Any = None) -> None:
        self.memset(value, size)


def host_bytes(address: Any, size: int) -> np.ndarray:
    import ctypes

    place = getattr(address, "value", address)
    return np.ctypeslib.as_array((ctypes.c_ubyte * size).from_address(place))


def _allocate(size: int) -> Allocation:
    """Memory of the simulated device. Raises OutOfMemoryError where the GPU has no more."""
    device = devices.current()
    total = int(device.gpu.dram_bytes)
    if device.memory.used + size > total:
        raise OutOfMemoryError(
            f"out of memory: {amount(size, 'B')} more than the {amount(device.memory.used, 'B')} in use; "
            f"the {device.gpu} has {amount(total, 'B')}."
        )
    try:
        return device.allocate(size)
    except MemoryError:
        raise OutOfMemoryError(
            f"out of memory: this machine, which simulates the {device.gpu}, has no {amount(size, 'B')} left."
        ) from None


# ---- the pool ------------------------------------------------------------------------------------


@dataclass(eq=False)
class _Block:
    """A piece of a segment; a segment is what was asked of the device in one go.

    `whole` are the bytes of `allocation` at its full size: while a block is in use the allocation is as short
    as the array in it, while it is free it is empty, so that what lies behind is a fault.
    """

    size: int
    segment: object
    free: bool = True
    before: _Block | None = None
    after: _Block | None = None
    allocation: Allocation | None = None
    whole: np.ndarray = field(default_factory=lambda: np.empty(0, np.uint8))
    memory: simt.Memory | None = None  # of the device that the allocation is in

    def take(self, nbytes: int) -> Allocation:
        """Use the block for `nbytes`, which hold what new memory does."""
        self.free = False
        if self.allocation is None:
            self.obtain()
        else:
            self.whole[:] = devices.current().memory.unwritten(self.whole.size)
        allocation = self.allocation
        assert allocation is not None
        allocation.nbytes, allocation.data, allocation.written = nbytes, self.whole[:nbytes], False
        return allocation

    def obtain(self) -> int:
        """Ask the device for the memory; its address."""
        self.memory = devices.current().memory
        self.allocation = _allocate(self.size)
        self.whole = self.allocation.data
        return self.allocation.address

    def give_back(self) -> None:
        self.free = True
        if self.allocation is not None:
            self.allocation.nbytes, self.allocation.data = 0, self.whole[:0]

    def forget(self) -> None:
        """Give the address up for good."""
        if self.allocation is not None:
            assert self.memory is not None
            self.memory.free(self.allocation)
            self.allocation = self.memory = None


class PooledMemory(BaseMemory):
    """A block of a pool, which gets it back when nothing uses it any more."""

    def __init__(self, pool: MemoryPool, block: _Block, nbytes: int):
        super().__init__(block.take(nbytes), nbytes)
        finalizer = weakref.finalize(self, pool._release, block)
        finalizer.atexit = False
        self.free: Callable[[], object] = finalizer


class MemoryPool:
    """Keeps memory that is no longer used for the next array, as asking the device for it is slow.

    Python collects garbage wherever it likes, in any thread: an array may be given back in the middle of any
    line below. So what is given back only queues up, and the pool takes it in when it is idle.
    """

    def __init__(self, allocator: Any = None):
        self._blocks: list[_Block] = []
        self._limit = 0
        self._given_back: deque[_Block] = deque()
        self._lock = threading.RLock()
        self._working = 0  # how many calls deep

    @contextmanager
    def _at_work(self) -> Iterator[None]:
        with self._lock:
            self._working += 1
            try:
                yield
            finally:
                self._working -= 1
        self._settle()

    def _settle(self) -> None:
        """Take in what was given back, unless the pool is busy: then it does so when it has finished."""
        while self._given_back and self._lock.acquire(blocking=False):
            try:
                if self._working:
                    return
                self._working += 1
                try:
                    while self._given_back:
                        self._take_in(self._given_back.popleft())
                finally:
                    self._working -= 1
            finally:
                self._lock.release()

    def malloc(self, size: int) -> MemoryPointer:
        """Memory for `size` bytes: a free block, or new memory of the device. Raises OutOfMemoryError."""
        if size == 0:
            return MemoryPointer(BaseMemory(None, 0))
        rounded = -(-size // UNIT) * UNIT
        with self._at_work(), _hooked("malloc", device_id=0, size=size, mem_size=rounded) as done:
            block = self._best(rounded) or self._new(rounded)
            if block.size > rounded:
                self._split(block, rounded)
            memory = PooledMemory(self, block, size)
            done(mem_ptr=memory.ptr, pmem_id=id(memory))
        return MemoryPointer(memory)

    def _best(self, size: int) -> _Block | None:
        """The smallest free block of at least `size` bytes in this device's memory; the one used last among
        equals."""
        memory = devices.current().memory
        fitting = [b for b in self._blocks if b.free and b.size >= size and b.memory in (None, memory)]
        return min(reversed(fitting), key=lambda block: block.size, default=None)

    def _new(self, size: int) -> _Block:
        if self._limit and self.total_bytes() + size > self._limit:
            self.free_all_blocks()
        if self._limit and self.total_bytes() + size > self._limit:
            raise OutOfMemoryError(
                f"out of memory: {size:,} bytes more than the {self.total_bytes():,} that the pool holds; "
                f"its limit is {self._limit:,} bytes (set_limit)."
            )
        block = _Block(size, object())
        with _hooked("alloc", device_id=0, mem_size=size) as done:
            done(mem_ptr=block.obtain())
        self._blocks.append(block)
        return block

    def _split(self, block: _Block, size: int) -> None:
        rest = _Block(block.size - size, block.segment, before=block, after=block.after)
        if block.after:
            block.after.before = rest
        block.after, block.size = rest, size  # the address stays with the first part
        self._blocks.append(rest)

    def _release(self, block: _Block) -> None:
        self._given_back.append(block)
        self._settle()

    def _take_in(self, block: _Block) -> None:
        address = block.allocation.address if block.allocation else 0
        with _hooked("free", device_id=0, mem_size=block.size, mem_ptr=address, pmem_id=id(block)):
            block.give_back()
        self._blocks.remove(block)  # the last of the list is the one used last
        self._blocks.append(block)
        for left, right in ((block, block.after), (block.before, block)):
            if left and right and left.free and right.free:
                self._join(left, right)
                block = left

    def _join(self, left: _Block, right: _Block) -> None:
        right.forget()
        left.size += right.size
        if len(left.whole) < left.size:
            left.forget()
        left.after = right.after
        if right.after:
            right.after.before = left
        self._blocks.remove(right)

    def free_all_blocks(self, stream: Any = None) -> None:
        """Give the device back what no array uses."""
        with self._at_work():
            for block in [b for b in self._blocks if b.free and b.before is None and b.after is None]:
                block.forget()
                self._blocks.remove(block)

    def free_all_free(self) -> None:
        """The same under its old name."""
        self.free_all_blocks()

    def n_free_blocks(self) -> int:
        """The number of blocks that wait for an array."""
        return sum(block.free for block in self._blocks)

    def used_bytes(self) -> int:
        """The bytes in use by arrays, rounded up to blocks."""
        return sum(block.size for block in self._blocks if not block.free)

    def free_bytes(self) -> int:
        """The bytes that wait for an array."""
        return self.total_bytes() - self.used_bytes()

    def total_bytes(self) -> int:
        """The bytes that the pool holds of the device's memory."""
        return sum(block.size for block in self._blocks)

    def set_limit(self, size: int | None = None, fraction: float | None = None) -> None:
        """Hold at most `size` bytes, or this fraction of the GPU's memory; 0 means no limit."""
        if (size is None) == (fraction is None):
            raise ValueError("give size or fraction, not both and not neither.")
        if fraction is not None:
            size = int(fraction * int(devices.current().gpu.dram_bytes))
        assert size is not None
        if size < 0 or (fraction or 0) > 1:
            raise ValueError("the limit must be at least 0 bytes, and at most the whole memory (fraction 1).")
        self._limit = size

    def get_limit(self) -> int:
        """The limit in bytes; 0 means none."""
        return self._limit


class PinnedMemoryPool:
    """Keeps page-locked host memory. On the simulated device it is ordinary memory."""

    def __init__(self) -> None:
        self._used = self._free = 0

    def malloc(self, size: int) -> PinnedMemory:
        self._free = max(self._free - 1, 0)
        self._used += 1
        memory = np.zeros(-(-size // UNIT) * UNIT, np.uint8)[:size].view(PinnedMemory)
        weakref.finalize(memory, self._give_back).atexit = False
        return memory

    def _give_back(self) -> None:
        self._used, self._free = self._used - 1, self._free + 1

    def n_free_blocks(self) -> int:
        """The number of blocks that wait to be used."""
        return self._free

    def free_all_blocks(self) -> None:
        self._free = 0


class PinnedMemory(np.ndarray):
    """Page-locked host memory: a buffer for ``numpy.frombuffer``."""

    @property
    def ptr(self) -> int:
        return self.ctypes.data


_pool = MemoryPool()
_pinned_pool = PinnedMemoryPool()
_allocator: Callable[[int], MemoryPointer] = _pool.malloc


def get_default_memory_pool() -> MemoryPool:
    """The pool that arrays get their memory from."""
    return _pool


def get_default_pinned_memory_pool() -> PinnedMemoryPool:
    """The pool of page-locked host memory."""
    return _pinned_pool


def alloc(size: int) -> MemoryPointer:
    """Device memory from the current allocator: the default pool unless `set_allocator` named another."""
    return _allocator(size)


def alloc_pinned_memory(size: int) -> PinnedMemory:
    """Page-locked host memory."""
    return _pinned_pool.malloc(size)


def malloc_unpooled(size: int) -> MemoryPointer:
    """Device memory straight from the device."""
    return MemoryPointer(Memory(size))


def set_allocator(allocator: Callable[[int], MemoryPointer] | None = None) -> None:
    """Set where arrays get their memory: a function of the size; None means without a pool."""
    global _allocator
    _allocator = allocator or malloc_unpooled


def get_allocator() -> Callable[[int], MemoryPointer]:
    return _allocator


@contextmanager
def using_allocator(allocator: Callable[[int], MemoryPointer] | None = None) -> Iterator[None]:
    """While it is entered, arrays get their memory from `allocator`."""
    before = _allocator
    set_allocator(allocator)
    try:
        yield
    finally:
        set_allocator(before)


# ---- hooks ---------------------------------------------------------------------------------------


class MemoryHook:
    """Looks on while memory is handed out. Override what you need, then ``with YourHook():``.

    *alloc* is memory asked of the device, *malloc* memory handed out by the pool, *free* memory given back to
    it. Each has a ``…_preprocess`` and a ``…_postprocess``, called with named arguments.
    """

    name = "MemoryHook"

    def __enter__(self) -> MemoryHook:
        if self.name in _hooks:
            raise RuntimeError(f"a memory hook named {self.name!r} is active already.")
        _hooks[self.name] = self
        return self

    def __exit__(self, *error: object) -> None:
        del _hooks[self.name]

    def alloc_preprocess(self, **kwargs: Any) -> None: ...
    def alloc_postprocess(self, **kwargs: Any) -> None: ...
    def malloc_preprocess(self, **kwargs: Any) -> None: ...
    def malloc_postprocess(self, **kwargs: Any) -> None: ...
    def free_preprocess(self, **kwargs: Any) -> None: ...
    def free_postprocess(self, **kwargs: Any) -> None: ...


_hooks: dict[str, MemoryHook] = {}


@contextmanager
def _hooked(what: str, **known: Any) -> Iterator[Callable[..., None]]:
    """Tell the hooks before and after; the caller adds what it learns in between."""
    for hook in _hooks.values():
        getattr(hook, f"{what}_preprocess")(**known)
    yield lambda **more: known.update(more)
    for hook in _hooks.values():
        getattr(hook, f"{what}_postprocess")(**known)
