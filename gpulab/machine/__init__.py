"""What the machine executes for a kernel: its SASS, how often each instruction runs, on which pipe."""

from .executed import Executed, sass
from .pipes import PIPES, pipe_of

__all__ = ["PIPES", "Executed", "pipe_of", "sass"]
