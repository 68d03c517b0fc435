"""Functions that call themselves and functions that are called by their address, as NVRTC compiles them."""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import cache

import numpy as np
import pytest

from gpulab.simulator import ptx, simt
from gpulab.simulator.compile import cuda_c
from gpulab.simulator.observe import Counters

from .engines import each_engine as each_engine
from .launching import SCHEDULES

both = pytest.mark.parametrize("schedule", SCHEDULES.values(), ids=SCHEDULES)
THREADS = 70  # of a block: three warps, the last of them not full
BLOCKS = 3


@cache
def module(source: str) -> ptx.Module:
    return ptx.parse(cuda_c.cuda_c_module(source, title="kept.cu").ptx)


def results(source: str, schedule: simt.Schedule = simt.LOCKSTEP, **options: object) -> np.ndarray:
    """What ``kernel(int *out)`` writes, one number for each thread of the grid."""
    memory = simt.Memory()
    out = memory.allocate(4 * THREADS * BLOCKS, "out")
    program = simt.load(module(source), "kernel")
    shape = (BLOCKS, 1, 1), (THREADS, 1, 1)
    simt.launch(program, *shape, struct.pack("<q", out.address), memory, schedule=schedule, **options)
    return out.data.view(np.int32).copy()


def per_thread(reference: Callable[[int], int]) -> list[int]:
    """What `reference` says for the place of each thread in the grid, as 32 bits."""
    values = np.array([reference(at) & 0xFFFF_FFFF for at in range(THREADS * BLOCKS)], np.uint32)
    return values.view(np.int32).tolist()


def kernel(functions: str, value: str) -> str:
    body = f"int at = blockIdx.x * blockDim.x + threadIdx.x; out[at] = {value};"
    return f'{functions}\nextern "C" __global__ void kernel(int *out) {{ {body} }}'


FIBONACCI = kernel(
    "__device__ __noinline__ int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }", "fib(at % 11)"
)


def fib(n: int) -> int:
    return n if n < 2 else fib(n - 1) + fib(n - 2)


@both
def test_a_function_calls_itself_to_another_depth_in_each_thread(schedule):
    assert results(FIBONACCI, schedule).tolist() == per_thread(lambda at: fib(at % 11))


@both
def test_results_of_a_recursion_are_arguments_of_the_next(schedule):
    """Ackermann's function."""
    source = kernel(
        """
        __device__ __noinline__ int ack(int m, int n) {
            if (m == 0) return n + 1;
            return n == 0 ? ack(m - 1, 1) : ack(m - 1, ack(m, n - 1));
        }""",
        "ack(at % 3, at % 5)",
    )

    def ack(m: int, n: int) -> int:
        return n + 1 if m == 0 else ack(m - 1, 1) if n == 0 else ack(m - 1, ack(m, n - 1))

    assert results(source, schedule).tolist() == per_thread(lambda at: ack(at % 3, at % 5))


@both
def test_each_activation_has_local_arrays_of_its_own(schedule):
    source = kernel(
        """
        __device__ __noinline__ int sums(int n, int seed) {
            int own[6];
            for (int i = 0; i < 6; i++) own[i] = seed * i + n;
            if (n <= 0) return own[seed % 6];
            int sum = sums(n - 1 - seed % 2, seed + n) + own[(n + seed) % 6];
            for (int i = 0; i < 6; i++) sum += own[i] * i;
            return sum + own[sum & 3];
        }""",
        "sums(at % 13, at)",
    )

    def sums(n: int, seed: int) -> int:
        own = [seed * i + n for i in range(6)]
        if n <= 0:
            return own[seed % 6]
        total = sums(n - 1 - seed % 2, seed + n) + own[(n + seed) % 6]
        total += sum(own[i] * i for i in range(6))
        return total + own[total & 3]

    assert results(source, schedule).tolist() == per_thread(lambda at: sums(at % 13, at))


@both
def test_a_pointer_into_the_callers_array_reaches_it(schedule):
    source = kernel(
        """
        __device__ __noinline__ void count(int *place, int n) {
            int mine[2] = {n, 0};
            if (n > 0) { count(mine, n - 1); count(place, n / 2); }
            place[1] += mine[0] + mine[1];
        }
        __device__ int start(int n) { int first[2] = {0, n}; count(first, n % 6); return first[1]; }
        """,
        "start(at)",
    )

    def count(place: list[int], n: int) -> None:
        mine = [n, 0]
        if n > 0:
            count(mine, n - 1)
            count(place, n // 2)
        place[1] += sum(mine)

    def start(n: int) -> int:
        first = [0, n]
        count(first, n % 6)
        return first[1]

    assert results(source, schedule).tolist() == per_thread(start)


@both
def test_two_functions_that_call_each_other_hand_structs_on(schedule):
    source = kernel(
        """
        struct Record { int a; double b; char c; };
        __device__ __noinline__ Record even(int n, Record x);
        __device__ __noinline__ Record odd(int n, Record x) {
            x.a += 1;
            if (n == 0) return x;
            x.b *= 2;
            return even(n - 1, x);
        }
        __device__ __noinline__ Record even(int n, Record x) {
            x.c += 1;
            return n == 0 ? x : odd(n - 1, x);
        }
        __device__ int start(int n) {
            Record x = even(n % 20, Record{n, 1.5, 3});
            return x.a + (int)x.b + 1000 * x.c;
        }""",
        "start(at)",
    )

    def start(at: int) -> int:
        n = at % 20
        return at + (n + 1) // 2 + int(1.5 * 2 ** (n // 2)) + 1000 * (3 + n // 2 + 1)

    assert results(source, schedule).tolist() == per_thread(start)


@both
def test_lanes_of_one_warp_call_different_functions_of_a_table(schedule):
    source = kernel(
        """
        __device__ int twice(int v) { return 2 * v; }
        __device__ int square(int v) { return v * v; }
        __device__ int steps(int v) { int n = 0; while (v > 1) { v = v % 2 ? 3 * v + 1 : v / 2; n++; } return n; }
        typedef int (*Operation)(int);
        __device__ Operation table[3] = {twice, square, steps};
        """,
        "table[at % 3](at) + table[(at + 1) % 3](at + 1)",
    )

    def steps(v: int) -> int:
        n = 0
        while v > 1:
            v, n = 3 * v + 1 if v % 2 else v // 2, n + 1
        return n

    table = (lambda v: 2 * v, lambda v: v * v, steps)
    expected = per_thread(lambda at: table[at % 3](at) + table[(at + 1) % 3](at + 1))
    assert results(source, schedule).tolist() == expected


@both
def test_a_pointer_is_handed_to_a_function_that_calls_it_and_itself(schedule):
    source = kernel(
        """
        typedef float (*Map)(float, int);
        __device__ float half(float x, int n) { return x / 2 + n; }
        __device__ float third(float x, int n) { return x * 3 - n; }
        __device__ __noinline__ float fold(Map f, Map g, float x, int n) {
            float before = x * 0.25f;
            return n == 0 ? x : fold(g, f, f(x, n), n - 1) + before;
        }""",
        "(int)fold(at % 2 ? half : third, third, (float)at, at % 7)",
    )

    def fold(f: Callable, g: Callable, x: np.float32, n: int) -> np.float32:
        before = x * np.float32(0.25)
        return x if n == 0 else fold(g, f, f(x, n), n - 1) + before

    def half(x: np.float32, n: int) -> np.float32:
        return np.float32(x / np.float32(2) + np.float32(n))

    def third(x: np.float32, n: int) -> np.float32:
        return np.float32(np.float64(x) * 3 - n)  # a fused multiply-add

    def expected(at: int) -> int:
        return int(fold(half if at % 2 else third, third, np.float32(at), at % 7))

    found = results(source, schedule)
    assert np.abs(found - per_thread(expected)).max() <= 1  # the compiler fuses as it likes


@both
def test_virtual_functions_go_through_the_table_of_the_objects_class(schedule):
    source = kernel(
        """
        struct Shape { __device__ virtual int area(int scale) const = 0; };
        struct Square : Shape {
            int a; __device__ Square(int a) : a(a) {}
            __device__ int area(int scale) const override { return scale * a * a; }
        };
        struct Pair : Shape {
            const Shape *one, *other; __device__ Pair(const Shape *o, const Shape *p) : one(o), other(p) {}
            __device__ int area(int scale) const override { return one->area(scale) + other->area(scale + 1); }
        };
        __device__ int start(int n) {
            Square small(n % 5), large(n % 9);
            Pair both(&small, &large), nested(&both, &small);
            const Shape *all[4] = {&small, &large, &both, &nested};
            return all[n % 4]->area(n);
        }""",
        "start(at)",
    )

    def start(at: int) -> int:
        def square(side: int) -> Callable[[int], int]:
            return lambda scale: scale * side * side

        def pair(one: Callable[[int], int], other: Callable[[int], int]) -> Callable[[int], int]:
            return lambda scale: one(scale) + other(scale + 1)

        small, large = square(at % 5), square(at % 9)
        two = pair(small, large)
        return (small, large, two, pair(two, small))[at % 4](at)

    assert results(source, schedule).tolist() == per_thread(start)


@both
def test_lanes_meet_at_a_barrier_inside_a_recursion(schedule):
    """Each level adds what the thread on the other side of the block holds."""
    source = kernel(
        """
        __shared__ int tile[70];
        __device__ __noinline__ int mirrored(int value, int n) {
            tile[threadIdx.x] = value;
            __syncthreads();
            int other = tile[69 - threadIdx.x];
            __syncthreads();
            return n == 0 ? other : value + mirrored(value + other * n, n - 1) * 3;
        }""",
        "mirrored(at, 5)",
    )

    def level(values: np.ndarray, n: int) -> np.ndarray:
        other = values[:, ::-1]
        return other if n == 0 else values + level(values + other * n, n - 1) * 3

    expected = level(np.arange(BLOCKS * THREADS, dtype=np.int32).reshape(BLOCKS, THREADS), 5)
    assert results(source, schedule).tolist() == expected.reshape(-1).tolist()


def test_lanes_that_called_different_functions_go_on_together():
    """After the call, the store runs once for each warp, not once for each target."""
    source = kernel(
        """
        __device__ int one(int v) { return v + 1; }
        __device__ int two(int v) { return v + 2; }
        typedef int (*Operation)(int);
        __device__ Operation table[2] = {one, two};
        """,
        "table[at % 2](at)",
    )
    counters = Counters()
    results(source, observers=[counters])
    counts = counters.counts
    stores = [i for i, n in enumerate(counts.instructions) if n.opcode.startswith("st.global")]
    warps = BLOCKS * ((THREADS + 31) // 32)
    assert [int(counts.table["warps"][i]) for i in stores] == [warps]


ENDLESS = """__device__ __noinline__ int deeper(int n) {
    return n == 1000 ? 0 : 1 + n * deeper(n + 1);
}
extern "C" __global__ void kernel(int *out) {
    if (threadIdx.x > 3) *out = deeper(0);
}"""


def test_a_recursion_that_is_too_deep_says_which_function_how_deep_where_and_what_to_do():
    with pytest.raises(simt.StackOverflow) as fault:
        results(ENDLESS)
    message = str(fault.value)
    assert "line 2" in message
    assert "deeper(n + 1)" in message
    assert "thread (4, 0, 0) of block (0, 0, 0) called deeper with 128 calls open already" in message
    assert "its stack of 1,024 bytes is full" in message
    assert "cudaDeviceSetLimit(cudaLimitStackSize, bytes)" in message


def test_a_larger_stack_holds_more_calls():
    assert results(FIBONACCI, stack_bytes=8 * 11).tolist() == per_thread(lambda at: fib(at % 11))
    with pytest.raises(simt.StackOverflow, match="with 9 calls open"):
        results(FIBONACCI, stack_bytes=8 * 9)
    results(ENDLESS, stack_bytes=8 * 1001)


def test_a_call_of_an_address_that_is_no_function_names_the_address():
    source = """
    typedef int (*Operation)(int);
    __device__ int known(int v) { return v; }
    __device__ Operation table[2] = {known, nullptr};
    extern "C" __global__ void kernel(int *out) {
        int which = (threadIdx.x + WHERE) % 3;
        *out = (which < 2 ? table[which] : (Operation)0x1234)(1);
    }
    """
    with pytest.raises(simt.NoFunction, match="called a null pointer, which is no function of the device"):
        results(source.replace("WHERE", "1"))
    with pytest.raises(simt.NoFunction, match="called address 0x1234"):
        results(source.replace("WHERE", "2"))
