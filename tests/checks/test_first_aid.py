"""Errors of Python that mislead a learner get a sentence in a notebook, and others are shown as ever."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output

Run = Callable[[str], str]


@pytest.fixture
def run() -> Iterator[Run]:
    """Runs a cell of a notebook whose lab has begun; all that it shows."""
    shell = InteractiveShell.instance(colors="nocolor")
    shell.run_cell("import gpulab\ngpulab.start()")

    def cell(source: str) -> str:
        with capture_output() as captured:
            result = shell.run_cell(source)
        assert not result.success
        return " ".join(f"{captured.stdout} {captured.stderr}".split())

    try:
        yield cell
    finally:
        InteractiveShell.clear_instance()


def test_a_name_that_no_cell_has_bound_yet_asks_for_the_cells_above(run: Run) -> None:
    said = run("gpulab.need(blur)")
    assert "NameError: name 'blur' is not defined" in said
    assert "If a cell further up binds `blur`, it has not run since this kernel started." in said
    assert "Run All Above Selected Cell" in said


def test_a_function_of_ranks_called_in_the_notebook_is_named(run: Run) -> None:
    pytest.importorskip("torch")
    said = run(
        "import torch.distributed as dist\nfrom gpulab import distributed\n"
        "def hello():\n    return dist.get_rank()\ndistributed.run(hello(), 4)"
    )
    assert "This ran in the notebook itself, which is no rank." in said
    assert "distributed.run(hello, 4), without parentheses behind its name" in said


def test_other_errors_are_shown_as_they_are(run: Run) -> None:
    assert run("int('four')").endswith("ValueError: invalid literal for int() with base 10: 'four'")
    assert "further up" not in run("def f():\n    x += 1\nf()")
