"""A new version of the labs under a learner's feet: what they wrote stays, what changed comes in."""

from .merge import Merge, merge
from .update import CannotUpdate, Update, update

__all__ = ["CannotUpdate", "Merge", "Update", "merge", "update"]
