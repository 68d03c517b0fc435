"""Data sheets of GPUs with a source for every figure, and what follows from them: occupancy, roofline."""

from .capability import TABLE, Capability, capability
from .catalogue import ALL, UnknownGPU, find, names
from .figure import Figure, Source, amount
from .gpu import GPU

__all__ = [
    "ALL",
    "GPU",
    "TABLE",
    "Capability",
    "Figure",
    "Source",
    "UnknownGPU",
    "amount",
    "capability",
    "find",
    "names",
]
