"""The memory pool: CuPy's books, the simulator's guards."""

from __future__ import annotations

import gc
import random
import sys
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from gpulab.frontends import cupy as cp
from gpulab.frontends.cupy import memory
from gpulab.frontends.cupy.memory import MemoryPool, OutOfMemoryError
from gpulab.simulator.device import choice

KB = 1024


def books(pool: MemoryPool) -> tuple[int, int, int]:
    return pool.used_bytes(), pool.total_bytes(), pool.n_free_blocks()


def test_a_freed_block_waits_for_the_next_array() -> None:
    pool = MemoryPool()
    with cp.cuda.using_allocator(pool.malloc):
        a = cp.zeros(100, cp.float32)
        assert books(pool) == (512, 512, 0)
        address = a.data.ptr
        del a
        assert books(pool) == (0, 512, 1)
        b = cp.empty(128, cp.float32)
        assert b.data.ptr == address
        assert books(pool) == (512, 512, 0)
        assert np.isnan(b.get()).all()
        del b
    pool.free_all_blocks()
    assert books(pool) == (0, 0, 0)


def test_a_block_of_another_devices_memory_is_not_used_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the device in use is another one, an address in the memory of the first means nothing."""
    pool = MemoryPool()
    with cp.cuda.using_allocator(pool.malloc):
        with monkeypatch.context() as other:
            other.setattr(choice, "_current", None)
            a = cp.zeros(100, cp.float32)
            del a
        assert books(pool) == (0, 512, 1)
        b = cp.arange(100, dtype=cp.float32)
        assert float((b + b).sum()) == 9900
        assert books(pool)[1] >= 1024
        del b
    pool.free_all_blocks()
    assert books(pool) == (0, 0, 0)


def test_the_smallest_block_that_fits_is_split_and_joined_again() -> None:
    pool = MemoryPool()
    large, small = pool.malloc(8 * KB), pool.malloc(2 * KB)
    at_large, at_small = large.ptr, small.ptr
    del large, small
    part = pool.malloc(KB)
    assert part.ptr == at_small
    assert books(pool) == (KB, 10 * KB, 2)
    rest = pool.malloc(KB)
    other = pool.malloc(3 * KB)
    assert other.ptr == at_large
    assert books(pool) == (5 * KB, 10 * KB, 1)
    del part, rest, other
    assert books(pool) == (0, 10 * KB, 2)
    assert pool.malloc(8 * KB).ptr == at_large


def test_memory_asked_of_the_device_is_counted_by_a_hook() -> None:
    class Count(cp.cuda.MemoryHook):
        def __init__(self) -> None:
            self.seen: list[tuple[str, int]] = []

        def alloc_postprocess(self, **known: Any) -> None:
            self.seen.append(("alloc", known["mem_size"]))

        def malloc_postprocess(self, **known: Any) -> None:
            assert known["mem_ptr"]
            self.seen.append(("malloc", known["size"]))

        def free_postprocess(self, **known: Any) -> None:
            self.seen.append(("free", known["mem_size"]))

    pool, count = MemoryPool(), Count()
    with cp.cuda.using_allocator(pool.malloc), count:
        for _ in range(3):
            x = cp.empty(100)
            del x
    assert count.seen == [("alloc", 1024), *3 * [("malloc", 800), ("free", 1024)]]


def test_without_a_pool_memory_goes_back_to_the_device() -> None:
    from gpulab.simulator import device

    memory = device.current().memory
    with cp.cuda.using_allocator(None):
        before = memory.used
        x = cp.empty(1000)
        assert memory.used == before + 8000
        del x
        assert memory.used == before


def test_the_limit_of_a_pool() -> None:
    pool = MemoryPool()
    pool.set_limit(size=2 * KB)
    assert pool.get_limit() == 2 * KB
    first = pool.malloc(KB)
    with pytest.raises(OutOfMemoryError) as caught:
        pool.malloc(1500)
    assert str(caught.value) == (
        "out of memory: 1,536 bytes more than the 1,024 that the pool holds; its limit is 2,048 bytes "
        "(set_limit)."
    )
    del first
    assert pool.malloc(1500).ptr  # the free block was given back first
    pool.set_limit(fraction=0.5)
    assert pool.get_limit() == 40 * 10**9


def test_no_gpu_has_more_memory_than_its_data_sheet_says() -> None:
    with pytest.raises(
        MemoryError, match=r"out of memory: .* more than the .* in use; the A100 has 74\.51 GiB\."
    ):
        cp.empty(11 * 1024**3)


@given(st.lists(st.tuples(st.integers(1, 5000), st.integers(0, 9)), max_size=40))
def test_the_books_always_balance(steps: list[tuple[int, int]]) -> None:
    pool = MemoryPool()
    held: list[Any] = []
    for size, which in steps:
        if held and which < 5:
            held.pop(which % len(held))
        else:
            pointer = pool.malloc(size)
            pointer.bytes(size, writes=True)[:] = len(held) % 251
            held.append((pointer, size, len(held) % 251))
            del pointer
        assert pool.used_bytes() == sum(-(-size // 512) * 512 for _, size, _ in held)
        assert pool.free_bytes() + pool.used_bytes() == pool.total_bytes()
        assert all((pointer.bytes(size) == value).all() for pointer, size, value in held)
    held.clear()
    if pool.used_bytes():  # a cycle holds something; looking for cycles takes long among all that tests keep
        gc.collect()
    assert pool.used_bytes() == 0
    pool.free_all_blocks()
    assert books(pool) == (0, 0, 0)


def test_pointers_copy_bytes() -> None:
    host = np.arange(10.0)
    pointer = cp.cuda.alloc(80)
    pointer.copy_from_host(host.ctypes.data, 80)
    x = cp.ndarray((10,), cp.float64, pointer)
    assert np.array_equal(x.get(), host)
    other = cp.cuda.alloc(80)
    other.copy_from(pointer + 40, 40)
    other.memset(0, 8)
    assert cp.ndarray(5, cp.float64, other).get().tolist() == [0, 6, 7, 8, 9]
    back = np.empty(10)
    pointer.copy_to_host(back.ctypes.data, 80)
    assert np.array_equal(back, host)


def test_pinned_memory_is_a_buffer() -> None:
    pool = cp.get_default_pinned_memory_pool()
    memory = cp.cuda.alloc_pinned_memory(80)
    host = np.frombuffer(memory, np.float64, 10)
    assert host.shape == (10,)
    waiting = pool.n_free_blocks()
    del host, memory
    assert pool.n_free_blocks() == waiting + 1


@pytest.mark.parametrize("seed", range(5))
def test_an_array_may_be_given_back_at_any_line_of_the_pool(seed: int) -> None:
    """Python collects garbage wherever it likes: here at lines of `malloc` and of what it calls."""
    numbers = random.Random(seed)
    garbage: list[Any] = []
    alive: list[Any] = []
    pool = MemoryPool()

    def collect(frame: Any, event: str, _: Any) -> Any:
        if frame.f_code.co_filename != memory.__file__:
            return None
        if event == "line" and garbage and numbers.random() < 0.02:
            garbage.pop(numbers.randrange(len(garbage)))
        return collect

    def allocate() -> Any:
        before = sys.gettrace()
        sys.settrace(collect)
        try:
            return pool.malloc(numbers.choice([100, 600, 1500, 3000]))
        finally:
            sys.settrace(before)

    def check() -> None:
        used = 0
        for pointer in (*alive, *garbage):
            found = choice.current().memory.find(pointer.ptr)
            assert found is pointer.mem.allocation
            assert found.nbytes == pointer.mem.size
            used += -(-pointer.mem.size // 512) * 512
        assert pool.used_bytes() == used

    for _ in range(300):
        (garbage if numbers.random() < 0.6 else alive).append(allocate())
        del alive[numbers.randrange(11) :]
        check()
