"""cuTile without a GPU: NVIDIA's package compiles and packs, and the simulator runs.

`package` gives the real package with three of its ends tied to the simulated device: what its compiler hands
over (`compile.cutile`), the driver that its launcher calls (`libcuda`), and its clock (`tuning`).
"""

from __future__ import annotations

from .launcher import package

__all__ = ["package"]
