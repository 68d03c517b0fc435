"""Data sheets of GPUs with a source for every figure, and what follows from them: occupancy, roofline.

Beside them stand CPUs, links and accelerators of other makers, for comparison.
"""

from .accelerators import ACCELERATORS, Accelerator, accelerator
from .capability import TABLE, Capability, capability
from .catalogue import ALL, UnknownGPU, find, names
from .compare import Comparison, compare
from .cpu import CPU, CPUS, cpu
from .figure import Figure, Source, amount
from .gpu import GPU
from .links import LINKS, Link, link
from .occupancy import Occupancy, occupancy
from .roofline import Roofline, roofline

__all__ = [
    "ACCELERATORS",
    "ALL",
    "CPU",
    "CPUS",
    "GPU",
    "LINKS",
    "TABLE",
    "Accelerator",
    "Capability",
    "Comparison",
    "Figure",
    "Link",
    "Occupancy",
    "Roofline",
    "Source",
    "UnknownGPU",
    "accelerator",
    "amount",
    "capability",
    "compare",
    "cpu",
    "find",
    "link",
    "names",
    "occupancy",
    "roofline",
]
