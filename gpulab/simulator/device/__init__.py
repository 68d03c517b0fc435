"""The device in use: its memory, and the one door through which every launch goes."""

from .checks import LaunchError, LaunchTypeError, dimensions
from .choice import current, has_gpu, simulate, uses_gpu
from .launch import Launch
from .simulated import Executor, SimulatedDevice
from .strides import contiguous_strides

__all__ = [
    "Executor",
    "Launch",
    "LaunchError",
    "LaunchTypeError",
    "SimulatedDevice",
    "contiguous_strides",
    "current",
    "dimensions",
    "has_gpu",
    "simulate",
    "uses_gpu",
]
