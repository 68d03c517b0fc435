"""Kernels that compile to much the same are named, whatever their text looks like."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grading.__main__ import main
from grading.lms import similar
from grading.lms.similar_ptx import runs, runs_of_trace
from tests.grading.conftest import LAB, Class
from tests.grading.test_similar import ODD, OTHER, USUAL

# ODD in other words: names, order of statements, spelling of the same arithmetic, a helper, no divmod.
DISGUISED = '''
@cuda.jit(device=True)
def put(target, source, r, c):
    if r < source.shape[0] and not c < 0:
        target[c, r] = source[r, c]


@cuda.jit
def transpose(matrix, result):
    """Everything at once."""
    total = matrix.shape[1] * matrix.shape[0]
    first = cuda.threadIdx.x + 32 * cuda.blockIdx.x
    for n in range(0, total, 1024):
        where = (7 * n + first) % total
        put(result, matrix, where // matrix.shape[1], where % matrix.shape[1])
'''


def test_a_rewritten_copy_is_found_in_the_instructions(
    needs_sandbox: None, school: Class, capsys: pytest.CaptureFixture[str]
) -> None:
    answers = {"ann": ODD.replace("+ 0 * step", ""), "eve": DISGUISED, "other": OTHER}
    answers["usual"] = USUAL
    for student, text in answers.items():
        school.hand_in(student, {"transpose": text, "copy": "", "sectors": ""})
    school.hand_in("broken", {"transpose": "1 +", "copy": "", "sectors": ""})
    submitted = {s: school.notebook({"transpose": text}) for s, text in answers.items()}
    given_there = similar.given(school.course, LAB, LAB, school.released)
    assert not any({"ann", "eve"} <= {*group.students} for group in similar.compared(given_there, submitted))
    assert main(["similar", LAB, str(school.folder), "--ptx"], school.course) == 0
    out = capsys.readouterr().out
    assert re.search(r"ann · eve\s+transpose-check", out), out
    assert "usual" not in out and "broken" not in out


PTX = """
.visible .entry f(.param .u64 p) // a comment ld.shared
{
    .reg .pred %p<3>;
    ld.param.u64 %rd1, [p];
    @%p1 bra $L1;
    {OPS}
$L1:
    ret;
}
"""
OPS = ["add.s32 %r1, %r1, %r2;", "mul.lo.s32 %r3, %r1, %r1;", "ld.global.f32 %f1, [%rd1];", "bar.sync 0;"]


@given(st.lists(st.sampled_from(OPS), min_size=4, max_size=12), st.integers(1, 900))
def test_numbers_of_registers_change_nothing(ops: list[str], shift: int) -> None:
    text = PTX.replace("{OPS}", "\n    ".join(ops))
    other = re.sub(r"%(r|f|rd|p)(\d+)", lambda m: f"%{m[1]}{int(m[2]) + shift}", text)
    found = runs(text)
    assert found == runs(other)
    assert len(found["opcodes"]) > 0
    assert all(not run.startswith(".") and "comment" not in run for run in found["opcodes"])


def test_a_record_that_cannot_be_read_has_no_instructions() -> None:
    assert runs_of_trace(b"") == {}
    assert runs_of_trace(b'{"format": "mine"}\n') == {}
