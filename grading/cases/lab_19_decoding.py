"""The judge's own cases for lab 19, part B. A budget that names no case is taken from the last one."""

from __future__ import annotations

from gpulab.checks.cases import of_kinds
from gpulab.checks.spec import Case
from gpulab.content.lab_19_llm_inference.decoding import _request, _round


def _others(*names: str) -> tuple[Case, ...]:
    return of_kinds(*names, suffix=", others")


CASES: dict[str, tuple[Case, ...]] = {
    "decode.generate": (
        _request(4, 5),
        _request(1, 3),
        _request(9, 7, 4),
        _request(3, 2, 0),
        _request(2, 0),
        _request(5, 1),
        _request(40, 56),
    ),
    "decode.sample": _others("temperature", "top-k", "top-p", "all together", "greedy", "ties", "large"),
    "decode.speculate": (
        _round("alike", 2),
        _round("the same", 3),
        _round("nothing in common", 1),
        _round("a sure draft", 3),
        _round("no draft", 0),
        _round("alike", 3),
    ),
    "decode.draft_length": _others(
        "alone", "a free draft", "nothing is kept", "all is kept", "batches", "full batches"
    ),
    "decode.buckets": (*_others("few", "one graph"), *of_kinds("two crowds"), *_others("a day")),
    "decode.stream": (
        *of_kinds("fits"),
        *_others("one layer too many"),
        *of_kinds("short texts"),
        *_others("no shared heads", "a fast link"),
        *of_kinds("in a hurry"),
        *_others("long texts"),
    ),
}
