"""Arguments are packed as numba lays them out: held against the compiled parameter list, and run."""

from __future__ import annotations

import enum
from collections import namedtuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpulab import cuda
from gpulab.frontends.cuda.arguments import pack
from gpulab.simulator import device

SCALARS = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
SCALARS += ["float16", "float32", "float64", "complex64", "complex128"]

RECORD = np.dtype([("x", "f4"), ("n", "i2"), ("pair", "f8", 2)], align=True)
Point = namedtuple("Point", "x y")


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


@cuda.jit
def ignore_one(a):
    pass


@cuda.jit
def ignore_three(a, b, c):
    pass


def packed(kernel, *args):
    """What is handed to the kernel, and the program whose parameters it must fit."""
    types, compiled = kernel.overload_for(args)
    names = tuple("abc")[: len(args)]
    return pack("kernel", names, types, args), device.current().program(compiled)


@pytest.mark.parametrize("dtype", SCALARS)
def test_a_scalar_of_every_dtype_fits_its_parameter(dtype: str) -> None:
    value = np.dtype(dtype).type(3)
    data, program = packed(ignore_three, np.int8(1), value, np.int8(2))
    assert len(data.data) == program.parameter_bytes
    offset = program.parameters[1][1]
    assert bytes(data.data[offset : offset + value.nbytes]) == value.tobytes()
    assert data.data[-1] == 2


@pytest.mark.parametrize("dtype", [*SCALARS, RECORD])
@pytest.mark.parametrize("ndim", [0, 1, 2, 3])
def test_an_array_of_every_dtype_and_rank_fits_its_parameters(dtype, ndim: int) -> None:
    array = np.zeros((2, 3, 4)[:ndim], dtype)
    data, program = packed(ignore_one, array)
    assert len(data.data) == program.parameter_bytes == 8 * (5 + 2 * ndim)
    numbers = np.frombuffer(data.data, np.int64)
    assert list(numbers[:4]) == [0, 0, array.size, array.itemsize]
    assert tuple(numbers[5 : 5 + ndim]) == array.shape
    assert tuple(numbers[5 + ndim :]) == array.strides
    assert data.pointers == [32]
    assert data.arrays[0].address == numbers[4] and data.arrays[0].name == "a"


def test_tuples_named_tuples_records_and_enums_are_flattened() -> None:
    values = (np.int8(1), (2.0, np.arange(3)), Point(np.float32(4), np.uint16(5)))
    data, program = packed(ignore_one, values)
    assert len(data.data) == program.parameter_bytes
    assert [label.name for label in data.arrays] == ["a[1][1]"]
    data, program = packed(ignore_three, np.zeros(1, RECORD)[0], Colour.BLUE, ())
    assert len(data.data) == program.parameter_bytes == 16
    assert data.pointers == [0] and data.data[8] == 2


def test_integers_wrap_around_as_in_c() -> None:
    @cuda.jit("void(int8[:], int8)")
    def put(a, x):
        a[0] = x

    a = np.zeros(1, np.int8)
    put[1, 1](a, 300)
    assert a[0] == 44


@cuda.jit
def copy(out, value):
    out[0] = value


@given(
    st.sampled_from([d for d in SCALARS if d not in ("complex64", "complex128")]).flatmap(
        lambda d: st.tuples(st.just(d), st.binary(min_size=8, max_size=8))
    )
)
def test_a_scalar_arrives_bit_for_bit(case: tuple[str, bytes]) -> None:
    dtype, bits = case
    out = np.zeros(1, dtype)
    value = np.frombuffer(bits, np.uint8)[:1] % 2 == 1 if dtype == "bool" else np.frombuffer(bits, dtype)[:1]
    copy[1, 1](out, value[0])
    if np.isnan(value.astype("f8")).any() if value.dtype.kind == "f" else False:
        assert np.isnan(out[0])
    else:
        assert out[0] == value[0]


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_a_complex_number_arrives(dtype: str) -> None:
    out = np.zeros(1, dtype)
    copy[1, 1](out, np.dtype(dtype).type(1.5 - 2.25j))
    assert out[0] == 1.5 - 2.25j


def test_python_numbers_are_typed_as_numba_types_them() -> None:
    for value, dtype in (
        (1, np.int64),
        (2.5, np.float64),
        (True, np.bool_),
        (2**63, np.uint64),
        (1j, np.complex128),
    ):
        out = np.zeros(1, dtype)
        copy[1, 1](out, value)
        assert out[0] == value
    assert len({str(types[1]) for types in copy.overloads}) >= 5


def test_fields_of_records_are_read_and_written() -> None:
    @cuda.jit
    def fill(records, one):
        i = cuda.grid(1)
        records[i].n = i
        records[i]["x"] = one.x + i
        records[i].pair[1] = one.n

    records, one = np.zeros(4, RECORD), np.zeros(1, RECORD)
    one["x"], one["n"] = 0.5, 7
    fill[1, 4](records, one[0])
    assert list(records["n"]) == [0, 1, 2, 3]
    assert list(records["x"]) == [0.5, 1.5, 2.5, 3.5]
    assert (records["pair"][:, 1] == 7).all() and (records["pair"][:, 0] == 0).all()


def test_a_record_argument_is_copied_back() -> None:
    @cuda.jit
    def change(record):
        record.n = 5

    records = np.zeros(3, RECORD)
    change[1, 1](records[1])
    assert list(records["n"]) == [0, 5, 0]


def test_tuples_of_numbers_and_arrays_are_read() -> None:
    @cuda.jit
    def sum_up(out, values, point):
        i = cuda.grid(1)
        out[i] = values[0][i] * values[1] + point.x - point.y

    out = np.zeros(4)
    sum_up[1, 4](out, (np.arange(4.0), 2.0), Point(10.0, 3.0))
    assert list(out) == [7, 9, 11, 13]


LAYOUTS = {
    "C": lambda a: a,
    "F": np.asfortranarray,
    "every other column": lambda a: np.repeat(a, 2, axis=1)[:, ::2],
    "rows backwards": lambda a: a[::-1].copy()[::-1],
    "transposed": lambda a: a.T.copy().T,
    "one row for all": lambda a: np.broadcast_to(a[0], a.shape),
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_host_arrays_of_every_layout_are_read_by_index(name: str) -> None:
    @cuda.jit
    def read(out, a):
        i, j = cuda.grid(2)
        if i < a.shape[0] and j < a.shape[1]:
            out[i, j] = a[i, j]

    source = LAYOUTS[name](np.arange(12.0).reshape(3, 4))
    out = np.zeros((3, 4))
    read[1, (4, 4)](out, source)
    assert (out == source).all()


@pytest.mark.parametrize("name", [name for name in LAYOUTS if name != "one row for all"])
def test_host_arrays_of_every_layout_are_written_back(name: str) -> None:
    @cuda.jit
    def write(a):
        i, j = cuda.grid(2)
        if i < a.shape[0] and j < a.shape[1]:
            a[i, j] = 10 * i + j

    target = LAYOUTS[name](np.zeros((3, 4)))
    write[1, (4, 4)](target)
    assert (target == np.add.outer(10 * np.arange(3), np.arange(4))).all()


def test_an_empty_array_has_no_address() -> None:
    data, program = packed(ignore_one, np.zeros((0, 3)))
    assert len(data.data) == program.parameter_bytes
    assert data.pointers == [] and data.arrays == []
    ignore_one[1, 1](np.zeros(0))


def test_hints_say_which_way_arrays_are_copied() -> None:
    @cuda.jit
    def triple(a, b, c):
        i = cuda.grid(1)
        a[i], b[i], c[i] = 3 * a[i], 3 * i, 3 * c[i]

    a, b, c = np.ones(4), np.ones(4), np.ones(4)
    triple[1, 4](cuda.In(a), cuda.Out(b), cuda.InOut(c))
    assert (a == 1).all() and list(b) == [0, 3, 6, 9] and (c == 3).all()


def test_what_is_only_written_arrives_as_nan_where_no_thread_wrote() -> None:
    out = np.ones(4, np.float32)
    copy[1, 1](cuda.Out(out), np.float32(2))
    assert out[0] == 2 and np.isnan(out[1:]).all()


def test_temporary_device_memory_is_given_back() -> None:
    used = device.current().memory.used
    copy[1, 1](np.zeros(1000), 1.0)
    assert device.current().memory.used == used


def test_tensors_of_torch_on_the_cpu_are_arguments() -> None:
    torch = pytest.importorskip("torch")

    @cuda.jit
    def double(a):
        i = cuda.grid(1)
        if i < a.size:
            a[i] *= 2

    tensor = torch.ones(8)
    double[1, 32](tensor)
    assert tensor.tolist() == [2.0] * 8
    assert cuda.to_device(torch.arange(3)).copy_to_host().tolist() == [0, 1, 2]
