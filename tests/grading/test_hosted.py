"""Links and an installation for Colab, Kaggle and Binder: only where the course has an address, from one place."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from nbformat import NotebookNode

from gpulab.app.course.address import Address, address, read
from grading.authoring.release import notebook_text, released_notebook
from grading.lms import preprocessors
from grading.lms.hosted import INSTALL, open_elsewhere, runs_on_binder

ROOT = Path(__file__).resolve().parents[2]
ELSEWHERE = Address("https://github.com/somebody/gpulab", "main")
START = ROOT / "solutions" / "00_start_here" / "00_start_here.py"


def test_what_is_no_repository_on_github_is_refused_with_what_to_write() -> None:
    with pytest.raises(ValueError, match="or leave it empty"):
        Address("github.com/somebody/gpulab")


def test_a_wrong_address_is_named_with_its_file(tmp_path: Path) -> None:
    for text in ('repository = "gitlab.com/a/b"\nbranch = "main"\n', "repository = \n", 'repository = ""\n'):
        (tmp_path / "address.toml").write_text(text)
        with pytest.raises(ValueError, match=r"address\.toml: \S"):
            read(tmp_path / "address.toml")


def test_without_an_address_a_notebook_stays_as_it_is() -> None:
    before = notebook_text(released_notebook(START))
    after = notebook_text(open_elsewhere(released_notebook(START), "labs/00/00.ipynb", Address("")))
    assert before == after


def test_the_labs_have_links_and_the_installation_exactly_if_the_course_has_an_address() -> None:
    for path in (ROOT / "labs").glob("*/*.ipynb"):
        text = path.read_text(encoding="utf-8")
        assert ("COLAB_RELEASE_TAG" in text) == ("Open in [Colab]" in text) == bool(address()), path.name


@pytest.fixture
def released() -> NotebookNode:
    """Lab 00 of a course that has an address."""
    return released_notebook(START, ELSEWHERE)


def test_a_release_takes_the_courses_own_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preprocessors, "address", lambda: ELSEWHERE)
    assert "git+https://github.com/somebody/gpulab@main" in notebook_text(released_notebook(START))
    assert "git+" not in notebook_text(released_notebook(START, Address("")))


def test_with_an_address_the_title_has_links_that_open_the_notebook(released: NotebookNode) -> None:
    lines = released.cells[0].source.splitlines()
    place = "somebody/gpulab/blob/main/labs/00_start_here/00_start_here.ipynb"
    assert lines[0].startswith("# 00")
    assert f"[Colab](https://colab.research.google.com/github/{place})" in lines[2]
    assert f"[Kaggle](https://kaggle.com/kernels/welcome?src=https://github.com/{place})" in lines[2]
    binder = "somebody/gpulab/main?labpath=labs%2F00_start_here%2F00_start_here.ipynb"
    assert f"[Binder](https://mybinder.org/v2/gh/{binder})" in lines[2]
    assert lines[4].startswith("**1.5 to 2 hours.**")


def test_with_an_address_the_import_cell_alone_begins_with_the_installation(released: NotebookNode) -> None:
    having = [cell for cell in released.cells if "COLAB_RELEASE_TAG" in cell.source]
    assert len(having) == 1
    assert having[0].source.endswith('gpulab.start("00")')
    assert "@ git+https://github.com/somebody/gpulab@main" in having[0].source
    ast.parse(having[0].source)  # plain Python: the judge reads it, too


def test_cells_keep_their_ids_when_the_course_gets_an_address(released: NotebookNode) -> None:
    without = open_elsewhere(released_notebook(START), "", Address(""))
    assert [cell.id for cell in released.cells] == [cell.id for cell in without.cells]


def test_elsewhere_the_installation_does_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("COLAB_RELEASE_TAG", "KAGGLE_KERNEL_RUN_TYPE"):
        monkeypatch.delenv(name, raising=False)
    names: dict[str, object] = {}
    exec(INSTALL, names)
    assert "subprocess" not in names


def test_the_index_has_the_installation_and_no_links() -> None:
    index = notebook_text(released_notebook(ROOT / "solutions" / "index.py", ELSEWHERE))
    assert "COLAB_RELEASE_TAG" in index and "Open in [Colab]" not in index


@pytest.mark.parametrize(
    ("lab", "runs"),
    [("04_memory_hierarchy", True), ("08_pytorch_performance", False), ("13_quantization", False)],
)
def test_binder_is_offered_to_notebooks_that_need_no_pytorch(lab: str, runs: bool) -> None:
    assert runs_on_binder(released_notebook(ROOT / "solutions" / lab / f"{lab}.py")) is runs
