"""compute-sanitizer's reports are read, and set beside gpulab's. The text is made by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from validation import sanitize
from validation.compute_sanitizer import TOOLS, Told, Unfinished, command, parse

HAND = Path(__file__).parent / "made_by_hand"


def told(name: str) -> list[Told]:
    return parse((HAND / f"{name}.txt").read_text())


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("memcheck", [Told("memory", (78,)), Told("error", ())]),
        ("racecheck", [Told("race", (11, 15))]),
        ("initcheck", [Told("uninitialised", (41,))]),
        ("synccheck", [Told("barrier", (203,))]),
        ("assertion", [Told("stopped", ())]),
    ],
)
def test_each_report_has_its_class_and_lines_once(name: str, expected: list[Told]):
    assert told(name) == expected


def test_nothing_found_is_an_empty_list_and_no_end_is_an_error():
    assert parse("========= COMPUTE-SANITIZER\n========= ERROR SUMMARY: 0 errors\n") == []
    with pytest.raises(Unfinished, match="Internal Sanitizer Error"):
        parse("========= COMPUTE-SANITIZER\n========= Internal Sanitizer Error: no device\n")
    with pytest.raises(Unfinished, match="nothing"):
        parse("")


def test_the_tools_are_asked_one_at_a_time():
    assert set(TOOLS) == {"memcheck", "racecheck", "initcheck", "synccheck"}
    asked = command("compute-sanitizer", "initcheck", "log", ["python"])
    assert asked[asked.index("--tool") + 1] == "initcheck" and asked[-1] == "python"


def kernel(kind: str, tools: dict, mended: dict | None = None, lines: tuple[int, ...] = (3, 5)) -> dict:
    ours = {"wrong": [{"kind": kind, "lines": list(lines)}] if kind else [], "mended": []}
    return {
        "kind": kind,
        "lines": list(lines),
        "gpulab": ours,
        "tools": {"wrong": tools, "mended": mended or {}},
    }


def test_agreement_counts_classes_lines_and_alarms():
    race = {"racecheck": {"told": [{"kind": "race", "lines": [5, 9]}]}}
    elsewhere = {"racecheck": {"told": [{"kind": "race", "lines": [8]}]}}
    other = {"memcheck": {"told": [{"kind": "memory", "lines": [3]}]}, "racecheck": {"error": "did not end"}}
    kernels = {
        "a": kernel("race", race),
        "b": kernel("race", elsewhere),
        "c": kernel("race", other, mended=race),
        "d": kernel("", race),
    }
    harmless, races = sanitize.rows(kernels)
    assert races == sanitize.Row("race", 3, 3, 2, 1, 3, 1)
    assert harmless == sanitize.Row("", 1, 0, 0, 0, 1, 0)


def test_the_corpus_is_its_half_in_cuda_c():
    names = {pair.name for pair in sanitize.corpus()}
    assert len(names) >= 40
    assert all(pair.language == "CUDA C" for pair in sanitize.corpus())
    with pytest.raises(sanitize.UnknownPair):
        sanitize.launch("no such kernel", "wrong", "H200")
