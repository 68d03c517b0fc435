"""Figures of recorded data. They take plain records and matplotlib axes, and leave counting to the report.

Every function returns a `Picture`, which shows itself in a notebook with its caption as the alt text.
``python -m gpulab.plot.roofline`` (or any other module) saves a sample.
"""

import warnings

# Each figure's module can be run as a sample; Python would warn that this package has imported it before.
warnings.filterwarnings("ignore", message="'gpulab.plot.* found in sys.modules", category=RuntimeWarning)

from .accesses import accesses  # noqa: E402
from .attempts import attempts  # noqa: E402
from .bank_grid import bank_grid  # noqa: E402
from .bars import bars  # noqa: E402
from .bit_fields import Bits, bit_fields  # noqa: E402
from .block_tables import block_tables  # noqa: E402
from .divergence import divergence  # noqa: E402
from .fragments import fragments  # noqa: E402
from .gpus import gpus  # noqa: E402
from .grid_map import grid_map  # noqa: E402
from .heat_maps import heat_maps  # noqa: E402
from .letters import letters  # noqa: E402
from .lines import lines  # noqa: E402
from .listings import listings  # noqa: E402
from .mask import mask  # noqa: E402
from .matrix import matrix  # noqa: E402
from .memory_map import memory_map  # noqa: E402
from .mig_map import mig_map  # noqa: E402
from .network import network  # noqa: E402
from .number_line import number_line  # noqa: E402
from .occupancy import occupancy  # noqa: E402
from .panels import panels  # noqa: E402
from .pareto import pareto  # noqa: E402
from .parts import parts  # noqa: E402
from .patterns import patterns  # noqa: E402
from .records import Coverage, Listing, Pass, Point, Request, Span, Steps  # noqa: E402
from .ridges import ridges  # noqa: E402
from .roofline import roofline  # noqa: E402
from .rounds import messages  # noqa: E402
from .schedule import schedule  # noqa: E402
from .shares import shares  # noqa: E402
from .speedup import speedup  # noqa: E402
from .stacked import stacked  # noqa: E402
from .step_table import step_table  # noqa: E402
from .stride_sweep import stride_sweep  # noqa: E402
from .style import ALARM, AMBER, DEEP, INK, LEAF, ROSE, Picture, axes, picture  # noqa: E402
from .tensor_memory import tensor_memory  # noqa: E402
from .tile_map import tile_map  # noqa: E402
from .tile_order import tile_order  # noqa: E402
from .time_breakdown import time_breakdown  # noqa: E402
from .timeline import timeline  # noqa: E402
from .timeline_ranks import timeline_ranks  # noqa: E402
from .units import units  # noqa: E402
from .warp_lanes import warp_lanes  # noqa: E402

__all__ = [
    "ALARM",
    "AMBER",
    "DEEP",
    "INK",
    "LEAF",
    "ROSE",
    "Bits",
    "Coverage",
    "Listing",
    "Pass",
    "Picture",
    "Point",
    "Request",
    "Span",
    "Steps",
    "accesses",
    "attempts",
    "axes",
    "bank_grid",
    "bars",
    "bit_fields",
    "block_tables",
    "divergence",
    "fragments",
    "gpus",
    "grid_map",
    "heat_maps",
    "letters",
    "lines",
    "listings",
    "mask",
    "matrix",
    "memory_map",
    "messages",
    "mig_map",
    "network",
    "number_line",
    "occupancy",
    "panels",
    "pareto",
    "parts",
    "patterns",
    "picture",
    "ridges",
    "roofline",
    "schedule",
    "shares",
    "speedup",
    "stacked",
    "step_table",
    "stride_sweep",
    "tensor_memory",
    "tile_map",
    "tile_order",
    "time_breakdown",
    "timeline",
    "timeline_ranks",
    "units",
    "warp_lanes",
]
