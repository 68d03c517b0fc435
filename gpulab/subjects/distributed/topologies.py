"""Networks as graphs: hosts, switches, and links with a rate in each direction.

Rates are in any unit that the caller likes (the labs use GB/s); a link carries its rate in both directions
at the same time. Builders follow M. Al-Fares, A. Loukissas, A. Vahdat, "A Scalable, Commodity Data Center
Network Architecture", 2008 (the fat tree) and J. Kim, W. Dally, S. Scott, D. Abts, "Technology-Driven,
Highly-Scalable Dragonfly Topology", 2008.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

Link = tuple[str, str, float]


@dataclass(frozen=True)
class Topology:
    """`hosts` send and receive, the other nodes are switches. `links` are (node, node, rate)."""

    name: str
    hosts: tuple[str, ...]
    links: tuple[Link, ...]

    @property
    def switches(self) -> tuple[str, ...]:
        """The nodes that are no hosts, in the order of their first link."""
        nodes = dict.fromkeys(node for a, b, _ in self.links for node in (a, b))
        return tuple(node for node in nodes if node not in self.hosts)

    @property
    def cables(self) -> int:
        """Links between any two nodes; two switches may share several."""
        return len(self.links)

    def ports(self, node: str) -> int:
        """Links that end at a node."""
        return sum((a == node) + (b == node) for a, b, _ in self.links)

    def halves(self) -> Iterator[tuple[tuple[str, ...], tuple[str, ...]]]:
        """Every way to part the hosts into two halves (the first has one host less where they are odd)."""
        even = len(self.hosts) % 2 == 0
        for half in combinations(self.hosts, len(self.hosts) // 2):
            if even and self.hosts[0] not in half:
                return  # from here on the halves come again with their sides changed
            yield half, tuple(host for host in self.hosts if host not in half)


def _hosts(count: int) -> tuple[str, ...]:
    return tuple(f"h{i}" for i in range(count))


def _positive(**numbers: float) -> None:
    for name, value in numbers.items():
        if value <= 0:
            raise ValueError(f"{name} must be positive, not {value}")


def ring(hosts: int, rate: float) -> Topology:
    """Hosts in a circle, each with two links. Raises ValueError for fewer than three hosts."""
    if hosts < 3:
        raise ValueError(f"a ring has at least three hosts, not {hosts}")
    names = _hosts(hosts)
    return Topology("ring", names, tuple((names[i], names[(i + 1) % hosts], rate) for i in range(hosts)))


def torus(rows: int, columns: int, rate: float) -> Topology:
    """Hosts in a grid whose rows and columns are rings; a ring of two has one link."""
    _positive(rows=rows, columns=columns)
    names = _hosts(rows * columns)
    links: list[Link] = []
    for r in range(rows):
        for c in range(columns):
            here = names[r * columns + c]
            if columns > 2 or (columns == 2 and c == 0):
                links.append((here, names[r * columns + (c + 1) % columns], rate))
            if rows > 2 or (rows == 2 and r == 0):
                links.append((here, names[(r + 1) % rows * columns + c], rate))
    return Topology("torus", names, tuple(links))


def leaf_spine(leaves: int, per_leaf: int, spines: int, rate: float) -> Topology:
    """`per_leaf` hosts on each leaf switch, one link from every leaf to every spine; all of one rate.

    `per_leaf` / `spines` is the oversubscription of the leaves.
    """
    _positive(leaves=leaves, per_leaf=per_leaf, spines=spines)
    names = _hosts(leaves * per_leaf)
    down = tuple((host, f"leaf {i // per_leaf}", rate) for i, host in enumerate(names))
    up = tuple((f"leaf {leaf}", f"spine {spine}", rate) for leaf in range(leaves) for spine in range(spines))
    return Topology("leaf and spine", names, down + up)


def fat_tree(ports: int, rate: float) -> Topology:
    """Three levels of switches that all have `ports` ports: k pods of k/2 edge and k/2 aggregation switches,
    (k/2)² core switches, k³/4 hosts. Raises ValueError for an odd number of ports."""
    if ports < 2 or ports % 2:
        raise ValueError(f"a fat tree is built of switches with an even number of ports, not {ports}")
    half = ports // 2
    names = _hosts(ports * half * half)
    links: list[Link] = []
    for pod in range(ports):
        for i in range(half):
            edge = f"edge {pod}.{i}"
            links += [(names[(pod * half + i) * half + h], edge, rate) for h in range(half)]
            links += [(edge, f"aggregation {pod}.{j}", rate) for j in range(half)]
        links += [(f"aggregation {pod}.{j}", f"core {j}.{c}", rate) for j in range(half) for c in range(half)]
    return Topology("fat tree", names, tuple(links))


def dragonfly(groups: int, routers: int, per_router: int, rate: float, between: float = 0.0) -> Topology:
    """Groups of routers that are all linked to each other, one link of rate `between` (`rate` for 0) for
    each two groups; the routers of a group take turns in holding it."""
    _positive(groups=groups, routers=routers, per_router=per_router)
    names = _hosts(groups * routers * per_router)
    links: list[Link] = [
        (host, f"router {i // per_router // routers}.{i // per_router % routers}", rate)
        for i, host in enumerate(names)
    ]
    used = [0] * groups
    for group in range(groups):
        links += [
            (f"router {group}.{a}", f"router {group}.{b}", rate) for a, b in combinations(range(routers), 2)
        ]
    for a, b in combinations(range(groups), 2):
        links.append((f"router {a}.{used[a] % routers}", f"router {b}.{used[b] % routers}", between or rate))
        used[a] += 1
        used[b] += 1
    return Topology("dragonfly", names, tuple(links))


def rails(nodes: int, per_node: int, inside: float, outside: float, spines: int = 0) -> Topology:
    """Nodes of GPUs (the hosts) on a switch of their own; GPU i of every node has a link to rail switch i.

    `spines` switches join the rails, with a link of `nodes` × `outside` / `spines` each, so that they do not
    narrow the way. Without spines a message to another rail changes it inside a node.
    """
    _positive(nodes=nodes, per_node=per_node)
    names = _hosts(nodes * per_node)
    links: list[Link] = []
    for i, gpu in enumerate(names):
        links += [
            (gpu, f"NVSwitch {i // per_node}", inside),
            (gpu, f"rail {i % per_node}", outside),
        ]
    links += [
        (f"rail {rail}", f"spine {spine}", nodes * outside / spines)
        for rail in range(per_node)
        for spine in range(spines)
    ]
    return Topology("rails", names, tuple(links))
