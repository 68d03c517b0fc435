"""The device in use: its memory, and the one door through which every launch goes."""

from .checks import LaunchError, LaunchTypeError, dimensions
from .choice import current, has_gpu, simulate, uses_gpu
from .launch import Launch
from .simulated import Executor, SimulatedDevice

__all__ = [
    "Executor",
    "Launch",
    "LaunchError",
    "LaunchTypeError",
    "SimulatedDevice",
    "current",
    "dimensions",
    "has_gpu",
    "simulate",
    "uses_gpu",
]
