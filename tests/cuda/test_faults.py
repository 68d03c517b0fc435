"""What a kernel does wrong reaches the learner as a message with line, block, thread, array and index."""

from __future__ import annotations

import inspect
import subprocess
import sys

import numba
import numpy as np
import pytest

from gpulab import cuda
from gpulab.simulator import device, simt


def line_of(kernel, text: str) -> int:
    lines, first = inspect.getsourcelines(kernel.py_func)
    return first + next(i for i, line in enumerate(lines) if text in line)


@cuda.jit
def blur(a, out, radius):
    i = cuda.grid(1)
    if i < out.size:
        s = 0.0
        for k in range(-radius, radius + 1):
            s += a[i + k + radius]
        out[i] = s


def test_an_index_out_of_bounds_names_thread_array_and_index() -> None:
    a, out = np.ones(128, np.float32), np.ones(128, np.float32)
    with pytest.raises(simt.OutOfBounds) as caught:
        blur[4, 32](a, out, 1)
    line = line_of(blur, "s += a")
    assert str(caught.value).splitlines()[:3] == [
        f"OutOfBounds in kernel blur, line {line}",
        f"    {line} │ s += a[i + k + radius]",
        "thread (31, 0, 0) of block (3, 0, 0) read a[128]; a has 128 elements (float32).",
    ]


def test_a_fault_leaves_host_arrays_alone() -> None:
    a, out = np.ones(128, np.float32), np.zeros(128, np.float32)
    with pytest.raises(simt.KernelFault):
        blur[4, 32](a, out, 1)
    assert (out == 0).all()


def test_a_fault_in_a_device_array_uses_the_parameters_name() -> None:
    @cuda.jit
    def write(result, n):
        result[n] = 1

    with pytest.raises(simt.OutOfBounds, match=r"wrote result\[8\]; result has 8 elements \(float64\)"):
        write[1, 1](cuda.device_array(8), 8)


def test_a_divergent_barrier_is_a_fault() -> None:
    @cuda.jit
    def kernel(a):
        if cuda.threadIdx.x < 16:
            cuda.syncthreads()
            a[0] = 1
        else:
            a[1] = 1
            cuda.syncthreads()

    with pytest.raises(simt.DivergentBarrier, match="Divergent barrier in kernel kernel, line "):
        kernel[1, 32](np.zeros(2))


def test_a_kernel_without_end_is_stopped() -> None:
    @cuda.jit
    def kernel(a):
        while a[0] == 0:
            a[1] += 1

    with device.current().using(limit=10_000), pytest.raises(simt.Endless, match="No end in kernel kernel"):
        kernel[1, 1](np.zeros(2))


def test_a_freed_array_is_out_of_bounds() -> None:
    @cuda.jit
    def kernel(a):
        a[0] = 1

    array = cuda.device_array(8)
    device.current().free(array._buffer.allocation)
    with pytest.raises(simt.OutOfBounds):
        kernel[1, 1](array)


def test_a_fault_shows_as_its_text_alone_in_a_notebook() -> None:
    from IPython.core.interactiveshell import InteractiveShell
    from IPython.utils.capture import capture_output

    shell = InteractiveShell.instance(colors="nocolor")
    shell.user_ns.update(blur=blur, a=np.ones(128, np.float32), out=np.ones(128, np.float32))
    with capture_output() as captured:
        shell.run_cell("blur[4, 32](a, out, 1)")
    said = captured.stdout + captured.stderr
    assert said.lstrip().startswith("OutOfBounds in kernel blur")
    assert "Traceback" not in said and "gpulab/" not in said
    InteractiveShell.clear_instance()


SCRIPT = """
import numpy as np
from gpulab import cuda

@cuda.jit
def late(a):
    a[cuda.grid(1)] = 1

late[1, 64](np.zeros(32, np.float32))
"""


def test_a_fault_in_a_script_has_a_short_traceback(tmp_path) -> None:
    file = tmp_path / "script.py"
    file.write_text(SCRIPT)
    done = subprocess.run([sys.executable, file], capture_output=True, text=True, cwd=".", env=None)
    said = done.stderr
    assert done.returncode == 1
    assert "OutOfBounds in kernel late, line 7" in said and "During handling" not in said
    assert len([line for line in said.splitlines() if line.startswith("  File ")]) == 2
    assert f'File "{file}", line 9, in <module>' in said


def test_a_kernel_that_uses_too_much_shared_memory_is_told_before_it_runs() -> None:
    size = 64 * 1024

    @cuda.jit
    def kernel(a):
        s = cuda.shared.array(size, numba.int8)
        s[cuda.threadIdx.x] = 1
        cuda.syncthreads()
        a[0] = s[size - 1 - cuda.threadIdx.x]

    with pytest.raises(
        device.LaunchError, match=r"65,536 bytes of cuda\.shared\.array; a block has at most 49,152"
    ):
        kernel[1, 32](np.zeros(1))
