"""Counts → metrics → `Report`, shown as text and HTML from one description."""

from .metrics import METRICS, Metric, UnknownMetric
from .report import Comparison, Launch, Line, Lines, Occupancy, Report, Roofline

__all__ = [
    "METRICS",
    "Comparison",
    "Launch",
    "Line",
    "Lines",
    "Metric",
    "Occupancy",
    "Report",
    "Roofline",
    "UnknownMetric",
]
