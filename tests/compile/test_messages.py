"""What a learner reads when a kernel does not compile: where, why, and what to do, word for word."""

from __future__ import annotations

import importlib.util
import inspect
import math
import pickle
import random
import subprocess
import sys

import numba
import numpy as np
import pytest
from numba import types

from gpulab import cuda
from gpulab.simulator.compile import CompileError, NumbaFunction, numba_kernel

FLOATS = types.Array(types.float32, 1, "C")
NUMBERS = [1, 2, 3]
threads = cuda.threadIdx
randint = np.random.randint
DRAW = (
    "In a kernel there is cuda.random: make states with create_xoroshiro128p_states(threads, seed), pass them, "
    "and draw with xoroshiro128p_uniform_float32(states, i)."
)


def ordinary(x):
    return x + 1


@cuda.jit(device=True)
def one_argument(x):
    return x


@cuda.jit("int32(int32)", device=True)
def whole(x):
    return x


@cuda.jit(device=True)
def wrong_inside(x):
    return x.missing


def calls_an_ordinary_function(a):
    a[0] = ordinary(a[0])  # here


def uses_an_unknown_name(a):
    a[0] = unknown  # noqa: F821 here


def forgets_cuda(a):
    a[threadIdx.x] = 1  # noqa: F821 here


def misspells_a_name_of_cuda(a):
    cuda.syncthread()  # here


def misspells_a_name_of_math(a):
    a[0] = math.sqr(a[0])  # here


def reads_a_list(a):
    a[0] = NUMBERS[0]  # here


def imports_a_name_of_cuda(a):
    a[threads.x] = 1  # here


def calls_a_builtin(a):
    a[0] = input()  # here


def uses_too_early(a):
    a[0] = y  # noqa: F821 here
    y = 1  # noqa: F841


def adds_whole_arrays(a):
    b = a + a  # here
    a[0] = b[0]


def makes_an_array(a):
    b = np.zeros(3)  # here
    a[0] = b[0]


def indexes_with_a_float(a):
    a[a.shape[0] / 2] = 1  # here


def indexes_with_threadidx(a):
    a[cuda.threadIdx] = 1  # here


def indexes_with_two_numbers(a):
    a[0, 1] = 1  # here


def stores_text(a):
    a[0] = "hello"  # here


def stores_an_array(a):
    a[0] = a  # here


def has_two_types(a):
    x = 0
    if a[0] > 1:
        x = a
    a[0] = x  # here


def returns_something(a):
    return a[0]  # here


def has_a_shape_of_a_variable(a):
    n = a.shape[0]
    s = cuda.shared.array(n, numba.float32)  # here
    s[0] = 1


def has_a_local_shape_of_a_variable(a):
    s = cuda.local.array(cuda.blockDim.x, numba.float32)  # here
    s[0] = 1


def forgets_the_dtype(a):
    s = cuda.shared.array(32)  # here
    s[0] = 1


def misspells_a_dtype(a):
    s = cuda.shared.array(32, "float99")  # here
    s[0] = 1


def unpacks_one_number(a):
    i, j = cuda.grid(1)  # here
    a[i] = j


def asks_for_four_dimensions(a):
    a[cuda.grid(4)] = 1  # here


def asks_for_w(a):
    a[0] = cuda.threadIdx.w  # here


def appends(a):
    a.append(3)  # here


def grows_a_list(a):
    numbers = [1, 2]
    numbers.append(3)  # here
    a[0] = numbers[0]


def makes_a_dict(a):
    d = {}  # here
    d[1] = 2
    a[0] = d[1]


def catches_by_class(a):
    try:
        a[0] = 1
    except ValueError:  # here
        a[0] = 2


def loops_over_an_array_as_range(a):
    for i in range(a):  # here
        a[i] = 1


def prints_an_array(a):
    print(a)  # here


def gives_too_many_arguments(a):
    a[0] = one_argument(a[0], 1)  # here


def gives_an_atomic_too_few(a):
    cuda.atomic.add(a, 1)  # here


def gives_a_wrong_type(a):
    a[0] = whole(1j)  # here


def calls_dot(a):
    a[0] = np.dot(a, a)  # here


def calls_the_method_dot(a):
    a[0] = a.dot(a)  # here


def draws_with_python(a):
    a[0] = random.random()  # here


def draws_with_numpy(a):
    a[0] = np.random.rand()  # here


def draws_with_an_imported_name(a):
    a[0] = randint(6)  # here


def transforms(a):
    a[0] = np.fft.fft(a)[0]  # here


def calls_an_array(a):
    a[0] = a(0)  # here


def prints_an_f_string(a):
    print(f"a[0] = {a[0]}")  # here


def adds_up_a_list(a):
    ring = [0.0] * 4  # here
    a[0] = sum(ring)


def compares_the_function_grid(a):
    i = cuda.grid
    if i < a.size:  # here
        a[0] = 1


def adds_up_a_ring(a):
    ring = [a[0], a[1]]
    a[0] = sum(ring)  # here


def does_not_call_grid(a):
    i = cuda.grid
    a[i] = 1  # here


def asks_a_number_for_any(a):
    if not (a[0] > 0).any():  # here
        a[0] = 1


def compares_with_a_shape(a):
    i = cuda.grid(1)
    if i < a.shape:  # here
        a[i] = 1


def keeps_two_indices_in_one(a):
    i = cuda.grid(2)
    if i < a.size:  # here
        a[i] = 1


def multiplies_three_numbers(a):
    i = cuda.blockIdx * cuda.blockDim  # here
    a[i] = 1


def yields(a):  # here
    yield a[0]


def opens_a_file(a):  # here
    with open("x") as file:
        file.read()


@pytest.mark.parametrize(
    ("fn", "words"),
    [
        (
            calls_an_ordinary_function,
            "`ordinary` is an ordinary Python function, which a GPU cannot call.\n"
            "Put @cuda.jit(device=True) above it.",
        ),
        (uses_an_unknown_name, "The name `unknown` is not defined."),
        (forgets_cuda, "The name `threadIdx` is not defined.\nDid you mean cuda.threadIdx?"),
        (misspells_a_name_of_cuda, "`cuda` has no `syncthread`.\nDid you mean cuda.syncthreads?"),
        (misspells_a_name_of_math, "`math` has no `sqr`.\nDid you mean math.sqrt?"),
        (
            reads_a_list,
            "`NUMBERS` is a list, which does not exist on a GPU.\n"
            "From outside, a kernel can use numbers, tuples of numbers and NumPy arrays (as constants).",
        ),
        (
            imports_a_name_of_cuda,
            "`threads` cannot stand alone in a kernel: numba knows it behind a dot only.\n"
            "Import cuda and write it whole, as in cuda.threadIdx.x or cuda.atomic.add(…).",
        ),
        (calls_a_builtin, "Python's `input` does not exist on a GPU."),
        (uses_too_early, "`y` is used before it has a value."),
        (
            adds_whole_arrays,
            "This makes a whole new array, which a thread of a GPU cannot do.\n"
            "Work on single elements, as in c[i] = a[i] + b[i]; for scratch space there are cuda.local.array "
            "and cuda.shared.array.",
        ),
        (
            makes_an_array,
            "This makes a whole new array, which a thread of a GPU cannot do.\n"
            "Work on single elements, as in c[i] = a[i] + b[i]; for scratch space there are cuda.local.array "
            "and cuda.shared.array.",
        ),
        (
            indexes_with_a_float,
            "An index must be an integer; this one is float64.\n"
            "Divide with // instead of /, or convert with int(…).",
        ),
        (
            indexes_with_threadidx,
            "`cuda.threadIdx`, `cuda.blockIdx`, `cuda.blockDim` and `cuda.gridDim` are three numbers each.\n"
            "Take one of them: .x, .y or .z.",
        ),
        (
            indexes_with_two_numbers,
            "The index has 2 numbers, but this is a 1-D array of float32.\n"
            "One number per dimension: a[i] in one, a[i, j] in two.",
        ),
        (stores_text, "Text cannot be stored in an element of a 1-D array of float32."),
        (
            stores_an_array,
            "A 1-D array of float32 cannot be stored in an element of a 1-D array of float32.\n"
            "A thread works on single elements: is an index missing, as in a[i]?",
        ),
        (
            has_two_types,
            "`x` is the number 0 on one path and a 1-D array of float32 on another.\n"
            "Give it one type on all paths, or use two names.",
        ),
        (
            returns_something,
            "A kernel returns nothing: thousands of threads would.\n"
            "Write the result into an array that is an argument.",
        ),
        (
            has_a_shape_of_a_variable,
            "The shape of cuda.shared.array must be known to the compiler.\n"
            "Write a number, or a name that is set to a number outside the kernel (TILE + 1 needs a name). "
            "For a size chosen at the launch: cuda.shared.array(0, dtype) and "
            "kernel[grid, block, stream, bytes].",
        ),
        (
            has_a_local_shape_of_a_variable,
            "The shape of cuda.local.array must be known to the compiler.\n"
            "Write a number, or a name that is set to a number outside the kernel (TILE + 1 needs a name).",
        ),
        (
            forgets_the_dtype,
            "An array in a kernel needs a dtype.\nWrite for example cuda.shared.array(32, numba.float32).",
        ),
        (misspells_a_dtype, "'float99' is no dtype.\nWrite for example numba.float32 or 'float32'."),
        (
            unpacks_one_number,
            "One number cannot be unpacked into several names.\n"
            "cuda.grid(1) gives one number, cuda.grid(2) two, cuda.grid(3) three.",
        ),
        (asks_for_four_dimensions, "cuda.grid and cuda.gridsize take 1, 2 or 3: the number of dimensions."),
        (asks_for_w, "`w` is not there.\nTake .x, .y or .z."),
        (appends, "In a kernel, a 1-D array of float32 has no `append`."),
        (grows_a_list, "A list cannot grow in a kernel.\nUse cuda.local.array with a fixed size."),
        (makes_a_dict, "A dict cannot be used in a kernel.\nUse arrays."),
        (
            catches_by_class,
            "A kernel cannot tell exceptions apart.\nTest for the bad case with `if` instead.",
        ),
        (
            loops_over_an_array_as_range,
            "`range` does not take a 1-D array of float32 in a kernel.\n"
            "A thread works on single elements: is an index missing, as in a[i]?",
        ),
        (
            prints_an_array,
            "`print` in a kernel cannot show a 1-D array of float32.\nIt shows numbers, booleans and text.",
        ),
        (gives_too_many_arguments, "The function takes (x), but gets 2 arguments."),
        (
            gives_an_atomic_too_few,
            "A function of cuda.atomic gets too few arguments.\n"
            "It takes the array, the index and the value: cuda.atomic.add(a, i, 1).",
        ),
        (
            gives_a_wrong_type,
            "`whole` does not take complex128.\n"
            "Leave out the signature of the device function, or convert the arguments.",
        ),
        (
            calls_dot,
            "`np.dot` works on whole arrays, which a thread of a GPU cannot do.\n"
            "Add up single products in a loop, as in total += a[i] * b[i].",
        ),
        (
            calls_the_method_dot,
            "`dot` works on whole arrays, which a thread of a GPU cannot do.\n"
            "Add up single products in a loop, as in total += a[i] * b[i].",
        ),
        (draws_with_python, f"`random` draws random numbers on the CPU only.\n{DRAW}"),
        (draws_with_numpy, f"`np.random` draws random numbers on the CPU only.\n{DRAW}"),
        (draws_with_an_imported_name, f"`randint` draws random numbers on the CPU only.\n{DRAW}"),
        (transforms, "`fft` has no `fft` in a kernel."),
        (
            calls_an_array,
            "An array is called like a function.\nUse square brackets for an element: a[i], not a(i).",
        ),
        (
            prints_an_f_string,
            "A kernel cannot build a text with an f-string.\n"
            'Give print the values one by one, as in print("i =", i).',
        ),
        (
            adds_up_a_list,
            "`*` is not possible with a list and the number 4.\n"
            "A thread has no list. Scratch space of a fixed size is cuda.local.array(4, numba.float32).",
        ),
        (
            compares_the_function_grid,
            "`<` is not possible with the function grid and int64.\n"
            "cuda.grid is not called here. Write cuda.grid(1), with the number of dimensions.",
        ),
        (
            adds_up_a_ring,
            "This kernel makes a list, which would need memory that grows.\n"
            "A thread has no list. Scratch space of a fixed size is cuda.local.array(4, numba.float32).",
        ),
        (
            does_not_call_grid,
            "The index is the function cuda.grid itself, because it is not called.\n"
            "Write cuda.grid(1), with the number of dimensions in parentheses.",
        ),
        (
            asks_a_number_for_any,
            "`any` is for arrays, but this is a single bool: a thread works on single elements.\n"
            "Test the value itself, as in `if not mask:`.",
        ),
        (
            compares_with_a_shape,
            "`<` is not possible with int64 and a tuple of 1 int64.\n"
            "A shape has one number for each axis: take one, as in a.shape[0].",
        ),
        (
            keeps_two_indices_in_one,
            "`<` is not possible with a tuple of 2 int64 and int64.\n"
            "cuda.grid(2) gives two numbers: write x, y = cuda.grid(2).",
        ),
        (
            multiplies_three_numbers,
            "`*` is not possible with three numbers (x, y, z) and three numbers (x, y, z).\n"
            "Take one of them: .x, .y or .z.",
        ),
        (
            yields,
            "A kernel cannot yield or await.\nWrite the values into an array that is an argument.",
        ),
        (
            opens_a_file,
            "The 'with (context manager) as (variable):' construct is not supported in a kernel.",
        ),
    ],
)
def test_a_compile_error_says_where_why_and_what_to_do(fn, words: str) -> None:
    lines, first = inspect.getsourcelines(fn)
    offset = next(i for i, line in enumerate(lines) if "here" in line)
    with pytest.raises(CompileError) as caught:
        numba_kernel(fn, (FLOATS,))
    assert str(caught.value) == (
        f"CompileError in {fn.__name__}, line {first + offset}\n"
        f"    {first + offset} │ {lines[offset].strip()}\n{words}"
    )


FRESH = """
import numba
from tests.compile.test_messages import FLOATS, CompileError, calls_dot, calls_the_method_dot, numba_kernel

def words():
    for fn in (calls_dot, calls_the_method_dot):
        try:
            numba_kernel(fn, (FLOATS,))
        except CompileError as error:
            yield str(error)

before = list(words())
numba.njit(lambda: 1)()
assert before == list(words()), before
assert len(before) == 2
"""


def test_the_words_do_not_depend_on_whether_numba_compiled_for_the_cpu_before() -> None:
    """numba registers more functions of NumPy when it first compiles for the CPU, and fails in other words."""
    subprocess.run([sys.executable, "-c", FRESH], check=True)


def test_an_error_in_a_device_function_shows_its_line() -> None:
    def kernel(a):
        a[0] = wrong_inside(a[0])

    line = inspect.getsourcelines(wrong_inside.py_func)[1] + 2
    with pytest.raises(CompileError) as caught:
        numba_kernel(kernel, (FLOATS,))
    assert str(caught.value) == (
        f"CompileError in kernel, line {line}\n    {line} │ return x.missing\n"
        "In a kernel, float32 has no `missing`."
    )


def test_an_error_in_another_file_names_the_file(tmp_path) -> None:
    file = tmp_path / "wrong_helpers.py"
    file.write_text("from gpulab import cuda\n\n@cuda.jit(device=True)\ndef bad(x):\n    return x.missing\n")
    spec = importlib.util.spec_from_file_location("wrong_helpers", file)
    helpers = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(helpers)

    def kernel(a):
        a[0] = helpers.bad(a[0])

    with pytest.raises(CompileError, match=r"^CompileError in kernel, line 5 of wrong_helpers.py\n"):
        numba_kernel(kernel, (FLOATS,))


def test_what_no_rule_knows_is_told_in_one_sentence_of_numbas() -> None:
    def kernel(a):
        s = cuda.shared.array(32, numba.float32, alignment=3)
        s[0] = 1

    with pytest.raises(CompileError) as caught:
        numba_kernel(kernel, (FLOATS,))
    assert caught.value.why == "numba cannot compile it (ValueError): Alignment must be a power of 2"


def test_a_read_only_array_cannot_be_written() -> None:
    def kernel(a):
        a[0] = 1

    with pytest.raises(CompileError, match="read-only on the device too"):
        numba_kernel(kernel, (types.Array(types.float32, 1, "C", readonly=True),))


def test_a_gpu_that_the_compiler_does_not_know_is_refused_in_one_line() -> None:
    with pytest.raises(CompileError, match=r"makes no code for compute capability 7\.0, only for 7\.5 … "):
        numba_kernel(appends, (FLOATS,), (7, 0))


def test_a_compile_error_hides_numbas_traceback_and_its_own() -> None:
    with pytest.raises(CompileError) as caught:
        numba_kernel(appends, (FLOATS,))
    error = caught.value
    assert error.__cause__ is None and error.__suppress_context__
    assert error._render_traceback_() == [str(error)]


def test_a_compile_error_survives_pickling() -> None:
    error = CompileError("k", "why", "cure", 3, "a[0] = 1", "/x/helpers.py")
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


def test_a_kernel_that_failed_can_be_tried_again() -> None:
    function = NumbaFunction(appends)
    for _ in range(2):
        with pytest.raises(CompileError):
            function.kernel((FLOATS,))
