"""cuTile's own compiler and launcher on the simulated device: arrays, tiles, errors, prints, counts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch

pytest.importorskip("cuda.tile", reason="cuTile is not installed")

import gpulab
from gpulab import cupy as cp
from gpulab import device, machine, profile, sanitize, trace
from gpulab import tile as ct
from gpulab.checks.run import explain
from gpulab.simulator.compile import cutile

from . import kernels

N, TILE = 1000, 128
BLOCKS = -(-N // TILE)


@pytest.fixture
def gpus() -> Iterator[Callable[[str], None]]:
    """Simulates other GPUs, and the one before at the end."""
    before = device.current().gpu.name
    yield lambda name: device.simulate(name) and None
    device.simulate(before)


def test_the_face_is_the_real_package() -> None:
    import cuda.tile as real

    assert ct is real


@pytest.mark.parametrize(
    "made",
    [
        lambda values: values.copy(),
        lambda values: torch.from_numpy(values.copy()),
        lambda values: torch.from_numpy(values.copy()).bfloat16(),
        lambda values: cp.asarray(values),
    ],
    ids=["NumPy", "PyTorch", "PyTorch in bfloat16", "gpulab.cupy"],
)
def test_a_kernel_adds_arrays_of_every_kind(made: Callable[..., Any]) -> None:
    """The last tile is not full: what is outside the arrays stays as it is."""
    values = np.arange(N, dtype=np.float32) % 100
    out = made(np.zeros(N, np.float32))
    ct.launch(None, (BLOCKS,), kernels.add, (made(values), made(values), out, TILE))
    found = (
        out.float().numpy()
        if hasattr(out, "numpy")
        else cp.asnumpy(out)
        if isinstance(out, cp.ndarray)
        else out
    )
    np.testing.assert_array_equal(found, 2 * values)


def test_views_of_one_array_stay_views() -> None:
    memory = torch.arange(512, dtype=torch.float32)
    ct.launch(0, (2,), kernels.add, (memory[:256], memory[:256], memory[256:], TILE))
    assert torch.equal(memory[256:], 2 * torch.arange(256))


def test_a_kernel_is_compiled_once_for_its_arguments(monkeypatch: pytest.MonkeyPatch) -> None:
    from cuda.tile import _compile

    compiled: list[str] = []
    compile = _compile.compile_cubin
    monkeypatch.setattr(_compile, "compile_cubin", lambda *a, **o: compiled.append(a[0]) or compile(*a, **o))
    a = np.ones((64, 32), np.float32)
    out = np.zeros_like(a)
    for _ in range(3):
        ct.launch(0, (64,), kernels.softmax, (a, out, 32))
    assert len(compiled) == 1
    np.testing.assert_allclose(out, 1 / 32, rtol=1e-6)


def test_a_softmax_is_right() -> None:
    x = np.random.default_rng(1).normal(size=(8, 32)).astype(np.float32)
    y = np.zeros_like(x)
    ct.launch(0, (8,), kernels.softmax, (x, y, 32))
    e = np.exp(x - x.max(1, keepdims=True))
    np.testing.assert_allclose(y, e / e.sum(1, keepdims=True), rtol=1e-5)


def test_a_matrix_product_runs_on_tensor_cores_with_more_than_48_kib_of_static_memory() -> None:
    rng = np.random.default_rng(2)
    a, b = (torch.from_numpy(rng.normal(size=(128, 128))).half() for _ in range(2))
    c = torch.zeros(128, 128)
    report = profile(ct.launch, 0, (2, 2), kernels.matmul, (a, b, c, 64, 64, 32))
    torch.testing.assert_close(c, a.float() @ b.float(), rtol=1e-3, atol=1e-3)
    assert "ct.mma(left, right, total)" in str(report.lines)
    assert report["shared_bytes"] > 48 * 1024


def test_atomics_count() -> None:
    values = np.random.default_rng(3).integers(0, 10, 1024).astype(np.int32)
    counts = np.zeros(10, np.int32)
    ct.launch(0, (8,), kernels.count, (values, counts, TILE))
    np.testing.assert_array_equal(counts, np.bincount(values, minlength=10))


def test_a_kernel_prints_from_every_block(capsys: pytest.CaptureFixture[str]) -> None:
    """Blocks take a lock for it, by exchanging a value until it was free."""
    ct.launch(0, (3,), kernels.printing, (np.arange(12, dtype=np.float32),))
    said = capsys.readouterr().out
    assert sorted(said.split("\n")) == ["", *(f"sum of {i} is {16.0 * i + 6:f}" for i in range(3))]


def test_a_list_of_arrays_is_passed() -> None:
    arrays = [np.full(64, i, np.float32) for i in (1, 2, 3)]
    out = np.zeros(64, np.float32)
    ct.launch(0, (2,), kernels.total, (arrays, out, 32))
    assert (out == 6).all()


def test_two_gpus_in_one_process_get_a_kernel_each(gpus: Callable[[str], None]) -> None:
    seen: list[tuple[int, int]] = []

    def watch(launch: Any) -> None:
        seen.append(launch.kernel.cc)

    a, c = np.arange(256, dtype=np.float32), np.zeros(256, np.float32)
    with device.current().observed(watch):
        for name in ("A100", "L4", "A100"):
            gpus(name)
            ct.launch(0, (2,), kernels.add, (a, a, c, TILE))
            np.testing.assert_array_equal(c, 2 * a)
    assert seen == [(8, 0), (8, 9), (8, 0)]


@pytest.mark.parametrize(("name", "products"), [("H100", "wgmma"), ("B200", "tcgen05")])
def test_newer_gpus_multiply_with_their_own_tensor_cores_and_say_that_the_tma_is_left_out(
    name: str, products: str, gpus: Callable[[str], None], capsys: pytest.CaptureFixture[str]
) -> None:
    cutile._say_without_tma.cache_clear()
    gpus(name)
    rng = np.random.default_rng(2)
    a, b = (torch.from_numpy(rng.normal(size=(128, 128))).half() for _ in range(2))
    c = torch.zeros(128, 128)
    seen: list[str] = []
    with device.current().observed(lambda launch: seen.append(launch.kernel.ptx)):
        for _ in range(2):
            ct.launch(0, (1, 1), kernels.matmul, (a, b, c, 128, 128, 64))
    torch.testing.assert_close(c, a.float() @ b.float(), rtol=1e-3, atol=1e-3)
    assert f"{products}.mma" in seen[0]
    assert "cp.async.bulk.tensor" not in seen[0]
    assert capsys.readouterr().out.count("compiled without the TMA") == 1


def test_two_blocks_of_a_b200_work_on_one_tile(gpus: Callable[[str], None]) -> None:
    """A launch counts tiles, of which each is a cluster; the last tiles of rows and columns are not full."""
    gpus("B200")
    in_pairs = ct.kernel(num_ctas=2)(kernels.matmul._pyfunc)
    rng = np.random.default_rng(4)
    a, b = (torch.from_numpy(rng.normal(size=shape)).half() for shape in ((200, 128), (128, 300)))
    c = torch.zeros(200, 300)
    seen: list[Any] = []
    with device.current().observed(seen.append):
        ct.launch(0, (2, 2), in_pairs, (a, b, c, 128, 256, 64))
    assert seen[0].grid == (4, 2, 1)
    assert "tcgen05.mma.cta_group::2" in seen[0].kernel.ptx
    torch.testing.assert_close(c, a.float() @ b.float(), rtol=1e-3, atol=1e-3)


def test_a_report_has_the_lines_of_python() -> None:
    a, c = cp.ones(1024, np.float32), cp.zeros(1024, np.float32)
    report = profile(ct.launch, 0, (8,), kernels.add, (a, a, c, TILE))
    assert report["global_load_bytes"] == 2 * a.nbytes
    assert "ct.store(c, index=(i,), tile=x + y)" in str(report.lines)


def test_a_kernel_is_stepped_through_line_by_line() -> None:
    a, c = cp.ones(256, np.float32), cp.zeros(256, np.float32)
    stepped = trace(ct.launch, 0, (2,), kernels.add, (a, a, c, TILE))
    assert any(step.text.startswith("ct.store(c, index=(i,)") for step in stepped.steps)
    assert "compiler of add does not say where they are" in " ".join(str(stepped).split())
    assert (c == 2).all()


def test_a_time_is_modelled() -> None:
    a, c = cp.ones(1024, np.float32), cp.zeros(1024, np.float32)
    assert 0 < machine.modelled(ct.launch, 0, (8,), kernels.add, (a, a, c, TILE)).seconds < 1e-3


def test_a_race_of_two_blocks_is_found() -> None:
    values, out = cp.arange(256, dtype=np.float32), cp.zeros(128, np.float32)
    found = str(sanitize(ct.launch, 0, (2,), kernels.all_to_the_first, (values, out, TILE)))
    assert "race" in found and "ct.store(out, index=(0,)" in found
    a, c = cp.ones(256, np.float32), cp.zeros(256, np.float32)
    assert "nothing found" in str(sanitize(ct.launch, 0, (2,), kernels.add, (a, a, c, TILE)))


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((100,), "Dimension #0 of shape (100,) is not a power of two"),
        ((), "Kernel expects 4 arguments but 3 were given"),
        (("tile",), "Could not interpret object of type 'str' as a constant"),
    ],
)
def test_a_learners_mistake_comes_back_in_cutiles_own_words(arguments: tuple[Any, ...], says: str) -> None:
    a = np.zeros(N, np.float32)
    with pytest.raises((TypeError, ct.TileError)) as error:
        ct.launch(0, (BLOCKS,), kernels.add, (a, a, a, *arguments))
    assert says in str(error.value)
    assert error.value.__cause__ is None and error.value.__suppress_context__


@pytest.mark.parametrize(
    ("wrong", "says", "helps"),
    [
        ("stores_a_square", "tensor_view rank and tile rank", "as many axes as its array has"),
        ("uses_numpy", "np.exp(ct.load", "ct.exp, ct.sqrt"),
        ("stores_a_word", 'ct.store(x, index=(0,), tile="word")', "gives no reason"),
        ("asks_a_tile", "if tile > 0:", "ct.where chooses"),
        ("makes_a_list", "tiles = []", "a tuple holds several values"),
    ],
)
def test_a_mistake_is_shown_by_its_line_and_a_cure(wrong: str, says: str, helps: str) -> None:
    with pytest.raises(Exception) as error:
        ct.launch(0, (1,), getattr(kernels, wrong), (np.zeros(16, np.float32),))
    shown = "\n".join(error.value._render_traceback_())
    assert says in shown and helps in shown
    assert "gpulab/" not in shown
    (part,) = explain(error.value, lambda: None)
    assert part.text == shown


def test_a_kernel_in_brackets_is_told_how_cutile_launches() -> None:
    with pytest.raises(device.LaunchError, match=r"ct\.launch\(stream, grid, add, \(arguments,\)\)"):
        kernels.add[(1,)]


@pytest.mark.parametrize(
    ("array", "says"),
    [
        (np.arange(128, dtype=np.float32)[::-1], "a runs backwards through memory"),
        (cp.arange(128, dtype=np.float32)[::-1], "a runs backwards through memory"),
        (np.broadcast_to(np.float32(1), 128), "read-only, as what np.broadcast_to makes"),
        (np.array([None] * 128), "cannot take an array of object"),
        (torch.eye(4).to_sparse(), "cannot take a sparse torch tensor"),
    ],
    ids=["backwards", "backwards on the device", "read-only", "objects", "sparse"],
)
def test_an_array_that_no_kernel_can_take_is_refused_in_one_line(array: Any, says: str) -> None:
    out = np.zeros(128, np.float32)
    with pytest.raises(device.LaunchError) as error:
        ct.launch(0, (1,), kernels.add, (array, out, out, TILE))
    assert says in str(error.value)


def test_arguments_that_are_no_tuple_are_refused_in_one_line() -> None:
    with pytest.raises(device.LaunchError, match="arguments are a tuple, not a list"):
        ct.launch(0, (1,), kernels.add, [])  # type: ignore[arg-type]


def test_an_array_that_is_freed_is_a_fault_in_the_line_that_reads_it() -> None:
    from gpulab.simulator import simt

    with cp.cuda.using_allocator(None):  # a pool would hand the address out again
        a, c = cp.ones(256, np.float32), cp.zeros(256, np.float32)
    device.current().free(device.current().memory.find(a.data.ptr))
    with pytest.raises(simt.OutOfBounds) as fault:
        ct.launch(0, (2,), kernels.add, (a, a, c, TILE))
    assert "x = ct.load(a, index=(i,), shape=(TILE,))" in str(fault.value)


def test_tuning_takes_what_moves_the_least_memory(capsys: pytest.CaptureFixture[str]) -> None:
    from cuda.tile import tune

    a, c = cp.ones(1024, np.float32), cp.zeros(1024, np.float32)
    found = tune.exhaustive_search(
        [8, 2, 4], 0, lambda blocks: (blocks,), kernels.add, lambda _: (a, a, c, TILE)
    )
    assert found.best.config == 2
    assert "has no clock" in capsys.readouterr().out


def test_the_compilers_folder_is_made_once() -> None:
    folder = cutile._toolchain().parent
    before = {file: file.stat().st_ctime_ns for file in folder.iterdir()}
    cutile._toolchain.cache_clear()
    assert cutile._toolchain().parent == folder
    assert {file: file.stat().st_ctime_ns for file in folder.iterdir()} == before


def softmax(x, out):
    """A row for each block; columns beyond the end count as −∞."""
    columns = 1 << (x.shape[1] - 1).bit_length()
    ct.launch(0, (x.shape[0],), kernels.padded_softmax, (x, out, columns))


def test_an_exercise_is_checked_with_its_budgets() -> None:
    verdict = gpulab.check("triton.softmax", softmax)
    assert verdict.passed, str(verdict)
