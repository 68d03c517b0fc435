"""A verdict as its reader sees it."""

from __future__ import annotations

import pytest

from grading.core.verdicts import ExerciseVerdict, Line, NotebookVerdict, as_text


def text_of(exercise: str, *cases: str) -> str:
    verdict = ExerciseVerdict(exercise, "check", (Line("right", 0, 3),), cases)
    return as_text(
        verdict, NotebookVerdict("", "", (verdict,), compiler="NVVM 13.5", device="A100 simulated")
    )


@pytest.mark.parametrize(
    ("exercise", "cases", "judged"),
    [
        ("memory.copy", ("31", "98,765"), "judged with NVVM 13.5, A100 simulated, at 31 and 98,765"),
        (
            "no.longer there",
            ("31", "33", "98"),
            "judged with NVVM 13.5, A100 simulated, at 3 sizes (31 … 98)",
        ),
        ("memory.sectors", ("in order", "at odds", "far"), "judged at 3 sets (in order … far)"),
        ("pytorch.clip", ("few", "two", "many"), "judged at 3 sizes (few … many)"),
    ],
)
def test_a_compiler_and_a_gpu_are_named_where_a_kernel_ran(exercise, cases, judged):
    assert text_of(exercise, *cases).splitlines()[-1].strip() == judged
