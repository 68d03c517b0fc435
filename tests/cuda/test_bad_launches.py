"""Every wrong launch is refused before anything runs, in one line: kernel, numbers, cure."""

from __future__ import annotations

import os
import subprocess
import sys

import numba
import numpy as np
import pytest

from gpulab import cuda
from gpulab.foundation.errors import Message
from gpulab.simulator import device
from gpulab.simulator.compile import CompileError
from gpulab.simulator.device import LaunchError

BIG_TILE = 12 * 1024 + 1  # float32: 4 bytes more than 48 KiB


@cuda.jit
def scale(a, factor):
    i = cuda.grid(1)
    if i < a.size:
        a[i] *= factor


@cuda.jit
def large_static(a):
    s = cuda.shared.array(BIG_TILE, numba.float32)
    i = cuda.threadIdx.x
    s[i] = a[i]
    cuda.syncthreads()
    a[i] = s[BIG_TILE - 1 - i]


@cuda.jit
def dynamic(a):
    s = cuda.shared.array(0, numba.float32)
    i = cuda.threadIdx.x
    s[i] = a[i]
    cuda.syncthreads()
    a[i] = s[31 - i]


@cuda.jit
def hungry(a):
    i = cuda.grid(1)
    kept = cuda.local.array(40, numba.float64)
    for k in range(40):
        kept[k] = a[k + i]
    cuda.syncthreads()
    for k in range(40):
        a[k + i] = kept[39 - k]


@cuda.jit(launch_bounds=64)
def bounded(a):
    a[cuda.grid(1)] = 1


@cuda.jit(device=True)
def half(x):
    return x / 2


@cuda.jit("void(float32[:], int32)")
def typed(a, n):
    if cuda.grid(1) < n:
        a[cuda.grid(1)] = n


ARRAY = np.ones(32, np.float32)


@pytest.mark.parametrize(
    ("launch", "words"),
    [
        (
            lambda: scale[1, 2048](ARRAY, 2.0),
            "scale: blocks of 2,048 threads (2048) are too large; a block has at most 1,024. "
            "Take smaller blocks and more of them.",
        ),
        (
            lambda: scale[1, (32, 33)](ARRAY, 2.0),
            "scale: blocks of 1,056 threads ((32, 33)) are too large; a block has at most 1,024. "
            "Take smaller blocks and more of them.",
        ),
        (
            lambda: scale[1, (1, 1, 65)](ARRAY, 2.0),
            "scale: the block (1, 1, 65) is too large in z: 65, at most 64. "
            "Take smaller blocks and more of them.",
        ),
        (
            lambda: scale[(1, 70000), 32](ARRAY, 2.0),
            "scale: the grid (1, 70000) is too large in y: 70,000, at most 65,535. "
            "Put the longest dimension first (x), or let each thread do more than one item.",
        ),
        (
            lambda: scale[0, 32](ARRAY, 2.0),
            "scale: the grid 0 is empty, so there is nothing to launch; every size must be at least 1.",
        ),
        (
            lambda: scale[(2, 0), 32](ARRAY, 2.0),
            "scale: the grid (2, 0) is empty, so there is nothing to launch; every size must be at least 1.",
        ),
        (
            lambda: scale[1, -32](ARRAY, 2.0),
            "scale: the block -32 is negative; sizes start at 1.",
        ),
        (
            lambda: scale[1000 / 256, 256](ARRAY, 2.0),
            "scale: the grid 3.90625 is no whole number; divide with //, as in (n + 255) // 256.",
        ),
        (
            lambda: scale[1, (16, 16.0)](ARRAY, 2.0),
            "scale: the block (16, 16.0) is no whole number; divide with //, as in (n + 255) // 256.",
        ),
        (
            lambda: scale["4", 256](ARRAY, 2.0),
            "scale: the grid '4' is no whole number but a str.",
        ),
        (
            lambda: scale[True, 256](ARRAY, 2.0),
            "scale: the grid True is no whole number but a bool.",
        ),
        (
            lambda: scale[(1, 1, 1, 1), 256](ARRAY, 2.0),
            "scale: the grid (1, 1, 1, 1) has 4 dimensions; give 1, 2 or 3 whole numbers.",
        ),
        (
            lambda: scale[4],
            "scale[…]: give the grid and the block, as in scale[blocks, threads_per_block]; "
            "a stream and the bytes of shared memory may follow.",
        ),
        (
            lambda: scale(ARRAY, 2.0),
            "scale is a kernel: say how many blocks and threads, as in "
            "scale[blocks, threads_per_block](a, factor).",
        ),
        (
            lambda: scale[1, 32](ARRAY),
            "scale takes 2 (a, factor), but was launched with 1 argument: factor missing.",
        ),
        (
            lambda: scale[1, 32](ARRAY, 2.0, 3),
            "scale takes 2 (a, factor), but was launched with 3 arguments.",
        ),
        (
            lambda: scale[1, 32]([1.0, 2.0], 2.0),
            "scale: argument `a` is a list; a kernel takes numbers, tuples of numbers, and arrays. "
            "Make it an array with np.array(…).",
        ),
        (
            lambda: scale[1, 32](ARRAY, None),
            "scale: argument `factor` is a NoneType; a kernel takes numbers, tuples of numbers, and arrays.",
        ),
        (
            lambda: scale[1, 32](ARRAY, "2"),
            "scale: argument `factor` is a str; a kernel takes numbers, tuples of numbers, and arrays.",
        ),
        (
            lambda: scale[1, 32](np.array([None]), 2),
            "scale: argument `a` is an array of dtype object; a kernel takes numbers, tuples of numbers, "
            "and arrays of them.",
        ),
        (
            lambda: large_static[1, 32](ARRAY),
            "large_static: 49,156 bytes of cuda.shared.array; a block has at most 49,152. Take a smaller "
            "tile, or dynamic shared memory (cuda.shared.array(0, dtype)), of which a block has up to "
            "166,912 on the A100.",
        ),
        (
            lambda: dynamic[1, 32, 0, 200_000](ARRAY),
            "dynamic: 200,000 bytes of shared memory per block; the A100 has at most 166,912. "
            "Take a smaller tile.",
        ),
        (
            lambda: dynamic[1, 32, 0, -4](ARRAY),
            "dynamic: -4 bytes of dynamic shared memory; the size cannot be negative.",
        ),
        (
            lambda: dynamic[1, 32, 0, 1.5](ARRAY),
            "dynamic: the dynamic shared memory is 1.5; give a whole number of bytes.",
        ),
        (
            lambda: bounded[1, 128](ARRAY),
            "bounded: blocks of 128 threads, but launch_bounds promised the compiler at most 64. "
            "Take smaller blocks or a larger bound.",
        ),
        (
            lambda: half[1, 32](ARRAY),
            "half is a device function (device=True): a kernel can call it, but it cannot be launched.",
        ),
        (
            lambda: half(2.0),
            "half is a device function: only a kernel can call it. On the host call half.py_func(…).",
        ),
        (
            lambda: typed[1, 32](np.ones(32), 32),
            "typed is compiled for (float32[:], int32) only, but was launched with (float64[::1], int64). "
            "Convert the arguments, or omit the signature.",
        ),
        (
            lambda: typed[1, 32](ARRAY, 2.5),
            "typed: argument `n` cannot be passed as int32: 2.5 is no whole number.",
        ),
        (
            lambda: scale.forall(-1),
            "scale.forall(-1): the number of tasks cannot be negative.",
        ),
    ],
)
def test_a_wrong_launch_is_one_clear_line(launch, words: str) -> None:
    with pytest.raises(LaunchError) as caught:
        launch()
    assert str(caught.value) == words
    assert "\n" not in words


def test_too_many_registers_for_the_block_are_refused() -> None:
    with pytest.raises(LaunchError) as caught:
        hungry[1, 1024](np.ones(1063, np.float32))
    registers = next(iter(hungry.get_regs_per_thread().values()))
    assert str(caught.value).startswith(
        f"hungry: {registers} registers for each of 1,024 threads make {-(-registers // 8) * 8 * 1024:,} "
        "per block; the A100 has 65,536. "
    )


def test_a_kernel_that_returns_a_value_is_refused_by_its_signature() -> None:
    with pytest.raises(CompileError, match=r"The signature says that the kernel returns int32"):
        cuda.jit("int32(int32)")(lambda x: x)


def test_a_refused_launch_changes_nothing() -> None:
    a = np.ones(32, np.float32)
    used = device.current().memory.used
    with pytest.raises(LaunchError):
        scale[1, 2048](a, 2.0)
    assert (a == 1).all()
    assert device.current().memory.used == used


def test_an_unknown_option_of_the_environment_is_one_line(monkeypatch) -> None:
    monkeypatch.setenv("GPULAB_SIMULATE", "perhaps")
    device.uses_gpu.cache_clear()
    with pytest.raises(LaunchError) as caught:
        device.uses_gpu()
    device.uses_gpu.cache_clear()
    assert str(caught.value) == (
        "GPULAB_SIMULATE is 'perhaps'; set it to 1 (always simulate) or 0 (use a GPU if there is one)."
    )


@pytest.mark.parametrize(
    ("limit", "words"), [("50", "after 50 instructions"), ("many", "GPULAB_LIMIT is 'many'")]
)
def test_a_limit_of_instructions_comes_from_the_environment(limit, words, tmp_path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import numpy as np\nfrom gpulab import cuda\n\n@cuda.jit\ndef count(a):\n    for i in range(100):\n"
        "        a[i] = a[i] * i\n\ncount[1, 1](np.ones(100, 'f4'))\n"
    )
    environment = {**os.environ, "GPULAB_LIMIT": limit}
    ended = subprocess.run([sys.executable, script], capture_output=True, text=True, env=environment)
    assert ended.returncode == 1 and words in ended.stderr


def test_errors_for_learners_show_no_traceback_of_ours() -> None:
    with pytest.raises(LaunchError) as caught:
        scale[1, 2048](ARRAY, 2.0)
    error = caught.value
    assert isinstance(error, Message) and error._render_traceback_() == [str(error)]
    frames = []
    trace = error.__traceback__
    while trace:
        frames.append(trace.tb_frame.f_code.co_filename)
        trace = trace.tb_next
    assert len([file for file in frames if "gpulab/" in file and "tests" not in file]) == 1
    assert error.__cause__ is None and error.__suppress_context__
