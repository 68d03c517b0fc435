"""`Course` under the name by which scripts outside this repository know it."""

from grading.core.course import Course

__all__ = ["Course"]
