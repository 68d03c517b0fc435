"""``python -m gpulab.hardware [NAME …]``: the data sheets side by side."""

import sys

from rich import print as show

from gpulab.simulator.hardware import UnknownGPU, compare

try:
    show(compare(*sys.argv[1:]))
except UnknownGPU as fault:
    sys.exit(str(fault))
