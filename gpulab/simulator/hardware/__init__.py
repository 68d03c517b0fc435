"""Data sheets of GPUs with a source for every figure, and what follows from them: occupancy, roofline.

Beside them stand CPUs, links, accelerators of other makers and the chips of small devices, for comparison.
"""

from .accelerators import ACCELERATORS, Accelerator, accelerator
from .capability import TABLE, Capability, capability
from .catalogue import ALL, UnknownGPU, find, names
from .compare import Comparison, compare
from .cpu import CPU, CPUS, cpu
from .edge import EDGE, EdgeDevice, PowerMode, edge
from .figure import Figure, Source, amount
from .gpu import GPU
from .links import LINKS, SWITCHES, Link, link, switch
from .mig import MIG_PROFILES, MigProfile
from .occupancy import Occupancy, occupancy
from .roofline import Roofline, roofline
from .superchips import SUPERCHIPS, Superchip, superchip

__all__ = [
    "ACCELERATORS",
    "ALL",
    "CPU",
    "CPUS",
    "EDGE",
    "GPU",
    "LINKS",
    "MIG_PROFILES",
    "SUPERCHIPS",
    "SWITCHES",
    "TABLE",
    "Accelerator",
    "Capability",
    "Comparison",
    "EdgeDevice",
    "Figure",
    "Link",
    "MigProfile",
    "Occupancy",
    "PowerMode",
    "Roofline",
    "Source",
    "Superchip",
    "UnknownGPU",
    "accelerator",
    "amount",
    "capability",
    "compare",
    "cpu",
    "edge",
    "find",
    "link",
    "names",
    "occupancy",
    "roofline",
    "superchip",
    "switch",
]
