"""GPUs side by side, in a terminal and in a notebook with the same words."""

import re

import pytest

from gpulab.simulator.hardware import UnknownGPU, compare


def test_text_and_html_say_the_same() -> None:
    table = compare("A100", "h100")
    html = re.sub(r"<[^>]*>", " ", table._repr_html_())
    assert str(table).split() == html.split()


def test_figures_stand_in_the_column_of_their_gpu() -> None:
    lines = {line[:28].strip(): line[28:].split("  ") for line in str(compare("A100", "H100")).splitlines()}
    assert [cell.strip() for cell in lines["float16 tensor, dense"] if cell.strip()] == [
        "311.9 TFLOP/s",
        "989.4 TFLOP/s",
    ]
    assert [cell.strip() for cell in lines["L2"] if cell.strip()] == ["40 MiB", "50 MiB"]


def test_what_no_source_states_is_a_dash() -> None:
    row = dict(compare("T4").rows())
    assert row["float8 tensor, dense"] == [None]
    assert re.search(r"float8 tensor, dense +–", str(compare("T4")))


def test_html_gives_the_source_of_a_figure_as_its_tooltip() -> None:
    assert 'title="Erlangen National High Performance Computing' in compare("V100")._repr_html_()


def test_without_names_all_gpus_are_shown() -> None:
    assert len(compare().gpus) >= 5


def test_a_wrong_name_is_the_same_error_as_everywhere() -> None:
    with pytest.raises(UnknownGPU, match="no GPU is named 'A1000'"):
        compare("A100", "A1000")


def test_a_narrow_terminal_gets_the_gpus_below_each_other_and_no_cell_cut() -> None:
    from rich.console import Console

    console = Console(width=80, color_system=None)
    with console.capture() as capture:
        console.print(compare())
    lines = capture.get().splitlines()
    assert sum(line.startswith("architecture") for line in lines) > 3
    assert max(map(len, lines)) <= 80 and "…" not in capture.get()
    every = " ".join(capture.get().split())
    for gpu in compare().gpus:
        assert gpu.name in every
