"""The picture of a failed check, and the stepper that opens at the thread which failed."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import numpy as np
import pytest

import gpulab
from gpulab import cuda
from gpulab.checks import checking, pictures, watching
from gpulab.checks.compare import mismatch
from gpulab.simulator import device
from gpulab.simulator.observe.races import Races
from gpulab.simulator.simt.errors import Outside


@cuda.jit
def one_too_many(a, out):
    i = cuda.grid(1)
    if i < a.size:
        out[i] = 2 * a[i]
        if i == 40:
            out[i] += 1


@cuda.jit
def unguarded(a, out):
    i = cuda.grid(1)
    out[i] = 2 * a[i]


@cuda.jit
def stops_early(a, out):
    i = cuda.grid(1)
    if i < a.size - 3:
        out[i] = 2 * a[i]


@cuda.jit
def looks_left(a, out):
    i = cuda.grid(1)
    if i < a.size:
        out[i] = 2 * a[i]
        if i % 64 == 32:
            out[i] += 0 * out[i - 1]


def checked(kernel):
    return checking.check("toy.double", kernel, attempt=False)


def figures(verdict):
    made = [d.picture() for part in verdict.parts for d in part.details if d.picture is not None]
    return [figure for figure in made if figure is not None]


def test_a_wrong_element_is_shown_with_what_was_expected_and_who_wrote_it():
    (figure,) = figures(checked(one_too_many))
    assert figure.caption.startswith("1 of 256 elements of out are wrong. out[40] is ")
    line = one_too_many.py_func.__code__.co_firstlineno + 6
    assert figure.caption.endswith(f"Thread 40 of block 0 wrote it in line {line}.")
    marked = [mark for mark in figure.record["marks"] if mark["kind"] == "wrong"]
    assert len(marked) == 1
    assert marked[0]["title"] == figure.record["frames"][0]["caption"]


def test_a_race_is_drawn_as_two_threads_with_an_arrow_each_to_one_cell():
    watchers: list[Races] = []

    def watch(launch):
        watchers.append(Races(arrays=launch.arrays, spaces=("shared", "global")))
        return watchers[-1]

    with device.current().observed(watch):
        looks_left[2, 64](np.ones(128, np.float32), np.zeros(128, np.float32))
    race = next(race for race in watchers[0].findings if race.first.line != race.second.line)
    figure = pictures.raced(race)
    assert figure.caption.startswith("Two threads meet at ") and "Nothing orders the two." in figure.caption
    assert f"in line {race.first.line}" in figure.caption and f"in line {race.second.line}" in figure.caption
    assert figure.picture.count("arrow") >= 2


def test_an_element_that_nobody_wrote_says_so_and_offers_nobody_to_watch():
    verdict = checked(stops_early)
    (figure,) = figures(verdict)
    assert "No thread wrote it." in figure.caption
    assert "gpulab.watch" not in str(verdict)
    with pytest.raises(watching.NothingToWatch, match="no thread to watch"):
        gpulab.watch()


def test_an_index_beyond_the_edge_is_drawn_beyond_it():
    verdict = checked(unguarded)
    (figure,) = figures(verdict)
    line = unguarded.py_func.__code__.co_firstlineno + 3
    assert figure.caption.endswith(
        f"Thread 1 of block 4 reads a[1025] in line {line}, but the last element is a[1024]."
    )
    kinds = [mark["kind"] for mark in figure.record["marks"]]
    assert kinds.count("beyond") == 1
    assert "gpulab.watch()` steps through thread 1 of block 4" in str(verdict)


def test_the_stepper_opens_at_the_thread_that_failed():
    checked(unguarded)
    trace = gpulab.watch()
    assert [(thread.block, thread.thread) for thread in trace.threads] == [(4, 1)]
    record = trace.figure().record
    assert record["start"] == len(record["steps"]) - 1
    assert dict(map(tuple, record["source"]))[record["steps"][-1]["line"]].strip() == "out[i] = 2 * a[i]"


def test_a_passed_check_leaves_nobody_to_watch():
    checked(unguarded)

    @cuda.jit
    def right(a, out):
        i = cuda.grid(1)
        if i < a.size:
            out[i] = 2 * a[i]

    assert checked(right).right
    with pytest.raises(watching.NothingToWatch):
        gpulab.watch()


def test_a_verdict_is_kept_without_its_pictures_and_its_offer():
    verdict = checked(one_too_many)
    kept = type(verdict).from_dict(verdict.to_dict())
    assert figures(kept) == []
    assert "gpulab.watch" not in str(kept)
    assert "data-scene" in verdict._repr_mimebundle_()["text/html"]


def test_the_picture_is_an_image_with_alt_text_where_there_is_no_script():
    html = checked(one_too_many)._repr_mimebundle_()["text/html"]
    alt = re.search(r'<img alt="([^"]+)"[^>]* src="data:image/svg', html)
    assert alt
    assert "out[40]" in alt[1]
    (figure,) = figures(checked(one_too_many))
    assert "expected" in " ".join(ElementTree.fromstring(figure.picture).itertext())


@pytest.mark.parametrize("shape", [(5,), (1000,), (3, 4), (200, 300), (2, 3000), (4, 5, 6), (1, 1)])
def test_every_shape_is_drawn_around_its_first_wrong_element(shape):
    expected = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    got = expected.copy()
    first = tuple(n // 2 for n in shape)
    got[first] += 1
    got[tuple(n - 1 for n in shape)] += 1
    found = mismatch("out", got, expected)
    figure = pictures.wrong(found, None)
    assert f"out[{', '.join(map(str, first))}] is" in figure.caption
    assert figure.weight < 120_000
    wrong = [mark for mark in figure.record["marks"] if mark["kind"] == "wrong"]
    assert 1 <= len(wrong) == len(figure.record["frames"]) <= 2


def test_a_number_without_axes_has_no_picture():
    assert pictures.wrong(mismatch("out", np.float32(1), np.float32(2)), None) is None


@pytest.mark.parametrize(
    ("shape", "index", "words"),
    [
        ((128,), (128,), "a[128] in line 7, but the last element is a[127]"),
        ((128,), (5000,), "a[5000] in line 7, but the last element is a[127]"),
        ((128,), (-1,), "a[-1] in line 7, but the first element is a[0]"),
        ((31, 33), (31, 0), "a[31, 0] in line 7, but the last element is a[30, 0]"),
        ((1,), (1,), "a[1] in line 7, but the last element is a[0]"),
    ],
)
def test_an_access_outside_is_told_in_any_direction(shape, index, words):
    figure = pictures.outside(Outside("a", shape, index, "read"), "thread 3 of block 0", 7, "s += a[i]")
    assert words in figure.caption
    assert [m["kind"] for m in figure.record["marks"]].count("beyond") == 1 or index[0] < -1
