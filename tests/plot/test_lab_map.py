"""The map of labs: each stands right of what it needs, boxes do not overlap, no line says what another says."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.patches import FancyBboxPatch

from gpulab.app import course
from gpulab.app.course import catalogue
from gpulab.plot.lab_map import Node, columns, direct, lab_map
from gpulab.plot.style import NothingToDraw


@st.composite
def graphs(draw: st.DrawFn) -> list[Node]:
    count = draw(st.integers(1, 12))
    return [
        Node(f"{i:02}", f"lab {i}", 1.0, tuple(f"{j:02}" for j in range(i) if draw(st.booleans())))
        for i in range(count)
    ]


@given(graphs())
def test_a_lab_stands_right_of_all_that_it_needs(nodes: list[Node]) -> None:
    at = columns(nodes)
    assert all(at[need] < at[node.key] for node in nodes for need in node.needs)


@given(graphs())
def test_the_lines_that_are_left_still_lead_from_every_need(nodes: list[Node]) -> None:
    lines = direct(nodes)
    reached: dict[str, set[str]] = {}
    for node in nodes:
        reached[node.key] = set().union(*({need} | reached[need] for need, key in lines if key == node.key))
        assert set(node.needs) <= reached[node.key]


def test_no_two_boxes_overlap() -> None:
    nodes = [Node(lab.key, lab.title, lab.hours, lab.needs) for lab in catalogue.labs().values()]
    boxes = [p.get_bbox() for p in lab_map(nodes, "labs").axes.patches if isinstance(p, FancyBboxPatch)]
    assert len(boxes) == len(nodes)
    for i, a in enumerate(boxes):
        assert not any(a.overlaps(b) for b in boxes[i + 1 :])


def test_without_a_lab_there_is_nothing_to_draw() -> None:
    with pytest.raises(NothingToDraw):
        lab_map([], "nothing")


@pytest.mark.parametrize("path", ["", *(path.name for path in catalogue.paths())])
def test_every_title_stands_in_its_box_without_a_broken_word(path: str) -> None:
    axes = course.lab_map(path).axes
    canvas = FigureCanvasAgg(axes.figure)
    canvas.draw()
    renderer = canvas.get_renderer()
    boxes = [p.get_window_extent(renderer) for p in axes.patches if isinstance(p, FancyBboxPatch)]
    drawn = {text.get_text(): text.get_window_extent(renderer) for text in axes.texts}
    for lab, box in zip(catalogue.labs().values(), boxes, strict=True):
        (place,) = (
            place for text, place in drawn.items() if text.replace("\n", " ").replace("- ", "-") == lab.title
        )
        assert box.x0 < place.x0 and place.x1 < box.x1 and box.y0 < place.y0, lab.title
