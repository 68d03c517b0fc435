"""What collectives cost by the α–β model: a message of n bytes takes α + n/β seconds.

α is the latency of a message, β the bandwidth of a link in one direction; every rank sends and receives
one message at a time, all links alike. Modelled, not measured. Sources: R. Thakur, R. Rabenseifner, W.
Gropp, "Optimization of Collective Communication Operations in MPICH", 2005; P. Patarasuk, X. Yuan,
"Bandwidth Optimal All-reduce Algorithms for Clusters of Workstations", 2009 (the ring).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, log2


@dataclass(frozen=True)
class Network:
    """`latency` in seconds a message, `bandwidth` in bytes per second and direction."""

    latency: float
    bandwidth: float

    def message(self, size: float) -> float:
        """Seconds for one message of `size` bytes."""
        return self.latency + size / self.bandwidth


def _checked(ranks: int, size: float) -> None:
    if ranks < 1 or size < 0:
        raise ValueError(f"at least one rank and no negative size, not {ranks} ranks and {size:g} bytes")


def ring_reduce_scatter(network: Network, ranks: int, size: float) -> float:
    """Seconds until each of `ranks` has its share of the sum of arrays of `size` bytes."""
    _checked(ranks, size)
    return (ranks - 1) * network.message(size / ranks)


def ring_all_gather(network: Network, ranks: int, size: float) -> float:
    """Seconds until all have an array of `size` bytes of which each held its share."""
    return ring_reduce_scatter(network, ranks, size)


def ring_all_reduce(network: Network, ranks: int, size: float) -> float:
    """Reduce-scatter, then all-gather: 2 (p − 1) messages of size/p, the least bytes that there can be."""
    return ring_reduce_scatter(network, ranks, size) + ring_all_gather(network, ranks, size)


def tree_broadcast(network: Network, ranks: int, size: float) -> float:
    """Down a binomial tree: ⌈log2 p⌉ messages one after the other."""
    _checked(ranks, size)
    return ceil(log2(ranks)) * network.message(size)


def tree_all_reduce(network: Network, ranks: int, size: float) -> float:
    """Up a tree and down again: few messages, but each of the whole size."""
    return 2 * tree_broadcast(network, ranks, size)


def halving_all_reduce(network: Network, ranks: int, size: float) -> float:
    """Recursive halving, then doubling: 2 log2 p messages and as few bytes as the ring.

    Raises ValueError unless the number of ranks is a power of two.
    """
    _checked(ranks, size)
    if ranks & (ranks - 1):
        raise ValueError(f"recursive halving takes a power of two of ranks, not {ranks}")
    return 2 * (int(log2(ranks)) * network.latency + (ranks - 1) / ranks * size / network.bandwidth)


def hierarchical_all_reduce(
    inside: Network, between: Network, per_node: int, nodes: int, size: float
) -> float:
    """Reduce-scatter inside each node, all-reduce of the shares between nodes, all-gather inside.

    The shares travel side by side: each of the `per_node` ranks of a node has a link of its own to the
    outside.
    """
    return (
        ring_reduce_scatter(inside, per_node, size)
        + ring_all_reduce(between, nodes, size / per_node)
        + ring_all_gather(inside, per_node, size)
    )
