"""Figures that move: a learner steps through them, drags a slider, and asks a cell who touched it.

A figure is a *record* and a *scene*. Python makes the record, plain JSON of what the simulator saw; a scene
is a small ES module that draws one frame of it; the player (buttons, slider, keys, caption) serves them all.
The output of a cell carries record, script and first frame, so that it works without kernel and network:
docs/figures.md says why this way, and what was considered instead.
"""

from .batching import Batching
from .figure import Moving
from .frames import Drawing, Frame, Frames
from .kernel_steps import Array, CannotDraw, KernelSteps, Step, Touch, Warp
from .meanings import MEANINGS, Meaning
from .message_rounds import MessageRounds
from .pipeline_steps import PipelineSteps
from .roof_trail import RoofTrail
from .tile_walk import AttentionWalk, ProductWalk
from .warp_access import Pattern, WarpAccess
from .warp_timeline import WarpTimeline

__all__ = [
    "MEANINGS",
    "Array",
    "AttentionWalk",
    "Batching",
    "CannotDraw",
    "Drawing",
    "Frame",
    "Frames",
    "KernelSteps",
    "Meaning",
    "MessageRounds",
    "Moving",
    "Pattern",
    "PipelineSteps",
    "ProductWalk",
    "RoofTrail",
    "Step",
    "Touch",
    "Warp",
    "WarpAccess",
    "WarpTimeline",
]
