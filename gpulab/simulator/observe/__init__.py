"""Observers of a run: what they count and what they find."""

from .counters import Counters, classify
from .counts import COLUMNS, Counts
from .pipelines import PipelineCounts, Pipelines
from .race import Race
from .races import Races
from .warp_roles import Action, WarpRoles

__all__ = [
    "COLUMNS",
    "Action",
    "Counters",
    "Counts",
    "PipelineCounts",
    "Pipelines",
    "Race",
    "Races",
    "WarpRoles",
    "classify",
]
