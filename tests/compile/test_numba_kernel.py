"""Learners' functions become PTX on a machine without a driver, however they name what they use."""

from __future__ import annotations

import importlib.util
import linecache
import math
import re
import types as python_types

import numba
import numpy as np
import pytest
from numba import types

import gpulab
from gpulab.cuda import grid, syncthreads
from gpulab.simulator import ptx
from gpulab.simulator.compile import CompiledKernel, NumbaFunction, numba_kernel

from gpulab import cuda  # isort: skip

FLOATS = types.Array(types.float32, 1, "C")
FACTOR = 3.0
TABLE = np.arange(8, dtype=np.float32)
TILE = 32
PADDED = TILE + 1


@cuda.jit(device=True)
def twice(x):
    return x + x


@cuda.jit(device=True, inline="always")
def four_times(x):
    return twice(twice(x))


increment = cuda.jit(device=True)(lambda x: x + 1)


def body(kernel: CompiledKernel) -> str:
    """The opcodes of the kernel's PTX."""
    return "\n".join(
        i.opcode for b in ptx.parse(kernel.ptx).functions[kernel.entry].blocks for i in b.instructions
    )


def test_a_compiled_kernel_names_itself_its_entry_and_its_compiler() -> None:
    def scale(a):
        a[cuda.grid(1)] *= 2

    kernel = numba_kernel(scale, (FLOATS,))
    assert kernel.name == "scale"
    assert ptx.parse(kernel.ptx).entries == (kernel.entry,)
    assert re.fullmatch(r"NVVM \d+\.\d+", kernel.compiler)
    assert kernel.cc == (8, 0) and ".target sm_80" in kernel.ptx
    assert kernel.ptx not in repr(kernel)


def test_the_source_lines_are_those_of_the_function() -> None:
    def scale(a):
        i = cuda.grid(1)
        a[i] *= 2

    first = scale.__code__.co_firstlineno
    module = ptx.parse(numba_kernel(scale, (FLOATS,)).ptx)
    places = {
        i.location for f in module.functions.values() for b in f.blocks for i in b.instructions if i.location
    }
    assert {place.file for place in places} == {__file__}
    assert {place.line for place in places} <= {first, first + 1, first + 2}
    assert first + 2 in {place.line for place in places}


def whole_module(a):
    a[gpulab.cuda.grid(1)] = 1


def face_as_cuda(a):
    a[cuda.grid(1)] = cuda.warpsize


def names_from_the_face(a):
    s = cuda.shared.array(32, numba.float32)
    s[cuda.threadIdx.x] = a[grid(1)]
    syncthreads()
    cuda.atomic.add(a, 0, s[0])


def globals_are_constants(a):
    a[cuda.grid(1)] = FACTOR * TABLE[cuda.threadIdx.x]


def calls_device_functions(a):
    i = cuda.grid(1)
    a[i] = four_times(increment(a[i]))


def has_a_function_inside(a):
    def square(x):
        return x * x

    i = cuda.grid(1)
    a[i] = square(a[i]) + sum_of(a)


@cuda.jit(device=True)
def sum_of(a):
    total = 0.0
    for i in range(a.shape[0]):
        total += a[i]
    return total


def uses_constant_memory(a):
    table = cuda.const.array_like(TABLE)
    a[cuda.grid(1)] = table[cuda.threadIdx.x]


def uses_local_memory(a):
    scratch = cuda.local.array(4, numba.float64)
    for k in range(4):
        scratch[k] = k
    a[cuda.grid(1)] = scratch[cuda.threadIdx.x % 4]


def uses_dynamic_shared_memory(a):
    s = cuda.shared.array(0, numba.float32)
    s[cuda.threadIdx.x] = a[cuda.grid(1)]


def uses_a_global_size(a):
    s = cuda.shared.array((TILE, PADDED), "float32")
    s[cuda.threadIdx.y, cuda.threadIdx.x] = a[0]
    cuda.syncthreads()
    a[0] = s[0, 0]


def prints(a):
    print("thread", cuda.grid(1), "holds", a[cuda.grid(1)])


def uses_math(a):
    i = cuda.grid(1)
    a[i] = math.sqrt(a[i]) + math.exp(a[i])


@pytest.mark.parametrize(
    ("fn", "opcode"),
    [
        (whole_module, "st.global"),
        (face_as_cuda, "st.global"),
        (names_from_the_face, "bar.sync"),
        (globals_are_constants, "mul"),
        (calls_device_functions, "add"),
        (has_a_function_inside, "bra"),
        (uses_constant_memory, "ld.const"),
        (uses_local_memory, "local"),
        (uses_dynamic_shared_memory, "st.shared"),
        (uses_a_global_size, "shared"),
        (prints, "call"),
        (uses_math, "sqrt"),
    ],
)
def test_a_kernel_compiles_however_it_names_things(fn: python_types.FunctionType, opcode: str) -> None:
    assert opcode in body(numba_kernel(fn, (FLOATS,)))


def test_closure_cells_are_constants_and_hold_device_functions() -> None:
    def make(factor, function):
        def kernel(a):
            i = cuda.grid(1)
            a[i] = factor * function(a[i])

        return kernel

    small, large = numba_kernel(make(2.0, twice), (FLOATS,)), numba_kernel(make(7.0, increment), (FLOATS,))
    assert "0d4000000000000000" in small.ptx.lower() or "add" in body(small)
    assert body(small) != body(large)


def test_a_tuple_of_device_functions_can_be_a_global() -> None:
    pair = (twice, increment)

    def kernel(a):
        i = cuda.grid(1)
        a[i] = pair[0](a[i]) * pair[1](a[i])

    assert "mul" in body(numba_kernel(kernel, (FLOATS,)))


HELPERS = """
import numba
from gpulab import cuda
from gpulab.cuda import grid

SCALE = 5.0

@cuda.jit(device=True)
def place():
    return grid(1)

@cuda.jit(device=True)
def scaled(x):
    return SCALE * x * (cuda.threadIdx.x + 1)
"""


def test_device_functions_may_live_in_a_helper_module(tmp_path) -> None:
    file = tmp_path / "helpers_of_a_lab.py"
    file.write_text(HELPERS)
    spec = importlib.util.spec_from_file_location("helpers_of_a_lab", file)
    helpers = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(helpers)

    def kernel(a):
        a[helpers.place()] = helpers.scaled(a[0])

    def through_its_face(a):
        a[helpers.cuda.grid(1)] = helpers.SCALE

    assert "mul" in body(numba_kernel(kernel, (FLOATS,)))
    assert "st.global" in body(numba_kernel(through_its_face, (FLOATS,)))


def test_a_function_of_a_notebook_cell_keeps_its_cell_as_file() -> None:
    cell = "/tmp/ipykernel_1/2745.py"
    source = "def scale(a):\n    a[cuda.grid(1)] *= 2\n"
    linecache.cache[cell] = (len(source), None, source.splitlines(True), cell)
    scope: dict = {"cuda": cuda, "__name__": "__main__"}
    exec(compile(source, cell, "exec"), scope)
    kernel = numba_kernel(scope["scale"], (FLOATS,))
    assert ptx.parse(kernel.ptx).files[1] == cell


def test_the_learners_function_is_left_as_it_was() -> None:
    before = dict(names_from_the_face.__globals__)
    numba_kernel(names_from_the_face, (FLOATS,))
    assert all(names_from_the_face.__globals__[name] is value for name, value in before.items())


def test_a_kernel_is_compiled_once_per_types_and_capability() -> None:
    function = NumbaFunction(face_as_cuda)
    first = function.kernel((FLOATS,))
    assert function.kernel((FLOATS,)) is first
    assert function.kernel((FLOATS,), (9, 0)).cc == (9, 0)
    assert function.kernel((types.Array(types.int64, 1, "C"),)).entry != first.entry


def test_options_reach_the_compiler() -> None:
    def divide(a):
        i = cuda.grid(1)
        a[i] = a[i] / np.float32(3) + math.sin(a[i])

    exact, fast = numba_kernel(divide, (FLOATS,)), numba_kernel(divide, (FLOATS,), fastmath=True)
    assert "sin.approx" in body(fast) and "sin.approx" not in body(exact)
    assert ".maxntid 128" in numba_kernel(divide, (FLOATS,), launch_bounds=128).ptx.replace(", 1, 1", "")
    assert numba_kernel(divide, (FLOATS,), max_registers=32).max_registers == 32


def test_a_device_function_with_a_signature_converts_its_arguments() -> None:
    @cuda.jit("int32(int32)", device=True)
    def whole(x):
        return x

    def kernel(a):
        a[0] = whole(a[0])

    assert "cvt" in body(numba_kernel(kernel, (FLOATS,)))


def test_all_kinds_of_arguments_compile() -> None:
    record = numba.from_dtype(np.dtype([("x", "f4"), ("n", "i2")], align=True))

    def kernel(a, b, c, d, pair, r, flag):
        if flag:
            a[0, 0] = b[0] + c.real + d + pair[0] + r.x

    kinds = (
        types.Array(types.float64, 2, "F"),
        types.Array(types.int8, 1, "A"),
        types.complex64,
        types.uint16,
        types.UniTuple(types.float32, 2),
        record,
        types.boolean,
    )
    assert numba_kernel(kernel, kinds).name == "kernel"


def test_a_kernel_that_is_a_docstring_only_compiles() -> None:
    def kernel(a):
        """To be written."""

    assert ".entry" in numba_kernel(kernel, (types.float32[:],)).ptx
