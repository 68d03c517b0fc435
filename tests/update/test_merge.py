"""Three notebooks become one: nothing that a learner wrote is lost, and what the course changed comes in."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from gpulab.app.update.merge import NEW_STUB, YOURS, merge, source


def cell(name: str, text: str, solution: bool = False, kind: str = "code", **more: Any) -> dict[str, Any]:
    marks = {"nbgrader": {"grade_id": name, "solution": True}} if solution else {}
    found = {"cell_type": kind, "id": name, "metadata": marks, "source": text, **more}
    return (
        {**found, "outputs": found.get("outputs", []), "execution_count": None} if kind == "code" else found
    )


def notebook(*cells: dict[str, Any]) -> dict[str, Any]:
    return {"cells": list(cells), "metadata": {}, "nbformat": 4, "nbformat_minor": 5}


BASE = notebook(
    cell("title", "# Lab", kind="markdown"), cell("task", "def f(): ...", True), cell("test", "check(f)")
)


def changed(of: dict[str, Any], name: str, text: str) -> dict[str, Any]:
    found = copy.deepcopy(of)
    next(c for c in found["cells"] if c["id"] == name)["source"] = text
    return found


def texts(of: dict[str, Any]) -> list[str]:
    return [source(c) for c in of["cells"]]


def test_an_answer_stays_and_a_mended_text_comes_in() -> None:
    done = merge(changed(BASE, "task", "def f(): return 1"), changed(BASE, "title", "# Lab, mended"), BASE)
    assert texts(done.notebook) == ["# Lab, mended", "def f(): return 1", "check(f)"]
    assert done.conflicts == ()


def test_without_the_old_version_an_answer_stays_all_the_same() -> None:
    done = merge(changed(BASE, "task", "def f(): return 1"), changed(BASE, "title", "# Lab, mended"))
    assert "def f(): return 1" in texts(done.notebook)
    assert texts(done.notebook)[0] == "# Lab, mended"
    assert YOURS in texts(done.notebook)[1] and "# Lab" in texts(done.notebook)[1]


def test_where_the_stub_changed_the_answer_stays_and_the_new_stub_is_shown() -> None:
    done = merge(changed(BASE, "task", "mine"), changed(BASE, "task", "def f(x): ..."), BASE)
    assert texts(done.notebook)[1] == "mine"
    assert NEW_STUB in texts(done.notebook)[2] and "def f(x): ..." in texts(done.notebook)[2]
    assert done.conflicts == ("cell task: the task has changed; your answer is kept, the new stub is below",)


def test_a_cell_that_both_changed_is_the_courses_with_the_learners_below() -> None:
    done = merge(changed(BASE, "test", "my test"), changed(BASE, "test", "new test"), BASE)
    assert texts(done.notebook)[2] == "new test"
    assert "my test" in texts(done.notebook)[3]
    assert len(done.conflicts) == 1


def test_a_cell_that_the_learner_alone_changed_stays_theirs() -> None:
    done = merge(changed(BASE, "test", "my test"), changed(BASE, "title", "# New"), BASE)
    assert texts(done.notebook) == ["# New", "def f(): ...", "my test"]


def test_added_cells_stay_behind_the_cell_that_they_followed() -> None:
    mine = copy.deepcopy(BASE)
    mine["cells"].insert(0, cell("top", "import antigravity"))
    mine["cells"].insert(3, cell("try", "f()"))
    theirs = notebook(*BASE["cells"][:2], cell("more", "new cell"), BASE["cells"][2])
    done = merge(mine, theirs, BASE)
    assert texts(done.notebook) == [
        "import antigravity",
        "# Lab",
        "def f(): ...",
        "f()",
        "new cell",
        "check(f)",
    ]


def test_a_cell_that_the_course_dropped_goes_unless_the_learner_changed_it() -> None:
    theirs = notebook(BASE["cells"][0], BASE["cells"][2])
    assert texts(merge(BASE, theirs, BASE).notebook) == ["# Lab", "check(f)"]
    mine = changed(BASE, "task", "my work")
    assert texts(merge(mine, theirs, BASE).notebook) == ["# Lab", "my work", "check(f)"]


def test_outputs_stay_where_the_text_did() -> None:
    mine = copy.deepcopy(BASE)
    mine["cells"][2]["outputs"] = [{"output_type": "stream", "name": "stdout", "text": "passed"}]
    done = merge(mine, changed(BASE, "title", "# New"), BASE)
    assert done.notebook["cells"][2]["outputs"] == mine["cells"][2]["outputs"]
    assert merge(mine, changed(BASE, "test", "other"), BASE).notebook["cells"][2]["outputs"] == []


NAMES = ["a", "b", "c", "d", "e", "f"]


@st.composite
def versions(draw: st.DrawFn) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """A notebook, and two that came of it by edits, additions and deletions."""
    solution = {name: draw(st.booleans()) for name in NAMES}

    def edited(cells: list[dict[str, Any]], who: str) -> list[dict[str, Any]]:
        found = []
        for number, each in enumerate(cells):
            fate = draw(st.sampled_from(["keep", "keep", "keep", "edit", "delete", "follow"]))
            if fate == "delete":
                continue
            found.append({**each, "source": f"{who} {number}"} if fate == "edit" else each)
            if fate == "follow":
                found.append(cell(f"{who}-{number}", f"{who} added {number}"))
        return found

    base = [cell(name, f"base {name}", solution[name]) for name in draw(st.permutations(NAMES))]
    return notebook(*base), notebook(*edited(base, "mine")), notebook(*edited(base, "theirs"))


@given(versions())
def test_nothing_that_the_learner_wrote_is_lost(
    made: tuple[dict[str, Any], dict[str, Any], dict[str, Any]],
) -> None:
    base, mine, theirs = made
    for old in (base, None):
        text = "\n".join(texts(merge(mine, theirs, old).notebook))
        assert all(source(c) in text for c in mine["cells"] if source(c).startswith("mine"))


@given(versions())
def test_every_new_cell_of_the_course_comes_in_and_ids_stay_unique(
    made: tuple[dict[str, Any], dict[str, Any], dict[str, Any]],
) -> None:
    base, mine, theirs = made
    done = merge(mine, theirs, base).notebook
    text = "\n".join(texts(done))
    assert all(source(c) in text for c in theirs["cells"] if source(c).startswith("theirs"))
    names = [c["id"] for c in done["cells"]]
    assert len(set(names)) == len(names)


@given(versions())
def test_what_has_been_updated_once_does_not_change_again(
    made: tuple[dict[str, Any], dict[str, Any], dict[str, Any]],
) -> None:
    base, mine, theirs = made
    once = merge(mine, theirs, base).notebook
    again = merge(once, theirs, theirs)
    assert again.notebook == once and not again.conflicts


def test_a_learner_who_changed_nothing_gets_the_new_notebook() -> None:
    theirs = changed(changed(BASE, "task", "def f(x): ..."), "title", "# New")
    assert merge(BASE, theirs, BASE).notebook == theirs


def test_answers_of_a_notebook_whose_ids_got_lost_find_their_cells() -> None:
    mine = changed(changed(BASE, "task", "my answer"), "title", "# Lab, my way")
    for number, each in enumerate(mine["cells"]):
        each["id"] = f"other-{number}"
    for lost in (mine, {**mine, "cells": [{k: v for k, v in c.items() if k != "id"} for c in mine["cells"]]}):
        done = merge(lost, changed(BASE, "test", "check(f, 2)"), BASE).notebook
        assert texts(done) == ["# Lab, my way", "# Lab", "my answer", "check(f, 2)"]
        names = [c["id"] for c in done["cells"]]
        assert len(set(names)) == 4 and names[1:] == ["title", "task", "test"]


def test_a_renamed_exercise_leaves_the_answer_beside_the_new_stub() -> None:
    theirs = notebook(BASE["cells"][0], cell("job", "def g(): ...", True), cell("test", "check(g)"))
    for base in (BASE, None):
        text = texts(merge(changed(BASE, "task", "my answer"), theirs, base).notebook)
        assert "my answer" in text and "def g(): ..." in text


def test_pictures_in_an_answer_stay() -> None:
    def answered(text: str, **more: Any) -> dict[str, Any]:
        return notebook(cell("why", text, True, "markdown", **more), cell("end", "the end", kind="markdown"))

    picture = {"image.png": {"image/png": "iVBOR"}}
    mine = answered("![](attachment:image.png)", attachments=picture)
    done = merge(mine, changed(answered("your answer"), "end", "fin"), answered("your answer")).notebook
    assert done["cells"][0]["attachments"] == picture
    mine["cells"][1].update(source="![](attachment:image.png)", attachments=picture)
    done = merge(mine, changed(answered("your answer"), "end", "fin"), answered("your answer")).notebook
    assert texts(done)[1] == "fin" and done["cells"][2]["attachments"] == picture


def test_a_conflict_is_shown_once_and_whole_however_often_it_is_updated() -> None:
    first, second = changed(BASE, "test", "new test"), changed(BASE, "test", "newer test")
    once = merge(changed(BASE, "test", "```\nmy test\n```"), first, BASE).notebook
    assert texts(once)[3].endswith("````python\n```\nmy test\n```\n````")
    assert merge(once, first, BASE).notebook == once  # as after an update that was stopped
    stub = changed(BASE, "task", "def f(x): ...")
    once = merge(changed(BASE, "task", "mine"), stub, BASE).notebook
    assert merge(once, stub, BASE).notebook == once
    twice = merge(changed(once, "test", "my test"), changed(second, "task", "def f(y): ..."), stub).notebook
    names = [c["id"] for c in twice["cells"]]
    assert len(set(names)) == len(names)
    assert all(part in "\n".join(texts(twice)) for part in ("mine", "def f(x)", "def f(y)", "my test"))
