"""A print() in a kernel does not bury the verdict of its check."""

from __future__ import annotations

import gpulab
from gpulab import cuda
from gpulab.checks import kernel_prints


@cuda.jit
def chatty(a, out):
    i = cuda.grid(1)
    print("thread", i)
    if i < a.size:
        out[i] = a[i] + a[i]


@cuda.jit
def says_little(a, out):
    i = cuda.grid(1)
    if i == 0:
        print("begins")
    if i < a.size:
        out[i] = a[i] + a[i]


def test_the_first_lines_are_shown_and_the_rest_is_counted(capsys):
    verdict = gpulab.check("start.double", chatty, attempt=False)
    lines = capsys.readouterr().out.splitlines()
    assert verdict.passed
    assert lines.count("thread 0") >= 1
    assert sum(line.startswith("thread ") for line in lines) == kernel_prints.SHOWN
    assert "more lines, which are not shown" in str(verdict)


def test_a_few_lines_are_all_shown_and_nothing_is_said_of_them(capsys):
    verdict = gpulab.check("start.double", says_little, attempt=False)
    assert capsys.readouterr().out.splitlines().count("begins") > 1
    assert "not shown" not in str(verdict)


def test_lines_are_counted_however_they_come(capsys):
    with kernel_prints.limited() as printed:
        for _ in range(kernel_prints.SHOWN):
            printed.write("one ")
            printed.write("line\n")
        assert printed.left_out == 0
        printed.write("two\nmore\n")
    assert printed.left_out == 2
    assert capsys.readouterr().out == "one line\n" * kernel_prints.SHOWN


def test_outside_of_a_check_every_line_is_printed(capsys):
    a = cuda.to_device([1.0] * 256)
    chatty[1, 256](a, a)
    assert len(capsys.readouterr().out.splitlines()) == 256
