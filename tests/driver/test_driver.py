"""The driver that launchers call: C functions that fail in words, arrays as DLPack hands them over, launches."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest
import torch

from gpulab import cupy as cp
from gpulab.frontends import driver
from gpulab.frontends.driver import functions, host_arrays
from gpulab.simulator import device as devices
from gpulab.simulator.compile import CompiledKernel
from gpulab.simulator.device import LaunchError
from gpulab.simulator.simt import tensor_maps

STORE = """\
.version 8.0
.target sm_80
.address_size 64
.visible .entry store(.param .u32 p_value, .param .align 8 .b8 p_array[16]) {
.reg .b32 %r<9>; .reg .b64 %rd<9>;
ld.param.u32 %r1, [p_value];
ld.param.u64 %rd1, [p_array+8];
mov.u32 %r2, %tid.x;
mad.wide.s32 %rd2, %r2, 4, %rd1;
add.s32 %r3, %r1, %r2;
st.global.u32 [%rd2], %r3;
ret;
}
"""


def store_kernel() -> CompiledKernel:
    """Stores a value plus the thread's number; its pointer is the second word of a structure."""
    return CompiledKernel("store", "store", STORE, (8, 0), "by hand")


def pointers_to(*arguments: Any) -> Any:
    return (ctypes.c_void_p * len(arguments))(*map(ctypes.addressof, arguments))


def launch_store(
    value: int, address: int, threads: int = 4, grid: tuple[int, int, int] = (1, 1, 1), **options: Any
) -> int:
    structure = (ctypes.c_uint64 * 2)(7, address)
    number = ctypes.c_uint32(value)
    config = driver.Config(grid, (threads, 1, 1), 0, **options)
    arguments = pointers_to(number, structure)
    return driver.launch(config, store_kernel(), ctypes.addressof(arguments))


def test_an_exception_comes_out_where_the_launcher_was_called() -> None:
    calls: list[int] = []

    def answer(number: int) -> None:
        calls.append(number)
        if number == 2:
            raise LaunchError("the second is too many.")

    function = driver.c_function(answer, ctypes.c_int)
    with pytest.raises(LaunchError, match="the second is too many"), driver.errors_raised():
        assert function(1) == driver.SUCCESS
        assert function(2) == driver.FAILED
        assert function(3) == driver.FAILED
        raise RuntimeError("what the launcher makes of a code of failure")
    assert calls == [1, 2], "nothing is done after a failure"
    with driver.errors_raised():
        assert function(4) == driver.SUCCESS, "and the next call starts afresh"


def test_a_launchers_own_error_is_raised_as_it_is() -> None:
    with pytest.raises(RuntimeError, match="its own"), driver.errors_raised():
        raise RuntimeError("its own")


def capsule_of(array: Any) -> Any:
    capsule = driver.exported(array).__dlpack__()
    address = host_arrays._pointer_in(capsule, host_arrays.NAME)
    return capsule, host_arrays._DLManagedTensor.from_address(address).tensor


@pytest.mark.parametrize("kind", ["float32", "int8", "float16", "complex64", "bool"])
def test_an_array_of_the_device_is_handed_over_where_it_is(kind: str) -> None:
    array = cp.zeros((3, 5), kind)[:, 1:4]
    _, tensor = capsule_of(array)
    assert (tensor.data, tensor.device_type) == (array.data.ptr, host_arrays.CUDA)
    assert [tensor.shape[i] for i in range(2)] == [3, 3]
    assert [tensor.strides[i] for i in range(2)] == [5, 1]
    assert tensor.bits == 8 * array.dtype.itemsize


@pytest.mark.parametrize("array", [np.arange(6.0), torch.arange(6.0)], ids=["NumPy", "PyTorch"])
def test_an_array_of_the_host_says_that_it_is_on_a_device(array: Any) -> None:
    _, tensor = capsule_of(array)
    assert tensor.device_type == host_arrays.CUDA
    assert tensor.data == (array.ctypes.data if isinstance(array, np.ndarray) else array.data_ptr())


def test_memory_that_a_capsule_points_at_is_given_back_with_it() -> None:
    before = len(host_arrays._alive)
    capsule, _ = capsule_of(cp.zeros(4))
    assert len(host_arrays._alive) == before + 1
    address = host_arrays._pointer_in(capsule, host_arrays.NAME)
    host_arrays._DLManagedTensor.from_address(address).deleter(address)
    assert len(host_arrays._alive) == before


def test_pointers_inside_structures_lead_to_copies_of_the_hosts_arrays() -> None:
    memory = np.zeros(8, np.uint32)
    view = memory[2:6]
    with driver.enter(lambda address: region if region.address <= address < region.address + 32 else None):
        region = driver.region_of(view)
        assert region is not None and region.nbytes == memory.nbytes
        launch_store(5, view.ctypes.data)
        assert not memory.any(), "the kernel works on a copy"
    assert memory.tolist() == [0, 0, 5, 6, 7, 8, 0, 0]


def test_a_launch_is_recorded_with_the_places_of_its_pointers() -> None:
    seen: list[Any] = []
    array = cp.zeros(4, np.uint32)
    with devices.current().observed(lambda launch: seen.append(launch)):
        launch_store(1, array.data.ptr)
    assert seen[0].pointers == (16,)
    assert array.tolist() == [1, 2, 3, 4]


def test_clusters_are_passed_on_and_refused_where_the_gpu_has_none() -> None:
    with pytest.raises(LaunchError, match=r"(?i)^store: .*cluster"):
        launch_store(1, cp.zeros(4, np.uint32).data.ptr, cluster=(2, 1, 1))


def test_a_launch_configuration_is_read_with_its_cluster() -> None:
    attribute = (ctypes.c_uint32 * 18)(4, 0, 2, 1, 1)
    config = (ctypes.c_uint64 * 7)()
    numbers = (ctypes.c_uint32 * 14).from_buffer(config)
    numbers[:7] = 8, 4, 2, 128, 1, 1, 4096
    config[5], numbers[12] = ctypes.addressof(attribute), 1
    assert driver.read_config(ctypes.addressof(config)) == driver.Config(
        (8, 4, 2), (128, 1, 1), 4096, (2, 1, 1)
    )


def test_a_cooperative_launch_is_no_larger_than_the_gpu_holds_at_once() -> None:
    attribute = (ctypes.c_uint32 * 18)(2, 0, 1)
    config = (ctypes.c_uint64 * 7)()
    numbers = (ctypes.c_uint32 * 14).from_buffer(config)
    numbers[:6] = 8, 1, 1, 128, 1, 1
    config[5], numbers[12] = ctypes.addressof(attribute), 1
    assert driver.read_config(ctypes.addressof(config)).cooperative
    array = cp.zeros(4, np.uint32)
    assert launch_store(1, array.data.ptr, cooperative=True) == 0
    array[:] = 0
    assert launch_store(1, array.data.ptr, cooperative=True, grid=(10_000, 1, 1)) == 720
    assert array.tolist() == [0] * 4, "nothing ran"


def test_a_tensor_map_is_written_where_the_launcher_wants_it() -> None:
    map_ = (ctypes.c_uint64 * 16)()
    sizes, strides = (ctypes.c_uint64 * 2)(64, 128), (ctypes.c_uint64 * 1)(128)
    box, steps = (ctypes.c_uint32 * 2)(64, 32), (ctypes.c_uint32 * 2)(1, 1)
    half = tensor_maps.DRIVER_TYPES.index("f16")
    at = (ctypes.addressof(array) for array in (sizes, strides, box, steps))
    functions.tensor_map(ctypes.addressof(map_), half, 2, 0x700000000, *at, 0, 3, 2, 0)
    made = tensor_maps.decode(bytes(map_))
    assert (made.address, made.type.name, made.dimensions, made.box) == (
        0x700000000,
        "f16",
        (64, 128),
        (64, 32),
    )
    assert made.span == 128


def test_an_attribute_that_no_data_sheet_has_is_refused() -> None:
    with pytest.raises(LaunchError, match="does not know its attribute"):
        functions.device_attribute(0, 9999, 0)
