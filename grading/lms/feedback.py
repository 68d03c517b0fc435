"""The feedback's pages, for a whole class: what is the same for everybody is worked out once."""

from __future__ import annotations

import re
from typing import Any

from nbconvert.exporters import HTMLExporter, TemplateExporter
from nbconvert.filters.widgetsdatatypefilter import WidgetsDataTypeFilter
from nbformat import NotebookNode

from grading.lms import marks, rendering

WITHOUT_WORDS = re.compile(r"<img(?![^>]*\salt=)")
WORDS = '<img alt="No description has been provided for this image"'


class FeedbackExporter(HTMLExporter):
    """nbconvert's pages at a third of the cost.

    nbconvert reads the finished page with an HTML parser, to give images a text and to mark cells of a
    template that is not the feedback's; here that is a substitution. `rendering.code` remembers colours.
    """

    def from_notebook_node(
        self, nb: NotebookNode, resources: dict[str, Any] | None = None, **named: Any
    ) -> tuple[str, dict[str, Any]]:
        """The page, and nbconvert's resources."""
        resources = self._init_resources(resources)
        types = WidgetsDataTypeFilter(notebook_metadata=self._nb_metadata, parent=self, resources=resources)
        self.register_filter("filter_data_type", types)
        self.register_filter("highlight_code", rendering.code)
        page, resources = TemplateExporter.from_notebook_node(self, nb, resources, **named)
        return marks.named(WITHOUT_WORDS.sub(WORDS, page), resources.get("marks", ())), resources
