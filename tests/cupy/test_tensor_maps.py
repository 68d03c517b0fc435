"""Tensor maps as a host makes them, with `cuda.bindings` and without a driver, and kernels that get them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import gpulab
from gpulab import cupy as cp
from gpulab import habits
from gpulab.frontends.cupy.driver import CUDADriverError
from gpulab.frontends.cupy.tensor_maps import content, driver
from gpulab.simulator import device, simt
from gpulab.simulator.device import LaunchError
from gpulab.simulator.simt import tensor_maps


@pytest.fixture(autouse=True)
def hopper() -> Iterator[None]:
    before = device.current().gpu
    device.simulate("H100")
    yield
    device.current().gpu = before


DOUBLE = r"""
#include <cuda/ptx>
namespace ptx = cuda::ptx;
struct alignas(64) CUtensorMap { unsigned long long opaque[16]; };

extern "C" __global__ void twice(const __grid_constant__ CUtensorMap from, const __grid_constant__ CUtensorMap to) {
    __shared__ alignas(1024) float tile[8][32];
    __shared__ unsigned long long full;
    int at[2] = {int(blockIdx.x) * 32, int(blockIdx.y) * 8};
    if (threadIdx.x == 0) {
        ptx::mbarrier_init(&full, 1);
        ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
        ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &full, sizeof tile);
        ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, tile, &from, at, &full);
    }
    __syncthreads();
    while (!ptx::mbarrier_try_wait_parity(&full, 0)) {}
    for (int i = threadIdx.x; i < 256; i += blockDim.x) (&tile[0][0])[i] *= 2;
    ptx::fence_proxy_async(ptx::space_shared);
    __syncthreads();
    if (threadIdx.x == 0) {
        ptx::cp_async_bulk_tensor(ptx::space_global, ptx::space_shared, &to, at, tile);
        ptx::cp_async_bulk_commit_group();
        ptx::cp_async_bulk_wait_group_read(ptx::n32_t<0>());
    }
}
"""
SWIZZLES = ("NONE", "32B", "64B", "128B")


def described(x, swizzle: str = "128B", **changes):
    """The tensor map of a two-dimensional float32 array, for boxes of 8 × 32 (or what fits the swizzle)."""
    inner = {"NONE": 32, "32B": 8, "64B": 16, "128B": 32}[swizzle]
    given = {
        "tensorDataType": driver.CUtensorMapDataType.CU_TENSOR_MAP_DATA_TYPE_FLOAT32,
        "tensorRank": 2,
        "globalAddress": x.data.ptr,
        "globalDim": [driver.cuuint64_t(n) for n in reversed(x.shape)],
        "globalStrides": [driver.cuuint64_t(x.strides[0])],
        "boxDim": [driver.cuuint32_t(inner), driver.cuuint32_t(8)],
        "elementStrides": [driver.cuuint32_t(1)] * 2,
        "interleave": driver.CUtensorMapInterleave.CU_TENSOR_MAP_INTERLEAVE_NONE,
        "swizzle": getattr(driver.CUtensorMapSwizzle, f"CU_TENSOR_MAP_SWIZZLE_{swizzle}"),
        "l2Promotion": driver.CUtensorMapL2promotion.CU_TENSOR_MAP_L2_PROMOTION_NONE,
        "oobFill": driver.CUtensorMapFloatOOBfill.CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
    } | changes
    code, made = driver.cuTensorMapEncodeTiled(**given)
    assert code == driver.CUresult.CUDA_SUCCESS
    return made


@pytest.mark.parametrize("schedule", [simt.LOCKSTEP, simt.warp_serial(2), simt.BACKWARDS], ids=str)
def test_a_kernel_gets_maps_that_its_host_made(schedule) -> None:
    x = cp.asarray(np.arange(20 * 72, dtype=np.float32).reshape(20, 72))
    y = cp.zeros_like(x)
    with device.current().using(schedule=schedule):
        cp.RawKernel(DOUBLE, "twice")((3, 3), (64,), (described(x), described(y)))
    assert np.array_equal(y.get(), 2 * x.get())


def test_a_numpy_scalar_of_128_bytes_is_a_map_too() -> None:
    x = cp.asarray(np.arange(16 * 32, dtype=np.float32).reshape(16, 32))
    y = cp.zeros_like(x)
    maps = tuple(np.frombuffer(content(described(a)), "V128")[0] for a in (x, y))
    cp.RawKernel(DOUBLE, "twice")((1, 2), (64,), maps)
    assert np.array_equal(y.get(), 2 * x.get())


@pytest.mark.parametrize("swizzle", SWIZZLES)
def test_a_map_says_what_it_was_asked_to(swizzle) -> None:
    x = cp.zeros((20, 64), np.float32)
    map_ = tensor_maps.decode(content(described(x, swizzle)))
    assert map_.span == {"NONE": 16, "32B": 32, "64B": 64, "128B": 128}[swizzle]
    assert (map_.address, map_.dimensions, map_.strides) == (x.data.ptr, (64, 20), (256,))


def test_a_map_moves_to_another_array() -> None:
    x, y = cp.zeros((20, 64), np.float32), cp.zeros((20, 64), np.float32)
    made = described(x)
    assert driver.cuTensorMapReplaceAddress(made, y.data.ptr) == (driver.CUresult.CUDA_SUCCESS,)
    assert content(made) == content(described(y))
    with pytest.raises(CUDADriverError, match="must be a multiple of 16"):
        driver.cuTensorMapReplaceAddress(made, y.data.ptr + 4)


def test_an_im2col_map_is_made() -> None:
    image = cp.zeros((2, 6, 6, 8), np.float16)
    code, made = driver.cuTensorMapEncodeIm2col(
        driver.CUtensorMapDataType.CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 4, image.data.ptr, [8, 6, 6, 2],
        [16, 96, 576], [-1, -1], [-1, -1], 8, 18, [1, 2, 2, 1], 0, 0, 0, 0,
    )  # fmt: skip
    assert code == driver.CUresult.CUDA_SUCCESS
    map_ = tensor_maps.decode(content(made))
    assert map_.im2col and map_.lower == (-1, -1) and map_.pixels == 18


@pytest.mark.parametrize(
    "changes, words",
    [
        ({"boxDim": [257, 1]}, "Dimension 0 of the box must be 1 to 256 elements, but is 257"),
        ({"globalAddress": 0x7_0000_0004}, "must be a multiple of 16, but is 0x700000004"),
        ({"globalStrides": [100]}, "stride of dimension 1 must be a multiple of 16 bytes, but is 100"),
        ({"globalStrides": []}, "globalStrides must have 1 number for a tensor of rank 2, but has 0"),
        ({"boxDim": [32]}, "boxDim must have 2 numbers for a tensor of rank 2, but has 1"),
        ({"boxDim": [64, 8]}, "must fit the swizzle of 128 bytes, but 64 elements of 4 bytes take 256"),
        ({"interleave": 4}, "Hopper has no interleave 4"),
        ({"tensorDataType": 13}, "Hopper has no type 13"),
    ],
)
def test_a_broken_rule_is_named_with_the_value(changes, words) -> None:
    with pytest.raises(CUDADriverError) as caught:
        described(cp.zeros((20, 64), np.float32), **changes)
    assert str(caught.value).startswith("CUDA_ERROR_INVALID_VALUE: cuTensorMapEncodeTiled: ")
    assert words in str(caught.value)


def test_a_map_for_a_parameter_that_is_a_pointer_is_refused() -> None:
    kernel = cp.RawKernel('extern "C" __global__ void f(const float* x) {}', "f")
    with pytest.raises(LaunchError, match="declare the parameter as const __grid_constant__ CUtensorMap"):
        kernel((1,), (32,), (described(cp.zeros((20, 64), np.float32)),))


def test_a_map_of_an_array_that_is_too_small_names_the_parameter() -> None:
    x, y = cp.zeros((8, 32), np.float32), cp.zeros((8, 32), np.float32)
    wide = described(x, globalDim=[32, 80000])
    with pytest.raises(simt.KernelFault) as caught:
        cp.RawKernel(DOUBLE, "twice")((1, 2), (64,), (wide, described(y)))
    assert "from (80000 × 32 float32)" in str(caught.value)


@pytest.mark.parametrize(
    "line",
    [
        "from cuda.bindings import driver",
        "import cuda.bindings.driver as driver",
        "from cuda import bindings; driver = bindings.driver",
        "import cuda.bindings.driver; driver = cuda.bindings.driver",
        "from cuda.bindings.driver import cuTensorMapEncodeTiled; driver = None",
    ],
)
def test_what_learners_import_leads_here(line) -> None:
    names: dict = {
        "__name__": "__main__",
        "__builtins__": {**vars(__import__("builtins")), "__import__": habits._redirected},
    }
    exec(line, names)
    found = names.get("cuTensorMapEncodeTiled") or names["driver"].cuTensorMapEncodeTiled
    assert found is driver.cuTensorMapEncodeTiled
    if names["driver"] is not None:
        from cuda.bindings import driver as real

        assert names["driver"].CUtensorMap is real.CUtensorMap


# ---- clusters ------------------------------------------------------------------------------------

HISTOGRAM = r"""
#include <cooperative_groups.h>
namespace cg = cooperative_groups;

// Each block of a cluster has some of the bins in its shared memory.
extern "C" __global__ void __cluster_dims__(4, 1, 1) histogram(const int* values, int n, int* bins) {
    __shared__ int own[16];
    cg::cluster_group cluster = cg::this_cluster();
    if (threadIdx.x < 16) own[threadIdx.x] = 0;
    cluster.sync();
    for (int i = cluster.block_rank() * blockDim.x + threadIdx.x; i < n; i += cluster.num_threads()) {
        int bin = values[i];
        int* there = cluster.map_shared_rank(own, bin / 16);
        atomicAdd(there + bin % 16, 1);
    }
    cluster.sync();
    if (threadIdx.x < 16) bins[cluster.block_rank() * 16 + threadIdx.x] = own[threadIdx.x];
}
"""


@pytest.mark.parametrize("schedule", [simt.LOCKSTEP, simt.warp_serial(2), simt.BACKWARDS], ids=str)
def test_a_histogram_lies_in_the_shared_memory_of_a_cluster(schedule) -> None:
    values = np.random.default_rng(1).integers(0, 64, 3000).astype(np.int32)
    bins = cp.zeros(64, np.int32)
    with device.current().using(schedule=schedule):
        cp.RawKernel(HISTOGRAM, "histogram")((4,), (96,), (cp.asarray(values), 3000, bins))
    assert np.array_equal(bins.get(), np.bincount(values, minlength=64))


def test_a_report_says_how_many_clusters_the_gpu_holds() -> None:
    """96 threads of few registers: 21 blocks fit an SM, so 2 · (18 · 21 // 4) + 6 · (16 · 21 // 4) clusters."""
    values, bins = cp.zeros(300, np.int32), cp.zeros(64, np.int32)
    report = gpulab.profile(cp.RawKernel(HISTOGRAM, "histogram"), (4,), (96,), (values, 300, bins))
    held = report.launches[0].occupancy
    assert held is not None and held.warps == 63 and held.clusters == "692 clusters of 4 at once"
    assert "692 clusters of 4 at" in str(report)


@pytest.mark.parametrize(
    "grid, cluster, words",
    [
        (
            (6,),
            "4, 1, 1",
            r"a grid of \(?6.* does not consist of clusters of .*4.*: in x, 6 is no multiple of 4",
        ),
        ((34,), "17, 1, 1", "a cluster of 17 blocks .*; a cluster has at most 16"),
    ],
)
def test_clusters_that_cannot_be_are_refused(grid, cluster, words) -> None:
    code = f'extern "C" __global__ void __cluster_dims__({cluster}) f(int* x) {{}}'
    with pytest.raises(LaunchError, match=words):
        cp.RawKernel(code, "f")(grid, (32,), (cp.zeros(4, np.int32),))


@pytest.mark.parametrize("block", [64, 1])
def test_a_kernel_whose_blocks_are_clusters_is_launched_by_clusters(block: int) -> None:
    """The launch may leave the number of threads to the kernel, too."""
    code = r"""extern "C" __global__ void __block_size__((64, 1, 1), (2, 3, 1)) f(int* x) {
        int cluster;
        asm("{ .reg .u32 x, y; mov.u32 x, %clusterid.x; mov.u32 y, %clusterid.y; mad.lo.u32 %0, y, 10, x; }"
            : "=r"(cluster));
        x[(blockIdx.y * gridDim.x + blockIdx.x) * blockDim.x + threadIdx.x] = cluster;
    }""".replace("%clusterid", "%%clusterid")
    x = cp.full(10 * 6 * 64, -1, np.int32)
    cp.RawKernel(code, "f")((5, 2), (block,), (x,))
    y_of_block, x_of_block = np.indices((6, 10))
    wanted = y_of_block // 3 * 10 + x_of_block // 2
    assert np.array_equal(x.get().reshape(6, 10, 64), np.broadcast_to(wanted[..., None], (6, 10, 64)))


def test_a_gpu_without_clusters_says_which_has_them() -> None:
    kernel = cp.RawKernel('extern "C" __global__ void f(int* x) {}', "f")
    x = cp.zeros(4, np.int32)
    device.simulate("A100")
    with pytest.raises(
        LaunchError,
        match=r"clusters of 2 blocks need a GPU of compute capability 9\.0 or later; the A100 .*has 8\.0",
    ):
        device.current().launch(kernel.kernel, 4, 32, x.data.ptr.to_bytes(8, "little"), cluster=2)


# ---- gpulab.tensor_map -----------------------------------------------------------------------------


@pytest.mark.parametrize("swizzle", [0, 32, 64, 128])
def test_the_short_way_makes_the_map_that_the_long_one_makes(swizzle) -> None:
    x = cp.zeros((20, 64), np.float32)
    name = "NONE" if not swizzle else f"{swizzle}B"
    inner = 32 if not swizzle else swizzle // 4
    assert gpulab.tensor_map(x, (8, inner), swizzle).tobytes() == content(described(x, name))


def test_the_short_way_goes_to_a_kernel_as_it_is() -> None:
    x = cp.asarray(np.arange(16 * 64, dtype=np.float32).reshape(16, 64))
    y = cp.zeros_like(x)
    cp.RawKernel(DOUBLE, "twice")((2, 2), (64,), tuple(gpulab.tensor_map(a, (8, 32), 128) for a in (x, y)))
    assert np.array_equal(y.get(), 2 * x.get())


@pytest.mark.parametrize(
    ("shape", "dtype", "box", "swizzle", "kind", "match"),
    [
        ((8, 32), np.complex64, (8, 32), 0, TypeError, "no elements of type complex64. It knows uint8"),
        ((8, 32), np.float32, (8, 32), 16, ValueError, "The swizzle is 16 bytes, but there are 0"),
        ((8, 30), np.float32, (8, 32), 0, CUDADriverError, "multiple of 16"),
        ((8, 32), np.float32, (8, 3), 0, CUDADriverError, "multiple of 16"),
        ((8, 32), np.float32, (8,), 0, CUDADriverError, "boxDim must have 2 numbers"),
        ((8, 64), np.float32, (8, 64), 128, CUDADriverError, "128"),
    ],
)
def test_a_map_that_cannot_be_is_refused_in_words(shape, dtype, box, swizzle, kind, match) -> None:
    with pytest.raises(kind, match=match):
        gpulab.tensor_map(cp.zeros(shape, dtype), box, swizzle)


def test_a_map_wants_the_last_axis_without_gaps() -> None:
    with pytest.raises(ValueError, match="side by side in memory"):
        gpulab.tensor_map(cp.zeros((8, 64), np.float32)[:, ::2], (8, 32))


def test_a_map_of_a_simulated_array_is_ours_on_a_machine_with_a_gpu_too(monkeypatch):
    array = cp.zeros((64, 48), cp.float32)
    ours = gpulab.tensor_map(array, (8, 32)).tobytes()
    monkeypatch.setattr(device, "uses_gpu", lambda: True)
    there = gpulab.tensor_map(array, (8, 32)).tobytes()
    assert there == ours and tensor_maps.decode(there).box == tensor_maps.decode(ours).box
    assert len(there) == 128 and there[8:] != bytes(120)
