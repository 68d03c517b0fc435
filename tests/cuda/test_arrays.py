"""Device arrays behave as NumPy arrays do, copy only when told, and share memory with their views."""

from __future__ import annotations

import gc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as nps

from gpulab import cuda
from gpulab.frontends.cuda.arrays import ArrayError
from gpulab.simulator import device

RECORD = np.dtype([("x", "f4"), ("n", "i2"), ("pair", "f8", 2), ("inner", [("a", "i4"), ("b", "i4")])])


@cuda.jit
def add_one(a):
    for i in range(cuda.grid(1), a.size, cuda.gridsize(1)):
        a[i] += 1


@pytest.mark.parametrize("order", ["C", "F"])
def test_an_array_goes_to_the_device_and_back(order: str) -> None:
    host = np.asarray(np.arange(24.0).reshape(2, 3, 4), order=order)
    array = cuda.to_device(host)
    assert (array.shape, array.dtype, array.strides) == (host.shape, host.dtype, host.strides)
    assert (array.size, array.ndim, array.nbytes) == (24, 3, 192)
    back = array.copy_to_host()
    assert (back == host).all() and back.flags[f"{order}_CONTIGUOUS"]
    host[0, 0, 0] = 99
    assert array.copy_to_host()[0, 0, 0] == 0


def test_lists_numbers_and_records_go_to_the_device() -> None:
    assert list(cuda.to_device([1, 2, 3]).copy_to_host()) == [1, 2, 3]
    assert cuda.to_device(2.5).copy_to_host() == 2.5
    record = np.zeros(2, RECORD)
    record["x"] = 1, 2
    assert cuda.to_device(record[1])["x"] == 2


def test_to_device_fills_an_array_that_is_there() -> None:
    target = cuda.device_array(3)
    assert cuda.to_device(np.arange(3.0), to=target) is target
    assert list(target.copy_to_host()) == [0, 1, 2]
    assert cuda.to_device(target) is target


def test_to_device_without_a_copy_only_allocates() -> None:
    assert np.isnan(cuda.to_device(np.zeros(3), copy=False).copy_to_host()).all()


def test_new_memory_shows_that_nobody_wrote_it() -> None:
    assert np.isnan(cuda.device_array((2, 2), np.float32).copy_to_host()).all()
    assert (cuda.device_array(4, np.int16).copy_to_host() == -1).all()


def test_device_array_like_keeps_shape_dtype_and_order() -> None:
    for host in (np.zeros((2, 3)), np.zeros((2, 3), np.int8, order="F"), np.zeros(())):
        array = cuda.device_array_like(host)
        assert (array.shape, array.dtype, array.strides) == (host.shape, host.dtype, host.strides)
    assert cuda.device_array_like(array).shape == ()


def test_copy_to_host_fills_the_array_that_it_is_given() -> None:
    target = np.zeros((2, 3))
    assert cuda.to_device(np.ones((2, 3))).copy_to_host(target) is target
    assert (target == 1).all()


def test_copy_to_device_takes_host_and_device_arrays() -> None:
    target = cuda.device_array((2, 3))
    target.copy_to_device(np.arange(6.0).reshape(2, 3))
    other = cuda.device_array((2, 3))
    other.copy_to_device(target)
    assert (other.copy_to_host() == np.arange(6.0).reshape(2, 3)).all()
    target.copy_to_device(np.asfortranarray(np.ones((2, 3))))
    assert (target.copy_to_host() == 1).all()


@given(st.data())
def test_basic_indices_give_views_as_in_numpy(data) -> None:
    host = np.arange(60).reshape(3, 4, 5)
    array = cuda.to_device(host)
    item = data.draw(nps.basic_indices(host.shape, allow_newaxis=False, allow_ellipsis=True))
    part, expected = array[item], host[item]
    if isinstance(expected, np.ndarray) and expected.size:
        assert (part.shape, part.strides) == (expected.shape, expected.strides)
        assert (part.copy_to_host() == expected).all()
        part[...] = -1
        host[item] = -1
        assert (array.copy_to_host() == host).all()
    elif not isinstance(expected, np.ndarray):
        assert part == expected


def test_kernels_write_through_views() -> None:
    array = cuda.to_device(np.zeros(10))
    add_one[1, 32](array[2:8:2])
    assert list(array.copy_to_host()) == [0, 0, 1, 0, 1, 0, 1, 0, 0, 0]
    add_one[1, 32](array.reshape(2, 5)[1])
    assert list(array.copy_to_host()) == [0, 0, 1, 0, 1, 1, 2, 1, 1, 1]
    add_one[1, 32](array[::-1])
    assert list(array.copy_to_host()) == [1, 1, 2, 1, 2, 2, 3, 2, 2, 2]


def test_elements_are_read_and_written_by_the_host() -> None:
    array = cuda.to_device(np.zeros((2, 3)))
    array[1, 2] = 5
    array[0] = [1, 2, 3]
    array[:, 0] = cuda.to_device(np.array([7.0, 8.0]))
    assert array[1, 2] == 5 and isinstance(array[1, 2], np.floating)
    assert array.copy_to_host().tolist() == [[7, 2, 3], [8, 0, 5]]
    array.setitem((0, 1), 4)
    assert array.getitem((0, 1)) == 4
    array[...] = 1
    assert (array.copy_to_host() == 1).all()


def test_reshape_ravel_squeeze_view_and_split_share_memory() -> None:
    array = cuda.to_device(np.arange(12.0))
    views = [
        array.reshape(3, 4),
        array.reshape((3, -1)),
        array.reshape(3, 4, order="F").ravel("F"),
        array.reshape(1, 12).squeeze(),
        array.view(np.int64),
        *array.split(5),
    ]
    array[0] = 99
    assert [v.shape for v in views] == [(3, 4), (3, 4), (12,), (12,), (12,), (5,), (5,), (2,)]
    assert views[0][0, 0] == views[2][0] == views[3][0] == views[5][0] == 99
    assert views[4][0] == np.float64(99).view(np.int64)


def test_a_transpose_is_a_new_array_as_in_numba() -> None:
    array = cuda.to_device(np.arange(6.0).reshape(2, 3))
    turned = array.T
    array[0, 0] = 99
    assert turned.is_c_contiguous() and turned.copy_to_host().tolist() == [[0, 3], [1, 4], [2, 5]]
    assert array.transpose((0, 1)) is array
    assert array.transpose((1, 0)).shape == (3, 2)


def test_fields_of_records_are_read_and_written() -> None:
    array = cuda.to_device(np.zeros(3, RECORD))
    array[1]["x"] = 2.5
    array[1]["pair"][1] = 4
    assert array[1]["x"] == 2.5 and isinstance(array[1]["x"], np.float32)
    assert array[1]["inner"]["b"] == 0
    assert array.copy_to_host()["pair"].tolist() == [[0, 0], [0, 4], [0, 0]]


def test_arrays_become_numpy_arrays_by_a_copy() -> None:
    array = cuda.to_device(np.arange(3.0))
    assert np.asarray(array).tolist() == [0, 1, 2]
    assert np.array(array, dtype=np.int32).dtype == np.int32
    assert np.allclose(array, [0, 1, 2])
    assert [float(x) for x in array] == [0, 1, 2] and len(array) == 3


def test_the_array_interface_describes_the_memory() -> None:
    array = cuda.to_device(np.arange(12, dtype=np.int32).reshape(3, 4))
    interface = array[1].__cuda_array_interface__
    assert interface["shape"] == (4,) and interface["typestr"] == "<i4" and interface["strides"] is None
    assert interface["data"] == (array.__cuda_array_interface__["data"][0] + 16, False)
    assert array[:, 1].__cuda_array_interface__["strides"] == (16,)
    assert cuda.is_cuda_array(array) and not cuda.is_cuda_array(np.zeros(3))


def test_objects_of_other_libraries_are_used_without_a_copy() -> None:
    class Foreign:
        def __init__(self, array):
            self.__cuda_array_interface__ = array.__cuda_array_interface__

    array = cuda.to_device(np.arange(8.0))
    add_one[1, 32](Foreign(array[2:4]))
    cuda.as_cuda_array(Foreign(array))[0] = -1
    assert list(array.copy_to_host()) == [-1, 1, 3, 4, 4, 5, 6, 7]


def test_memory_that_is_not_the_devices_is_refused() -> None:
    class Elsewhere:
        @property
        def __cuda_array_interface__(self):
            return {"shape": (3,), "typestr": "<f4", "data": (0x1000, False), "version": 3}

    with pytest.raises(ArrayError, match="address 0x1000 is not in the memory of the simulated device"):
        cuda.as_cuda_array(Elsewhere())
    with pytest.raises(TypeError, match="a list is no device array"):
        cuda.as_cuda_array([1])


def test_memory_is_given_back_when_the_last_view_is_gone() -> None:
    gc.collect()
    used = device.current().memory.used
    array = cuda.device_array(1000, np.float32)
    view = array[10:20]
    assert device.current().memory.used == used + 4000
    del array
    assert device.current().memory.used == used + 4000
    del view
    assert device.current().memory.used == used


def test_mapped_and_managed_arrays_are_seen_by_both_sides() -> None:
    for make in (cuda.mapped_array, cuda.managed_array):
        array = make(4, np.float32)
        array[:] = [1, 2, 3, 4]
        add_one[1, 32](array)
        assert list(array) == [2, 3, 4, 5]
        assert cuda.is_cuda_array(array) and not cuda.is_cuda_array(array[1:] * 2)
    assert cuda.mapped_array_like(np.zeros((2, 3), order="F")).flags.f_contiguous
    host = np.zeros(4)
    with cuda.mapped(host) as mapped:
        add_one[1, 32](mapped)
    assert (host == 1).all()


def test_pinned_memory_is_plain_memory() -> None:
    array = cuda.pinned_array((2, 3), np.int32, order="F")
    assert isinstance(array, np.ndarray) and array.flags.f_contiguous
    assert cuda.pinned_array_like(array).strides == array.strides
    with cuda.pinned(array):
        array[:] = 1
    assert (cuda.to_device(array).copy_to_host() == 1).all()


def test_a_zero_size_array_is_copied_and_launched() -> None:
    array = cuda.to_device(np.zeros((0, 3)))
    assert array.copy_to_host().shape == (0, 3)
    add_one[1, 32](array.reshape(0))


@pytest.mark.parametrize(
    ("do", "words"),
    [
        (
            lambda a: a.copy_to_host(np.zeros(5)),
            "cannot copy to an array of shape (5,): the device array has (2, 3).",
        ),
        (
            lambda a: a.copy_to_host(np.zeros((2, 3), np.float32)),
            "cannot copy to an array of dtype float32: the device array has float64.",
        ),
        (
            lambda a: a.copy_to_device(np.zeros((3, 2))),
            "cannot copy from an array of shape (3, 2): the device array has (2, 3).",
        ),
        (
            lambda a: a[:, 1].copy_to_device(np.zeros(2)),
            "a device array with gaps (shape (2,), strides (24,)) cannot be copied in one piece; "
            "assign with a[…] = b, or use a kernel.",
        ),
        (
            lambda a: cuda.to_device(np.zeros((4, 4))[::2, ::2]),
            "this array of shape (2, 2) has gaps (strides (64, 16)) and cannot be copied in one piece; "
            "pass np.ascontiguousarray(…).",
        ),
        (
            lambda a: a[[0, 1]],
            "a device array is indexed with numbers and slices only, not with a list; copy_to_host() first.",
        ),
        (
            lambda a: a[np.array([True, False])],
            "a device array is indexed with numbers and slices only, not with a ndarray; "
            "copy_to_host() first.",
        ),
        (
            lambda a: cuda.device_array(3.0),
            "the shape 3.0 is not made of whole numbers; divide with //.",
        ),
        (lambda a: cuda.device_array((2, -1)), "the shape (2, -1) is negative."),
        (
            lambda a: cuda.device_array(3, object),
            "a device array cannot hold Python objects (dtype object).",
        ),
        (
            lambda a: cuda.device_array(3, order="X"),
            "order 'X' is neither 'C' (rows first) nor 'F' (columns first).",
        ),
        (
            lambda a: a.reshape(3, 2)[:, 0].reshape(1, 3).reshape(7),
            "cannot reshape (1, 3) to (7,): cannot reshape array of size 3 into shape (7,).",
        ),
        (
            lambda a: cuda.to_device(np.zeros((2, 2, 2))).T,
            "only 2-D device arrays can be transposed; this one has 3 dimensions.",
        ),
        (lambda a: a.transpose((0, 2)), "the axes (0, 2) are not those of a 2-D array."),
        (
            lambda a: list(a.split(2)),
            "only 1-D device arrays can be split; this one has 2 dimensions.",
        ),
    ],
)
def test_what_device_arrays_cannot_do_is_one_line(do, words: str) -> None:
    with pytest.raises(ArrayError) as caught:
        do(cuda.to_device(np.zeros((2, 3))))
    assert str(caught.value) == words


def test_an_array_tells_its_address():
    whole = cuda.to_device(np.arange(10, dtype=np.int32))
    part = whole[4:]
    assert part.gpu_data == (whole.gpu_data.device_pointer + 16, 24)
    assert part.device_ctypes_pointer.value == part.__cuda_array_interface__["data"][0]
    assert part.alloc_size == part.nbytes == 24
