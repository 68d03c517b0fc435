"""Links between processors, and the switches between them: bytes per second in one direction.

Vendors state NVLink as the sum of both directions, InfiniBand and Ethernet as one direction in bits. Here all
of them are one direction, of all lanes of one port, without the overhead of packets. Of a switch the lanes
are its ports: what all of them carry together, in one direction.
"""

from __future__ import annotations

from dataclasses import dataclass

from . import sources
from .figure import Figure, Source
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


def _pcie(generation: str, transfers: float, source: Source, data: float, code: str) -> Link:
    """`data` is the share of the bits that is not the line code's; a lane moves one bit per transfer."""
    return Link(
        f"PCIe {generation} ×16",
        Figure(16, "lanes", source),
        Figure(transfers * data / 8, "B/s", source, f"{transfers / 1e9:g} GT/s, {code}"),
        Figure(16 * transfers / 8, "B/s", source, "raw: 16 lanes × GT/s ÷ 8"),
    )


def _nvlink(generation: int, links: int, per_link: float, source: Source) -> Link:
    return Link(
        f"NVLink {generation}",
        Figure(links, "links", source),
        Figure(per_link, "B/s", source),
        Figure(2 * links * per_link, "B/s", source, "both directions together"),
        both_directions=True,
    )


def _network(name: str, bits: float, source: Source, lanes: int = 4) -> Link:
    return Link(
        name,
        Figure(lanes, "lanes", source),
        Figure(bits / 8 / lanes, "B/s", source),
        Figure(bits / 8, "B/s", source, f"{bits / 1e9:g} Gbit/s, one direction"),
    )


def _switch(name: str, ports: int, per_port: float, source: Source) -> Link:
    return Link(
        name,
        Figure(ports, "ports", source),
        Figure(per_port, "B/s", source),
        Figure(2 * ports * per_port, "B/s", source, "both directions together"),
        both_directions=True,
    )


_CODED = (128 / 130, "128b/130b")  # from 3.0 to 5.0

LINKS: dict[str, Link] = {
    link.name: link
    for link in (
        _pcie("3.0", 8e9, sources.PCIE_3, *_CODED),
        _pcie("4.0", 16e9, sources.PCIE_4, *_CODED),
        _pcie("5.0", 32e9, sources.PCIE_5, *_CODED),
        _pcie("6.0", 64e9, sources.PCIE_6, 1, "no line code; its packets have a fixed size"),
        _nvlink(2, 6, 25e9, sources.VOLTA_PAPER),
        _nvlink(3, 12, 25e9, sources.AMPERE_PAPER),
        _nvlink(4, 18, 25e9, sources.HOPPER_PAPER),
        _nvlink(5, 18, 50e9, sources.BLACKWELL_SHEET),
        _nvlink(6, 36, 50e9, sources.NVLINK_PAGE),
        Link(
            "NVLink-C2C",
            Figure(1, "links", sources.GRACE_PAPER),
            Figure(450e9, "B/s", sources.GRACE_PAPER),
            Figure(900e9, "B/s", sources.GRACE_PAPER, "both directions together"),
            both_directions=True,
        ),
        _network("InfiniBand HDR", 200e9, sources.HDR_BRIEF),
        _network("InfiniBand NDR", 400e9, sources.NDR_BRIEF),
        _network("InfiniBand XDR", 800e9, sources.XDR_BRIEF),
        _network("Ethernet 100G", 100e9, sources.ETHERNET_100),
        _network("Ethernet 400G", 400e9, sources.ETHERNET_400, lanes=8),
        _network("Ethernet 800G", 800e9, sources.ETHERNET_800, lanes=8),
    )
}

SWITCHES: dict[str, Link] = {
    switch.name: switch
    for switch in (
        _switch("NVSwitch 1", 18, 25e9, sources.NVSWITCH_TALK),
        _switch("NVSwitch 2", 36, 25e9, sources.NVSWITCH_TALK),
        _switch("NVSwitch 3", 64, 25e9, sources.NVSWITCH_TALK),
        _switch("NVLink Switch", 72, 50e9, sources.GB200_SHEET),  # 18 of them in an NVL72: 130 TB/s
        _switch("Trident 5-X12", 20, 100e9, sources.TRIDENT_5),
        _switch("Tomahawk 5", 64, 100e9, sources.TOMAHAWK_5),
        _switch("Tomahawk 6", 64, 200e9, sources.TOMAHAWK_6),
    )
}


def link(name: str) -> Link:
    """The link of that name. Raises LookupError, in one line that lists the known ones.

    >>> link("PCIe 4.0 ×16").name
    'PCIe 4.0 ×16'
    """
    if name not in LINKS:
        raise LookupError(f"no link is named {name!r}; known are {', '.join(LINKS)}")
    return LINKS[name]


def switch(name: str) -> Link:
    """The switch of that name. Raises LookupError, in one line that lists the known ones.

    >>> switch("NVSwitch 1").name
    'NVSwitch 1'
    """
    if name not in SWITCHES:
        raise LookupError(f"no switch is named {name!r}; known are {', '.join(SWITCHES)}")
    return SWITCHES[name]
