"""What ptxas says of kernels, which compiler there is, and code that is linked in."""

from __future__ import annotations

import math

import numba
import numpy as np
import pytest
from numba import types

from gpulab import cuda
from gpulab.simulator import ptx, simt
from gpulab.simulator.compile import (
    CompileError,
    NumbaFunction,
    Resources,
    compiler_version,
    numba_kernel,
    resources,
    supported_capabilities,
)
from gpulab.simulator.compile.cuda_c import cuda_c_ptx
from gpulab.simulator.compile.kernel import OF_A_TILE
from gpulab.simulator.compile.lines import with_learners_lines
from gpulab.simulator.compile.linking import join

FLOATS = types.Array(types.float32, 1, "C")
HALVES = types.Array(types.float16, 1, "C")


def tile(a):
    s = cuda.shared.array(256, numba.float32)
    t = cuda.threadIdx.x
    s[t] = a[t]
    cuda.syncthreads()
    a[t] = s[255 - t]


def many_values(a):
    scratch = cuda.local.array(64, numba.float32)
    i = cuda.grid(1)
    for k in range(64):
        scratch[(k * i) % 64] = math.sin(a[k])
    total = np.float32(0)
    for k in range(64):
        total += scratch[(k + i) % 64] * scratch[(k * k) % 64]
    a[i] = total


def many_at_once(a):
    kept = cuda.local.array(32, numba.float64)
    for k in range(32):
        kept[k] = a[k]
    cuda.syncthreads()
    for k in range(32):
        a[k] = kept[31 - k]


def test_registers_shared_memory_and_barriers_are_known_without_a_gpu() -> None:
    used = resources(numba_kernel(tile, (FLOATS,)).ptx)
    assert used.shared_bytes == 1024 and used.barriers == 1 and used.local_bytes == used.spill_bytes == 0
    assert 4 <= used.registers <= 40
    assert used.const_bytes >= 7 * 8


def test_shared_memory_is_the_kernels_own_on_gpus_that_reserve_some() -> None:
    assert resources(numba_kernel(tile, (FLOATS,), (9, 0)).ptx, (9, 0)).shared_bytes == 1024


@pytest.mark.parametrize("cc", [(9, 0), (10, 0), (10, 3), (12, 0)])
def test_little_shared_memory_is_the_kernels_own_on_every_newer_gpu(cc) -> None:
    text = ".version 8.8 .target sm_90 .address_size 64 .visible .entry put() { .shared .b8 few[268]; "
    text += ".reg .b32 %r; mov.u32 %r, few; st.shared.b32 [%r], %r; ret; }"
    assert resources(text, cc).shared_bytes == 268


def test_local_arrays_count_as_local_memory() -> None:
    assert resources(numba_kernel(many_values, (FLOATS,)).ptx).local_bytes >= 256


def test_a_limit_on_registers_makes_a_kernel_spill() -> None:
    kernel = numba_kernel(many_at_once, (FLOATS,), max_registers=24)
    free, limited = resources(kernel.ptx), resources(kernel.ptx, max_registers=kernel.max_registers)
    assert limited.registers < free.registers
    assert limited.spill_bytes > free.spill_bytes


def test_resources_are_asked_for_once() -> None:
    text = numba_kernel(tile, (FLOATS,)).ptx
    assert resources(text) is resources(text)
    assert isinstance(resources(text), Resources)


def test_ptx_that_ptxas_refuses_is_an_error_with_its_words() -> None:
    text = numba_kernel(tile, (FLOATS,)).ptx.replace("bar.sync", "bar.sink")
    with pytest.raises(CompileError, match=r"ptxas refuses the PTX: .*Unknown modifier '\.sink'"):
        resources(text)


def test_a_capability_that_the_linker_does_not_know_is_refused() -> None:
    with pytest.raises(CompileError, match=r"makes no code for compute capability 7\.0"):
        resources(numba_kernel(tile, (FLOATS,)).ptx, (7, 0))


def test_two_kernels_in_one_text_must_be_told_apart() -> None:
    text = cuda_c_ptx('extern "C" __global__ void a() {} extern "C" __global__ void b() {}')
    with pytest.raises(ValueError, match=r"say which kernel: the PTX holds 2 \(b, a\)|\(a, b\)"):
        resources(text)
    assert resources(text, entry="a").registers >= 1


def test_the_compilers_version_is_that_in_its_ptx() -> None:
    assert numba_kernel(tile, (FLOATS,)).compiler == compiler_version()
    assert (8, 0) in supported_capabilities() and (9, 0) in supported_capabilities()
    assert supported_capabilities() == tuple(sorted(supported_capabilities()))


# ---- CUDA C++ and PTX that kernels call


def test_cuda_c_compiles_without_a_driver() -> None:
    text = cuda_c_ptx('extern "C" __global__ void fill(float* a) { a[threadIdx.x] = 1.0f; }')
    assert ptx.parse(text).entries == ("fill",)


def test_cuda_c_that_does_not_compile_shows_the_compilers_words() -> None:
    with pytest.raises(CompileError, match=r'broken.cu\(1\): error: identifier "x" is undefined'):
        cuda_c_ptx("__global__ void f() { x = 1; }", name="broken.cu")


def half(a, b):
    i = cuda.grid(1)
    b[i] = a[i] * a[i] + b[i]


def test_float16_arithmetic_is_linked_in_and_lies_on_the_learners_lines() -> None:
    kernel = numba_kernel(half, (HALVES, HALVES))
    module = ptx.parse(kernel.ptx)
    program = simt.load(module, kernel.entry)
    assert {"mul.f16", "add.f16"} <= {i.opcode.removesuffix(".rn.f16") for i in program.instructions} | {
        i.opcode for i in program.instructions
    }
    places = {i.location.file for i in program.instructions if i.location}
    assert places == {__file__}
    assert resources(kernel.ptx).registers > 0


def test_cuda_c_functions_can_be_declared_and_called() -> None:
    source = cuda.CUSource(
        'extern "C" __device__ int cubed(float* result, float x) { *result = x * x * x; return 0; }'
    )
    cubed = cuda.declare_device("cubed", "float32(float32)", link=source)

    def kernel(a):
        i = cuda.grid(1)
        a[i] = cubed(a[i])

    compiled = numba_kernel(kernel, (FLOATS,))
    simt.load(ptx.parse(compiled.ptx), compiled.entry)
    assert ".visible .func" in compiled.ptx and ".extern .func" not in compiled.ptx


def test_machine_code_cannot_be_linked() -> None:
    def kernel(a):
        a[0] = 1

    with pytest.raises(CompileError, match="machine code: the simulator runs CUDA C\\+\\+ and PTX only"):
        NumbaFunction(kernel, link=(cuda.Cubin(b"\x7fELF", name="fast.cubin"),)).kernel((FLOATS,))


def test_joining_drops_the_declaration_of_what_is_defined() -> None:
    header = ".version 9.0\n.target sm_80\n.address_size 64\n"
    caller = header + ".extern .func f\n(\n.param .b32 f_param_0\n)\n;\n.visible .entry k()\n{\nret;\n}\n"
    callee = header + ".visible .func f(\n.param .b32 f_param_0\n)\n{\nret;\n}\n"
    both = join(caller, [callee])
    assert both.count(".version") == 1 and ".extern" not in both
    assert set(ptx.parse(both).functions) == {"k", "f"}


def test_lines_of_numbas_own_files_become_the_line_that_called_them() -> None:
    numbas = cuda.api.__file__
    text = "\n".join(
        [
            "\t.loc\t1 7 1",
            "\t.loc\t2 90 5, function_name $L__info_string0, inlined_at 1 8 3",
            "\t.loc\t2 99 5, function_name $L__info_string1, inlined_at 2 90 5",
            '\t.file\t1 "lab.py"',
            f'\t.file\t2 "{numbas}"',
        ]
    )
    assert with_learners_lines(text).splitlines()[:3] == ["\t.loc\t1 7 1", "\t.loc\t1 8 3", "\t.loc\t1 8 3"]


def test_a_learners_function_that_a_header_calls_does_not_refer_to_the_headers_line() -> None:
    """ptxas refuses a place in ``inlined_at`` that no line before has."""
    text = "\n".join(
        [
            "\t.loc\t1 7 1",
            "\t.loc\t2 90 5, function_name $L__info_string0, inlined_at 1 7 1",
            "\t.loc\t1 3 9, function_name $L__info_string1, inlined_at 2 90 5",
            '\t.file\t1 "lab.cu"',
            f'\t.file\t2 "{cuda.api.__file__}"',
        ]
    )
    assert with_learners_lines(text).splitlines()[:3] == ["\t.loc\t1 7 1", "\t.loc\t1 7 1", "\t.loc\t1 3 9"]


def test_places_that_lead_to_each_other_end_somewhere() -> None:
    """A line of a header is inlined in more than one place, so that its callers may lead around in a circle."""
    numbas = cuda.api.__file__
    text = "\n".join(
        [
            "\t.loc\t2 10 1, function_name $L__info_string0, inlined_at 2 20 1",
            "\t.loc\t2 20 1, function_name $L__info_string0, inlined_at 2 10 1",
            "\t.loc\t2 30 1, function_name $L__info_string0, inlined_at 2 10 1",
            f'\t.file\t2 "{numbas}"',
        ]
    )
    assert all(".loc\t2" in line for line in with_learners_lines(text).splitlines()[:3])


def test_static_memory_beyond_48_kib_is_given_to_cutile_alone() -> None:
    """cuTile tells ptxas to allow it; the linker that all others go through does not."""
    if not has_ptxas():
        pytest.skip("nvidia-cuda-nvcc is not installed")
    body = ".shared .align 4 .b8 big[65536];\n.reg .b32 %r<2>;\nld.shared.u32 %r1, [big+65532];\nst.shared.u32 [big], %r1;\nret;"
    text = f".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k() {{\n{body}\n}}\n"
    with pytest.raises(CompileError, match="too much shared data"):
        resources(text, (8, 0), "k")
    of_cutile = text.replace(
        ".visible .entry", f".visible .global .align 8 .b8 {OF_A_TILE}[64];\n.visible .entry"
    )
    assert resources(of_cutile, (8, 0), "k").shared_bytes == 65536
    with pytest.raises(CompileError, match="ptxas refuses the PTX"):
        resources(of_cutile.replace("ld.shared.u32", "ld.shared.u31"), (8, 0), "k")


def test_cutiles_large_shared_memory_goes_with_instructions_that_only_one_gpu_has() -> None:
    """``sm_90a``, not ``sm_90``: ptxas takes no PTX for the first as the second."""
    if not has_ptxas():
        pytest.skip("nvidia-cuda-nvcc is not installed")
    body = ".shared .align 4 .b8 big[65536];\n.reg .b32 %r<2>;\nld.shared.u32 %r1, [big+65532];\nst.shared.u32 [big], %r1;\nwgmma.fence.sync.aligned;\nret;"
    text = (
        ".version 8.0\n.target sm_90a\n.address_size 64\n"
        f".visible .global .align 8 .b8 {OF_A_TILE}[64];\n.visible .entry k() {{\n{body}\n}}\n"
    )
    assert resources(text, (9, 0), "k").shared_bytes == 65536


def has_ptxas() -> bool:
    from gpulab.simulator.compile.extended import _ptxas

    return _ptxas() is not None
