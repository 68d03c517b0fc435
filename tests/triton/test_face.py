"""Launching, tuning and going wrong with `gpulab.triton`."""

from __future__ import annotations

import linecache

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import triton.language as tl  # noqa: E402

import gpulab  # noqa: E402
from gpulab import cuda, triton  # noqa: E402
from gpulab.simulator.compile import CompileError  # noqa: E402
from gpulab.simulator.device import LaunchError  # noqa: E402
from gpulab.simulator.simt import OutOfBounds  # noqa: E402


@triton.jit
def square(x):
    return x * x


@triton.jit
def squares(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, square(tl.load(x + i, mask=i < n)), mask=i < n)


@triton.jit
def no_mask(x, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + i, i)


@triton.jit
def unknown_name(x, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(x + i, nowhere(i))  # noqa: F821


@triton.jit
def reads_by_index(x, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(x + i, x[i])


@triton.jit
def reads_the_first(x, BLOCK: tl.constexpr):
    tl.store(x + tl.arange(0, BLOCK), x[0])


@triton.jit
def writes_by_index(x, BLOCK: tl.constexpr):
    x[tl.arange(0, BLOCK)] = 1.0


@triton.jit
def step_through(x, out, n, STEP: tl.constexpr, BLOCK: tl.constexpr):
    first = tl.program_id(0) * BLOCK
    for start in range(0, BLOCK, STEP):
        i = first + start + tl.arange(0, STEP)
        tl.store(out + i, tl.load(x + i, mask=i < n), mask=i < n)
        tl.store(out + i, tl.load(x + i, mask=i < n), mask=i < n)


def test_a_kernel_calls_another_and_takes_views_of_one_storage():
    x = torch.arange(20.0)
    squares[(1,)](x[10:], x, 10, BLOCK=16)
    assert torch.equal(x[:10], torch.arange(10.0, 20) ** 2) and torch.equal(x[10:], torch.arange(10.0, 20))


def test_device_arrays_stay_on_the_device():
    x = cuda.to_device(np.arange(8, dtype=np.float32))
    squares[(1,)](x, x, 8, BLOCK=8)
    assert x.copy_to_host().tolist() == [float(i * i) for i in range(8)]


@triton.jit
def at_least_64(x, out, n, BLOCK: tl.constexpr):
    tl.static_assert(BLOCK >= 64)
    at = tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at, mask=at < n), mask=at < n)


def test_the_grid_may_be_a_function_of_the_arguments():
    x, out = torch.ones(100), torch.zeros(100)
    squares[lambda given: (triton.cdiv(given["n"], given["BLOCK"]),)](x, out, 100, BLOCK=32)
    assert out.sum() == 100


def test_autotune_takes_the_configuration_that_moves_least_and_leaves_no_trace():
    tuned = triton.autotune([triton.Config({"BLOCK": 64}), triton.Config({"BLOCK": 1024})], key=["n"])(
        squares
    )
    x, out = torch.randn(90), torch.zeros(90)
    tuned[lambda given: (triton.cdiv(90, given["BLOCK"]),)](x, out, 90)
    assert torch.equal(out, x * x)
    costs = next(iter(tuned.costs.values()))
    assert min(costs.values()) == costs[str(tuned.best_config)] and len(set(costs.values())) == 2


def test_the_learner_is_told_what_autotune_chose_and_why_once_for_each_key(capsys):
    tuned = triton.autotune([triton.Config({"BLOCK": 1024}), triton.Config({"BLOCK": 64})], key=["n"])(
        squares
    )
    x, out = torch.randn(90), torch.zeros(90)
    for _ in range(2):
        tuned[lambda given: (triton.cdiv(90, given["BLOCK"]),)](x, out, 90)
    costs = next(iter(tuned.costs.values()))[str(tuned.best_config)]
    assert capsys.readouterr().out == (
        "autotune of squares: BLOCK = 64, num_warps = 4, num_stages = 3 of 2 configurations, for it moves the "
        f"fewest bytes of global memory ({costs[0]:,}), then takes the fewest instructions ({costs[1]:,}). Both "
        "are counted: a simulated GPU has no clock. `squares.costs` has all.\n"
    )


def test_equal_bytes_are_decided_by_instructions():
    configs = [triton.Config({"STEP": 128, "BLOCK": 256}), triton.Config({"STEP": 256, "BLOCK": 256})]
    tuned = triton.autotune(configs, key=[])(step_through)
    x, out = torch.randn(256), torch.zeros(256)
    tuned[(1,)](x, out, 256)
    (costs,) = tuned.costs.values()
    assert len({moved for moved, _ in costs.values()}) == 1 and len(set(costs.values())) == 2
    assert tuned.best_config is configs[1]


def test_a_report_holds_the_chosen_launch_and_none_of_the_trials():
    configs = [triton.Config({"BLOCK": 64}), triton.Config({"BLOCK": 1024})]
    tuned = triton.autotune(configs, key=["n"])(squares)
    x, out = torch.randn(90), torch.zeros(90)
    report = gpulab.profile(tuned[lambda given: (triton.cdiv(90, given["BLOCK"]),)], x, out, 90)
    assert report["launches"] == 1 and report["blocks"] == 2


def test_a_configuration_that_cannot_be_launched_or_is_pruned_is_out():
    configs = [triton.Config({"BLOCK": 128}, num_warps=64), triton.Config({"BLOCK": 128})]
    x, out = torch.randn(90), torch.zeros(90)
    tuned = triton.autotune(configs, key=["n"])(squares)
    tuned[(1,)](x, out, 90)
    assert tuned.best_config is configs[1]
    demanding = triton.autotune([triton.Config({"BLOCK": size}) for size in (32, 128)], key=["n"])(
        at_least_64
    )
    demanding[(1,)](x, out, 90)
    assert demanding.best_config.kwargs == {"BLOCK": 128}
    prune = {"early_config_prune": lambda configs, named, **_: [c for c in configs if named["n"] == 0]}
    with pytest.raises(LaunchError, match="early_config_prune left none"):
        triton.autotune(configs, key=["n"], prune_configs_by=prune)(squares)[(1,)](x, out, 90)


def test_a_configuration_may_change_the_arguments_before_its_launch_and_is_not_tried_if_it_is_alone():
    seen = []

    def prepare(named):
        seen.append((named["BLOCK"], named["n"]))
        named["x"].fill_(3)

    x, out = torch.randn(90), torch.zeros(90)
    configs = [triton.Config({"BLOCK": 128}, pre_hook=prepare)]
    tuned = triton.autotune(configs, key=["n"])(squares)
    tuned[(1,)](x, out, 90)
    assert seen == [(128, 90)] and not tuned.costs
    assert (out == 9).all()
    configs.append(triton.Config({"BLOCK": 256}, pre_hook=prepare))
    triton.autotune(configs, key=["n"])(squares)[(1,)](x, out, 90)
    assert [block for block, _ in seen[1:3]] == [128, 256] and len(seen) == 4


def test_modules_of_triton_that_nobody_has_imported_are_there():
    with triton.profiler.scope("a name", {"flops": 1}):
        pass
    assert not hasattr(triton, "no_such_module")


def test_what_compares_with_cublas_finds_one_that_runs_on_the_cpu():
    a, b, c = torch.randn(8, 16), torch.randn(4, 16), torch.zeros(8, 4)
    triton._C.libtriton.nvidia.cublas.CublasLt(torch.empty(32)).matmul(a, b, c)
    torch.testing.assert_close(c, a @ b.T)


@pytest.mark.parametrize(("kind", "together"), [("mxfp8", 32), ("nvfp4", 16)])
def test_cublas_multiplies_by_the_scale_of_each_block(kind, together):
    n, k = 256, 256
    generator = torch.Generator().manual_seed(together)
    codes, scales = (torch.randint(0, 256, shape, generator=generator) for shape in ((2, n, k), (2, n, k)))
    values = [0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6]
    if kind == "mxfp8":
        given = (codes % 9 - 4).to(torch.float8_e4m3fn)
        numbers = given.double()
        factors = (scales[:, :, : k // together] % 5 + 125).to(torch.uint8)  # 2 to the power of -2 to 2
        by = 2.0 ** (factors.double() - 127)
    else:
        given = codes[:, :, : k // 2].to(torch.uint8)
        halves = torch.stack([given % 16, given // 16], -1).reshape(2, n, k)
        numbers = torch.tensor(values).double()[halves.long()]
        factors = (scales[:, :, : k // together] % 4 + 1).to(torch.float8_e4m3fn)
        by = factors.double()
    packed = torch.zeros(2, n * (k // together), dtype=factors.dtype)
    for row in range(n):  # as cuBLAS's manual lays out the scales: 512 for 128 rows and 4 blocks
        for block in range(k // together):
            tile = row // 128 * (k // together // 4) + block // 4
            at = tile * 512 + row % 32 * 16 + row % 128 // 32 * 4 + block % 4
            packed[:, at] = factors[:, row, block]
    c = torch.empty(n, n, dtype=torch.float32)
    cublas = triton._C.libtriton.nvidia.cublas.CublasLt(torch.empty(32))
    getattr(cublas, f"block_scaled_matmul_{kind}")(*given, c, *packed)
    left, right = numbers * by.repeat_interleave(together, dim=2)
    assert torch.equal(c.double(), left @ right.T)


def test_heuristics_fill_in_constants():
    sized = triton.heuristics({"BLOCK": lambda given: triton.next_power_of_2(given["n"])})(squares)
    x, out = torch.randn(90), torch.zeros(90)
    sized[(1,)](x, out, 90)
    assert torch.equal(out, x * x)


def test_a_report_counts_a_triton_kernel_with_its_lines():
    x, out = torch.randn(1024), torch.zeros(1024)
    report = gpulab.profile(squares[(4,)], x, out, 1024, BLOCK=256)
    assert report["global_load_bytes"] == 4096 and report["global_load_sectors_per_request"] <= 16
    assert "Triton" in report.compiler and any("square" in line.text for line in report.lines)


@triton.jit
def product(a, b, c, K: tl.constexpr):
    i, j, d = tl.arange(0, 32)[:, None], tl.arange(0, 32)[None, :], tl.arange(0, 32)
    total = tl.zeros((32, 32), tl.float32)
    for start in range(0, K, 32):
        x = tl.load(a + i * K + start + d[None, :])
        total = tl.dot(x, tl.load(b + (start + d[:, None]) * 32 + j), total)
    tl.store(c + i * 32 + j, total)


@pytest.mark.parametrize("stages", [1, 2, 3])
def test_what_a_loop_loads_counts_the_same_whether_it_goes_through_registers_or_past_them(stages):
    """With more than one stage Triton copies from global to shared memory with ``cp.async``."""
    a, b = torch.randn(32, 128).half(), torch.randn(128, 32).half()
    c = torch.empty(32, 32)
    report = gpulab.profile(product[(1,)], a, b, c, K=128, num_stages=stages)
    assert report["global_load_bytes"] == 2 * 2 * 32 * 128
    assert report["global_load_sectors"] == 2 * 2 * 32 * 128 / 32
    torch.testing.assert_close(c, a.float() @ b.float(), rtol=1e-2, atol=1e-2)


@pytest.mark.parametrize(
    "launch, kind, words",
    [
        (
            lambda: no_mask[(1,)](torch.zeros(10), BLOCK=16),
            OutOfBounds,
            "wrote x[10]; x has 10 elements (float32).\n5 more threads did so.\nDoes a mask keep every index inside the array?",
        ),
        (
            lambda: squares[(1,)](torch.zeros(10), torch.zeros(10), 10),
            LaunchError,
            "missing a required argument: 'BLOCK'",
        ),
        (lambda: squares[(1,)](np.zeros(10), np.zeros(10), 10, BLOCK=16), LaunchError, "torch.from_numpy"),
        (lambda: squares[(1,)]([1], [1], 10, BLOCK=16), LaunchError, "x is a list"),
        (lambda: squares[5](torch.zeros(5), torch.zeros(5), 5, BLOCK=16), LaunchError, "squares[(8,)]"),
        (lambda: squares(torch.zeros(5)), LaunchError, "squares[grid]"),
        (lambda: unknown_name[(1,)](torch.zeros(16), BLOCK=16), CompileError, "nowhere is not defined"),
        (lambda: triton.testing.do_bench(lambda: None), LaunchError, "has no clock"),
        (lambda: squares[(0,)](torch.zeros(5), torch.zeros(5), 5, BLOCK=16), LaunchError, "grid"),
        (lambda: squares[(1,)](2**70, torch.zeros(5), 5, BLOCK=16), LaunchError, "fits no 64-bit integer"),
    ],
)
def test_a_mistake_is_answered_in_words(launch, kind, words):
    with pytest.raises(kind) as caught:
        launch()
    assert words in str(caught.value)


@pytest.mark.parametrize("kernel", [reads_by_index, reads_the_first, writes_by_index])
def test_a_pointer_that_is_indexed_is_answered_with_load_and_store(kernel):
    with pytest.raises(CompileError) as caught:
        kernel[(1,)](torch.zeros(16), BLOCK=16)
    words = str(caught.value)
    assert "`x` is a pointer, which has no elements to index. Load with `tl.load(x + i)`" in words
    assert "x[" in words.splitlines()[1]  # the line that does it


CELL = """
@triton.jit
def shifted(x, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(x + i, 0x5EED + i)
"""


@pytest.mark.parametrize("session", ["first", "second"])
def test_a_kernel_that_triton_has_compiled_in_another_notebook_has_the_lines_of_this_one(session):
    file, names = f"/tmp/{session}/cell.py", {"triton": triton, "tl": tl}
    linecache.cache[file] = (len(CELL), None, CELL.splitlines(keepends=True), file)
    exec(compile(CELL, file, "exec"), names)
    report = gpulab.profile(names["shifted"][(1,)], torch.zeros(16), BLOCK=16)
    line = report.lines.costliest("global_sectors")
    assert (line.file, line.text) == (file, "tl.store(x + i, 0x5EED + i)")


def test_what_a_kernel_wrote_before_a_fault_shows():
    x = torch.zeros(10)
    with pytest.raises(OutOfBounds):
        no_mask[(1,)](x, BLOCK=16)
    assert x.sum() == 0  # the faulting store itself did nothing


@triton.jit
def halves(x, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i) >> 1)


def test_a_reinterpreted_tensor_is_the_same_memory_as_another_type():
    x = torch.tensor([-2] * 32, dtype=torch.int32)
    out = torch.empty_like(x)
    halves[(1,)](triton.reinterpret(x, tl.uint32), triton.reinterpret(out, tl.uint32), BLOCK=32)
    assert out.tolist() == [2**31 - 1] * 32  # as int32, half of -2 is -1


def test_a_kernel_made_by_the_class_itself_runs_here_too():
    x = torch.arange(4, dtype=torch.float32)
    out = torch.empty_like(x)
    triton.JITFunction(squares.fn)[(1,)](x, out, 4, BLOCK=4)
    assert out.tolist() == [0, 1, 4, 9]
