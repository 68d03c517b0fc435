"""The judge's own cases for lab 19, part B. A budget that names no case is taken from the last one."""

from __future__ import annotations

from gpulab.checks.cases import of_kinds
from gpulab.checks.spec import Case
from gpulab.content.lab_19_llm_inference.decoding import request_case, round_case


def _others(*names: str) -> tuple[Case, ...]:
    return of_kinds(*names, suffix=", others")


CASES: dict[str, tuple[Case, ...]] = {
    "decode.generate": (
        request_case(4, 5),
        request_case(1, 3),
        request_case(9, 7, 4),
        request_case(3, 2, 0),
        request_case(2, 0),
        request_case(5, 1),
        request_case(40, 56),
    ),
    "decode.sample": _others("temperature", "top-k", "top-p", "all together", "greedy", "ties", "large"),
    "decode.speculate": (
        round_case("alike", 2),
        round_case("the same", 3),
        round_case("nothing in common", 1),
        round_case("a sure draft", 3),
        round_case("no draft", 0),
        round_case("alike", 3),
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
