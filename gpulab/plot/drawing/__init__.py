"""Drawings: pictures of ideas, made from a few shared parts, as SVG.

A drawing is a tree of parts. A `Part` knows its size and its marks; `row` and `column` put parts beside and
below one another, so that nobody writes coordinates. `page` puts the tree on a card.

- The card has its own background, light or dark as the page's colour scheme is: an image cannot know the
  colours of the page around it, and on its own paper every text keeps its contrast.
- Colours are worked out here and written as plain numbers, so that every viewer of SVG shows them.
- A colour has the meaning that it has in figures that move (`gpulab.plot.moving`): blue is read, amber is
  written, green is right, rose waits, orange is wrong. What is wrong is hatched and what is absent is dashed,
  so that nothing depends on colour alone.
- Cards are 600 pixels wide and text is 15 pixels high: on a phone it is still about 9.

>>> from gpulab.plot.drawing import box, flow, page
>>> svg = page(flow(box("a cell"), box("PTX"), box("counts")), "A cell becomes PTX, and PTX becomes counts.")
>>> svg.startswith("<svg")
True
"""

from .charts import bars, curve, timeline
from .grids import bits, cells, lanes, matrix, strip
from .nodes import Edge, arrow, box, code, flow, graph, label, note, stack
from .part import Part, TooWide, column, page, row, titled, under
from .wires import levels, wires

__all__ = [
    "Edge",
    "Part",
    "TooWide",
    "arrow",
    "bars",
    "bits",
    "box",
    "cells",
    "code",
    "column",
    "curve",
    "flow",
    "graph",
    "label",
    "lanes",
    "levels",
    "matrix",
    "note",
    "page",
    "row",
    "stack",
    "strip",
    "timeline",
    "titled",
    "under",
    "wires",
]
