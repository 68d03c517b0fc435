"""What the machine does for a kernel: which instructions it executes, what its caches let through, how long
that takes, modelled."""

from .caches import Caches, Traffic
from .executed import Executed, sass
from .modelled import Modelled, Term, modelled
from .pipes import PIPES, pipe_of

__all__ = ["PIPES", "Caches", "Executed", "Modelled", "Term", "Traffic", "modelled", "pipe_of", "sass"]
