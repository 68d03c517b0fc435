"""The lines of a stretch, which `stretches` writes and `sweeps` executes.

A line is five whole numbers: what it does, the place of its result in the scratch pad, and three more: the
places of what it works on, or which load, input or output it is about and which of its elements.
"""

from __future__ import annotations

TILE = 256  # lanes that are taken through a stretch together
OCTET = 8  # … that a load serves together, if they want one element or neighbours

# Memory to the pad, a register of the run to the pad and back, and arithmetic.
LOAD, READ, WRITE, MOVE, ADD, SUBTRACT, MULTIPLY, FUSED = range(8)
SAME, NEXT, APART = range(3)  # all lanes of an octet want one element, each the next one, or neither
