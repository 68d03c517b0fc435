"""The stand-in for the driver answers only where gpulab compiles."""

from __future__ import annotations

import threading
from types import ModuleType

import pytest
from numba.cuda import dispatcher

from gpulab.simulator.compile import copy_with
from gpulab.simulator.compile.driverless import compiling_for


def capability() -> tuple[int, int]:
    return dispatcher.get_current_device().compute_capability


@pytest.fixture
def driver(monkeypatch):
    """A driver with a GPU of capability 9.0, as numba-cuda would ask it."""

    class GPU:
        compute_capability = (9, 0)

    monkeypatch.setattr(dispatcher, "get_current_device", lambda: GPU)


def test_the_stand_in_answers_while_it_is_entered_and_the_driver_afterwards(driver) -> None:
    with compiling_for((8, 0)):
        assert capability() == (8, 0)
        with compiling_for((7, 5)):
            assert capability() == (7, 5)
        assert capability() == (8, 0)
    assert capability() == (9, 0)


def test_the_driver_is_asked_again_after_an_error(driver) -> None:
    with pytest.raises(KeyError), compiling_for((8, 0)):
        raise KeyError
    assert capability() == (9, 0)


def test_other_threads_still_see_the_real_gpu(driver) -> None:
    seen = []
    with compiling_for((8, 0)):
        thread = threading.Thread(target=lambda: seen.append(capability()))
        thread.start()
        thread.join()
    assert seen == [(9, 0)]


def test_a_copy_has_its_own_globals_cells_and_modules() -> None:
    inner, outer = ModuleType("inner"), ModuleType("outer")
    inner.value, inner.outer, outer.inner = 1, outer, inner
    unused = ModuleType("unused")

    def make(cell):
        def fn():
            return cell, outer.inner.value, unused

        return fn

    fn = make(1)
    copy = copy_with(fn, lambda value: 2 if value == 1 else value)
    assert copy()[:2] == (2, 2) and copy()[2] is unused
    assert fn()[:2] == (1, 1)
    assert (copy.__name__, copy.__qualname__) == (fn.__name__, fn.__qualname__)


def test_a_copy_keeps_an_empty_cell_empty() -> None:
    def fn():
        return later

    copy = copy_with(fn, lambda value: value)
    with pytest.raises(NameError):
        copy()
    later = 1
    assert fn() == later
