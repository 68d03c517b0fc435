"""Observers of a run: what they count and what they find."""

from .counts import COLUMNS, Counts

__all__ = ["COLUMNS", "Counts"]
