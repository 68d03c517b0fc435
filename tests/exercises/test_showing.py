"""Pictures come from the record of the run; what cannot be drawn is said in one line."""

from __future__ import annotations

import numpy as np
import pytest

import gpulab
from gpulab import cuda
from gpulab.exercises import showing
from gpulab.exercises.registry import UnknownExercise
from gpulab.exercises.showing import CannotShow


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


def captions(*args: object, view: str = "") -> list[str]:
    return [picture.caption for picture in showing.pictures(*args, view=view)]


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
