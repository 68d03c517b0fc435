"""What a learner calls shows itself once in a notebook's cell, wherever the call stands in it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output

import gpulab

WRONG = "def wrong(a, b): return a // b\n"
CHECK = 'gpulab.check("toy.ceil_div", wrong)'


@pytest.fixture
def shown() -> Iterator[Callable[[str], str]]:
    """Runs a cell of a notebook; gives all that it shows, as text."""
    shell = InteractiveShell.instance(colors="nocolor")
    shell.run_cell("import gpulab\n" + WRONG, store_history=True)

    def run(cell: str) -> str:
        with capture_output() as captured:
            shell.run_cell(cell, store_history=True)
        texts = [output.data.get("text/plain", "") for output in captured.outputs]
        return "\n".join([captured.stdout, *texts])

    try:
        yield run
    finally:
        InteractiveShell.clear_instance()


@pytest.mark.parametrize(
    "after", ["", "\ngpulab.hint('toy.ceil_div')", "\n1 + 1", "\nprint('done')", ";", "\npass"]
)
def test_a_verdict_is_shown_once_wherever_its_check_stands_in_a_cell(shown, after: str) -> None:
    assert shown(CHECK + after).count("✘ right") == 1


def test_two_checks_of_one_cell_are_both_shown(shown) -> None:
    assert shown(f"{CHECK}\n{CHECK}").count("✘ right") == 2


def test_hints_are_shown_once_wherever_they_are_asked_for(shown) -> None:
    for cell in ("gpulab.hint('toy.ceil_div')\n1 + 1", "gpulab.hint('toy.ceil_div')"):
        assert shown(cell).count("toy.ceil_div has no hints") == 1


def test_a_verdict_that_was_kept_is_shown_by_a_later_cell(shown) -> None:
    assert shown(f"verdict = {CHECK}\nverdict").count("✘ right") == 1
    assert shown("verdict").count("✘ right") == 1
    assert shown("display(verdict)").count("✘ right") == 1


def test_a_script_prints_a_verdict_itself(capsys) -> None:
    names: dict = {}
    exec(WRONG, names)
    verdict = gpulab.check("toy.ceil_div", names["wrong"])
    assert capsys.readouterr().out == ""
    assert "✘ right" in str(verdict)
