"""Data sheets of GPUs with a source for every figure, and what follows from them: occupancy, roofline."""

from .capability import TABLE, Capability, capability
from .catalogue import ALL, UnknownGPU, find, names
from .compare import Comparison, compare
from .figure import Figure, Source, amount
from .gpu import GPU
from .occupancy import Occupancy, occupancy
from .roofline import Roofline, roofline

__all__ = [
    "ALL",
    "GPU",
    "TABLE",
    "Capability",
    "Comparison",
    "Figure",
    "Occupancy",
    "Roofline",
    "Source",
    "UnknownGPU",
    "amount",
    "capability",
    "compare",
    "find",
    "names",
    "occupancy",
    "roofline",
]
