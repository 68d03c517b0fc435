"""What this computer's own CPU does, measured: bytes per second of its memory, operations per second."""

from .cpu import Measured, bandwidth, flops, roofline, steps, timed

__all__ = ["Measured", "bandwidth", "flops", "roofline", "steps", "timed"]
