"""What the machine does for a kernel: which instructions it executes, what its caches let through, how long
that takes, modelled."""

from gpulab.analysis.profile.modelled import Modelled, Term, Traffic, Waves

from .caches import Caches
from .executed import Executed, sass
from .modelled import modelled, report
from .pipes import PIPES, pipe_of, pipe_of_ptx
from .tensor_memory import TensorMemoryUse, tensor_memory

__all__ = [
    "PIPES",
    "Caches",
    "Executed",
    "Modelled",
    "TensorMemoryUse",
    "Term",
    "Traffic",
    "Waves",
    "modelled",
    "pipe_of",
    "pipe_of_ptx",
    "report",
    "sass",
    "tensor_memory",
]
