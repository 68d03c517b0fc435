"""A device's attributes by the numbers that the driver has for them."""

from __future__ import annotations

from functools import cache

from gpulab.frontends.cuda.host import ATTRIBUTES
from gpulab.simulator import device as devices
from gpulab.simulator.device import LaunchError


@cache
def _names() -> dict[int, str]:
    from cuda.bindings import driver

    prefix = "CU_DEVICE_ATTRIBUTE_"
    known = driver.CUdevice_attribute.__members__
    return {int(member): name.removeprefix(prefix) for name, member in known.items()}


def attribute(number: int) -> int:
    """The simulated GPU's attribute. Raises LaunchError for one that its data sheet does not have."""
    name = _names().get(number, "")
    if name not in ATTRIBUTES:
        raise LaunchError(f"the simulated GPU does not know its attribute {name or number}.")
    return ATTRIBUTES[name](devices.current().gpu)
