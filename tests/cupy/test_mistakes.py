"""What a learner does wrong with kernels, and the whole message for it."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gpulab.frontends import cupy as cp
from gpulab.frontends.cupy.driver import CUDADriverError
from gpulab.simulator.compile import CompileError
from gpulab.simulator.device import LaunchError
from gpulab.simulator.simt import OutOfBounds

SAXPY = r"""
extern "C" __global__ void saxpy(float a, const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i] + y[i];
}"""
WITHOUT_C = SAXPY.replace('extern "C" ', "")
TEMPLATE = "template <typename T> __global__ void fill(T* x) { x[0] = 1; }"
STRUCTURE = r"""
struct Point { float x; int label; };
extern "C" __global__ void kernel(Point p, double scale, unsigned char level, float* y) {
    y[0] = p.x + p.label + scale + level;
}"""
POINT = np.dtype([("x", "f4"), ("label", "i4")])


def saxpy(*args: Any, grid: Any = (1,), block: Any = (128,), **options: Any) -> None:
    cp.RawKernel(SAXPY, "saxpy")(grid, block, args, **options)


def structure(*args: Any) -> None:
    cp.RawKernel(STRUCTURE, "kernel")((1,), (1,), args)


A, X, Y, N = np.float32(2), cp.ones(100, cp.float32), cp.ones(100, cp.float32), 100
DOUBLES = cp.ones(100)

MISTAKES: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "too few arguments": (
        lambda: saxpy(A, X, Y),
        LaunchError,
        "saxpy takes 4 arguments (float a, const float* x, float* y, int n), but was launched with 3: "
        "`int n` missing.",
    ),
    "too many arguments": (
        lambda: saxpy(A, X, Y, N, N),
        LaunchError,
        "saxpy takes 4 arguments (float a, const float* x, float* y, int n), but was launched with 5.",
    ),
    "a Python float for a float": (
        lambda: saxpy(2.0, X, Y, N),
        TypeError,
        "saxpy: argument 1, `float a`, is a float, but got the float 2.0, which is passed as double. "
        "Write cupy.float32(…).",
    ),
    "a Python int for a float": (
        lambda: saxpy(2, X, Y, N),
        TypeError,
        "saxpy: argument 1, `float a`, is a float, but got the int 2, which is passed as long long. "
        "Write cupy.float32(…).",
    ),
    "a float64 for a float": (
        lambda: saxpy(np.float64(2), X, Y, N),
        TypeError,
        "saxpy: argument 1, `float a`, is a float, but got the cupy.float64 2.0. Write cupy.float32(…).",
    ),
    "a float for an int": (
        lambda: saxpy(A, X, Y, 100.0),
        TypeError,
        "saxpy: argument 4, `int n`, is an integer, but got the float 100.0. Write int(…).",
    ),
    "an int that is too large": (
        lambda: saxpy(A, X, Y, 2**33),
        TypeError,
        "saxpy: argument 4, `int n`, has 32 bits, in which 8,589,934,592 has no room. "
        "Use a larger type in the kernel.",
    ),
    "an int that is too narrow": (
        lambda: saxpy(A, X, Y, np.int16(100)),
        TypeError,
        "saxpy: argument 4, `int n`, has 4 bytes, but got the cupy.int16 100 with 2: a GPU would read what "
        "lies behind it. Write int(…) or cupy.int32(…).",
    ),
    "an array of another dtype": (
        lambda: saxpy(A, DOUBLES, Y, N),
        TypeError,
        "saxpy: argument 2, `const float* x`, points to float, which is float32, but got an array of "
        "float64. "
        "Convert it with .astype(cupy.float32), or pass .view(cupy.float32) if the kernel means its bytes.",
    ),
    "a NumPy array": (
        lambda: saxpy(A, X.get(), Y, N),
        TypeError,
        "saxpy: argument 2, `const float* x`, got a NumPy array of shape (100,). Only one of size 1 is "
        "passed, "
        "by value; the kernel reads device memory: pass a device array, cupy.asarray(…).",
    ),
    "a list": (
        lambda: saxpy(A, [1.0], Y, N),
        TypeError,
        "saxpy: argument 2, `const float* x`, got a list; a kernel takes numbers, device arrays and "
        "structures: "
        "copy it to the device with cupy.array(…).",
    ),
    "arguments in another order": (
        lambda: saxpy(A, N, X, Y),
        TypeError,
        "saxpy: argument 2, `const float* x`, is a pointer, but got the number 100, which is no address of "
        "device "
        "memory. Are the arguments in the kernel's order?",
    ),
    "an array for a number": (
        lambda: saxpy(A, X, Y, X),
        TypeError,
        "saxpy: argument 4, `int n`, is passed by value, but got an array.",
    ),
    "a structure of another size": (
        lambda: structure(np.zeros(1, [("x", "f4"), ("label", "i8")]), 1.0, 1, Y),
        TypeError,
        "kernel: argument 1, `Point p`, is a structure of 8 bytes, but got a record of dtype [('x', '<f4'), "
        "('label', '<i8')] of 12 bytes. Pass a NumPy scalar of a dtype with the same fields and padding.",
    ),
    "a number for a structure": (
        lambda: structure(1.0, 1.0, 1, Y),
        TypeError,
        "kernel: argument 1, `Point p`, is a structure of 8 bytes, but got the float 1.0. Pass a NumPy "
        "scalar of a "
        "dtype with the same fields and padding.",
    ),
    "an int for a double": (
        lambda: structure(np.zeros(1, POINT), 1, 1, Y),
        TypeError,
        "kernel: argument 2, `double scale`, is a double, but got the int 1, which is passed as long long. "
        "Write cupy.float64(…).",
    ),
    "one array instead of a tuple": (
        lambda: cp.RawKernel(SAXPY, "saxpy")((1,), (1,), X),
        LaunchError,
        "saxpy: the arguments are of type ndarray, not a tuple; write (x, y, n), or (x,) for a single one.",
    ),
    "a grid that is a number": (
        lambda: saxpy(A, X, Y, N, grid=4),
        LaunchError,
        "saxpy: the grid is 4; CuPy takes a tuple: write (4,).",
    ),
    "a grid that is not whole": (
        lambda: saxpy(A, X, Y, N, grid=(N / 128,)),
        LaunchError,
        "saxpy: the grid (0.78125,) is no whole number; divide with //, as in (n + 255) // 256.",
    ),
    "an empty grid": (
        lambda: saxpy(A, X, Y, N, grid=(0,)),
        LaunchError,
        "saxpy: the grid 0 is empty, so there is nothing to launch; every size must be at least 1.",
    ),
    "a block that is too large": (
        lambda: saxpy(A, X, Y, N, block=(64, 32)),
        LaunchError,
        "saxpy: blocks of 2,048 threads ((64, 32)) are too large; a block has at most 1,024. "
        "Take smaller blocks and more of them.",
    ),
    "more than 48 KB of shared memory without asking": (
        lambda: saxpy(A, X, Y, N, shared_mem=60_000),
        LaunchError,
        "saxpy: 60,000 bytes of dynamic shared memory; a kernel has at most 49,152 unless it asks for "
        "more: set "
        "kernel.max_dynamic_shared_size_bytes = 60000 before the launch.",
    ),
    "more shared memory than there is": (
        lambda: saxpy(A, X, Y, N, shared_mem=200_000),
        LaunchError,
        "saxpy: 200,000 bytes of shared memory per block; the A100 has at most 166,912. Take a smaller tile.",
    ),
    "asking for more shared memory than there is": (
        lambda: setattr(cp.RawKernel(SAXPY, "saxpy"), "max_dynamic_shared_size_bytes", 200_000),
        CUDADriverError,
        "CUDA_ERROR_INVALID_VALUE: saxpy: 200,000 bytes of dynamic shared memory; the A100 has at most "
        "166,912 "
        "for it.",
    ),
    "a misspelt kernel": (
        lambda: cp.RawKernel(SAXPY, "saxpi")((1,), (1,), ()),
        CUDADriverError,
        "CUDA_ERROR_NOT_FOUND: named symbol not found: there is no kernel 'saxpi'; the source has 'saxpy'. "
        "Did you mean 'saxpy'?",
    ),
    'a forgotten extern "C"': (
        lambda: cp.RawKernel(WITHOUT_C, "saxpy")((1,), (1,), ()),
        CUDADriverError,
        "CUDA_ERROR_NOT_FOUND: named symbol not found: the source has a kernel 'saxpy', but C++ gives it "
        "another "
        'name. Did you forget extern "C" before __global__?',
    ),
    "a template without its instance": (
        lambda: cp.RawModule(code=TEMPLATE).get_function("fill<int>"),
        CUDADriverError,
        "CUDA_ERROR_NOT_FOUND: named symbol not found: fill is a template, of which no instance was "
        "compiled as "
        "'fill<int>'. Write cupy.RawModule(code=…, "
        'name_expressions=["fill<int>"]).get_function("fill<int>").',
    ),
    "an instance of a type that is none": (
        lambda: cp.RawModule(code=TEMPLATE, name_expressions=["fill<flot>"]).get_function("fill<flot>"),
        CompileError,
        "CompileError in fill\n"
        'identifier "flot" is undefined\n'
        'Error in parsing name expression for lowered name lookup. Input name expression was: " fill < '
        'flot >"\n'
        "Is it misspelt, or declared further down?",
    ),
    "an array of another dtype than the instance's": (
        lambda: cp.RawModule(code=TEMPLATE, name_expressions=["fill<int>"]).get_function("fill<int>")(
            (1,), (1,), (X,)
        ),
        TypeError,
        "fill<int>: argument 1, `int* x`, points to int, which is int32, but got an array of float32. "
        "Convert it "
        "with .astype(cupy.int32), or pass .view(cupy.int32) if the kernel means its bytes.",
    ),
    "an unknown variable": (
        lambda: cp.RawModule(code="__device__ int counter;" + SAXPY).get_global("count"),
        CUDADriverError,
        "CUDA_ERROR_NOT_FOUND: named symbol not found: there is no variable 'count'; the source has "
        "'counter'. "
        "Did you mean 'counter'?",
    ),
    "an undefined name": (
        lambda: cp.RawKernel(SAXPY.replace("y[i];", "z[i];"), "saxpy").compile(),
        CompileError,
        "CompileError in saxpy, line 4\n"
        "    4 │ if (i < n) y[i] = a * x[i] + z[i];\n"
        'identifier "z" is undefined\n'
        "Is it misspelt, or declared further down?",
    ),
    "a missing semicolon, and what follows from it": (
        lambda: cp.RawKernel(SAXPY.replace("threadIdx.x;", "threadIdx.x"), "saxpy").compile(),
        CompileError,
        "CompileError in saxpy, line 4\n"
        "    4 │ if (i < n) y[i] = a * x[i] + y[i];\n"
        'expected a ";"\n'
        "Is a ; missing at the end of the line before?",
    ),
    "a header of the host": (
        lambda: cp.RawKernel("#include <vector>" + SAXPY, "saxpy").compile(),
        CompileError,
        "CompileError in saxpy, line 1\n"
        "    1 │ #include <vector>\n"
        'cannot open source file "vector"\n'
        "That header is for host code, which NVRTC does not compile: remove the #include and the functions that "
        "use it.",
    ),
    "half floats without their header": (
        lambda: cp.RawKernel('extern "C" __global__ void f(__half* x) {}', "f").compile(),
        CompileError,
        "CompileError in f, line 1\n"
        '    1 │ extern "C" __global__ void f(__half* x) {}\n'
        'identifier "__half" is undefined\n'
        '    1 │ extern "C" __global__ void f(__half* x) {}\n'
        'identifier "x" is undefined\n'
        "Add #include <cuda_fp16.h>.",
    ),
    "a name that CUDA has": (
        lambda: cp.RawKernel('extern "C" __global__ void norm(float* x) {}', "norm").compile(),
        CompileError,
        "CompileError in norm, line 1\n"
        '    1 │ extern "C" __global__ void norm(float* x) {}\n'
        'more than one instance of overloaded function "norm" has "C" linkage\n'
        "A function of CUDA's has this name: call the kernel something else.",
    ),
    "launching as numba does": (
        lambda: cp.RawKernel(SAXPY, "saxpy")[1, 128],
        TypeError,
        "saxpy[…] is numba's way to launch; CuPy's is saxpy((blocks,), (threads,), (x, y, n)). To count, "
        "gpulab.profile(saxpy, (blocks,), (threads,), (x, y, n)).",
    ),
    "options that are no tuple": (
        lambda: cp.RawKernel(SAXPY, "saxpy", options="-O3"),
        TypeError,
        "options must be a tuple of texts, as in ('-DN=4',), not '-O3'.",
    ),
    "an option that NVRTC does not know": (
        lambda: cp.RawKernel(SAXPY, "saxpy", options=("--foo",)).compile(),
        CompileError,
        "CompileError in saxpy\nnvrtc: error: unrecognized option --foo found",
    ),
    "a file that is not there": (
        lambda: cp.RawModule(path="nowhere.ptx").get_function("f"),
        CUDADriverError,
        "CUDA_ERROR_FILE_NOT_FOUND: nowhere.ptx: No such file or directory.",
    ),
    "code and a file": (
        lambda: cp.RawModule(code=SAXPY, path="nowhere.ptx"),
        TypeError,
        "give either code=… or path=…, and not both.",
    ),
    "a grid that waits for itself without a cooperative launch": (
        lambda: cp.RawKernel(
            "#include <cooperative_groups.h>\n"
            'extern "C" __global__ void f() { cooperative_groups::this_grid().sync(); }',
            "f",
        )((2,), (32,), ()),
        LaunchError,
        "f waits for the whole grid (this_grid().sync()), which takes a cooperative launch: "
        "cupy.RawKernel(…, enable_cooperative_groups=True).",
    ),
    "a grid that waits for itself and is too large": (
        lambda: cp.RawKernel(
            "#include <cooperative_groups.h>\n"
            'extern "C" __global__ void f() { cooperative_groups::this_grid().sync(); }',
            "f",
            enable_cooperative_groups=True,
        )((1500, 2), (1024,), ()),
        LaunchError,
        "f waits for the whole grid of 3,000 blocks, but the A100 holds 216 blocks of this size at once. "
        "Launch fewer, and let each do more.",
    ),
}


@pytest.mark.parametrize("what", MISTAKES)
def test_a_mistake_gets_its_message(what: str) -> None:
    do, kind, message = MISTAKES[what]
    with pytest.raises(kind) as caught:
        do()
    assert str(caught.value) == message


def test_an_index_outside_an_array_is_named_as_in_the_kernel() -> None:
    with pytest.raises(OutOfBounds) as caught:
        saxpy(A, X, cp.ones(50, cp.float32), N)
    assert str(caught.value) == (
        "OutOfBounds in kernel saxpy, line 4\n"
        "    4 │ if (i < n) y[i] = a * x[i] + y[i];\n"
        "thread (50, 0, 0) of block (0, 0, 0) read y[50]; y has 50 elements (float32).\n"
        "49 more threads did so.\n"
        "Does a guard keep every index inside the array?"
    )


def test_a_freed_array_is_not_read() -> None:
    write = cp.RawKernel('extern "C" __global__ void f(float* x) { x[threadIdx.x] = 1; }', "f")
    with cp.cuda.using_allocator(cp.cuda.MemoryPool().malloc):
        x = cp.ones(64, cp.float32)
    address = x.data.ptr
    del x
    with pytest.raises(OutOfBounds):  # the pool still has it
        write((1,), (64,), (address,))
    with cp.cuda.using_allocator(None):
        x = cp.ones(64, cp.float32)
    address = x.data.ptr
    del x
    with pytest.raises(TypeError, match="which is no address of device memory"):
        write((1,), (64,), (address,))


def test_the_log_of_the_compiler_is_kept_whole() -> None:
    source = SAXPY.replace("y[i];", "z[i];").replace("int i", "itn i")
    with pytest.raises(CompileError) as caught:
        cp.RawKernel(source, "saxpy").compile()
    error = caught.value
    assert error.get_message() == error.log
    assert "saxpy.cu(3): error" in error.log
    assert "<cuda" not in error.log
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


def test_more_than_three_errors_are_counted() -> None:
    source = (
        'extern "C" __global__ void f(int* x) {\n' + "".join(f"x[{i}] = name{i};\n" for i in range(6)) + "}"
    )
    with pytest.raises(CompileError, match=r"… and 3 more errors\.") as caught:
        cp.RawKernel(source, "f").compile()
    assert [e.line for e in caught.value.errors] == [2, 3, 4, 5, 6, 7]
