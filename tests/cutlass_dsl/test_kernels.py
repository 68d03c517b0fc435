"""CuTe DSL's own compiler and launcher on the simulated device: arrays, faults, prints, counts."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch

pytest.importorskip("nvidia_cutlass_dsl", reason="CuTe DSL is not installed")

from gpulab import cupy as cp
from gpulab import cutlass, device, machine, profile, sanitize, trace
from gpulab.checks.run import explain
from gpulab.cutlass import cute
from gpulab.cutlass.cute.runtime import from_dlpack
from gpulab.simulator import simt
from gpulab.simulator.compile import CompileError
from gpulab.simulator.device import LaunchError

from . import kernels

N = 1000  # no multiple of a block


def dynamic(array: Any) -> Any:
    return from_dlpack(array).mark_layout_dynamic()


@pytest.fixture(scope="module")
def add() -> Any:
    """Compiled once, for arrays of any size."""
    a = np.zeros(N, np.float32)
    return cute.compile(kernels.add, dynamic(a), dynamic(a), dynamic(a))


@pytest.fixture(scope="module")
def double() -> Any:
    a = np.zeros(N, np.float32)
    return cute.compile(kernels.double_without_guard, dynamic(a), dynamic(a), 1)


@pytest.fixture
def gpus() -> Iterator[Callable[[str], None]]:
    """Simulates other GPUs, and the one before at the end."""
    before = device.current().gpu.name
    yield lambda name: device.simulate(name) and None
    device.simulate(before)


def test_the_face_is_the_real_package_with_all_that_is_in_it() -> None:
    import cutlass as real
    from cutlass.cute.runtime import from_dlpack as real_from_dlpack

    assert cutlass is real
    assert from_dlpack is real_from_dlpack


@pytest.mark.parametrize(
    "made",
    [
        lambda values: values.copy(),
        lambda values: torch.from_numpy(values.copy()),
        lambda values: cp.asarray(values),
        lambda values: from_dlpack(values.copy()).mark_layout_dynamic(),
    ],
    ids=["NumPy", "PyTorch", "gpulab.cupy", "a CuTe tensor"],
)
def test_a_kernel_adds_arrays_of_every_kind(add: Any, made: Callable[..., Any]) -> None:
    values = np.arange(N, dtype=np.float32)
    result = np.zeros(N, np.float32)
    out = made(result)
    add(made(values), made(values), out)
    found = out if not hasattr(out, "_gpulab_array") else out._gpulab_array
    np.testing.assert_array_equal(cp.asnumpy(found) if isinstance(found, cp.ndarray) else found, 2 * values)


def test_a_compiled_function_takes_arrays_of_other_sizes(add: Any) -> None:
    a, c = np.full(300, 3, np.float32), np.zeros(300, np.float32)
    add(a, a, c)
    assert (c == 6).all()


def test_views_of_one_array_stay_views(add: Any) -> None:
    """Read and written through two views, it is copied to the device once."""
    memory = np.arange(2 * N, dtype=np.float32)
    add(memory[:N], memory[:N], memory[N:])
    np.testing.assert_array_equal(memory[N:], 2 * memory[:N])


def test_a_jit_function_compiles_when_it_is_called_first_and_not_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from cutlass._mlir.execution_engine import ExecutionEngine

    made: list[int] = []
    init = ExecutionEngine.__init__
    monkeypatch.setattr(
        ExecutionEngine, "__init__", lambda self, *a, **o: made.append(1) or init(self, *a, **o)
    )
    a, c = np.arange(96, dtype=np.float32), np.zeros(96, np.float32)
    for _ in range(3):
        c[:] = 0
        kernels.add(from_dlpack(a), from_dlpack(a), from_dlpack(c))
        np.testing.assert_array_equal(c, 2 * a)
    assert len(made) == 1


def test_the_ptx_is_what_a_gpu_would_get(add: Any) -> None:
    """Arrays of the host count as arrays on a CUDA device: the compiler knows that they are in global memory."""
    assert ".target sm_80" in add.artifacts.PTX
    assert "gmem" in add.artifacts.PTX


def test_two_gpus_in_one_process_get_a_kernel_each(gpus: Callable[[str], None]) -> None:
    seen: list[tuple[int, int]] = []

    def watch(launch: Any) -> None:
        seen.append(launch.kernel.cc)

    a, c = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    with device.current().observed(watch):
        for name in ("A100", "L4", "A100"):
            gpus(name)
            kernels.reversing(from_dlpack(a), from_dlpack(c))
            np.testing.assert_array_equal(c, a[::-1])
    assert seen == [(8, 0), (8, 9), (8, 0)]


def test_a_fault_names_the_line_of_python_and_the_array(double: Any) -> None:
    a, c = np.zeros(N, np.float32), np.zeros(1024, np.float32)
    with pytest.raises(simt.OutOfBounds) as fault:
        double(a, c, 8)
    says = str(fault.value)
    assert "in kernel double_kernel" in says
    assert re.search(r"\d+ │ c\[i\] = a\[i\] \* 2\.0", says)
    assert "read a[1000]; a has 1000 elements" in says


def test_a_report_has_the_lines_of_python(double: Any) -> None:
    a, c = np.zeros(1024, np.float32), np.zeros(1024, np.float32)
    report = profile(double, a, c, 8)
    assert report["global_load_bytes"] == a.nbytes
    assert "c[i] = a[i] * 2.0" in str(report.lines)


def test_a_kernel_is_stepped_through_line_by_line(add: Any) -> None:
    """The first block is full; the last one has 1000 − 7 · 128 = 104 threads, so 8 lanes of its last warp."""
    a, c = np.ones(N, np.float32), np.zeros(N, np.float32)
    stepped = trace(add, a, a, c, threads=[0, (7, 96)])
    lanes = {step.warp: step.mask for step in stepped.steps if step.text.startswith("c[i] = a[i]")}
    assert lanes == {0: 0xFFFFFFFF, 3: 0xFF}
    assert "compiler of add_kernel does not say" in " ".join(str(stepped).split())
    assert (c == 2).all()


def test_a_time_is_modelled(add: Any) -> None:
    a = cp.zeros(N, np.float32)
    assert 0 < machine.modelled(add, a, a, a).seconds < 1e-3


def test_a_race_is_found() -> None:
    findings = sanitize(kernels.racing, from_dlpack(np.zeros(1, np.float32)))
    assert "c[0] = cutlass.Float32" in str(findings)
    assert "race" in str(findings)
    assert "nothing found" in str(
        sanitize(
            kernels.reversing, from_dlpack(np.zeros(64, np.float32)), from_dlpack(np.zeros(64, np.float32))
        )
    )


def test_a_race_is_cured_with_the_languages_own_barrier() -> None:
    findings = str(sanitize(kernels.racing_in_a_tile, from_dlpack(np.zeros(64, np.float32))))
    assert "cute.arch.sync_threads()" in findings
    assert "cuda.syncthreads" not in findings


def test_a_wide_copy_of_what_may_not_be_aligned_names_the_line_and_the_promise() -> None:
    a, c = np.arange(512, dtype=np.float32), np.zeros(512, np.float32)
    with pytest.raises(CompileError) as error:
        kernels.copying(from_dlpack(a), from_dlpack(c))
    assert "CompileError in copying_kernel, line" in str(error.value)
    assert "cute.copy(move, source, held)" in str(error.value)
    assert "assumed_align=16" in str(error.value)
    kernels.copying(from_dlpack(a, assumed_align=16), from_dlpack(c, assumed_align=16))
    np.testing.assert_array_equal(c, a)


def test_a_wide_copy_of_values_that_lie_apart_says_so() -> None:
    arrays = [from_dlpack(np.zeros(512, np.float32), assumed_align=16) for _ in range(2)]
    with pytest.raises(CompileError, match="do not lie side by side"):
        kernels.copying_what_lies_apart(*arrays)


def test_registers_that_were_not_retiled_are_refused_before_the_compiler_aborts() -> None:
    with pytest.raises(ValueError, match="Registers of an MMA take the shape of a tiled copy by `retile`"):
        kernels.not_retiled(from_dlpack(np.zeros(1, np.float16)))


def test_a_kernel_prints(capsys: pytest.CaptureFixture[str]) -> None:
    kernels.printing(from_dlpack(np.arange(4, dtype=np.float32)))
    assert "element 2 is 2.0" in capsys.readouterr().out


def test_a_learners_mistake_comes_back_in_the_languages_own_words() -> None:
    with pytest.raises(TypeError, match="unsupported operand type") as error:
        kernels.wrong(from_dlpack(np.zeros(2, np.float32)))
    assert "gpulab" not in str(error.value)


@pytest.mark.parametrize(
    ("wrong", "says", "helps"),
    [
        ("half_an_index", r"line \d+\n.*c\[i / 2\]", "// a whole number"),
        ("three_indices", r"line \d+\n.*c\[i\]", r"cute\.arch\.thread_idx\(\)\[0\]"),
        ("pythons_math", r"c\[i\] = math\.sqrt", r"cute\.math has exp, sqrt"),
        ("leaving_early", r"return\n.*\^\^", r"write `if const_expr\(\.\.\.\)`"),
        (
            "syncing_clusters",
            r"kernel, line \d+\n.*cluster_\w+\(\)\nsm_80",
            r"gpulab\.start\(gpu=\"H100\"\)",
        ),
        (
            "launching_what_is_no_kernel",
            r"line \d+\n.*not_a_kernel\(c\)",
            r"Is @cute\.kernel in the line above",
        ),
    ],
)
def test_a_mistake_is_shown_by_its_line_and_a_cure_and_none_of_our_code(
    wrong: str, says: str, helps: str
) -> None:
    with pytest.raises(Exception) as error:
        getattr(kernels, wrong)(from_dlpack(np.zeros(4, np.float32)))
    shown = "\n".join(error.value._render_traceback_())
    assert re.search(says, shown), shown
    assert re.search(helps, shown), shown
    assert "gpulab/" not in shown and "\x1b" not in shown
    (part,) = explain(error.value, getattr(kernels, wrong))
    assert part.text == shown


@pytest.mark.parametrize(
    "array", [np.zeros(2, np.float32), torch.zeros(2), [1.0]], ids=["NumPy", "PyTorch", "list"]
)
def test_an_array_where_a_tensor_is_annotated_leads_to_from_dlpack(array: Any) -> None:
    with pytest.raises(Exception, match="annotation") as error:
        kernels.racing(array)
    shown = "\n".join(error.value._render_traceback_())
    assert "kernels.racing(array)" in shown
    assert "give it from_dlpack(x)" in shown
    assert "gpulab/" not in shown


@pytest.mark.parametrize(
    ("array", "says"),
    [
        (
            np.zeros(64, np.float64),
            "a is Float64 of shape (64); this function was compiled for Float32 of shape (64)",
        ),
        (np.zeros(64, np.int32), "a is Int32 of shape (64)"),
        (torch.zeros(32), "a is Float32 of shape (32)"),
        (cp.zeros((8, 8), np.float32), "a is Float32 of shape (8, 8)"),
    ],
    ids=["wider", "whole", "smaller", "2-D"],
)
def test_a_compiled_function_refuses_arrays_that_it_would_misread(array: Any, says: str) -> None:
    a = from_dlpack(np.zeros(64, np.float32))
    reverse = cute.compile(kernels.reversing, a, a)
    with pytest.raises(LaunchError) as error:
        reverse(array, a)
    assert says in str(error.value)
    assert "from_dlpack(a).mark_layout_dynamic()" in str(error.value)


def test_numbers_that_numpy_has_no_type_for_may_be_given_as_whole_ones() -> None:
    halves = torch.arange(64).bfloat16()
    raw = [from_dlpack(np.zeros(64, np.int16)) for _ in range(2)]
    for tensor in raw:
        tensor.element_type = cutlass.BFloat16
    result = np.zeros(64, np.int16)
    cute.compile(kernels.halving, *raw)(halves.view(torch.int16), result)
    assert torch.equal(torch.from_numpy(result).view(torch.bfloat16), halves / 2)


def test_what_is_no_array_is_refused_in_one_line() -> None:
    with pytest.raises(LaunchError, match="a list is no array that a kernel can take"):
        from_dlpack([1.0, 2.0])


def test_host_code_shows_elements_of_a_host_array(capfd: pytest.CaptureFixture[str]) -> None:
    kernels.show_on_host(from_dlpack(np.array([1.5, 2.5], np.float32)))
    assert "1.500000" in capfd.readouterr().out


def test_host_code_cannot_show_elements_that_are_on_the_device() -> None:
    with pytest.raises(Exception, match="host"):
        kernels.show_on_host(from_dlpack(cp.zeros(2, np.float32)))


def test_clusters_are_refused_where_there_are_none() -> None:
    with pytest.raises(Exception, match=r"(?i)cluster"):
        kernels.clustered(from_dlpack(np.zeros(2, np.float32)))


def test_without_a_clock_a_benchmark_counts(add: Any, capsys: pytest.CaptureFixture[str]) -> None:
    from gpulab.cutlass import testing

    a = np.zeros(N, np.float32)
    assert np.isnan(testing.benchmark(add, kernel_arguments=testing.JitArguments(a, a, a)))
    assert "12,000 bytes of global memory" in capsys.readouterr().out


def test_tuning_takes_what_moves_the_least_memory(double: Any) -> None:
    from gpulab.cutlass import testing

    a = np.zeros(1024, np.float32)
    best = testing.tune(
        lambda a, blocks: lambda: double(a, a, blocks),
        params_dict={"blocks": [8, 2, 4]},
        kernel_arguments=testing.JitArguments(a),
    )
    assert best == {"blocks": 2}


def test_a_pointer_made_of_an_address_leads_to_its_tensor() -> None:
    values = torch.arange(64, dtype=torch.float32)
    result = torch.zeros(64)

    @cute.jit
    def through_pointers(a: cute.Pointer, c: cute.Pointer):
        kernels.reversing_kernel(
            cute.make_tensor(a, cute.make_layout(64)), cute.make_tensor(c, cute.make_layout(64))
        ).launch(grid=(1, 1, 1), block=(64, 1, 1))

    gmem = cute.AddressSpace.gmem
    pointers = [cute.runtime.make_ptr(cutlass.Float32, t.data_ptr(), gmem) for t in (values, result)]
    through_pointers(*pointers)
    assert torch.equal(result, values.flip(0))


@pytest.mark.parametrize(("shape", "box"), [((64, 24), (64, 8)), ((32, 12), (16, 4)), ((20, 10), (16, 8))])
def test_tma_fetches_tiles_by_the_map_that_host_code_writes(
    shape: tuple[int, int], box: tuple[int, int], gpus: Callable[[str], None]
) -> None:
    """The first dimension is contiguous. What lies outside the tensor is 0."""
    gpus("H100")
    source = torch.arange(1.0, 1 + shape[0] * shape[1]).reshape(shape[::-1]).T
    count = -(-shape[1] // box[1])
    result = torch.full((box[0] * box[1], count), -1.0)
    kernels.tiles(from_dlpack(source, assumed_align=16), from_dlpack(result), box)
    padded = torch.zeros(box[0], count * box[1])
    padded[:, : shape[1]] = source[: box[0]]
    for block in range(count):
        expected = padded[:, block * box[1] : (block + 1) * box[1]].T.reshape(-1)
        assert torch.equal(result[:, block], expected)


def test_a_cooperative_launch_that_is_too_large_is_the_languages_own_error() -> None:
    from cutlass.base_dsl.common import DSLCudaRuntimeError

    with pytest.raises(DSLCudaRuntimeError, match="cudaErrorCooperativeLaunchTooLarge"):
        kernels.cooperative(from_dlpack(np.zeros(2, np.float32)), 100_000)
    kernels.cooperative(from_dlpack(np.zeros(2, np.float32)), 2)


def test_dependent_kernels_run_in_order_on_a_stream(gpus: Callable[[str], None]) -> None:
    """`use_pdl` lets a kernel begin before the one before it has ended; here one follows the other."""
    from cuda.bindings import driver

    gpus("H100")
    a, c = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    launches: list[Any] = []
    with device.current().observed(launches.append):
        kernels.adding_one_after_another(from_dlpack(a), from_dlpack(c), 3, driver.CUstream(0))
    np.testing.assert_array_equal(c, 3 * a)
    assert len(launches) == 3
    for half in ("wait", "launch_dependents"):
        assert f"griddepcontrol.{half}" in launches[0].kernel.ptx


def test_a_function_for_tvms_interface_is_called_with_arrays_without_that_library() -> None:
    """Elsewhere ``--enable-tvm-ffi`` needs the library apache-tvm-ffi, so that calls take arrays quickly."""
    from gpulab.cutlass.cute.runtime import make_fake_compact_tensor

    fake = make_fake_compact_tensor(cutlass.Float32, (64,))
    made = cute.compile(kernels.reversing, fake, fake, options="--enable-tvm-ffi")
    a, c = np.arange(64, dtype=np.float32), torch.zeros(64)
    made(a, c)
    np.testing.assert_array_equal(c.numpy(), a[::-1])
    tensor = from_dlpack(a, enable_tvm_ffi=True)
    kernels.reversing(tensor, from_dlpack(c))
    np.testing.assert_array_equal(c.numpy(), a[::-1])


@pytest.mark.parametrize("size", [cute.sym_int32, cute.sym_int64])
@pytest.mark.parametrize("open_", [(0,), (1,), (0, 1)], ids=str)
@pytest.mark.parametrize("order", [(0, 1), (1, 0)], ids=str)
def test_sizes_that_a_fake_tensor_leaves_open_come_with_the_call(
    size: Callable[[], Any], open_: tuple[int, ...], order: tuple[int, int]
) -> None:
    from gpulab.cutlass.cute.runtime import make_fake_compact_tensor

    shape = [size() if axis in open_ else (4, 16)[axis] for axis in (0, 1)]
    fakes = [make_fake_compact_tensor(cutlass.Float32, tuple(shape), stride_order=order) for _ in range(2)]
    double = cute.compile(kernels.doubling_rows, *fakes, options="--enable-tvm-ffi")
    a = np.arange(64, dtype=np.float32).reshape((4, 16), order="C" if order == (1, 0) else "F")
    c = np.zeros_like(a, order="K")
    double(a, from_dlpack(c))
    np.testing.assert_array_equal(c, 2 * a)
    with pytest.raises(LaunchError, match="was compiled for Float32 of shape"):
        double(np.zeros((4, 16, 1), np.float32), c)


def test_cudas_driver_says_that_there_is_one_gpu() -> None:
    from cuda.bindings import driver

    success = driver.CUresult.CUDA_SUCCESS
    assert driver.cuInit(0) == (success,)
    assert driver.cuDeviceGetCount() == (success, 1)


def test_memory_of_cudas_runtime_is_on_the_simulated_device() -> None:
    from cuda.bindings import runtime

    success = runtime.cudaError_t.cudaSuccess
    error, address = runtime.cudaMalloc(256)
    assert error == success
    assert runtime.cudaMemset(address, 0, 256) == (success,)
    zeros = cute.runtime.make_ptr(cutlass.Float32, address, cute.AddressSpace.gmem)
    result = torch.ones(64)

    @cute.jit
    def copied(a: cute.Pointer, c: cute.Tensor):
        kernels.reversing_kernel(cute.make_tensor(a, cute.make_layout(64)), c).launch(
            grid=(1, 1, 1), block=(64, 1, 1)
        )

    copied(zeros, from_dlpack(result))
    assert not result.any()
    with pytest.raises(LaunchError, match="only 256 are allocated"):
        runtime.cudaMemset(address, 0, 257)
    with pytest.raises(LaunchError, match="inside an allocation that begins at"):
        runtime.cudaFree(address + 64)
    assert runtime.cudaFree(address) == (success,)
    with pytest.raises(LaunchError, match="no address of device memory"):
        runtime.cudaFree(address)
