"""Every name that numba.cuda has for kernels works through the face, and explains itself on the host."""

from __future__ import annotations

from fractions import Fraction

import numba
import numpy as np
import pytest

from gpulab import cuda
from gpulab.frontends.cuda.device_only import DeviceOnly, OnlyInKernel

FULL = 0xFFFFFFFF
TABLE = np.arange(32, dtype=np.float32) ** 2


def run(kernel, out, *args, grid=1, block=32, shared=0):
    """`out` after one launch."""
    kernel[grid, block, 0, shared](out, *args)
    return out


# ---- places


def test_thread_block_and_grid_indices_and_sizes() -> None:
    @cuda.jit
    def kernel(out):
        i = cuda.grid(1)
        out[i, 0] = cuda.threadIdx.x
        out[i, 1] = cuda.blockIdx.x
        out[i, 2] = cuda.blockDim.x
        out[i, 3] = cuda.gridDim.x
        out[i, 4] = cuda.gridsize(1)
        out[i, 5] = cuda.laneid
        out[i, 6] = cuda.warpsize

    out = run(kernel, np.zeros((96, 7), np.int64), grid=2, block=48)
    i = np.arange(96)
    expected = [i % 48, i // 48, 48 + 0 * i, 2 + 0 * i, 96 + 0 * i, i % 48 % 32, 32 + 0 * i]
    assert (out == np.stack(expected, axis=1)).all()


def test_two_and_three_dimensional_indices_and_sizes() -> None:
    @cuda.jit
    def kernel(out):
        x, y, z = cuda.grid(3)
        a, b, c = cuda.gridsize(3)
        p, q = cuda.grid(2)
        if x == 3 and y == 4 and z == 1:
            out[0], out[1], out[2], out[3], out[4] = a, b, c, p, q
            out[5], out[6], out[7] = cuda.threadIdx.y, cuda.blockIdx.z, cuda.blockDim.z
            out[8] = cuda.gridDim.y

    out = run(kernel, np.zeros(9, np.int64), grid=(2, 3, 2), block=(2, 2, 1))
    assert list(out) == [4, 6, 2, 3, 4, 0, 1, 1, 3]


# ---- memory


def test_shared_local_and_constant_memory() -> None:
    @cuda.jit
    def kernel(out):
        s = cuda.shared.array(32, numba.float32)
        scratch = cuda.local.array((2, 2), numba.int32)
        table = cuda.const.array_like(TABLE)
        t = cuda.threadIdx.x
        scratch[0, 0], scratch[1, 1] = t, 2 * t
        s[t] = table[t]
        cuda.syncthreads()
        out[t] = s[31 - t] + scratch[t % 2, t % 2]

    t = np.arange(32)
    out = run(kernel, np.zeros(32))
    assert (out == (31.0 - t) ** 2 + np.where(t % 2, 2 * t, t)).all()


def test_dynamic_shared_memory_is_as_large_as_the_launch_says() -> None:
    @cuda.jit
    def kernel(out):
        s = cuda.shared.array(0, numba.float64)
        t = cuda.threadIdx.x
        s[t] = t
        cuda.syncthreads()
        out[t] = s[cuda.blockDim.x - 1 - t]

    assert list(run(kernel, np.zeros(64), block=64, shared=64 * 8)) == list(range(63, -1, -1))


def test_vector_types_and_structured_loads() -> None:
    @cuda.jit
    def kernel(out):
        v = cuda.float32x4(1.0, 2.0, 3.0, 4.0)
        w = cuda.int32x2(5, 6)
        out[0], out[1] = v.x + v.w, w.x * w.y

    assert list(run(kernel, np.zeros(2), block=1)) == [5, 30]


def test_cache_hints_read_and_write() -> None:
    @cuda.jit
    def kernel(out, a):
        i = cuda.grid(1)
        cuda.stcs(out, i, cuda.ldca(a, i) + cuda.ldcg(a, i))

    assert (run(kernel, np.zeros(32), TABLE.astype("f8")) == 2 * TABLE).all()


# ---- atomics


@pytest.mark.parametrize("dtype", ["int32", "int64", "uint32", "uint64", "float32", "float64"])
def test_atomic_add_sub_max_min(dtype: str) -> None:
    @cuda.jit
    def kernel(out, a):
        i = cuda.grid(1)
        cuda.atomic.add(out, 0, a[i])
        cuda.atomic.sub(out, 1, a[i])
        cuda.atomic.max(out, 2, a[i])
        cuda.atomic.min(out, 3, a[i])
        cuda.atomic.add(out, 4 + i % 2, a[i])

    a = np.arange(1, 65).astype(dtype)
    out = run(kernel, np.array([0, 5000, 0, 99, 0, 0], dtype), a, grid=2)
    assert list(out) == [a.sum(), 5000 - a.sum(), 64, 1, a[::2].sum(), a[1::2].sum()]


@pytest.mark.parametrize("dtype", ["int32", "int64", "uint32", "uint64"])
def test_atomic_bits_and_exchange(dtype: str) -> None:
    @cuda.jit
    def kernel(out, a):
        i = cuda.grid(1)
        cuda.atomic.and_(out, 0, a[i])
        cuda.atomic.or_(out, 1, a[i])
        cuda.atomic.xor(out, 2, a[i])
        if i == 7:
            a[0] = cuda.atomic.exch(out, 3, 42)

    a = np.random.default_rng(3).integers(0, 2**31, 32).astype(dtype)
    values = a.copy()
    out = run(kernel, np.array([-1, 0, 0, 9]).astype(dtype), a)
    expected = [
        np.bitwise_and.reduce(values),
        np.bitwise_or.reduce(values),
        np.bitwise_xor.reduce(values),
        42,
    ]
    assert list(out) == expected
    assert a[0] == 9


def test_atomic_counters_and_compare_and_swap() -> None:
    @cuda.jit
    def kernel(out, order):
        i = cuda.grid(1)
        order[i] = cuda.atomic.inc(out, 0, 9)
        cuda.atomic.dec(out, 1, 9)
        cuda.atomic.cas(out, 2, i, i + 1)
        cuda.atomic.compare_and_swap(out[3:], 0, 5)

    out, order = np.zeros(4, np.uint32), np.zeros(32, np.uint32)
    run(kernel, out, order)
    assert sorted(order) == sorted(i % 10 for i in range(32))
    assert out[0] == 2 and out[1] == 8
    assert out[3] == 5


def test_atomics_on_floats_that_hold_nan() -> None:
    @cuda.jit
    def kernel(out, a):
        i = cuda.grid(1)
        cuda.atomic.nanmax(out, 0, a[i])
        cuda.atomic.nanmin(out, 1, a[i])

    a = np.arange(32.0)
    a[5] = np.nan
    assert list(run(kernel, np.array([-1.0, 99.0]), a)) == [31, 0]


def test_atomics_on_shared_memory_and_on_an_index_of_two_numbers() -> None:
    @cuda.jit
    def kernel(out):
        bins = cuda.shared.array(4, numba.int32)
        t = cuda.threadIdx.x
        if t < 4:
            bins[t] = 0
        cuda.syncthreads()
        cuda.atomic.add(bins, t % 4, 1)
        cuda.syncthreads()
        if t < 4:
            cuda.atomic.add(out, (t // 2, t % 2), bins[t])

    assert (run(kernel, np.zeros((2, 2), np.int32), grid=3, block=64) == 48).all()


# ---- barriers and fences


def test_barriers_that_count_and_combine() -> None:
    @cuda.jit
    def kernel(out):
        t = cuda.threadIdx.x
        count = cuda.syncthreads_count(int(t < 40))
        every = cuda.syncthreads_and(int(t < 64))
        some = cuda.syncthreads_or(int(t == 63))
        none = cuda.syncthreads_or(int(t == 64))
        cuda.syncwarp()
        cuda.syncwarp(FULL)
        cuda.threadfence()
        cuda.threadfence_block()
        cuda.threadfence_system()
        cuda.nanosleep(10)
        out[t, 0], out[t, 1], out[t, 2], out[t, 3] = count, every != 0, some != 0, none != 0

    assert (run(kernel, np.zeros((64, 4), np.int32), block=64) == [40, 1, 1, 0]).all()


# ---- warps


@pytest.mark.parametrize("dtype", ["int32", "int64", "float32", "float64"])
def test_shuffles(dtype: str) -> None:
    @cuda.jit
    def kernel(out, a):
        i = cuda.grid(1)
        out[i, 0] = cuda.shfl_sync(FULL, a[i], 3)
        out[i, 1] = cuda.shfl_up_sync(FULL, a[i], 2)
        out[i, 2] = cuda.shfl_down_sync(FULL, a[i], 1)
        out[i, 3] = cuda.shfl_xor_sync(FULL, a[i], 5)

    i = np.arange(64)
    a = (i * 3 + 1).astype(dtype)
    lane, warp = i % 32, i // 32 * 32
    expected = np.stack(
        [
            a[warp + 3],
            np.where(lane < 2, a, a[np.maximum(i - 2, 0)]),
            np.where(lane == 31, a, a[np.minimum(i + 1, 63)]),
            a[warp + (lane ^ 5)],
        ],
        axis=1,
    )
    assert (run(kernel, np.zeros((64, 4), dtype), a, block=64) == expected).all()


def test_votes() -> None:
    @cuda.jit
    def kernel(out):
        t = cuda.threadIdx.x
        out[t, 0] = cuda.all_sync(FULL, t >= 0)
        out[t, 1] = cuda.all_sync(FULL, t > 0)
        out[t, 2] = cuda.any_sync(FULL, t == 5)
        out[t, 3] = cuda.eq_sync(FULL, t == t)
        out[t, 4] = cuda.ballot_sync(FULL, t % 3 == 0)

    votes = sum(1 << t for t in range(0, 32, 3))
    assert (run(kernel, np.zeros((32, 5), np.int64)) & 0xFFFFFFFF == [1, 0, 1, 1, votes]).all()


def test_matches() -> None:
    @cuda.jit
    def kernel(out):
        t = cuda.threadIdx.x
        out[t, 0] = cuda.match_any_sync(FULL, t % 2)
        mask, same = cuda.match_all_sync(FULL, t // 32)
        out[t, 1], out[t, 2] = mask, same
        mask, same = cuda.match_all_sync(FULL, t)
        out[t, 3], out[t, 4] = mask, same

    out = run(kernel, np.zeros((32, 5), np.int64)) & 0xFFFFFFFF
    even = 0x55555555
    assert list(out[:, 0]) == [even, even << 1] * 16
    assert (out[:, 1:] == [FULL, 1, 0, 0]).all()


def test_masks_of_active_and_lower_lanes() -> None:
    @cuda.jit
    def kernel(out):
        t = cuda.threadIdx.x
        if t % 2 == 0:
            out[t, 0] = cuda.activemask()
        out[t, 1] = cuda.lanemask_lt()

    out = run(kernel, np.zeros((32, 2), np.int64)) & 0xFFFFFFFF
    assert (out[::2, 0] == 0x55555555).all()
    assert list(out[:, 1]) == [(1 << t) - 1 for t in range(32)]


# ---- integers and floats


@pytest.mark.parametrize("dtype", ["uint32", "uint64"])
def test_bits_of_integers(dtype: str) -> None:
    @cuda.jit
    def kernel(out, a):
        i = cuda.grid(1)
        out[i, 0] = cuda.popc(a[i])
        out[i, 1] = cuda.clz(a[i])
        out[i, 2] = cuda.ffs(a[i])
        out[i, 3] = cuda.brev(a[i])

    bits = np.dtype(dtype).itemsize * 8
    a = np.random.default_rng(4).integers(0, 2**bits, 32, dtype=dtype)
    a[:3] = 0, 1, 2 ** (bits - 1)
    expected = [
        [
            int(x).bit_count(),
            bits - int(x).bit_length(),
            (int(x) & -int(x)).bit_length(),
            int(f"{int(x):0{bits}b}"[::-1], 2),
        ]
        for x in a
    ]
    assert run(kernel, np.zeros((32, 4), dtype), a).tolist() == expected


def test_selection_fused_multiply_add_and_cube_root() -> None:
    @cuda.jit
    def kernel(out, a):
        i = cuda.grid(1)
        out[i, 0] = cuda.selp(i % 2 == 0, 1.0, -1.0)
        out[i, 1] = cuda.fma(a[i], a[i], -a[i] * a[i])
        out[i, 2] = cuda.cbrt(a[i])

    a = np.random.default_rng(5).uniform(1, 9, 32)
    out = run(kernel, np.zeros((32, 3)), a)
    assert list(out[:, 0]) == [1, -1] * 16
    # What a product loses by rounding.
    assert list(out[:, 1]) == [float(Fraction(x) * Fraction(x) - Fraction(x * x)) for x in a.tolist()]
    np.testing.assert_allclose(out[:, 2], np.cbrt(a), rtol=1e-15)


def test_half_precision_functions() -> None:
    @cuda.jit
    def kernel(out, a, b):
        i = cuda.grid(1)
        out[i, 0] = cuda.fp16.hadd(a[i], b[i])
        out[i, 1] = cuda.fp16.hsub(a[i], b[i])
        out[i, 2] = cuda.fp16.hmul(a[i], b[i])
        out[i, 3] = cuda.fp16.hfma(a[i], b[i], a[i])
        out[i, 4] = cuda.fp16.hmax(a[i], b[i])
        out[i, 5] = cuda.fp16.hfloor(a[i])
        out[i, 6] = cuda.fp16.hceil(a[i])
        out[i, 7] = cuda.fp16.hneg(a[i])

    rng = np.random.default_rng(6)
    a, b = rng.uniform(-8, 8, (2, 32)).astype(np.float16)
    out = run(kernel, np.zeros((32, 8), np.float16), a, b)
    fused = (a.astype("f8") * b.astype("f8") + a.astype("f8")).astype(np.float16)
    expected = [a + b, a - b, a * b, fused, np.maximum(a, b), np.floor(a), np.ceil(a), -a]
    assert (out == np.stack(expected, axis=1)).all()


def test_libdevice_functions() -> None:
    libdevice = cuda.libdevice

    @cuda.jit
    def kernel(out, a):
        i = cuda.grid(1)
        out[i, 0] = libdevice.sinf(a[i])
        out[i, 1] = cuda.libdevice.rsqrtf(a[i])
        out[i, 2] = cuda.libdevice.fmaf(a[i], a[i], a[i])

    a = np.linspace(0.5, 3, 32, dtype=np.float32)
    out = run(kernel, np.zeros((32, 3), np.float32), a)
    np.testing.assert_allclose(out, np.stack([np.sin(a), a**-0.5, a * a + a], axis=1), rtol=1e-6)


def test_random_numbers_of_a_seed_are_uniform_and_repeatable() -> None:
    from gpulab.cuda.random import create_xoroshiro128p_states, xoroshiro128p_uniform_float32

    @cuda.jit
    def kernel(out, states):
        i = cuda.grid(1)
        for k in range(out.shape[1]):
            out[i, k] = xoroshiro128p_uniform_float32(states, i)

    first, second = (
        run(kernel, np.zeros((64, 32), np.float32), create_xoroshiro128p_states(64, seed=1), block=64)
        for _ in range(2)
    )
    assert (first == second).all()
    assert first.min() >= 0 and first.max() < 1 and abs(first.mean() - 0.5) < 0.02
    assert len(np.unique(first)) > 2000


def test_print_in_a_kernel_shows_each_threads_line(capsys) -> None:
    @cuda.jit
    def kernel(x):
        i = cuda.grid(1)
        if i < 3:
            print("thread", i, "has", x, 0.5 * i, i == 1)

    kernel[1, 32](7)
    assert capsys.readouterr().out.splitlines() == [
        "thread 0 has 7 0.000000 False",
        "thread 1 has 7 0.500000 True",
        "thread 2 has 7 1.000000 False",
    ]


# ---- on the host


@pytest.mark.parametrize(
    ("use", "name"),
    [
        (lambda: cuda.grid(1), "cuda.grid(…)"),
        (lambda: cuda.syncthreads(), "cuda.syncthreads(…)"),
        (lambda: cuda.threadIdx.x, "cuda.threadIdx.x"),
        (lambda: cuda.blockDim.z, "cuda.blockDim.z"),
        (lambda: cuda.shared.array(32, numba.float32), "cuda.shared.array(…)"),
        (lambda: cuda.local.array(32, numba.float32), "cuda.local.array(…)"),
        (lambda: cuda.const.array_like(TABLE), "cuda.const.array_like(…)"),
        (lambda: cuda.atomic.add(TABLE, 0, 1), "cuda.atomic.add(…)"),
        (lambda: cuda.shfl_down_sync(FULL, 1, 1), "cuda.shfl_down_sync(…)"),
        (lambda: cuda.popc(7), "cuda.popc(…)"),
        (lambda: int(cuda.laneid), "cuda.laneid"),
        (lambda: range(cuda.warpsize), "cuda.warpsize"),
        (lambda: cuda.float32x4(1, 2, 3, 4), "cuda.float32x4(…)"),
    ],
)
def test_a_name_for_kernels_explains_itself_on_the_host(use, name: str) -> None:
    with pytest.raises(OnlyInKernel) as caught:
        use()
    assert str(caught.value) == f"{name} exists only in a kernel, where there are threads; this is host code."


def test_names_for_kernels_know_their_documentation_and_parts() -> None:
    assert "thread" in cuda.threadIdx.__doc__
    assert {"add", "max", "cas"} <= set(dir(cuda.atomic))
    assert repr(cuda.atomic.add) == "<cuda.atomic.add, for use in kernels>"
    assert isinstance(cuda.atomic.add, DeviceOnly)
    with pytest.raises(AttributeError):
        cuda.atomic.multiply  # noqa: B018


def test_all_that_numba_has_for_kernels_is_there() -> None:
    from numba import cuda as numbas

    public = {name for name in dir(numbas) if not name.startswith("_")}
    assert {name for name in public if not hasattr(cuda, name)} == set()
    assert public <= set(dir(cuda))


def test_types_are_numbas_own() -> None:
    assert cuda.float32 is numba.cuda.types.float32
    assert cuda.types is numba.cuda.types


def test_an_unknown_name_is_an_attribute_error_with_a_suggestion() -> None:
    with pytest.raises(
        AttributeError, match=r"gpulab\.cuda has no 'gird', and numba\.cuda neither"
    ) as caught:
        cuda.gird  # noqa: B018
    assert (caught.value.name, caught.value.obj) == ("gird", cuda)


@pytest.mark.parametrize("name", ["open_ipc_array", "set_memory_manager"])
def test_what_is_not_simulated_says_so_when_it_is_used(name: str) -> None:
    with pytest.raises(NotImplementedError, match=rf"^cuda\.{name} is not simulated; it needs a GPU\."):
        getattr(cuda, name)(lambda a, b: a + b)
