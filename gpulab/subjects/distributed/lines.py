"""Which line of the learner's code is running."""

from __future__ import annotations

import sys
from types import FrameType


def running_line(file: str) -> int:
    """The line of a file that runs at the moment, the innermost; 0 where there is none."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_filename == file:
            return frame.f_lineno
        frame = frame.f_back
    return 0
