"""Figures that move: a learner steps through them, drags a slider, and asks a cell who touched it.

A figure is a *record* and a *scene*. Python makes the record, plain JSON of what the simulator saw; a scene
is a small ES module that draws one frame of it; the player (buttons, slider, keys, caption) serves them all.

Why this way, and no widget library: the output of a cell is `text/html` that carries its record, its script
and its first frame, so it works in JupyterLab, VS Code, Colab and on the site, without kernel and network.

- The first frame is an SVG image made by Python. It stays where there is no JavaScript, and when JupyterLab
  strips an untrusted notebook of scripts and inline SVG: an image with a `data:` address is kept.
- The script defines a custom element named after its own digest. Many figures share one definition, an old
  notebook keeps its old one beside a new one, and a cell that is scrolled away and back lives on.
- A shadow root keeps the page's styles out and ours in, and makes ids needless: the same record always
  gives the same bytes. Styles are adopted and texts set as text: nothing is evaluated.
- All shades are mixed from the page's own text colour, so no theme has to be recognised.
- Records above 40 KB travel deflated: 100,000 accesses stay below the 200 KB that a figure may weigh.

What has to talk back to Python is no figure of this kind; anywidget is for that.
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
]
