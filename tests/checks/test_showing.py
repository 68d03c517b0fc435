"""Pictures come from the record of the run; what cannot be drawn is said in one line."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
from numba import float32

import gpulab
from gpulab import cuda
from gpulab import cupy as cp
from gpulab.checks import showing
from gpulab.checks.registry import UnknownExercise
from gpulab.checks.showing import CannotShow


@cuda.jit
def double(a, out):
    i = cuda.grid(1)
    if i < a.size:
        out[i] = 2 * a[i]


@cuda.jit
def plain(a, out):
    x, y = cuda.grid(2)
    if x < a.shape[1] and y < a.shape[0]:
        out[x, y] = a[y, x]


@cuda.jit
def two_paths(a, out):
    i = cuda.grid(1)
    if i < a.size:
        if i % 2:
            for _ in range(20):
                out[i] = out[i] * a[i]
        else:
            out[i] = a[i] - 1


def captions(*args: object, **wish: object) -> list[str]:
    return [picture.caption for picture in showing.pictures(*args, **wish)]


def matrices() -> tuple[np.ndarray, np.ndarray]:
    return np.ones((96, 128), np.float32), np.zeros((128, 96), np.float32)


def test_a_report_is_drawn_by_its_costliest_load_and_store() -> None:
    report = gpulab.profile(plain[(4, 3), (32, 32)], *matrices())
    load, store = captions(report)
    assert load.startswith("This load of 'a' in plain moves 4 sectors")
    assert "moves 32 sectors of 32 bytes" in store


def test_a_report_from_a_file_draws_the_same() -> None:
    report = gpulab.profile(plain[(4, 3), (32, 32)], *matrices())
    assert captions(gpulab.profile.Report.from_dict(report.to_dict())) == captions(report)


def test_an_exercise_is_drawn_at_the_largest_size_that_can_be_told_apart() -> None:
    threads, *_ = captions("toy.double", double)
    assert "1025" in threads
    assert "255 threads" in threads  # 5 blocks of 256 for 1,025 elements


def test_accesses_are_drawn_at_the_size_that_is_counted() -> None:
    assert all(
        text.startswith("At 96×128: This") for text in captions("toy.transpose", plain, view="accesses")
    )


@cuda.jit
def idle(a, out):
    pass


def test_an_empty_puzzle_has_no_picture_yet() -> None:
    with pytest.raises(CannotShow, match="write `idle` first"):
        captions("toy.transpose", idle)


def test_a_launch_with_its_arguments_runs_and_is_drawn() -> None:
    a, out = np.ones(64, np.float32), np.zeros(64, np.float32)
    threads, load, store = captions(double[1, 64], a, out)
    assert (out == 2).all()
    assert "every element is touched exactly once" in threads
    assert load.startswith("This load") and store.startswith("This store")


def test_divergence_is_drawn_where_there_is_some() -> None:
    a, out = np.ones(64, np.float32), np.zeros(64, np.float32)
    assert any(
        "lane" in text and "wait" in text for text in captions(gpulab.profile(two_paths[1, 64], a, out))
    )
    assert len(captions(gpulab.profile(double[1, 64], a, out), view="lanes")) == 1


def test_a_view_that_does_not_exist_is_answered_with_the_closest() -> None:
    with pytest.raises(CannotShow, match=r"there is no view 'bank'; did you mean banks\?"):
        captions(gpulab.profile(plain[(4, 3), (32, 32)], *matrices()), view="bank")


def test_a_kernel_without_shared_memory_has_no_banks_to_draw() -> None:
    with pytest.raises(CannotShow, match="this run has nothing to draw for 'banks'"):
        captions(gpulab.profile(plain[(4, 3), (32, 32)], *matrices()), view="banks")


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ((3,), "gpulab.show draws a report, a launch with its arguments, or an exercise .* it got an int"),
        (("toy.double",), "needs your function"),
        (("toy.ceil_div", max), "an exercise that launches kernels"),
        (("toy.double", plain), "The index has 2 numbers, but this is a 1-D array"),
    ],
)
def test_what_cannot_be_drawn_is_said(given: tuple, words: str) -> None:
    with pytest.raises(CannotShow, match=words):
        captions(*given)


def test_an_unknown_exercise_is_named() -> None:
    with pytest.raises(UnknownExercise):
        captions("toy.dubble", double)


def test_in_a_terminal_show_prints_the_captions(capsys: pytest.CaptureFixture[str]) -> None:
    gpulab.show(gpulab.profile(plain[(4, 3), (32, 32)], *matrices()))
    assert capsys.readouterr().out.count("Picture: This") == 2


# ---- one line, and other views


@cuda.jit
def turned(a, out):
    tile = cuda.shared.array((32, 32), float32)
    x, y = cuda.grid(2)
    tile[cuda.threadIdx.y, cuda.threadIdx.x] = a[y, x]
    cuda.syncthreads()
    out[y, x] = tile[cuda.threadIdx.x, cuda.threadIdx.y]


CUDA_C = r"""extern "C" __global__ void gather(const float* a, float* out, int n) {
    __shared__ float tile[64];
    int i = threadIdx.x;
    tile[2 * i] = a[i * n];
    __syncthreads();
    if (i < 12) out[i] = tile[2 * i];
}"""


def line_of(kernel, text: str) -> int:
    lines, first = inspect.getsourcelines(kernel.py_func)
    return next(first + at for at, line in enumerate(lines) if text in line)


def squares() -> tuple[np.ndarray, np.ndarray]:
    return np.ones((64, 64), np.float32), np.zeros((64, 64), np.float32)


def gathered() -> tuple:
    arguments = cp.ones(1024, cp.float32), cp.zeros(32, cp.float32), np.int32(8)
    return cp.RawKernel(CUDA_C, "gather"), (1,), (32,), arguments


def test_a_line_is_drawn_with_every_access_of_it() -> None:
    line = line_of(turned, "out[y, x]")
    store, load = captions(turned[(2, 2), (32, 32)], *squares(), line=line)
    assert store.startswith("This store of 'out' in turned moves 4 sectors")
    assert load.startswith("This load takes 32 wavefronts")


def test_a_line_and_a_view_together() -> None:
    line = line_of(turned, "a[y, x]")
    (banks,) = captions(turned[(2, 2), (32, 32)], *squares(), line=line, view="banks")
    assert banks.startswith("This store takes 1 wavefront")
    report = gpulab.profile(turned[(2, 2), (32, 32)], *squares())
    assert captions(report, line=line, view="banks") == [banks]


def test_who_asks_for_banks_sees_the_load_and_the_store() -> None:
    report = gpulab.profile(turned[(2, 2), (32, 32)], *squares())
    load, store = captions(report, view="banks")
    assert load.startswith("This load takes 32 wavefronts") and store.startswith("This store takes 1")
    assert [said for said in captions(report) if "wavefront" in said] == [load]


def test_a_line_of_cuda_c_is_drawn() -> None:
    load, store = captions(*gathered(), line=4)[-2:]
    assert load.startswith("This load of 'a' in gather moves 32 sectors")
    assert store.startswith("This store takes 2 wavefronts")


def test_the_threads_of_a_line_are_those_that_touch_an_element_there() -> None:
    (a,) = captions(*gathered(), line=4, view="threads")
    assert "on 'a' of 1024" in a and "992 elements (hatched)" in a
    (out,) = captions(*gathered(), line=6, view="threads")
    assert "on 'out' of 32" in out and "20 elements (hatched)" in out


def test_divergence_has_a_lane_for_each_warp() -> None:
    a, out = np.ones(128, np.float32), np.zeros(128, np.float32)
    (text,) = captions(two_paths[1, 128], a, out, view="divergence")
    assert "4 of 4 warps run code with a part of the lanes" in text
    (text,) = captions(double[1, 128], a, out, view="divergence")
    assert "all lanes take part everywhere" in text
    (text,) = captions(two_paths[1, 128], a, out, view="divergence", line=line_of(two_paths, "- 1"))
    assert f"at line {line_of(two_paths, '- 1')}" in text
    (text,) = captions(*gathered(), view="divergence", line=6)
    assert "1 of 1 warp runs code" in text


def test_the_lanes_of_a_line_are_strong() -> None:
    a, out = np.ones(64, np.float32), np.zeros(64, np.float32)
    line = line_of(two_paths, "- 1")
    (text,) = captions(two_paths[1, 64], a, out, view="lanes", line=line)
    assert text.endswith(f"line {line} is strong.")


@pytest.mark.parametrize(
    ("wish", "said"),
    [
        ({"line": 1}, r"line 1 of turned accesses no memory; memory is accessed on lines \d+, \d+$"),
        ({"line": 1, "view": "banks"}, "accesses no shared memory; shared memory is accessed on lines"),
        ({"line": 1, "view": "divergence"}, "is not executed; executed are lines"),
        ({"line": 0}, "line=0 is no line of a source file"),
        ({"line": "12"}, "line='12' is no line"),
        ({"line": True}, "line=True is no line"),
        ({"view": "bank"}, "did you mean banks"),
        ({"view": 3}, "there is no view 3"),
    ],
)
def test_a_wish_that_cannot_be_met_is_answered(wish: dict, said: str) -> None:
    with pytest.raises(CannotShow, match=said) as raised:
        captions(turned[(2, 2), (32, 32)], *squares(), **wish)
    assert "\n" not in str(raised.value)


def test_a_line_without_shared_memory_says_that_no_line_has_any() -> None:
    a, out = np.ones(64, np.float32), np.zeros(64, np.float32)
    line = line_of(double, "out[i]")
    with pytest.raises(CannotShow, match="accesses no shared memory, and no other line does"):
        captions(double[1, 64], a, out, line=line, view="banks")


def test_a_kernel_without_its_shape_is_told_how() -> None:
    with pytest.raises(CannotShow, match=r"gpulab.show\(double\[blocks, threads_per_block\]"):
        captions(double, np.ones(4), np.ones(4))


@pytest.mark.parametrize("view", ["threads", "divergence"])
def test_what_a_report_does_not_hold_is_said(view: str) -> None:
    report = gpulab.profile(plain[(4, 3), (32, 32)], *matrices())
    with pytest.raises(CannotShow, match=f"a report does not hold what '{view}' draws"):
        captions(report, view=view)


def test_pictures_can_be_saved(tmp_path) -> None:
    line = line_of(turned, "out[y, x]")
    gpulab.show(turned[(2, 2), (32, 32)], *squares(), line=line, save=tmp_path / "line.png")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["line-2.png", "line.png"]
    gpulab.show(turned[(2, 2), (32, 32)], *squares(), line=line, save=tmp_path / "line.html")
    assert (tmp_path / "line.html").read_text().count("<img") == 2
    with pytest.raises(CannotShow, match=r"write \.png or \.html"):
        gpulab.show(turned[(2, 2), (32, 32)], *squares(), save="line.gif")
