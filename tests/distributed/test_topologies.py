"""Topologies against counts that their makers' papers state, and against cuts counted by hand."""

from __future__ import annotations

from math import comb

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpulab.content.lab_18_clusters_and_reliability.references.exercises import max_flow
from gpulab.subjects.distributed import topologies


def bisection(topology: topologies.Topology) -> float:
    """The least that two halves can exchange, over all halves."""

    def between(half, other):
        cables = [link for a, b, rate in topology.links for link in ((a, b, rate), (b, a, rate))]
        links = [*cables, *(("from", h, 1e9) for h in half), *((h, "to", 1e9) for h in other)]
        return max_flow(links, "from", "to")

    return min(between(*halves) for halves in topology.halves())


@given(st.integers(1, 4).map(lambda n: 2 * n))
def test_a_fat_tree_of_k_ports_has_a_quarter_of_k_cubed_hosts_and_full_switches(k):
    tree = topologies.fat_tree(k, 50.0)
    assert len(tree.hosts) == k**3 // 4 and len(tree.switches) == 5 * k * k // 4
    assert {tree.ports(switch) for switch in tree.switches} == {k}
    assert tree.cables == 3 * k**3 // 4


@given(st.integers(2, 10))
def test_every_half_of_the_hosts_is_named_once(hosts):
    names = tuple(f"h{i}" for i in range(hosts))
    halves = list(topologies.Topology("", names, ()).halves())
    assert len({frozenset((frozenset(a), frozenset(b))) for a, b in halves}) == len(halves)
    assert len(halves) == (comb(hosts, hosts // 2) // (1 if hosts % 2 else 2))
    assert all(len(a) == hosts // 2 and sorted(a + b) == sorted(names) for a, b in halves)


@pytest.mark.parametrize(
    ("topology", "links"),
    [
        (topologies.ring(8, 1), 2),
        (topologies.torus(2, 4, 1), 4),
        (topologies.leaf_spine(4, 2, 2, 1), 4),
        (topologies.leaf_spine(2, 4, 1, 1), 1),
        (topologies.leaf_spine(2, 4, 2, 1), 2),
        (topologies.dragonfly(4, 1, 2, 1), 4),
        (topologies.rails(2, 4, 9, 1), 4),
        (topologies.fat_tree(2, 1), 1),
    ],
    ids=str,
)
def test_the_narrowest_cut_of_small_networks(topology, links):
    assert bisection(topology) == links


def test_spines_that_join_rails_add_nothing_between_nodes():
    plain, joined = topologies.rails(2, 4, 9, 1), topologies.rails(2, 4, 9, 1, spines=2)
    assert bisection(plain) == bisection(joined) == 4


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: topologies.ring(2, 1),
        lambda: topologies.fat_tree(3, 1),
        lambda: topologies.leaf_spine(0, 1, 1, 1),
    ],
)
def test_networks_that_are_none_are_refused(wrong):
    with pytest.raises(ValueError):
        wrong()
