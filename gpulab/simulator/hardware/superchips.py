"""A CPU and a GPU that share one coherent address space over a link; each has a memory of its own."""

from __future__ import annotations

from dataclasses import dataclass, replace

from . import sources
from .figure import Figure
from .links import Link, link


@dataclass(frozen=True, eq=False)
class Superchip:
    """One module. Each processor may read either memory, the other's at the rate of the link.

    `gpu_bytes` and `cpu_bytes` are the sizes of the memories, B; `gpu_bandwidth` and `cpu_bandwidth` what
    each gives its own processor, B/s; `link_name` is an entry of `gpulab.hardware.LINKS`.
    """

    name: str
    year: Figure
    gpu_bytes: Figure
    gpu_bandwidth: Figure
    cpu_bytes: Figure
    cpu_bandwidth: Figure
    link_name: str

    @property
    def link(self) -> Link:
        """The link between the two."""
        return link(self.link_name)

    def __str__(self) -> str:
        return self.name


_SHEET = sources.GH200_SHEET
_GH200 = Superchip(
    "GH200",
    Figure(2023, "year", _SHEET),
    Figure(96e9, "B", _SHEET, "HBM3"),
    Figure(4e12, "B/s", _SHEET),
    Figure(480e9, "B", _SHEET, "LPDDR5X, at most"),
    Figure(512e9, "B/s", _SHEET, "at most"),
    "NVLink-C2C",
)

SUPERCHIPS: dict[str, Superchip] = {
    each.name: each
    for each in (
        _GH200,
        replace(
            _GH200,
            name="GH200 144GB",
            gpu_bytes=Figure(144e9, "B", _SHEET, "HBM3e"),
            gpu_bandwidth=Figure(4.9e12, "B/s", _SHEET),
        ),
    )
}


def superchip(name: str) -> Superchip:
    """The superchip of that name. Raises LookupError, in one line that lists the known ones.

    >>> superchip("GH200").link.name
    'NVLink-C2C'
    """
    if name not in SUPERCHIPS:
        raise LookupError(f"no superchip is named {name!r}; known are {', '.join(SUPERCHIPS)}")
    return SUPERCHIPS[name]
