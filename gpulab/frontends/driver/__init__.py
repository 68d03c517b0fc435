"""CUDA's driver as the launchers of NVIDIA's Python languages call it, answered by the simulated device.

CuTe DSL and cuTile bring launchers of their own: compiled code that packs arguments and calls the driver
through a table of functions. They are given this table. So arguments are packed by the real launcher, and
what arrives here is a kernel, a grid and the packed bytes.
"""

from __future__ import annotations

from .answers import FAILED, SUCCESS, c_function, errors_raised
from .counting import counted
from .host_arrays import HostCopies, Region, exported, is_on_device, label_of, region_of
from .launches import Config, Library, enter, handle, labelled, launch, named, read_config, taken_out

__all__ = [
    "FAILED",
    "SUCCESS",
    "Config",
    "HostCopies",
    "Library",
    "Region",
    "c_function",
    "counted",
    "enter",
    "errors_raised",
    "exported",
    "handle",
    "is_on_device",
    "label_of",
    "labelled",
    "launch",
    "named",
    "read_config",
    "region_of",
    "taken_out",
]
