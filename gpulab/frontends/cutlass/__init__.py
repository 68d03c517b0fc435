"""CuTe DSL without a GPU: NVIDIA's package compiles and packs, and the simulator runs.

`package` gives the real package with four of its ends tied to the simulated device: for which GPU it
compiles (`compile.cute_dsl`), the functions of CUDA that its host code calls (`runtime`), how it sees arrays
of the host (`tensors`), and its clock (`testing`).
"""

from __future__ import annotations

from .launcher import package

__all__ = ["package"]
