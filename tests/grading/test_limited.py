"""What may hold something of a submission is worked out in a child that cannot take more than its share."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from grading.core.limited import Ended, Kept, call
from grading.core.sandbox import Limits

LIMITS = Limits(seconds=60)


def doubled(numbers: list[int]) -> dict[str, list[int]]:
    return {"doubled": [2 * n for n in numbers]}


def endless() -> None:
    while True:
        pass


def one_long_call() -> int:
    return len(str(7 ** (10**8)))  # in C, where no exception and no signal's handler would come through


def greedy() -> int:
    return len(bytearray(LIMITS.replay_memory + 1))


def writes(path: str) -> int:
    return Path(path).write_text("x" * 100)


def leaves() -> None:
    os._exit(7)


def no_json() -> object:
    return object()


def test_it_says_what_the_function_gives() -> None:
    assert call(doubled, [1, 2], limits=LIMITS) == {"doubled": [2, 4]}


@pytest.mark.parametrize("function", [endless, one_long_call])
def test_who_does_not_end_is_ended(function: object) -> None:
    with pytest.raises(Ended, match="no result after 3 s"):
        call(function, limits=replace(LIMITS, seconds=3))  # type: ignore[arg-type]


@pytest.mark.parametrize("function", [greedy, leaves, no_json])
def test_who_takes_too_much_or_ends_by_itself_comes_to_no_result(function: object) -> None:
    with pytest.raises(Ended, match="exit status"):
        call(function, limits=LIMITS)  # type: ignore[arg-type]


def test_no_file_grows() -> None:
    with tempfile.NamedTemporaryFile() as file:
        with pytest.raises(Ended):
            call(writes, file.name, limits=LIMITS)
        assert os.path.getsize(file.name) == 0


def _says(text: str) -> str:
    return text


def _raises() -> str:
    raise ValueError


@pytest.mark.parametrize(("bad", "words"), [(one_long_call, "0.3 s of processor"), (_raises, "status 1")])
def test_a_kept_child_that_takes_long_or_raises_is_replaced(bad: Callable[..., str], words: str) -> None:
    child = Kept(0.3)
    for text in ("one", "two"):
        assert child.call(_says, text) == text
        with pytest.raises(Ended, match=words):
            child.call(bad)
    assert child.call(_says, "last") == "last"


def test_a_kept_child_that_somebody_killed_between_two_calls_costs_no_answer() -> None:
    child = Kept(5)
    assert child.call(_says, "one") == "one"
    assert child._child is not None
    child._child.kill()
    child._child.join()
    assert child.call(_says, "two") == "two"


def test_an_answer_that_nobody_waited_for_is_not_the_next_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    child = Kept(5)
    assert child.call(_says, "first") == "first"

    def interrupt(seconds: float) -> bool:
        raise KeyboardInterrupt

    monkeypatch.setattr(child._pipe, "poll", interrupt)
    with pytest.raises(KeyboardInterrupt):
        child.call(_says, "another's")
    assert child.call(_says, "mine") == "mine"
