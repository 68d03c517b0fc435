"""Links between processors: bytes per second in one direction.

Vendors state NVLink as the sum of both directions and InfiniBand as one direction in bits. Here all of them
are one direction, of all lanes of one port, without the overhead of packets.
"""

from __future__ import annotations

from dataclasses import dataclass

from . import sources
from .figure import Figure
from .sources import ARITHMETIC


@dataclass(frozen=True)
class Link:
    """One kind of link. `per_lane` is the payload rate of a lane in one direction, in B/s.

    `stated` is the maker's figure in B/s, `both_directions` whether that is the sum of both.
    """

    name: str
    lanes: Figure
    per_lane: Figure
    stated: Figure
    both_directions: bool = False

    @property
    def per_direction(self) -> Figure:
        """Lanes × the rate of a lane, in B/s."""
        return Figure(int(self.lanes) * float(self.per_lane), "B/s", ARITHMETIC)

    def __str__(self) -> str:
        return self.name


def _pcie(generation: str, transfers: float, source: sources.Source) -> Link:
    # From 3.0 on 128 of 130 bits are data; a lane moves one bit per transfer.
    return Link(
        f"PCIe {generation} ×16",
        Figure(16, "lanes", source),
        Figure(transfers * 128 / 130 / 8, "B/s", source, f"{transfers / 1e9:g} GT/s, 128b/130b"),
        Figure(16 * transfers / 8, "B/s", source, "raw: 16 lanes × GT/s ÷ 8"),
    )


def _nvlink(generation: int, links: int, per_link: float, source: sources.Source) -> Link:
    return Link(
        f"NVLink {generation}",
        Figure(links, "links", source),
        Figure(per_link, "B/s", source),
        Figure(2 * links * per_link, "B/s", source, "both directions together"),
        both_directions=True,
    )


def _infiniband(name: str, bits: float, source: sources.Source) -> Link:
    return Link(
        f"InfiniBand {name}",
        Figure(4, "lanes", source),
        Figure(bits / 8 / 4, "B/s", source),
        Figure(bits / 8, "B/s", source, f"{bits / 1e9:g} Gbit/s, one direction"),
    )


LINKS: dict[str, Link] = {
    link.name: link
    for link in (
        _pcie("3.0", 8e9, sources.PCIE_3),
        _pcie("4.0", 16e9, sources.PCIE_4),
        _pcie("5.0", 32e9, sources.PCIE_5),
        _nvlink(2, 6, 25e9, sources.VOLTA_PAPER),
        _nvlink(3, 12, 25e9, sources.AMPERE_PAPER),
        _nvlink(4, 18, 25e9, sources.HOPPER_PAPER),
        _nvlink(5, 18, 50e9, sources.BLACKWELL_SHEET),
        Link(
            "NVLink-C2C",
            Figure(1, "links", sources.GRACE_PAPER),
            Figure(450e9, "B/s", sources.GRACE_PAPER),
            Figure(900e9, "B/s", sources.GRACE_PAPER, "both directions together"),
            both_directions=True,
        ),
        _infiniband("HDR", 200e9, sources.HDR_BRIEF),
        _infiniband("NDR", 400e9, sources.NDR_BRIEF),
    )
}


def link(name: str) -> Link:
    """The link of that name. Raises LookupError, in one line that lists the known ones."""
    if name not in LINKS:
        raise LookupError(f"no link is named {name!r}; known are {', '.join(LINKS)}")
    return LINKS[name]
