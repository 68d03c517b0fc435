"""The kinds of evidence: a class for each, and one row in `KINDS`."""

from collections.abc import Mapping

from gpulab.checks.spec import Evidence

from .answered_cases import AnsweredCases
from .artefact import Artefacts
from .communication import Communication
from .dialogue import Dialogues
from .launch_trace import LaunchTrace
from .tensor_graph import TensorGraph

__all__ = [
    "KINDS",
    "AnsweredCases",
    "Artefacts",
    "Communication",
    "Dialogues",
    "LaunchTrace",
    "TensorGraph",
]

KINDS: Mapping[str, type[Evidence]] = {
    kind.kind: kind for kind in (LaunchTrace, AnsweredCases, TensorGraph, Communication, Artefacts, Dialogues)
}
