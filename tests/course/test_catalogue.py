"""Labs, paths, quiz and glossary as data: they fit one another, the notebooks and the pages that name them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gpulab.app.course import catalogue

ROOT = Path(__file__).resolve().parents[2]
LABS = catalogue.labs()


def hours(notebook: Path) -> float:
    """What the metadata of a released notebook say."""
    return float(json.loads(notebook.read_text(encoding="utf-8"))["metadata"]["gpulab"].get("hours", 0))


def notebooks(lab: catalogue.Lab) -> list[Path]:
    """The released notebooks of a lab, or of the part of one."""
    folder = next((ROOT / "labs").glob(f"{lab.number}_*"), None)
    if folder is None:
        return []
    return sorted(folder.glob(f"{lab.notebook}.ipynb" if lab.key[2:] else "*.ipynb"))


def test_hours_are_those_of_the_notebooks() -> None:
    wrong = {
        lab.key: (lab.hours, sum(map(hours, found)))
        for lab in LABS.values()
        if (found := notebooks(lab)) and lab.hours != sum(map(hours, found))
    }
    assert not wrong


def test_every_released_notebook_with_exercises_is_in_the_list() -> None:
    listed = {path for lab in LABS.values() for path in notebooks(lab)}
    exercises = {
        p for p in (ROOT / "labs").glob("[0-9]*/*.ipynb") if "gpulab.check(" in p.read_text(encoding="utf-8")
    }
    assert exercises <= listed


def test_every_lab_needs_labs_that_stand_before_it_in_some_order() -> None:
    done: set[str] = set()
    left = dict(LABS)
    while ready := [key for key, lab in left.items() if set(lab.needs) <= done]:
        done.update(ready)
        for key in ready:
            del left[key]
    assert not left, "these need one another, or a lab that does not exist"


@pytest.mark.parametrize("path", catalogue.paths(), ids=lambda p: p.name)
def test_a_path_takes_its_labs_in_an_order_that_their_needs_allow(path: catalogue.Path) -> None:
    assert len(set(path.labs)) == len(path.labs)
    for index, key in enumerate(path.labs):
        late = set(LABS[key].needs) & set(path.labs[index + 1 :])
        assert not late, f"{key} needs {late}, which come after it"


def test_the_short_path_takes_thirty_hours_at_most_and_leaves_out_tensor_cores() -> None:
    short = catalogue.paths()[0]
    assert short.name == "The short one" and 25 <= short.hours <= 30
    assert not {"06b", "12b"} & set(short.labs)
    assert f"with 19b it is {short.hours + LABS['19b'].hours:g} hours" in short.words


def test_the_quiz_has_ten_questions_with_answers_in_all_places() -> None:
    asked = catalogue.questions()
    assert len(asked) == 10
    assert [q.lab for q in asked] == sorted(q.lab for q in asked)
    for q in asked:
        assert q.lab in LABS and len(q.choices) == 3 == len(set(q.choices)) and q.reason
    assert {q.right for q in asked} == {0, 1, 2}


def test_the_glossary_is_in_order_and_names_labs() -> None:
    numbers = {lab.number for lab in LABS.values()}
    names = [term.name.lower() for term in catalogue.terms().values()]
    assert names == sorted(names)
    for term in catalogue.terms().values():
        assert term.lab in numbers and term.means.endswith(".") and len(term.means) < 240, term.name


def test_every_notebook_is_a_page_of_one_lab() -> None:
    pages = [f"{page}.ipynb" for lab in LABS.values() for page in lab.pages]
    assert sorted(pages) == sorted(
        path.relative_to(ROOT / "labs").as_posix() for path in (ROOT / "labs").glob("*/*.ipynb")
    )


def test_the_map_has_every_lab_once_and_behind_all_that_it_needs() -> None:
    order = [key for stage in catalogue.stages() for key in stage.labs]
    assert sorted(order) == sorted(LABS)
    for key in order:
        assert all(order.index(need) < order.index(key) for need in LABS[key].needs), key
