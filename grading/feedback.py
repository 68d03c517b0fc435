"""The feedback's pages, for a whole class: what is the same for everybody is worked out once."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

from nbconvert.exporters import HTMLExporter, TemplateExporter
from nbconvert.filters import Highlight2HTML
from nbconvert.filters.widgetsdatatypefilter import WidgetsDataTypeFilter
from nbformat import NotebookNode

CELLS = 1024  # whose colours are remembered; most cells are the released notebook's
WITHOUT_WORDS = re.compile(r"<img(?![^>]*\salt=)")
WORDS = '<img alt="No description has been provided for this image"'


class FeedbackExporter(HTMLExporter):
    """nbconvert's pages at a third of the cost.

    nbconvert colours every cell anew, then reads the finished page with an HTML parser, to give images a text
    and to mark cells of a template that is not the feedback's; here the first is remembered and the second a
    substitution.
    """

    def __init__(self, **named: Any) -> None:
        super().__init__(**named)
        highlight = Highlight2HTML(pygments_lexer="ipython3", parent=self)

        @lru_cache(CELLS)
        def coloured(source: str, language: str | None, magic: str) -> str:
            return highlight(source, language, {"magics_language": magic} if magic else None)

        self._coloured = coloured

    def from_notebook_node(
        self, nb: NotebookNode, resources: dict[str, Any] | None = None, **named: Any
    ) -> tuple[str, dict[str, Any]]:
        """The page, and nbconvert's resources."""
        resources = self._init_resources(resources)
        types = WidgetsDataTypeFilter(notebook_metadata=self._nb_metadata, parent=self, resources=resources)
        self.register_filter("filter_data_type", types)
        self.register_filter("highlight_code", self._highlighted)
        page, resources = TemplateExporter.from_notebook_node(self, nb, resources, **named)
        return WITHOUT_WORDS.sub(WORDS, page), resources

    def _highlighted(self, source: str, language: str | None = None, metadata: Any = None) -> str:
        return self._coloured(source, language, (metadata or {}).get("magics_language", ""))
